package probe

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-945f90c5/gslb/internal/check"
)

const (
	patience = time.Minute            // of probes that are to succeed
	soon     = 300 * time.Millisecond // of probes that are to time out; see compareProbe
)

// define makes a check with a name, patience, and what set adds.
func define(kind check.Kind, set func(*check.Check)) *check.Check {
	c := check.Defaults("test", kind)
	c.Timeout = patience
	if kind == check.TCP || kind == check.GRPC {
		c.Port = 1 // targets say otherwise
	}
	if set != nil {
		set(&c)
	}
	return &c
}

// noLeaks asserts that the goroutines a test started end with it. It must come
// before the cleanups that end them.
func noLeaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { nothingLeft(t, before) })
}

// nothingLeft waits until the goroutines that a test started have ended. A busy machine may
// take longer than goleak waits.
func nothingLeft(t testing.TB, before goleak.Option) {
	t.Helper()
	for end := time.Now().Add(time.Minute); goleak.Find(before) != nil && time.Now().Before(end); {
	}
	goleak.VerifyNone(t, before)
}

// prepare makes the runner of a check, and closes it with the test.
func prepare(t testing.TB, c *check.Check) *Runner {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// to is a target at a listener's address.
func to(address string) Target {
	ap := netip.MustParseAddrPort(address)
	return Target{Addr: ap.Addr(), Port: ap.Port()}
}

// outcomeOf is what tests compare of a result.
type outcomeOf struct {
	status Status
	class  Class
	reason string
}

var passed = outcomeOf{Pass, ClassOK, ""}

// compareOutcome compares all but the times.
func (want outcomeOf) compareOutcome(t testing.TB, got Result) {
	t.Helper()
	if (outcomeOf{got.Status, got.Class, got.Reason}) != want {
		t.Errorf("got %v %s %q, want %v %s %q", got.Status, got.Class, got.Reason, want.status, want.class, want.reason)
	}
}

func (want outcomeOf) compare(t testing.TB, got Result) {
	t.Helper()
	want.compareOutcome(t, got)
	if got.Total <= 0 || got.Connected > got.Total || got.FirstByte > got.Total {
		t.Errorf("times out of order: %+v", got)
	}
}

// compareProbe compares a probe of an endpoint. One that times out before it has got as
// far as it should, as the machine is busy, is made again with more time.
func (want outcomeOf) compareProbe(t testing.TB, c *check.Check, at Target) {
	t.Helper()
	for reason := want.reason; ; {
		got := prepare(t, c).Probe(t.Context(), at)
		if got.Class != ClassTimeout || got.Reason == want.reason || c.Timeout >= patience {
			want.compare(t, got)
			return
		}
		longer := *c
		longer.Timeout *= 4
		c, want.reason = &longer, strings.ReplaceAll(reason, soon.String(), longer.Timeout.String())
	}
}

func TestNewRefuses(t *testing.T) {
	noLeaks(t)
	missing := filepath.Join(t.TempDir(), "missing.pem")
	body := func(text string) []check.Condition { return []check.Condition{{Kind: check.BodyMatch, Text: text}} }
	for _, tc := range []struct {
		name string
		kind check.Kind
		set  func(*check.Check)
		want string
	}{
		{"kind", "smtp", nil, `check test: unknown kind "smtp"`},
		{"no timeout", check.HTTP, func(c *check.Check) { c.Timeout = 0 }, "timeout is 0s"},
		{"keepalive of tcp", check.TCP, func(c *check.Check) { c.KeepAlive = true }, "keepalive is for http, https and grpc"},
		{"port missing", check.TCP, func(c *check.Check) { c.Port = 0 }, "port 0 of a tcp check"},
		{"port too high", check.HTTP, func(c *check.Check) { c.Port = 70000 }, "port 70000"},
		{"path", check.HTTP, func(c *check.Check) { c.Path = "health" }, `path "health", expected one such as /health`},
		{"path with host", check.HTTP, func(c *check.Check) { c.Path = "http://a/b" }, "expected one such as /health"},
		{"method", check.HTTP, func(c *check.Check) { c.Method = "G T" }, `method "G T"`},
		{"header name", check.HTTP, func(c *check.Check) { c.Headers = []check.Header{{Name: "a b", Value: "secret"}} }, `header "a b"`},
		{"header value", check.HTTP, func(c *check.Check) { c.Headers = []check.Header{{Name: "A", Value: "x\r\ny"}} }, `header "A"`},
		{"host header", check.HTTP, func(c *check.Check) { c.Headers = []check.Header{{Name: "host", Value: "x"}} }, "expected authority instead"},
		{"own header", check.HTTP, func(c *check.Check) { c.Headers = []check.Header{{Name: "connection", Value: "x"}} }, "set by the probe itself"},
		{"regexp", check.HTTP, func(c *check.Check) { c.Expect = body("(") }, "expect body matches: error parsing regexp: missing closing )"},
		{"full regexp", check.HTTP, func(c *check.Check) { c.Full = body("(") }, "full body matches"},
		{"status of tcp", check.TCP, func(c *check.Check) { c.Expect = []check.Condition{{Kind: check.Status}} }, "checks of kind tcp have no such thing"},
		{"body of dns", check.DNS, func(c *check.Check) { c.Expect = body("x") }, "checks of kind dns have no such thing"},
		{"body of icmp", check.ICMP, func(c *check.Check) { c.Expect = body("x") }, "checks of kind icmp have no such thing"},
		{"body of grpc", check.GRPC, func(c *check.Check) { c.Full = body("x") }, "checks of kind grpc have no such thing"},
		{"status range", check.HTTP, func(c *check.Check) {
			c.Expect = []check.Condition{{Kind: check.Status, Ranges: [][2]int{{299, 200}}}}
		}, "status 299-200"},
		{"no status", check.HTTP, func(c *check.Check) { c.Expect = []check.Condition{{Kind: check.Status}} }, "no status"},
		{"json path", check.HTTP, func(c *check.Check) {
			c.Expect = []check.Condition{{Kind: check.JSON, Field: "a", Op: "==", Value: "1"}}
		}, `json path "a"`},
		{"json order of text", check.HTTP, func(c *check.Check) {
			c.Expect = []check.Condition{{Kind: check.JSON, Field: ".a", Op: "<", Value: "ok"}}
		}, "expected a number after <"},
		{"json operator", check.HTTP, func(c *check.Check) {
			c.Expect = []check.Condition{{Kind: check.JSON, Field: ".a", Op: "=", Value: "1"}}
		}, `operator "="`},
		{"header condition", check.HTTP, func(c *check.Check) {
			c.Expect = []check.Condition{{Kind: check.HeaderField, Field: "a b"}}
		}, "not a name of a header"},
		{"rcode", check.DNS, func(c *check.Check) { c.Expect = []check.Condition{{Kind: check.RCode, Field: "MAYBE"}} }, `rcode "MAYBE"`},
		{"no address", check.DNS, func(c *check.Check) { c.Expect = []check.Condition{{Kind: check.Address}} }, "at least one"},
		{"dns type", check.DNS, func(c *check.Check) { c.QName, c.QType = "a.test", "B" }, `dns type "B"`},
		{"dns name", check.DNS, func(c *check.Check) { c.QName, c.QType = "a..test", "A" }, `dns name "a..test"`},
		{"dns long name", check.DNS, func(c *check.Check) { c.QName, c.QType = strings.Repeat("a.", 200), "A" }, "dns name"},
		{"tls options without tls", check.HTTP, func(c *check.Check) { c.Insecure = true }, "for checks with TLS"},
		{"ca missing", check.HTTPS, func(c *check.Check) { c.CA = missing }, "ca: open " + missing},
		{"ca empty", check.HTTPS, func(c *check.Check) { c.CA = "runner_test.go" }, "runner_test.go holds no certificate"},
		{"cert missing", check.HTTPS, func(c *check.Check) { c.Cert, c.Key = missing, missing }, "cert " + missing},
		{"full alone of tcp", check.TCP, func(c *check.Check) { c.Full = body("x") }, "write one"},
		{"no command", check.Exec, nil, "no command"},
		{"port of a command", check.Exec, func(c *check.Check) { c.Command, c.Port = []string{"sh"}, 70000 }, "port 70000, expected 0 to 65535"},
		{"command missing", check.Exec, func(c *check.Check) { c.Command = []string{missing} }, "expected a program"},
		{"command not executable", check.Exec, func(c *check.Check) { c.Command = []string{"./runner_test.go"} }, "expected a program"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(define(tc.kind, tc.set))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "check test: ") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("secret shown: %v", err)
			}
		})
	}
}

