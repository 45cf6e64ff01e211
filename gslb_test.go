package gslb

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func TestAnswers(t *testing.T) {
	g := load(t, block(""), nil)
	for _, tc := range []struct {
		name   string
		qname  string
		qtype  uint16
		subnet string
		want   string
		scope  int
	}{
		{"rest by subnet", "api.example.com.", dns.TypeA, "203.0.113.0/24", "192.0.2.1", 16},
		{"prefix by subnet", "api.example.com.", dns.TypeA, "198.51.100.0/24", "192.0.2.2", 24},
		{"neighbour of the prefix", "api.example.com.", dns.TypeA, "198.51.101.0/24", "192.0.2.1", 24},
		{"IPv6 subnet and A", "api.example.com.", dns.TypeA, "2001:db8:1:100::/56", "192.0.2.2", 48},
		{"IPv4 subnet and AAAA", "api.example.com.", dns.TypeAAAA, "198.51.100.0/24", "2001:db8:b::1", 24},
		{"no subnet", "api.example.com.", dns.TypeA, "", "192.0.2.1", -1},
		{"opted out", "api.example.com.", dns.TypeA, "0.0.0.0/0", "192.0.2.1", 0},
		{"private subnet", "api.example.com.", dns.TypeA, "172.16.3.0/24", "192.0.2.1", 12},
		{"wildcard", "x.wild.example.com.", dns.TypeA, "203.0.113.0/24", "192.0.2.5", 16},
		{"wildcard, more labels", "x.y.wild.example.com.", dns.TypeA, "203.0.113.0/24", "192.0.2.5", 16},
		{"wildcard itself", "*.wild.example.com.", dns.TypeA, "203.0.113.0/24", "192.0.2.5", 16},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := serve(t, g, ask(tc.qname, tc.qtype, tc.subnet))
			if m.Rcode != dns.RcodeSuccess || !m.Authoritative || addrs(m) != tc.want || len(m.Ns) > 0 {
				t.Errorf("got %s", m)
			}
			checkScope(t, m, tc.scope)
		})
	}
}

// checkScope holds the scope of a reply; -1 means that there is no option.
func checkScope(t *testing.T, m *dns.Msg, scope int) {
	t.Helper()
	e := subnetOf(m)
	switch {
	case scope < 0 && e != nil:
		t.Errorf("a client subnet nobody asked for: %v", e)
	case scope >= 0 && (e == nil || int(e.SourceScope) != scope):
		t.Errorf("client subnet %v, want scope %d", e, scope)
	}
}

func TestNegatives(t *testing.T) {
	g := load(t, block(""), nil)
	for _, tc := range []struct {
		name  string
		qname string
		qtype uint16
		rcode int
	}{
		{"type of no host", "api.example.com.", dns.TypeHTTPS, dns.RcodeSuccess},
		{"family not offered", "v4.example.com.", dns.TypeAAAA, dns.RcodeSuccess},
		{"empty non-terminal", "under.example.com.", dns.TypeA, dns.RcodeSuccess},
		{"above a wildcard", "wild.example.com.", dns.TypeA, dns.RcodeSuccess},
		{"type under a wildcard", "x.wild.example.com.", dns.TypeMX, dns.RcodeSuccess},
		{"apex", "example.com.", dns.TypeA, dns.RcodeSuccess},
		{"apex without ns", "example.com.", dns.TypeNS, dns.RcodeSuccess},
		{"whoami, another type", "whoami.example.com.", dns.TypeA, dns.RcodeSuccess},
		{"DS at the apex", "example.com.", dns.TypeDS, dns.RcodeSuccess},
		{"no such name", "nope.example.com.", dns.TypeA, dns.RcodeNameError},
		{"no such name, ANY", "nope.example.com.", dns.TypeANY, dns.RcodeNameError},
		{"below a host", "x.api.example.com.", dns.TypeA, dns.RcodeNameError},
		{"label boundary", "notapi.example.com.", dns.TypeA, dns.RcodeNameError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := serve(t, g, ask(tc.qname, tc.qtype, "198.51.100.0/24"))
			if m.Rcode != tc.rcode || !m.Authoritative || len(m.Answer) > 0 || len(m.Ns) != 1 {
				t.Fatalf("got %s", m)
			}
			soa := m.Ns[0].(*dns.SOA)
			if soa.Hdr.Ttl != 10 || soa.Minttl != 10 || soa.Hdr.Name != "example.com." {
				t.Errorf("got SOA %s", soa)
			}
			checkScope(t, m, 0)
		})
	}
}

