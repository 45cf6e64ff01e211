package probe

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// counter counts the connections of a server by their state.
type counter struct {
	opened, closed atomic.Int64
	ended          chan struct{} // one for each connection closed
}

func (c *counter) state(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		c.opened.Add(1)
	case http.StateClosed:
		c.closed.Add(1)
		c.ended <- struct{}{}
	}
}

// serveCounted serves HTTP, or HTTPS with a configuration.
func serveCounted(t testing.TB, config *tls.Config, h http.HandlerFunc) (string, *counter) {
	t.Helper()
	n := &counter{ended: make(chan struct{}, 1000)}
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = n.state
	if config == nil {
		s.Start()
	} else {
		s.TLS, s.EnableHTTP2 = config, true
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), n
}

// timeless runs a test without the passing of time: that of a bubble stands still while any of
// its goroutines runs or waits for a socket. Over HTTP/1 net/http keeps no connection whose
// writer is 50 ms behind its reader, as may be on a busy machine.
func timeless(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }

func TestKeepAlive(t *testing.T) {
	noLeaks(t)
	for _, tc := range []struct {
		name     string
		protocol string // of TLS; "": none
		keep     bool
		body     int
		opened   int64 // by 5 probes
	}{
		{"http, closed", "", false, 100, 5},
		{"http, kept", "", true, 100, 1},
		{"http, kept, no body", "", true, 0, 1},
		{"http, kept, body at the limit", "", true, check.MaxBody, 1},
		{"http, body too long to keep", "", true, 1 << 20, 5},
		{"https 1.1, closed", "http/1.1", false, 100, 5},
		{"https 1.1, kept", "http/1.1", true, 100, 1},
		{"h2, closed", "h2", false, 100, 5},
		{"h2, kept", "h2", true, 100, 1},
		{"h2, kept despite the body", "h2", true, 1 << 20, 1},
	} {
		isTimeless := tc.opened == 1 && tc.protocol != "h2"
		test := func(t *testing.T) {
			kind, config, ca := check.HTTP, (*tls.Config)(nil), newAuthority(t)
			if tc.protocol != "" {
				kind, config = check.HTTPS, ca.server(t, "a.test")
				config.NextProtos = []string{tc.protocol}
			}
			address, n := serveCounted(t, config, func(w http.ResponseWriter, _ *http.Request) {
				w.Write(make([]byte, tc.body))
			})
			r := prepare(t, define(kind, func(c *check.Check) {
				c.Authority, c.KeepAlive = "a.test", tc.keep
				if config != nil {
					c.CA = ca.file
				}
			}))
			compare := passed.compare
			if isTimeless {
				compare = passed.compareOutcome
			}
			for i := range 5 {
				got := r.Probe(t.Context(), to(address))
				compare(t, got)
				if reused := i > 0 && tc.opened == 1; reused != (got.Connected == 0) && !isTimeless {
					t.Errorf("probe %d: connected after %v", i, got.Connected)
				}
			}
			if got := n.opened.Load(); got != tc.opened {
				t.Errorf("%d connections, want %d", got, tc.opened)
			}
			r.Close()
			for range tc.opened {
				<-n.ended // or the test hangs: connections must really be closed
			}
			compare(t, r.Probe(t.Context(), to(address)))
			<-n.ended // nothing is kept after Close
		}
		t.Run(tc.name, func(t *testing.T) {
			if isTimeless {
				timeless(t, test)
			} else {
				test(t)
			}
		})
	}
}

