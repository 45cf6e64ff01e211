package gslb

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// aliasBlock answers a name at a, and addresses at b. Clients of 198.51.100.0/24 are
// at b, all others at a.
const aliasBlock = `gslb {
	region a b
	resolvers 127.0.0.53
	clients prefix 198.51.100.0/24 2001:db8:1::/48 {
		order b a
	}
	clients rest {
		order a b
	}
	check web {
		http :8080 /healthz
	}
	host api.example.com *.wild.example.com {
		check web
		OPTIONS
		pool a {
			target lb.example.net
			cname
		}
		pool b 192.0.2.2
	}
	MORE
}`

func aliases(options, more string) string {
	return strings.NewReplacer("OPTIONS", options, "MORE", more).Replace(aliasBlock)
}

// briefly writes a reply: its records, "NODATA" or its code, and the scope if there is
// one.
func briefly(m *dns.Msg) string {
	var all []string
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.CNAME:
			all = append(all, "CNAME "+rr.Target)
		case *dns.A:
			all = append(all, rr.A.String())
		case *dns.AAAA:
			all = append(all, rr.AAAA.String())
		default:
			all = append(all, dns.TypeToString[rr.Header().Rrtype])
		}
	}
	switch {
	case len(all) > 0:
		all = append(all, fmt.Sprintf("ttl %d", m.Answer[0].Header().Ttl))
	case m.Rcode == dns.RcodeSuccess && len(m.Ns) == 1:
		all = append(all, "NODATA")
	default:
		all = append(all, dns.RcodeToString[m.Rcode])
	}
	if e := subnetOf(m); e != nil {
		all = append(all, fmt.Sprintf("/%d", e.SourceScope))
	}
	return strings.Join(all, " ")
}

// aliasNet starts a block of aliases whose target has these addresses.
func aliasNet(t *testing.T, text, addrs string) (*world, *names, *GSLB) {
	t.Helper()
	w, n := newWorld(), newNames()
	n.set("lb.example.net.", addrs)
	r := n.resolving(w.registry())
	gen, g := r.mustStart(t, text)
	t.Cleanup(func() { r.stop(gen) })
	settle()
	return w, n, g
}

// TestAliasTypes asks for every type those who get a name, and those who get addresses.
func TestAliasTypes(t *testing.T) {
	const name, rest, other = "CNAME lb.example.net. ttl 30", "203.0.113.0/24", "198.51.100.0/24"
	types := strings.Fields("A AAAA CNAME HTTPS SVCB TXT MX SRV DS NS SOA CAA ANY")
	synctest.Test(t, func(t *testing.T) {
		_, _, g := aliasNet(t, aliases("", ""), "192.0.2.1 2001:db8::1 ttl 60")
		for _, owner := range []string{"api.example.com.", "x.wild.example.com.", "aPi.exAmple.com."} {
			for _, typ := range types {
				for _, do := range []bool{false, true} {
					m := ask(owner, dns.StringToType[typ], rest)
					if do {
						m.IsEdns0().SetDo()
					}
					reply, _ := serve(t, g, m)
					if got := briefly(reply); got != name+" /16" {
						t.Errorf("%s %s, do %v: got %s", owner, typ, do, got)
						continue
					}
					want := owner
					if do {
						want = strings.ToLower(owner)
					}
					if got := reply.Answer[0].Header().Name; got != want || len(reply.Answer) != 1 || len(reply.Ns) > 0 || !reply.Authoritative {
						t.Errorf("%s %s, do %v: not one authoritative record of %s:\n%s", owner, typ, do, want, reply)
					}
				}
				reply, _ := serve(t, g, ask(owner, dns.StringToType[typ], other))
				want := map[string]string{"A": "192.0.2.2 ttl 30 /24", "ANY": "HINFO ttl 3600 /24"}[typ]
				if want == "" {
					want = "NODATA /0"
				}
				if got := briefly(reply); got != want {
					t.Errorf("%s %s of those with addresses: got %s, want %s", owner, typ, got, want)
				}
			}
		}
		for _, typ := range []uint16{dns.TypeAXFR, dns.TypeIXFR} {
			if reply, rcode := serve(t, g, ask("api.example.com.", typ, "")); rcode != dns.RcodeRefused && reply.Rcode != dns.RcodeRefused {
				t.Errorf("transfer: %v", reply)
			}
		}
		if reply, _ := serve(t, g, ask("wild.example.com.", dns.TypeTXT, rest)); briefly(reply) != "NODATA /0" {
			t.Errorf("above the wildcard: %s", briefly(reply))
		}
	})
}

