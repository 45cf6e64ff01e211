package probe

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// TestHTTPOfBadServers probes servers that do what no server should.
func TestHTTPOfBadServers(t *testing.T) {
	noLeaks(t)
	says := func(text string, then func(*rawConn)) func(*rawConn) {
		return func(c *rawConn) {
			c.readRequest()
			io.WriteString(c, text)
			then(c)
		}
	}
	stall := (*rawConn).untilClosed
	closes := func(*rawConn) {}
	endless := func(text string) func(*rawConn) {
		return func(c *rawConn) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(c, text)
			}
		}
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	late := fmt.Sprintf("timeout after %v", soon)
	timeout := func(phase string) outcomeOf { return outcomeOf{Fail, ClassTimeout, phase + ": " + late} }
	protocol := func(reason string) outcomeOf { return outcomeOf{Fail, ClassProtocol, reason} }
	for _, tc := range []struct {
		name    string
		serve   func(*rawConn)
		timeout time.Duration
		want    outcomeOf
	}{
		{"accepts, never answers", stall, soon, timeout("first byte")},
		{"stalls in its headers", says(ok+"X-A: ", stall), soon, timeout("headers")},
		{"stalls in its body", says(ok+"Content-Length: 100\r\n\r\nabc", stall), soon, timeout("body")},
		{"stalls in a chunk", says(ok+"Transfer-Encoding: chunked\r\n\r\n5\r\nab", stall), soon, timeout("body")},
		{"endless headers", says(ok, endless("X-A: 0123456789012345678901234567890123456789\r\n")), patience,
			protocol("headers are longer than 65536 bytes")},
		{"endless header", says(ok+"X-A: ", endless("0123456789")), patience, protocol("headers are longer than 65536 bytes")},
		{"endless 1xx", says("", endless("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")), patience,
			protocol("headers are longer than 65536 bytes")},
		{"endless body", says(ok+"\r\n", endless("0123456789")), patience, passed},
		{"endless chunks", says(ok+"Transfer-Encoding: chunked\r\n\r\n", endless("5\r\nabcde\r\n")), patience, passed},
		{"1xx first", says("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"+ok+"Content-Length: 2\r\n\r\nok", stall), patience, passed},
		{"101", says("HTTP/1.1 101 Switching Protocols\r\n\r\n", stall), patience, outcomeOf{Fail, ClassStatus, "status 101, expected 200-299"}},
		{"body too short", says(ok+"Content-Length: 100\r\n\r\nabc", closes), patience, protocol("body: connection closed by the peer")},
		{"body too long", says(ok+"Content-Length: 2\r\n\r\nokay then", closes), patience, passed},
		{"no length, then closed", says(ok+"\r\nok", closes), patience, passed},
		{"two lengths", says(ok+"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", closes), patience,
			protocol("answer is not valid HTTP")},
		{"bad chunk", says(ok+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", closes), patience, protocol("answer is not valid HTTP")},
		{"not HTTP", says("SSH-2.0-OpenSSH_9.9\r\n", closes), patience, protocol("answer is not valid HTTP")},
		{"closed in its headers", says(ok+"X-A: 1\r\n", closes), patience, protocol("headers: connection closed by the peer")},
		{"closed after the request", says("", closes), patience, outcomeOf{Fail, ClassConnect, "first byte: connection closed by the peer"}},
		{"reset after the request", says("", (*rawConn).reset), patience, outcomeOf{Fail, ClassConnect, "first byte: connection reset by peer"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.want.compareProbe(t, define(check.HTTP, func(c *check.Check) { c.Timeout = tc.timeout }), to(serveRaw(t, tc.serve)))
		})
	}
}

// TestHTTPReset is apart: the reset may overtake what was sent before it.
func TestHTTPResetInBody(t *testing.T) {
	noLeaks(t)
	address := serveRaw(t, func(c *rawConn) {
		c.readRequest()
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
		c.reset()
	})
	r := prepare(t, define(check.HTTP, nil))
	got := r.Probe(t.Context(), to(address))
	if got.Status != Fail || (got.Class != ClassProtocol && got.Class != ClassConnect) {
		t.Errorf("%+v", got)
	}
}