// TestKeepAliveOfEndpoints: no connection of one endpoint or name is used for
// another, whatever they have in common.
func TestKeepAliveOfEndpoints(t *testing.T) {
	noLeaks(t)
	test := func(t *testing.T, kind check.Kind) {
		ca := newAuthority(t)
		var mu sync.Mutex
		seen := map[string][]string{} // by connection: endpoint and host of every request
		serve := func(endpoint string) string {
			h := func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				name := r.Host
				if r.TLS != nil {
					name += " " + r.TLS.ServerName
				}
				seen[r.RemoteAddr] = append(seen[r.RemoteAddr], endpoint+" "+name)
			}
			if kind == check.HTTP {
				return serveHTTP(t, h)
			}
			return serveHTTPS(t, ca.server(t, "*.test"), h)
		}
		one, two := to(serve("one")), to(serve("two"))
		r := prepare(t, define(kind, func(c *check.Check) {
			c.Each, c.KeepAlive = true, true
			if kind == check.HTTPS {
				c.CA = ca.file
			}
		}))
		for range 3 {
			for _, target := range []Target{one, two} {
				for _, target.Name = range []string{"a.test", "b.test"} {
					passed.compareOutcome(t, r.Probe(t.Context(), target))
				}
			}
		}
		mu.Lock()
		if len(seen) != 4 {
			t.Errorf("%s: %d connections, want 4", kind, len(seen))
		}
		for _, requests := range seen {
			if len(requests) != 3 || len(slices.Compact(requests)) != 1 {
				t.Errorf("%s: a connection saw %v", kind, requests)
			}
		}
		mu.Unlock()
	}
	timeless(t, func(t *testing.T) { test(t, check.HTTP) })
	test(t, check.HTTPS) // over HTTP/2
}

// TestKeepAliveOfImpatientServers: a connection that the server closed
// meanwhile is no failure.
func TestKeepAliveOfImpatientServers(t *testing.T) {
	noLeaks(t)
	var connections atomic.Int64
	address := serveRaw(t, func(c *rawConn) {
		connections.Add(1)
		c.readRequest()
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		c.readRequest() // answered by nothing
	})
	r := prepare(t, define(check.HTTP, func(c *check.Check) { c.KeepAlive = true }))
	for range 4 {
		passed.compare(t, r.Probe(t.Context(), to(address)))
	}
	if n := connections.Load(); n != 4 {
		t.Errorf("%d connections, want 4", n)
	}
}

func TestSessionsResume(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		var mu sync.Mutex
		resumed := map[string][]bool{}
		serve := func(endpoint string) Target {
			config := ca.server(t, "a.test")
			config.MinVersion, config.MaxVersion = version, version
			return to(serveHTTPS(t, config, func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				resumed[endpoint] = append(resumed[endpoint], r.TLS.DidResume)
			}))
		}
		// Both have one name, and keys for tickets of their own: a session of
		// the other would not be resumed.
		one, two := serve("one"), serve("two")
		r := prepare(t, define(check.HTTPS, func(c *check.Check) { c.CA, c.Authority = ca.file, "a.test" }))
		for range 3 {
			passed.compare(t, r.Probe(t.Context(), one))
			passed.compare(t, r.Probe(t.Context(), two))
		}
		for _, endpoint := range []string{"one", "two"} {
			if got := fmt.Sprint(resumed[endpoint]); got != "[false true true]" {
				t.Errorf("%s, %s: resumed %s", tls.VersionName(version), endpoint, got)
			}
		}
	}
}

// TestKeeperExpires holds that a connection nobody comes back for is closed.
func TestKeeperExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper[*fakeCloser](define(check.HTTP, func(c *check.Check) {
			c.KeepAlive, c.Interval, c.Timeout = true, 10*time.Second, time.Second
		}))
		at, first, second := place{name: "a"}, &fakeCloser{}, &fakeCloser{}
		k.put(at, first)
		k.put(at, second) // one is kept already
		if first.closed || !second.closed {
			t.Error("the first is to be kept, the second to be closed")
		}
		time.Sleep(20 * time.Second) // of the bubble's clock
		if got, ok := k.take(at); !ok || got != first || first.closed {
			t.Error("not kept for two intervals")
		}
		if _, ok := k.take(at); ok {
			t.Error("taken twice")
		}
		k.put(at, first)
		time.Sleep(21*time.Second + 1)
		synctest.Wait()
		if _, ok := k.take(at); ok || !first.closed {
			t.Error("kept for longer")
		}
		late := &fakeCloser{}
		k.close()
		k.put(at, late)
		k.close()
		if !late.closed {
			t.Error("kept after close")
		}
	})
}

type fakeCloser struct{ closed bool }

func (c *fakeCloser) Close() error { c.closed = true; return nil }