// TestAliasHealth holds that a name is answered while its addresses are alive.
func TestAliasHealth(t *testing.T) {
	both := func(t *testing.T, what string, g *GSLB, want string) {
		t.Helper()
		for _, typ := range []uint16{dns.TypeA, dns.TypeTXT} {
			reply, _ := serve(t, g, ask("api.example.com.", typ, "203.0.113.0/24"))
			if got := briefly(reply); got != want && !(typ == dns.TypeTXT && !strings.HasPrefix(want, "CNAME") && got == "NODATA /0") {
				t.Errorf("%s, type %d: got %s, want %s", what, typ, got, want)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w, _, g := aliasNet(t, aliases("", ""), "192.0.2.1 2001:db8::1 ttl 60")
		later(oneProbe)
		both(t, "alive", g, "CNAME lb.example.net. ttl 30 /16")
		w.set("192.0.2.1 fail, 2001:db8::1 fail")
		later(oneProbe)
		both(t, "a streak", g, "CNAME lb.example.net. ttl 15 /16")
		later(fallen)
		both(t, "dead", g, "192.0.2.2 ttl 30 /16")
		w.set("192.0.2.2 fail")
		later(fallen)
		both(t, "all dead", g, "CNAME lb.example.net. ttl 5 /16")
		w.set("2001:db8::1 pass")
		later(risen)
		both(t, "one address is alive", g, "CNAME lb.example.net. ttl 30 /16")
	})
}

// A host of nothing but a name that can't be resolved: no type is denied.
func TestAliasUnresolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(aliases("", ""), "pool b 192.0.2.2", "pool b {\ntarget lb-2.example.net\ncname\n}", 1)
		_, n, g := aliasNet(t, text, "SERVFAIL")
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeHTTPS, dns.TypeANY} {
			if reply, _ := serve(t, g, ask("api.example.com.", typ, "203.0.113.0/24")); briefly(reply) != "SERVFAIL /16" {
				t.Errorf("type %d: got %s", typ, briefly(reply))
			}
		}
		n.set("lb-2.example.net.", "2001:db8::1 ttl 60")
		later(risen)
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT} {
			if reply, _ := serve(t, g, ask("api.example.com.", typ, "203.0.113.0/24")); briefly(reply) != "CNAME lb-2.example.net. ttl 30 /16" {
				t.Errorf("type %d: got %s", typ, briefly(reply))
			}
		}
	})
}

// A CNAME of ours is never put under the name of another plugin's.
func TestAliasChased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, g := aliasNet(t, aliases("", ""), "192.0.2.1 ttl 60")
		ctx := context.WithValue(t.Context(), dnsserver.LoopKey{}, 1)
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT} {
			rec := dnstest.NewRecorder(&test.ResponseWriter{})
			g.ServeDNS(ctx, rec, ask("api.example.com.", typ, ""))
			if rec.Msg == nil || rec.Msg.Rcode != dns.RcodeRefused || len(rec.Msg.Answer) > 0 {
				t.Errorf("type %d: %v", typ, rec.Msg)
			}
		}
	})
}

// Other types take no turn of a balanced host: shares of A stay exact.
func TestAliasBalanced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(aliases("spread balanced", ""), "order a b\n", "split a 50 b 50\n", 1)
		_, _, g := aliasNet(t, text, "192.0.2.1 ttl 60")
		named := 0
		for i := range 100 {
			reply, _ := serve(t, g, ask("api.example.com.", dns.TypeA, "203.0.113.0/24"))
			if strings.HasPrefix(briefly(reply), "CNAME") {
				named++
			}
			for range i % 3 {
				serve(t, g, ask("api.example.com.", dns.TypeHTTPS, "203.0.113.0/24"))
			}
		}
		if named != 50 {
			t.Errorf("%d of 100 got the name, want half", named)
		}
	})
}

// d29: a client gets the same in every type, whoever it is, and a scope that holds for
// all of its block.
func TestAliasAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(aliases("", ""), "order a b\n", "split a 30 b 70\n", 1)
		_, _, g := aliasNet(t, text, "192.0.2.1 2001:db8::1 ttl 60")
		named := 0
		for i := range 1000 {
			subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i / 4), byte(i % 4 * 64), 0}), 24).String()
			var got []string
			for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeHTTPS} {
				reply, _ := serve(t, g, ask("api.example.com.", typ, subnet))
				got = append(got, briefly(reply))
			}
			switch {
			case got[0] == "CNAME lb.example.net. ttl 30 /16" && got[1] == got[0] && got[2] == got[0] && got[3] == got[0]:
				named++
			case got[0] == "192.0.2.2 ttl 30 /16" && got[1] == "NODATA /0" && got[2] == "NODATA /0" && got[3] == "NODATA /0":
			default:
				t.Errorf("%s: %q", subnet, got)
			}
		}
		if named < 150 || named > 450 { // 250 keys
			t.Errorf("%d of 1000 clients get the name, want about 300", named)
		}
	})
}