func TestTargetsThatCannotBe(t *testing.T) {
	noLeaks(t)
	r := prepare(t, define(check.HTTP, func(c *check.Check) { c.Each = true }))
	outcomeOf{Fail, ClassInternal, "the endpoint has no address"}.compare(t, r.Probe(t.Context(), Target{}))
	outcomeOf{Fail, ClassInternal, "authority each, but the host has no name"}.compare(t,
		r.Probe(t.Context(), Target{Addr: netip.MustParseAddr("127.0.0.1")}))
}

func TestPlaces(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for _, tc := range []struct {
		name        string
		kind        check.Kind
		set         func(*check.Check)
		target      Target
		address     string
		host, inTLS string
	}{
		{"http", check.HTTP, nil, Target{Addr: v4}, "192.0.2.1:80", "192.0.2.1", "192.0.2.1"},
		{"https", check.HTTPS, nil, Target{Addr: v6}, "[2001:db8::1]:443", "[2001:db8::1]", "2001:db8::1"},
		{"check's port", check.HTTP, func(c *check.Check) { c.Port = 8080 }, Target{Addr: v6}, "[2001:db8::1]:8080", "[2001:db8::1]:8080", "2001:db8::1"},
		{"endpoint's port", check.HTTP, func(c *check.Check) { c.Port = 8080 }, Target{Addr: v4, Port: 81}, "192.0.2.1:81", "192.0.2.1:81", "192.0.2.1"},
		{"authority", check.HTTPS, func(c *check.Check) { c.Authority = "a.test." }, Target{Addr: v4, Name: "b.test"}, "192.0.2.1:443", "a.test", "a.test"},
		{"each", check.HTTPS, func(c *check.Check) { c.Each, c.Authority = true, "a.test" }, Target{Addr: v4, Name: "b.test."}, "192.0.2.1:443", "b.test", "b.test"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made, err := newHTTP(define(tc.kind, tc.set))
			if err != nil {
				t.Fatal(err)
			}
			p := made.(*httpProber)
			at, err := p.places.of(tc.target)
			if err != nil || at.addr.String() != tc.address || p.host(at) != tc.host || at.serverName() != tc.inTLS {
				t.Errorf("got %v %q %q (%v)", at.addr, p.host(at), at.serverName(), err)
			}
		})
	}
}

// stuck starts probes of an endpoint that never answers, and returns when all
// of them wait there. They end with the test.
func stuck(t *testing.T, n int) {
	t.Helper()
	waiting := make(chan struct{})
	address := serveRaw(t, func(conn *rawConn) {
		conn.readRequest()
		waiting <- struct{}{}
		conn.untilClosed()
	})
	r := prepare(t, define(check.HTTP, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Result)
	for range n {
		go func() { done <- r.Probe(ctx, to(address)) }()
	}
	for range n {
		<-waiting
	}
	t.Cleanup(func() {
		cancel()
		for range n {
			outcomeOf{Fail, ClassInternal, "first byte: cancelled"}.compare(t, <-done)
		}
	})
}
