package probe

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// BenchmarkHTTPProbe probes a server in this process over loopback; its time and
// its allocations are counted too.
func BenchmarkHTTPProbe(b *testing.B) {
	ca := newAuthority(b)
	secure := func() *tls.Config {
		c := ca.server(b, "a.test")
		c.NextProtos = []string{"http/1.1"}
		return c
	}
	full := secure()
	full.SessionTicketsDisabled = true
	for _, bc := range []struct {
		name   string
		server *tls.Config
		keep   bool
	}{
		{"plain", nil, false},
		{"keepalive", nil, true},
		{"https full handshake", full, false},
		{"https resumed", secure(), false},
		{"https keepalive", secure(), true},
	} {
		b.Run(bc.name, func(b *testing.B) {
			answer := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }
			kind, address := check.HTTP, ""
			if bc.server == nil {
				address = serveHTTP(b, answer)
			} else {
				kind, address = check.HTTPS, serveHTTPS(b, bc.server, answer)
			}
			r := prepare(b, define(kind, func(c *check.Check) {
				c.Authority, c.KeepAlive = "a.test", bc.keep
				if kind == check.HTTPS {
					c.CA = ca.file
				}
			}))
			b.ReportAllocs()
			for b.Loop() {
				if got := r.Probe(b.Context(), to(address)); got.Status != Pass {
					b.Fatalf("%+v", got)
				}
			}
		})
	}
}