func TestZoneData(t *testing.T) {
	g := load(t, block("soa ns1.example.net. dns.example.net. minimum 20s\nns ns1.example.net. ns2.example.net."), nil)
	m, _ := serve(t, g, ask("EXAMPLE.com.", dns.TypeSOA, ""))
	if soa := m.Answer[0].(*dns.SOA); soa.Ns != "ns1.example.net." || soa.Mbox != "dns.example.net." || soa.Minttl != 20 || soa.Serial == 0 {
		t.Errorf("got %s", soa)
	}
	m, _ = serve(t, g, ask("example.com.", dns.TypeNS, "198.51.100.0/24"))
	if len(m.Answer) != 2 || m.Answer[1].(*dns.NS).Ns != "ns2.example.net." {
		t.Errorf("got %s", m)
	}
	checkScope(t, m, 0)
	m, _ = serve(t, g, ask("api.example.com.", dns.TypeANY, ""))
	if len(m.Answer) != 1 || m.Answer[0].(*dns.HINFO).Cpu != "RFC8482" {
		t.Errorf("got %s", m)
	}
	m, _ = serve(t, g, ask("example.com.", dns.TypeAXFR, ""))
	if m.Rcode != dns.RcodeRefused || m.Authoritative {
		t.Errorf("got %s", m)
	}
}

func TestSerialFollowsMeaning(t *testing.T) {
	serial := func(text string) uint32 { return load(t, text, nil).ownSOA("example.com.").Serial }
	one := serial(block(""))
	if serial("\n\n"+block("")) != one {
		t.Error("blank lines change the serial")
	}
	if serial(block("depth 2")) == one {
		t.Error("another option leaves the serial")
	}
}

func TestOwnerCase(t *testing.T) {
	g := load(t, block(""), nil)
	q := ask("aPi.ExaMple.com.", dns.TypeA, "198.51.100.0/24")
	m, _ := serve(t, g, q)
	if got := m.Answer[0].Header().Name; got != "aPi.ExaMple.com." {
		t.Errorf("without DO the owner is %s", got)
	}
	q = ask("aPi.ExaMple.com.", dns.TypeA, "198.51.100.0/24")
	q.IsEdns0().SetDo()
	m, _ = serve(t, g, q)
	if got := m.Answer[0].Header().Name; got != "api.example.com." || m.Question[0].Name != "aPi.ExaMple.com." || !m.IsEdns0().Do() {
		t.Errorf("with DO: %s", m)
	}
}

func TestEDNS(t *testing.T) {
	g := load(t, block(""), nil)
	m, _ := serve(t, g, ask("api.example.com.", dns.TypeA, ""))
	if m.IsEdns0() != nil {
		t.Error("an OPT record nobody asked for")
	}
	q := ask("api.example.com.", dns.TypeA, "198.51.100.0/24")
	opt := q.IsEdns0()
	opt.Option = append(opt.Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0011223344556677"},
		&dns.EDNS0_LOCAL{Code: 100}, &dns.EDNS0_NSID{Code: dns.EDNS0NSID},
		&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: []byte{203, 0, 113, 0}})
	opt.Hdr.Ttl |= 0x4000
	m, _ = serve(t, g, q)
	if got := m.IsEdns0(); len(got.Option) != 1 || got.Hdr.Ttl != 0 || addrs(m) != "192.0.2.2" {
		t.Errorf("got %s", m)
	}
	q = ask("api.example.com.", dns.TypeA, "198.51.100.0/24")
	q.Extra = append(q.Extra, q.Extra[0])
	if _, rcode := serve(t, g, q); rcode != dns.RcodeFormatError {
		t.Errorf("two OPT records: got rcode %d", rcode)
	}
}

func TestECSOff(t *testing.T) {
	g := load(t, block("ecs off"), nil)
	m, _ := serveFrom(t, g, ask("api.example.com.", dns.TypeA, "198.51.100.0/24"), "203.0.113.9")
	if addrs(m) != "192.0.2.1" || m.IsEdns0() == nil {
		t.Errorf("got %s", m)
	}
	checkScope(t, m, -1)
}

func TestECSFrom(t *testing.T) {
	g := load(t, block("ecs {\nfrom 192.0.2.53/32\n}"), nil)
	m, _ := serveFrom(t, g, ask("api.example.com.", dns.TypeA, "198.51.100.0/24"), "192.0.2.53")
	if addrs(m) != "192.0.2.2" {
		t.Errorf("believed: got %s", m)
	}
	m, _ = serveFrom(t, g, ask("api.example.com.", dns.TypeA, "198.51.100.0/24"), "203.0.113.9")
	if addrs(m) != "192.0.2.1" {
		t.Errorf("not believed: got %s", m)
	}
	checkScope(t, m, 0)
}

