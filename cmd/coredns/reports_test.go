package main

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/miekg/dns"
)

// The rules of RFC 7871 for whole answers, numbered a.2 to a.5 of the checklist
// that wire_test.go begins.
func TestRules(t *testing.T) {
	serve(t, withFile(t, "any")).check(t, []exchangeCase{
		{"v17 echo and scope", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		{"v18 SOA", "example.com SOA +subnet=198.51.99.0/24", "SOA ns1.example.com. /0"},
		{"v18 NS", "example.com NS +subnet=198.51.99.0/24", "NS ns1.example.com. NS ns2.example.com. /0"},
		{"v18 MX", "example.com MX +subnet=198.51.99.0/24", "MX 10 www.example.com. /0"},
		{"v18 TXT at the apex", "example.com TXT +subnet=198.51.99.0/24", `TXT "from file" /0`},
		{"v18 TXT of a steered name", "www.example.com TXT +subnet=198.51.99.0/24", `TXT "beside the addresses" /0`},
		{"v18 HTTPS", "www.example.com HTTPS +subnet=198.51.99.0/24", "NODATA /0"},
		{"v18 DNSKEY", "example.com DNSKEY +subnet=198.51.99.0/24", "NODATA /0"},
		{"v18 CAA", "www.example.com CAA +subnet=198.51.99.0/24", "NODATA /0"},
		{"v19 static record", "static.example.com A +subnet=198.51.99.0/24", "192.0.2.80 /0"},
		{"v20 no option, none back", "www.example.com A +edns", "192.0.2.4"},
		{"v20 no OPT, none back", "www.example.com A", "192.0.2.4"},
		{"v36 health doesn't change the scope", "failing.example.com A +subnet=198.51.96.0/24", "192.0.2.2 /23"},
		{"v38 static CNAME to a steered name", "alias.example.com A +subnet=198.51.99.0/24", "CNAME www.example.com. /0"},
		{"v38 chain of CNAMEs", "chain.example.com A +subnet=198.51.99.0/24", "CNAME alias.example.com. CNAME www.example.com. /0"},
		{"v38 CNAME out of the zone", "out.example.com A +subnet=198.51.99.0/24", "CNAME www.example.net. /0"},
		{"v40 NXDOMAIN", "missing.example.com A +subnet=198.51.99.0/24", "NXDOMAIN /0"},
		{"v40 NODATA", "v4.example.com AAAA +subnet=198.51.99.0/24", "NODATA /0"},
		{"v42 referral", "x.child.example.com A +subnet=198.51.99.0/24", "DELEGATED /0"},
		{"v46 SVCB", "www.example.com SVCB +subnet=198.51.99.0/24", "NODATA /0"},
		{"v47 AXFR", "example.com AXFR +tcp +subnet=198.51.99.0/24", "REFUSED"},
		{"v47 IXFR", "example.com IXFR +tcp +subnet=198.51.99.0/24", "REFUSED"},
	})
	t.Run("v43 additional addresses are not tailored", func(t *testing.T) {
		r := serve(t, withFile(t)).exchange(t, "example.com MX +subnet=198.51.99.0/24")
		for _, rr := range r.Extra {
			if a, ok := rr.(*dns.A); ok && a.A.String() != "192.0.2.99" {
				t.Errorf("additional record %s", rr)
			}
		}
	})
}

// Reports about other servers, numbered as in their collection (d). What the
// vectors and rules hold already is not held again.
func TestReports(t *testing.T) {
	serve(t, withFile(t, "rewrite edns0 local set 0xffee abcd")).check(t, []exchangeCase{
		{"d14 CNAME out of the zone alone", "out.example.com A +subnet=198.51.96.0/24", "CNAME www.example.net. /0"},
		{"d17 NS of a delegation", "child.example.com NS +subnet=198.51.99.0/24", "DELEGATED /0"},
		{"d19 HTTPS is answered", "www.example.com HTTPS +subnet=198.51.99.0/24", "NODATA /0"},
		{"d20 scope is not always 32", "www.example.com A +subnet=198.51.104.1/32", "192.0.2.1 /21"},
		{"d21 scope is not SOURCE", "www.example.com A +subnet=198.51.104.0/24", "192.0.2.1 /21"},
		{"d22 everyone else has a scope", "www.example.com A +subnet=8.8.8.0/24", "192.0.2.4 /7"},
		{"d22 in the other family, too", "www.example.com AAAA +subnet=2a00:1450::/56", "2001:db8:d::1 /5"},
		{"d24 NODATA", "v4.example.com AAAA +subnet=203.0.113.0/24", "NODATA /0"},
		{"d28 MX", "www.example.com MX +subnet=203.0.113.0/24", "NODATA /0"},
		{"d30 no SOA beside a CNAME", "alias.example.com HTTPS +subnet=203.0.113.0/24", "CNAME www.example.com. /0"},
		{"d36 none when none was sent", "www.example.com A +edns from=127.9.0.1", "192.0.2.4"},
	})
	t.Run("d09 no option but ours goes out", func(t *testing.T) {
		r := serve(t, withFile(t, "rewrite edns0 local set 0xffee abcd")).exchange(t, "www.example.com A +subnet=198.51.99.0/24")
		if opt := r.IsEdns0(); len(opt.Option) != 1 || opt.Option[0].Option() != dns.EDNS0SUBNET {
			t.Errorf("options %v", opt.Option)
		}
	})
}

// d38, d44: a network that rules name is the client's even if it is private,
// and the transport counts when there is no option.
func TestReportsPrivateAndTransport(t *testing.T) {
	serve(t, `example.com:53 {
    gslb {
        spread resolver
        region in { clients prefix 10.1.0.0/16 127.1.0.0/16 }
        region out { clients rest }
        host www.example.com {
            pool in 192.0.2.1
            pool out 192.0.2.2
        }
    }
}`).check(t, []exchangeCase{
		{"d38 private client that a rule names", "www.example.com A +subnet=10.1.2.0/24", "192.0.2.1 /16"},
		{"d38 private client beside it", "www.example.com A +subnet=10.2.2.0/24", "192.0.2.2 /15"},
		{"d33 private client of no rule", "www.example.com A +subnet=192.168.1.0/24 from=127.1.0.9", "192.0.2.1 /16"},
		{"d44 no option: transport", "www.example.com A from=127.1.0.9", "192.0.2.1"},
		{"d44 no option: another transport", "www.example.com A from=127.2.0.9", "192.0.2.2"},
		{"d44 source 0: transport", "www.example.com A +subnet=0.0.0.0/0 from=127.1.0.9", "192.0.2.1 /0"},
		{"d46 an option counts over it", "www.example.com A +subnet=8.8.8.0/24 from=127.1.0.9", "192.0.2.2 /7"},
	})
}

// d42: every SOURCE is accepted, its octets are right, and the scope is one that
// exists in the family.
func TestReportsEverySource(t *testing.T) {
	s := serve(t, alone)
	for _, text := range []string{"198.51.99.255", "2001:db8:1:ffff:ffff:ffff:ffff:ffff"} {
		addr := netip.MustParseAddr(text)
		for source := range addr.BitLen() + 1 {
			q := fmt.Sprintf("www.example.com A +subnet=%s", netip.PrefixFrom(addr, source).Masked())
			r := s.exchange(t, q)
			e := subnets(r)
			switch {
			case r.Rcode != dns.RcodeSuccess || len(r.Answer) != 1:
				t.Errorf("%s: %s", q, brief(r))
			case len(e) != 1:
				t.Errorf("%s: client subnets %v", q, e)
			case source == 0 && e[0].SourceScope != 0, int(e[0].SourceScope) > addr.BitLen():
				t.Errorf("%s: scope %d", q, e[0].SourceScope)
			}
		}
	}
}

// d15, d23, d27: each reply, of whatever kind, brings the client subnet, and
// whether a name or a type exists is the same for all clients.
func TestReportsEveryReply(t *testing.T) {
	s := serve(t, withFile(t))
	names := []string{
		"example.com", "www.example.com", "v4.example.com", "failing.example.com", "ent.example.com", "deep.ent.example.com",
		"x.wild.example.com", "wild.example.com", "static.example.com", "alias.example.com", "missing.example.com", "a.b.missing.example.com",
		"child.example.com", "x.child.example.com", "whoami.example.com", "svc.example.com", "_tcp.svc.example.com",
	}
	types := []string{
		"A", "AAAA", "SOA", "NS", "MX", "TXT", "CNAME", "SRV", "HTTPS", "SVCB", "CAA", "DS", "DNSKEY", "NSEC", "RRSIG", "PTR", "NAPTR", "HINFO", "ANY",
	}
	clients := []string{"198.51.96.0/24", "198.51.99.0/24", "203.0.113.0/24", "8.8.8.0/24", "10.1.2.0/24", "0.0.0.0/0", "2001:db8:1::/56", "2a00::/56"}
	for _, name := range names {
		for _, qtype := range types {
			var kinds []string
			for _, c := range clients {
				q := fmt.Sprintf("%s %s +subnet=%s", name, qtype, c)
				r := s.exchange(t, q)
				if len(subnets(r)) != 1 {
					t.Errorf("%s: no client subnet in\n%s", q, r)
				}
				kinds = append(kinds, kind(r))
			}
			if slices.Sort(kinds); len(slices.Compact(kinds)) != 1 {
				t.Errorf("%s %s is differently there for different clients: %v", name, qtype, kinds)
			}
		}
	}
}

// kind says of a reply whether the name and the type exist.
func kind(r *dns.Msg) string {
	return fmt.Sprintf("%s %t %t", dns.RcodeToString[r.Rcode], len(r.Answer) > 0, r.Authoritative)
}
