package probe

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// TestICMP probes loopback where this machine allows it, and holds the error
// to be clear where it doesn't.
func TestICMP(t *testing.T) {
	noLeaks(t)
	r, err := New(define(check.ICMP, nil))
	if err != nil {
		clearly(t, err)
		return
	}
	var wg sync.WaitGroup
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"} {
		for range 10 {
			wg.Go(func() {
				got := r.Probe(t.Context(), Target{Addr: netip.MustParseAddr(address)})
				if got.Class == ClassInternal {
					clearly(t, errors.New(got.Reason))
					return
				}
				passed.compare(t, got)
			})
		}
	}
	wg.Wait()
}

func clearly(t *testing.T, err error) {
	t.Helper()
	for _, part := range []string{"icmp is not allowed here", "net.ipv4.ping_group_range", "CAP_NET_RAW"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: expected it to tell of %s", err, part)
		}
	}
}

func TestICMPNotAllowed(t *testing.T) {
	for name, failure := range map[string]error{
		"denied": syscall.EACCES, "not permitted": &net.OpError{Op: "dial", Err: syscall.EPERM}, "other": fs.ErrInvalid,
	} {
		_, err := newICMP(define(check.ICMP, nil), func(context.Context, netip.Addr, bool) (echoConn, error) { return nil, failure })
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		clearly(t, err)
	}
}

// pinger answers echo requests by what the test makes of them.
type pinger struct {
	answers [][]byte
	stop    chan struct{}
	once    *sync.Once
	reply   func(*icmp.Message) [][]byte
}

func newPinger(reply func(*icmp.Message) [][]byte) *pinger {
	return &pinger{stop: make(chan struct{}), once: new(sync.Once), reply: reply}
}

func (p *pinger) Send(b []byte) error {
	m, err := icmp.ParseMessage(1, b)
	if err == nil {
		p.answers = p.reply(m)
	}
	return err
}

func (p *pinger) ReadFrom(b []byte) (int, net.Addr, error) {
	if len(p.answers) == 0 {
		<-p.stop
		return 0, nil, context.DeadlineExceeded
	}
	n := copy(b, p.answers[0])
	p.answers = p.answers[1:]
	return n, nil, nil
}

func (p *pinger) SetDeadline(time.Time) error { p.once.Do(func() { close(p.stop) }); return nil }
func (p *pinger) Close() error                { return nil }

// TestICMPMatches holds that only the reply to the probe's own request counts.
func TestICMPMatches(t *testing.T) {
	noLeaks(t)
	type change func(m *icmp.Message, e *icmp.Echo)
	pack := func(m *icmp.Message, changes ...change) (all [][]byte) {
		for _, f := range changes {
			e := *m.Body.(*icmp.Echo)
			other := icmp.Message{Type: ipv4.ICMPTypeEchoReply, Body: &e}
			f(&other, &e)
			b, err := other.Marshal(nil)
			if err != nil {
				t.Error(err)
			}
			all = append(all, b)
		}
		return all
	}
	same := func(*icmp.Message, *icmp.Echo) {}
	id := func(_ *icmp.Message, e *icmp.Echo) { e.ID ^= 1 }
	seq := func(_ *icmp.Message, e *icmp.Echo) { e.Seq ^= 1 }
	data := func(_ *icmp.Message, e *icmp.Echo) { e.Data = []byte("0123456789012345") }
	request := func(m *icmp.Message, _ *icmp.Echo) { m.Type = ipv4.ICMPTypeEcho }
	unreachable := func(m *icmp.Message, e *icmp.Echo) {
		m.Type, m.Body = ipv4.ICMPTypeDestinationUnreachable, &icmp.DstUnreach{Data: e.Data}
	}
	late := outcomeOf{Fail, ClassTimeout, "answer: timeout after " + soon.String()}
	for _, tc := range []struct {
		name    string
		raw     bool
		changes []change
		want    outcomeOf
	}{
		{"reply", true, []change{same}, passed},
		{"others first", true, []change{id, seq, data, request, unreachable, same}, passed},
		{"others only", true, []change{id, seq, data, request, unreachable}, late},
		{"nothing", true, nil, late},
		{"the kernel's id", false, []change{id}, passed},
		{"others, the kernel's id", false, []change{seq, data, request, unreachable}, late},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := define(check.ICMP, func(c *check.Check) {
				if tc.want == late {
					c.Timeout = soon
				}
			})
			p, err := newICMP(c, func(_ context.Context, _ netip.Addr, raw bool) (echoConn, error) {
				if raw != tc.raw {
					return nil, syscall.EACCES
				}
				return newPinger(func(m *icmp.Message) [][]byte { return pack(m, tc.changes...) }), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			tc.want.compare(t, newRunner(c, p).Probe(t.Context(), Target{Addr: netip.MustParseAddr("192.0.2.1")}))
		})
	}
}