func TestWhoami(t *testing.T) {
	g := load(t, block(""), nil)
	m, _ := serveFrom(t, g, ask("whoami.example.com.", dns.TypeTXT, "198.51.100.0/24"), "203.0.113.9")
	txt := strings.Join(m.Answer[0].(*dns.TXT).Txt, " ")
	if want := "transport=203.0.113.9 ecs=198.51.100.0/24 source=ecs scope=24 region=b"; txt != want || m.Answer[0].Header().Ttl != 0 {
		t.Errorf("got %s, want %s", txt, want)
	}
	checkScope(t, m, 24)
	m, _ = serveFrom(t, g, ask("whoami.example.com.", dns.TypeTXT, ""), "198.51.100.9")
	if txt := strings.Join(m.Answer[0].(*dns.TXT).Txt, " "); !strings.Contains(txt, "ecs=none source=transport") || !strings.Contains(txt, "region=b") {
		t.Errorf("got %s", txt)
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name, host, want string
		rcode            int
		ttl              uint32
	}{
		{"all down, open", "", "192.0.2.9", dns.RcodeSuccess, 5},
		{"all down, no floor", "ttl_floor off", "192.0.2.9", dns.RcodeSuccess, 30},
		{"all down, closed", "last_resort closed", "no endpoint is healthy and last_resort is closed", dns.RcodeServerFailure, 0},
		{"all down, addresses", "last_resort addresses 192.0.2.254", "192.0.2.254", dns.RcodeSuccess, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := load(t, block("host sick.example.com {\n"+tc.host+"\npool a {\nendpoint 192.0.2.9 down\n}\n}"), nil)
			m, _ := serve(t, g, ask("sick.example.com.", dns.TypeA, "198.51.100.0/24"))
			if m.Rcode != tc.rcode {
				t.Fatalf("got %s", m)
			}
			if tc.rcode == dns.RcodeSuccess && (addrs(m) != tc.want || m.Answer[0].Header().Ttl != tc.ttl) {
				t.Errorf("got %s", m)
			}
			checkScope(t, m, 16) // its one pool is everybody's list
			if tc.rcode != dns.RcodeSuccess {
				ede, ok := m.IsEdns0().Option[1].(*dns.EDNS0_EDE)
				if !ok || ede.ExtraText != tc.want || m.Authoritative {
					t.Errorf("got %s", m)
				}
			}
		})
	}
	g := load(t, block("host drained.example.com {\npool a {\nendpoint 192.0.2.9 drain\n}\n}"), nil)
	if m, _ := serve(t, g, ask("drained.example.com.", dns.TypeA, "")); m.Rcode != dns.RcodeServerFailure || m.IsEdns0() != nil {
		t.Errorf("all drained: got %s", m)
	}
}

func TestRefuse(t *testing.T) {
	g := load(t, block("host shy.example.com {\nclients prefix 198.51.100.0/24 {\nrefuse\n}\nclients rest {\norder a\n}\npool a 192.0.2.9\n}"), nil)
	m, _ := serve(t, g, ask("shy.example.com.", dns.TypeA, "198.51.100.0/24"))
	if m.Rcode != dns.RcodeSuccess || len(m.Answer) > 0 || len(m.Ns) != 1 {
		t.Errorf("got %s", m)
	}
	checkScope(t, m, 0)
	if m, _ := serve(t, g, ask("shy.example.com.", dns.TypeA, "203.0.113.0/24")); addrs(m) != "192.0.2.9" {
		t.Errorf("got %s", m)
	}
}

func TestChasedCNAME(t *testing.T) {
	g := load(t, block(""), nil)
	ctx := context.WithValue(context.Background(), dnsserver.LoopKey{}, 1)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rcode, err := g.ServeDNS(ctx, rec, ask("api.example.com.", dns.TypeA, "198.51.100.0/24")); rcode != dns.RcodeSuccess || err != nil {
		t.Fatal(rcode, err)
	}
	if rec.Msg.Rcode != dns.RcodeRefused || len(rec.Msg.Answer)+len(rec.Msg.Ns) > 0 {
		t.Errorf("got %s", rec.Msg)
	}
}

func TestOpcodes(t *testing.T) {
	g := load(t, block(""), nil)
	q := ask("example.com.", dns.TypeSOA, "")
	q.Opcode = dns.OpcodeNotify
	if _, rcode := serve(t, g, q); rcode != dns.RcodeNotImplemented {
		t.Errorf("got rcode %d", rcode)
	}
	q = ask("example.com.", dns.TypeSOA, "")
	q.Question = append(q.Question, q.Question[0])
	if _, rcode := serve(t, g, q); rcode != dns.RcodeFormatError {
		t.Errorf("two questions: got rcode %d", rcode)
	}
}
