package probe

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// Runner carries out one check and holds what it keeps from probe to probe:
// idle connections (with `keepalive`) and TLS sessions. Connections, sessions
// and limits are never shared between checks or between endpoints.
type Runner struct {
	// Probe runs one probe. It is never nil, works after Close too, and leaves
	// nothing open behind it but connections that are kept.
	Probe Prober
	// Close closes the connections kept, and keeps none from then on. It is
	// never nil and may be called more than once, at any time.
	Close func()
}

// prober is what the file of each kind offers: probe returns nil for a pass, a
// *finding, or the error that ended it, which the attempt explains.
type prober interface {
	probe(ctx context.Context, a *attempt, t Target) error
	close()
}

// New prepares a check. What can't ever work is an error here and not a failing
// probe later: files that can't be read, expressions that don't compile,
// commands that aren't there, conditions that the kind has no use for, ICMP on
// a machine that doesn't let this process send it. Files of certificates are
// read once, now.
func New(c *check.Check) (*Runner, error) {
	p, err := newProber(c)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", c.Name, err)
	}
	return newRunner(c, p), nil
}

func newRunner(c *check.Check, p prober) *Runner {
	timeout := c.Timeout
	run := func(ctx context.Context, t Target) Result {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		a := &attempt{start: time.Now(), timeout: timeout}
		err := error(internal("the endpoint has no address"))
		if t.Addr.IsValid() {
			t.Addr = t.Addr.Unmap()
			err = p.probe(ctx, a, t)
		}
		return a.result(ctx, err)
	}
	return &Runner{Probe: run, Close: p.close}
}

func newProber(c *check.Check) (prober, error) {
	if c.Timeout <= 0 {
		return nil, fmt.Errorf("timeout is %v, expected more than 0", c.Timeout)
	}
	if c.KeepAlive && c.Kind != check.HTTP && c.Kind != check.HTTPS && c.Kind != check.GRPC {
		return nil, fmt.Errorf("keepalive is for http, https and grpc, not for %s", c.Kind)
	}
	if len(c.Report) > 0 && c.Kind != check.HTTP && c.Kind != check.HTTPS {
		return nil, fmt.Errorf("headers are reported by http and https, not by %s", c.Kind)
	}
	switch c.Kind {
	case check.HTTP, check.HTTPS:
		return newHTTP(c)
	case check.TCP:
		return newTCP(c)
	case check.GRPC:
		return newGRPC(c)
	case check.DNS:
		return newDNS(c)
	case check.ICMP:
		return newICMP(c, openEcho)
	case check.Exec:
		return newExec(c)
	}
	return nil, fmt.Errorf("unknown kind %q, expected http, https, tcp, grpc, dns, icmp or exec", c.Kind)
}

// place is where a connection leads and whom it was opened for. Connections
// and TLS sessions are used again for equal places only.
type place struct {
	addr netip.AddrPort
	name string // host name for Host, SNI and certificate; empty: the address
}

// places tells the place of each target of a check.
type places struct {
	port      uint16
	authority string
	each      bool
}

// newPlaces takes the port of the check, else that of the kind; where neither
// is known the check is refused.
func newPlaces(c *check.Check, port int) (places, error) {
	if c.Port != 0 {
		port = c.Port
	}
	if port < 1 || port > 65535 {
		return places{}, fmt.Errorf("port %d of a %s check, expected 1 to 65535", port, c.Kind)
	}
	return places{port: uint16(port), authority: hostname(c.Authority), each: c.Each}, nil
}

func (p places) of(t Target) (place, error) {
	port := t.Port
	if port == 0 {
		port = p.port
	}
	name := p.authority
	if p.each {
		if name = hostname(t.Name); name == "" {
			return place{}, internal("authority each, but the host has no name")
		}
	}
	return place{netip.AddrPortFrom(t.Addr, port), name}, nil
}

// hostname is a domain name as Host and SNI want it: without the final dot.
func hostname(name string) string { return strings.TrimSuffix(name, ".") }

// serverName is the name a certificate must be valid for.
func (p place) serverName() string {
	if p.name != "" {
		return p.name
	}
	return p.addr.Addr().WithZone("").String()
}

// stateless is embedded by probers that keep nothing.
type stateless struct{}

func (stateless) close() {}
