package gslb

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/test"
	"github.com/seed-945f90c5/gslb/internal/config"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func init() { clog.Discard() }

// nothingLeft waits until the goroutines that a test started have ended. A busy machine may
// take longer than goleak waits.
func nothingLeft(t testing.TB, before goleak.Option) {
	t.Helper()
	for end := time.Now().Add(time.Minute); goleak.Find(before) != nil && time.Now().Before(end); {
	}
	goleak.VerifyNone(t, before)
}

// tokens cuts a block into words the way the Corefile lexer does for plain
// words.
func tokens(text string) []config.Token {
	var ts []config.Token
	for i, line := range strings.Split(text, "\n") {
		for _, word := range strings.Fields(line) {
			ts = append(ts, config.Token{Text: word, Pos: config.Pos{File: "Corefile", Line: i + 1}})
		}
	}
	return ts
}

// load makes the plugin of a block, with next after it.
func load(tb testing.TB, text string, next plugin.Handler) *GSLB {
	tb.Helper()
	block, err := config.Parse([]string{"example.com."}, tokens(text))
	if err != nil {
		tb.Fatal(err)
	}
	g, err := newGSLB(block, "")
	if err != nil {
		tb.Fatal(err)
	}
	g.Next = next
	return g
}

// prefixBlock tells clients apart by prefixes alone: 198.51.100.0/24 and
// 2001:db8:1::/48 are at b, everybody else is at a.
const prefixBlock = `gslb {
	region a b
	clients prefix 198.51.100.0/24 2001:db8:1::/48 {
		order b a
	}
	clients rest {
		order a b
	}
	whoami whoami.example.com
	host api.example.com {
		pool a 192.0.2.1 2001:db8:a::1
		pool b 192.0.2.2 2001:db8:b::1
	}
	host v4.example.com {
		pool a 192.0.2.3
		pool b 192.0.2.4
	}
	host deep.under.example.com *.wild.example.com {
		pool a 192.0.2.5
	}
%s
}`

func block(more string) string { return strings.Replace(prefixBlock, "%s", more, 1) }

// query makes a query; subnet may be empty.
func ask(qname string, qtype uint16, subnet string) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(qname, qtype)
	if subnet == "" {
		return m
	}
	m.SetEdns0(1232, false)
	p := netip.MustParsePrefix(subnet)
	family := uint16(1)
	if p.Addr().Is6() {
		family = 2
	}
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{
		Code: dns.EDNS0SUBNET, Family: family, SourceNetmask: uint8(p.Bits()), Address: net.IP(p.Addr().AsSlice()),
	}}
	return m
}

// serve asks the plugin from the address of the recorder and gives the reply,
// nil when none was written.
func serve(tb testing.TB, g *GSLB, m *dns.Msg) (reply *dns.Msg, rcode int) {
	tb.Helper()
	return serveFrom(tb, g, m, "10.240.0.1")
}

func serveFrom(tb testing.TB, g *GSLB, m *dns.Msg, from string) (reply *dns.Msg, rcode int) {
	tb.Helper()
	rec := dnstest.NewRecorder(&test.ResponseWriter{RemoteIP: from})
	rcode, err := g.ServeDNS(context.Background(), rec, m)
	if err != nil && rec.Msg != nil && rcode != dns.RcodeSuccess {
		tb.Fatalf("an error besides a reply: %v", err)
	}
	if (rec.Msg == nil) == plugin.ClientWrite(rcode) {
		tb.Fatalf("rcode %d and a reply %v: exactly one must be", rcode, rec.Msg)
	}
	if rec.Msg != nil {
		if _, err := rec.Msg.Pack(); err != nil {
			tb.Fatalf("the reply can't be packed: %v", err)
		}
	}
	return rec.Msg, rcode
}

// subnetOf is the client subnet option of a reply.
func subnetOf(m *dns.Msg) *dns.EDNS0_SUBNET {
	opt := m.IsEdns0()
	if opt == nil {
		return nil
	}
	for _, o := range opt.Option {
		if e, ok := o.(*dns.EDNS0_SUBNET); ok {
			return e
		}
	}
	return nil
}

// addrs are the addresses of a reply, in its order.
func addrs(m *dns.Msg) string {
	var out []string
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			out = append(out, rr.A.String())
		case *dns.AAAA:
			out = append(out, rr.AAAA.String())
		}
	}
	return strings.Join(out, " ")
}
