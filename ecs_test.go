package gslb

import (
	"errors"
	"net"
	"testing"

	"github.com/miekg/dns"
)

func TestParseSubnet(t *testing.T) {
	for _, tc := range []struct {
		name          string
		family        uint16
		source, scope uint8
		addr          net.IP
		err           error
		prefix        string
	}{
		{"IPv4", 1, 24, 0, net.IP{198, 51, 99, 0}, nil, "198.51.99.0/24"},
		{"IPv4 in 16 bytes", 1, 24, 0, net.ParseIP("198.51.99.0"), nil, "198.51.99.0/24"},
		{"IPv6", 2, 56, 0, net.ParseIP("2001:db8::"), nil, "2001:db8::/56"},
		{"SOURCE 0", 1, 0, 0, net.IP{0, 0, 0, 0}, nil, "invalid Prefix"},
		{"SOURCE 0, no address", 2, 0, 0, nil, nil, "invalid Prefix"},
		{"family 0, SOURCE 0", 0, 0, 0, nil, nil, "invalid Prefix"},
		{"family 0", 0, 24, 0, net.IP{198, 51, 99, 0}, errFamily, ""},
		{"family 3", 3, 24, 0, net.IP{198, 51, 99, 0}, errFamily, ""},
		{"too long", 1, 33, 0, net.IP{198, 51, 99, 0}, errFamily, ""},
		{"scope", 1, 24, 24, net.IP{198, 51, 99, 0}, errScope, ""},
		{"bits past SOURCE", 1, 20, 0, net.IP{198, 51, 111, 0}, errTrailing, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := parseSubnet(&dns.EDNS0_SUBNET{Family: tc.family, SourceNetmask: tc.source, SourceScope: tc.scope, Address: tc.addr})
			if !errors.Is(err, tc.err) || err == nil && s.prefix.String() != tc.prefix {
				t.Errorf("got %v, %v", s.prefix, err)
			}
		})
	}
}

// FuzzServe sends any bytes that unpack to a query through the plugin. Whatever
// they are, there is a reply that packs, or a code that the server writes; a
// client subnet comes back as it was sent, on every reply.
func FuzzServe(f *testing.F) {
	for _, m := range []*dns.Msg{
		ask("api.example.com.", dns.TypeA, "198.51.100.0/24"), ask("API.example.com.", dns.TypeAAAA, "2001:db8::/56"),
		ask("x.wild.example.com.", dns.TypeMX, "0.0.0.0/0"), ask("example.com.", dns.TypeSOA, ""), ask(".", dns.TypeNS, "10.0.0.0/8"),
		ask("whoami.example.com.", dns.TypeTXT, "::ffff:198.51.100.0/120"), ask(`a\.b.example.com.`, dns.TypeANY, ""),
	} {
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	g := load(f, block(""), nil)
	f.Fuzz(func(t *testing.T, wire []byte) {
		q := new(dns.Msg)
		if q.Unpack(wire) != nil || len(q.Question) == 0 || q.Opcode != dns.OpcodeQuery {
			return
		}
		sent := (*dns.EDNS0_SUBNET)(nil)
		if o := q.IsEdns0(); o != nil {
			sent = subnetOf(&dns.Msg{Extra: []dns.RR{o}})
		}
		m, _ := serve(t, g, q)
		if m == nil {
			return
		}
		if m.IsEdns0() != nil && q.IsEdns0() == nil {
			t.Fatalf("an OPT record nobody asked for in %s", m)
		}
		got := subnetOf(m)
		if (got == nil) != (sent == nil) {
			t.Fatalf("sent %v, got %v", sent, got)
		}
		if sent != nil && (got.Family != sent.Family || got.SourceNetmask != sent.SourceNetmask) {
			t.Fatalf("sent %v, got %v", sent, got)
		}
	})
}
