//go:build e2e

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	clog "github.com/coredns/coredns/plugin/pkg/log"
)

// These tests need tools that a Debian machine has in the packages
// bind9-dnsutils, unbound and pdns-recursor. Without one they fail.

// tool finds a program and tells its version.
func tool(t *testing.T, name string, version ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = "/usr/sbin/" + name
	}
	out, err := exec.CommandContext(t.Context(), path, version...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s is needed: %v\n%s", name, err, out)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	t.Logf("%s: %s", name, first)
	return path
}

// output runs a tool against a server and gives what it says.
func output(t *testing.T, path, addr string, args ...string) string {
	t.Helper()
	args = append([]string{"@127.0.0.1", "-p", portOf(addr)}, args...)
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", path, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// background runs a program until the test ends.
func background(t *testing.T, path string, args ...string) {
	t.Helper()
	var out lockedBuffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Wait() // the context has killed it by then
		if t.Failed() {
			t.Logf("%s said:\n%s", path, out.String())
		}
	})
}

// daemon runs a resolver in the foreground until the test ends, and waits until
// it answers for example.com at addr.
func daemon(t *testing.T, addr, path string, args ...string) {
	t.Helper()
	background(t, path, args...)
	q := parseQuery(t, "example.com TXT")
	m := q.msg(t)
	m.RecursionDesired = true
	eventually(t, path+" answers", func() bool {
		r, err := q.exchange(m, addr)
		return err == nil && len(r.Answer) > 0
	})
}

// authority is the steered zone and a foreign one, with an account of what
// resolvers ask.
type authority struct {
	*server
	log *lockedBuffer
}

func serveAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{log: new(lockedBuffer)}
	clog.SetOutput(a.log)
	t.Cleanup(clog.Discard)
	const log = `log . "asked {name} {type}."`
	foreign := writeFile(t, t.TempDir(), "db.example.net", netText)
	a.server = serve(t, withFile(t, log)+"example.net:53 {\n"+log+"\n file "+foreign+"\n}\n")
	return a
}

// asked is how often a question came in.
func (a *authority) asked(name, qtype string) int {
	return strings.Count(a.log.String(), fmt.Sprintf("asked %s. %s.\n", name, qtype))
}

// resolverCase is a question to a resolver in front, the addresses to come, and
// how often the authority is to be asked for it.
type resolverCase struct {
	what, query, want string
	upstream          int
}

// whatever stands for any number of questions to the authority.
const whatever = -1

func (a *authority) checkResolver(t *testing.T, resolver string, cases []resolverCase) {
	t.Helper()
	total := make(map[string]int)
	for _, c := range cases {
		q := parseQuery(t, c.query)
		m := q.msg(t)
		m.RecursionDesired = true
		r, err := q.exchange(m, resolver)
		if err != nil {
			t.Fatalf("%s: %s: %v", c.what, c.query, err)
		}
		r.Authoritative = true // a resolver isn't, and brief would say so
		if got, _, _ := strings.Cut(brief(r), " /"); got != c.want {
			t.Errorf("%s: %s: got %s, want %s", c.what, c.query, got, c.want)
		}
		if c.upstream == whatever {
			continue
		}
		words := strings.Fields(c.query)
		key := words[0] + " " + words[1]
		total[key] += c.upstream
		eventually(t, fmt.Sprintf("%s: %s is asked %d times, not %d\n%s", c.what, key, total[key], a.asked(words[0], words[1]), a.log), func() bool {
			return a.asked(words[0], words[1]) >= total[key]
		})
		if n := a.asked(words[0], words[1]); n != total[key] {
			t.Errorf("%s: %s: the authority was asked %d times, want %d", c.what, c.query, n, total[key])
		}
	}
}
