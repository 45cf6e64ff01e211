package probe

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

func TestTCP(t *testing.T) {
	noLeaks(t)
	ping := func(c *rawConn) {
		if line, _ := c.in.ReadString('\n'); line == "PING\r\n" {
			io.WriteString(c, "+PO")
			io.WriteString(c, "NG\r\n")
		}
		c.untilClosed()
	}
	banner := func(text string) func(*rawConn) {
		return func(c *rawConn) {
			io.WriteString(c, text)
			c.untilClosed()
		}
	}
	shut := func(text string) func(*rawConn) {
		return func(c *rawConn) { io.WriteString(c, text) }
	}
	pong := check.Condition{Kind: check.BodyText, Text: "+PONG"}
	ready := check.Condition{Kind: check.BodyMatch, Text: `^220 .*ready`}
	busy := check.Condition{Kind: check.BodyText, Text: "421"}
	late := fmt.Sprintf("timeout after %v", soon)
	for _, tc := range []struct {
		name    string
		serve   func(*rawConn)
		timeout time.Duration
		set     func(*check.Check)
		want    outcomeOf
	}{
		{"connects", (*rawConn).untilClosed, patience, nil, passed},
		{"sends, expects nothing", (*rawConn).untilClosed, patience, func(c *check.Check) { c.Send = "x" }, passed},
		{"sends and expects", ping, patience, func(c *check.Check) {
			c.Send, c.Expect = "PING\r\n", []check.Condition{pong}
		}, passed},
		{"banner", banner("220 mail ready\r\n"), patience, expect(ready), passed},
		{"silent", (*rawConn).untilClosed, soon, expect(pong), outcomeOf{Fail, ClassTimeout, "first byte: " + late}},
		{"says another thing", banner("220 mail\r\n"), soon, expect(ready),
			outcomeOf{Fail, ClassTimeout, "body: " + late + ": body doesn't match ^220 .*ready, in 10 bytes"}},
		{"says another thing and closes", shut("500 no\r\n"), patience, expect(ready),
			outcomeOf{Fail, ClassContent, "body doesn't match ^220 .*ready, in 8 bytes before the connection was closed"}},
		{"closes", shut(""), patience, expect(pong), outcomeOf{Fail, ClassConnect, "first byte: connection closed by the peer"}},
		{"says too much", func(c *rawConn) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(c, strings.Repeat("abc\n", 256))
			}
		}, patience, expect(pong), outcomeOf{Fail, ClassContent, "body doesn't contain +PONG, in the first 5120 bytes"}},
		{"full", banner("421 busy\r\n"), patience, func(c *check.Check) {
			c.Expect, c.Full = []check.Condition{ready}, []check.Condition{busy}
		}, outcomeOf{Full, ClassFull, "full: body contains 421"}},
		{"single bytes", func(c *rawConn) {
			for _, b := range []byte(strings.Repeat(".", 200) + "+PONG") {
				c.Write([]byte{b})
			}
		}, patience, expect(pong), passed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := define(check.TCP, func(c *check.Check) {
				if tc.set != nil {
					tc.set(c)
				}
				c.Timeout = tc.timeout
			})
			tc.want.compareProbe(t, c, to(serveRaw(t, tc.serve)))
		})
	}
	r := prepare(t, define(check.TCP, nil))
	outcomeOf{Fail, ClassConnect, "connect: connection refused"}.compare(t, r.Probe(t.Context(), to(refused)))
}

func TestTCPWithTLS(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	config := ca.server(t, "a.test")
	var resumed atomic.Bool
	address := serveRaw(t, func(c *rawConn) {
		s := tls.Server(c.Conn, config)
		if s.Handshake() != nil {
			return
		}
		resumed.Store(s.ConnectionState().DidResume)
		io.WriteString(s, "220 ready\r\n")
		c.untilClosed()
	})
	ready := check.Condition{Kind: check.BodyText, Text: "220"}
	mutual := config.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool()
	guarded := serveRaw(t, func(c *rawConn) { tls.Server(c.Conn, mutual).Handshake() })
	for name, want := range map[string]outcomeOf{
		"a.test": passed,
		"b.test": {Fail, ClassTLS, "certificate is for a.test, expected b.test"},
	} {
		r := prepare(t, define(check.TCP, func(c *check.Check) {
			c.TLS, c.CA, c.Authority, c.Expect = true, ca.file, name, []check.Condition{ready}
		}))
		want.compare(t, r.Probe(t.Context(), to(address)))
		want.compare(t, r.Probe(t.Context(), to(address)))
	}
	r := prepare(t, define(check.TCP, func(c *check.Check) {
		c.TLS, c.CA, c.Authority, c.Expect = true, ca.file, "a.test", []check.Condition{ready}
	}))
	outcomeOf{Fail, ClassTLS, noCert}.compare(t, r.Probe(t.Context(), to(guarded)))
	for _, want := range []bool{false, true} {
		got := r.Probe(t.Context(), to(address))
		passed.compare(t, got)
		if got.Secured < got.Connected || got.FirstByte < got.Secured || resumed.Load() != want {
			t.Errorf("%+v, resumed %v", got, resumed.Load())
		}
	}
}
