//go:build unix

package probe

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

func TestExec(t *testing.T) {
	noLeaks(t)
	contains := check.Condition{Kind: check.BodyText, Text: "ready"}
	late := fmt.Sprintf("command: timeout after %v", soon)
	for _, tc := range []struct {
		name, script string
		set          func(*check.Check)
		want         outcomeOf
	}{
		{"exit 0", "exit 0", nil, passed},
		{"exit 1", "exit 1", nil, outcomeOf{Fail, ClassStatus, "command: exit status 1"}},
		{"exit 75 is no more than a failure", "exit 75", nil, outcomeOf{Fail, ClassStatus, "command: exit status 75"}},
		{"says why", "echo; echo 'disk is full'; echo more >&2; exit 2", nil, outcomeOf{Fail, ClassStatus, "command: exit status 2: disk is full"}},
		{"signal", "kill -9 $$", nil, outcomeOf{Fail, ClassStatus, "command: signal: killed"}},
		{"output", "echo not; echo ready >&2", expect(contains), passed},
		{"other output", "echo no", expect(contains), outcomeOf{Fail, ClassContent, "body doesn't contain ready"}},
		{"full", "echo ready", full(contains), outcomeOf{Full, ClassFull, "full: body contains ready"}},
		{"full despite the code", "echo ready; exit 1", full(contains), outcomeOf{Full, ClassFull, "full: body contains ready"}},
		{"too much output", "head -c 1000000 /dev/zero; echo ready", expect(contains), outcomeOf{Fail, ClassContent, "body doesn't contain ready"}},
		{"arguments", `test "$1" = "a b" && test "$0" = zero`, func(c *check.Check) { c.Command = append(c.Command, "zero", "a b") }, passed},
		{"environment", `test "$GSLB_ADDRESS $GSLB_PORT $GSLB_HOST" = "2001:db8::1 81 a.test" && test -n "$PATH"`, nil, passed},
		{"no input", "read x && exit 1; exit 0", nil, passed},
		{"too slow", "sleep 60", nil, outcomeOf{Fail, ClassTimeout, late}},
		{"endless output", "yes", nil, outcomeOf{Fail, ClassTimeout, late}},
		{"ignores signals", "trap '' TERM INT HUP; sleep 60; sleep 60", nil, outcomeOf{Fail, ClassTimeout, late}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := define(check.Exec, func(c *check.Check) {
				c.Command, c.Authority = []string{"sh", "-c", tc.script}, "a.test"
				if tc.set != nil {
					tc.set(c)
				}
				if tc.want.class == ClassTimeout {
					c.Timeout = soon
				}
			})
			tc.want.compareProbe(t, c, Target{Addr: netip.MustParseAddr("2001:db8::1"), Port: 81})
		})
	}
}

// TestExecLeavesNothing holds that what a command started ends with it, be it
// killed or well.
func TestExecLeavesNothing(t *testing.T) {
	noLeaks(t)
	for name, then := range map[string]string{"killed": "wait", "well": "exit 0"} {
		file := filepath.Join(t.TempDir(), "pid")
		pid := 0
		for timeout := soon; pid == 0; timeout *= 4 { // until it has come to write the file
			want := passed
			c := define(check.Exec, func(c *check.Check) { c.Command = []string{"sh", "-c", "sleep 600 & echo $! > " + file + "; " + then} })
			if name == "killed" {
				c.Timeout, want = timeout, outcomeOf{Fail, ClassTimeout, fmt.Sprintf("command: timeout after %v", timeout)}
			}
			want.compare(t, prepare(t, c).Probe(t.Context(), Target{Addr: netip.MustParseAddr("192.0.2.1")}))
			text, err := os.ReadFile(file)
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			if err != nil && timeout > patience {
				t.Fatal(err)
			}
		}
		if !ended(t, pid) {
			t.Errorf("%s: process %d is still there", name, pid)
		}
	}
}

// ended waits for the end of a process, which init may not have noticed yet.
func ended(t *testing.T, pid int) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 12000 { // a minute
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if syscall.Kill(pid, 0) == syscall.ESRCH || err == nil && strings.Contains(string(state), ") Z ") {
			return true
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
		}
	}
	return false
}

// TestCancelled holds that probes of every kind return when their context ends.
func TestCancelled(t *testing.T) {
	noLeaks(t)
	silent := serveRaw(t, (*rawConn).untilClosed)
	dns := serveDNS(t, nil, nil)
	body := []check.Condition{{Kind: check.BodyText, Text: "x"}}
	for _, tc := range []struct {
		kind  check.Kind
		to    string
		set   func(*check.Check)
		phase string
	}{
		{check.HTTP, silent, nil, "first byte"},
		{check.HTTPS, silent, func(c *check.Check) { c.Authority = "a.test" }, "tls handshake"},
		{check.TCP, silent, func(c *check.Check) { c.Expect = body }, "first byte"},
		{check.TCP, silent, func(c *check.Check) { c.TLS = true }, "tls handshake"},
		{check.GRPC, silent, nil, "answer"},
		{check.DNS, dns, func(c *check.Check) { c.QName, c.QType = "a.test", "A" }, "answer"},
		{check.Exec, silent, func(c *check.Check) { c.Command = []string{"sleep", "60"} }, "command"},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			t.Parallel()
			r := prepare(t, define(tc.kind, tc.set))
			want := outcomeOf{Fail, ClassInternal, tc.phase + ": cancelled"}
			for wait := 30 * time.Millisecond; ; wait *= 4 { // until it has got that far
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(wait, cancel)
				if got := r.Probe(ctx, to(tc.to)); got.Reason == want.reason || wait > patience/4 {
					want.compare(t, got)
					return
				}
			}
		})
	}
}
