package gslb

import (
	"context"
	"errors"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// zoneBelow is a plugin below us that serves example.com and example.net.
func zoneBelow(t testing.TB) plugin.Handler {
	return plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg)
		m.SetReply(r)
		m.Authoritative = true
		soa := test.SOA("example.com. 600 IN SOA ns.example.com. mail.example.com. 2026 7200 1800 86400 60")
		switch q := r.Question[0]; {
		case q.Name == "example.com." && q.Qtype == dns.TypeSOA:
			m.Answer = []dns.RR{soa}
		case q.Name == "example.com." && q.Qtype == dns.TypeMX:
			m.Answer = []dns.RR{test.MX("example.com. 600 IN MX 10 mail.example.com.")}
		case q.Name == "www.example.com." || q.Name == "www.example.net.":
			m.Answer = []dns.RR{
				test.CNAME(q.Name + " 600 IN CNAME cdn.example.net."),
				test.CNAME("cdn.example.net. 600 IN CNAME API.example.com."),
				test.A("api.example.com. 30 IN A 192.0.2.1"),
			}
			m.Ns = []dns.RR{soa}
		case q.Name == "tailored.example.com.":
			m.Answer = []dns.RR{test.A("tailored.example.com. 30 IN A 192.0.2.77")}
			e := subnetOf(r)
			m.SetEdns0(4096, false)
			m.IsEdns0().Option = []dns.EDNS0{
				&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: e.Family, SourceNetmask: e.SourceNetmask, SourceScope: 20, Address: e.Address},
				&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "6162"},
			}
		case q.Name == "broken.example.com.":
			return dns.RcodeServerFailure, errors.New("broken")
		default:
			m.Rcode = dns.RcodeNameError
			m.Ns = []dns.RR{soa}
		}
		return dns.RcodeSuccess, w.WriteMsg(m)
	})
}

func TestFallthrough(t *testing.T) {
	g := load(t, block("fallthrough"), zoneBelow(t))
	for _, tc := range []struct {
		name   string
		qname  string
		qtype  uint16
		rcode  int
		answer int
		ns     int
	}{
		{"steered", "api.example.com.", dns.TypeA, dns.RcodeSuccess, 1, 0},
		{"apex MX", "example.com.", dns.TypeMX, dns.RcodeSuccess, 1, 0},
		{"apex SOA", "example.com.", dns.TypeSOA, dns.RcodeSuccess, 1, 0},
		{"other type of a host", "api.example.com.", dns.TypeHTTPS, dns.RcodeSuccess, 0, 1},
		{"other type under a wildcard", "x.wild.example.com.", dns.TypeHTTPS, dns.RcodeSuccess, 0, 1},
		{"empty non-terminal", "under.example.com.", dns.TypeA, dns.RcodeSuccess, 0, 1},
		{"no such name", "nope.example.com.", dns.TypeA, dns.RcodeNameError, 0, 1},
		{"foreign zone", "nope.example.net.", dns.TypeA, dns.RcodeNameError, 0, 1},
		{"CNAME into a host", "www.example.com.", dns.TypeA, dns.RcodeSuccess, 2, 0},
		{"foreign CNAME into a host", "www.example.net.", dns.TypeA, dns.RcodeSuccess, 2, 0},
		{"failure below", "broken.example.com.", dns.TypeA, dns.RcodeServerFailure, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := serve(t, g, ask(tc.qname, tc.qtype, "203.0.113.0/24"))
			if m.Rcode != tc.rcode || len(m.Answer) != tc.answer || len(m.Ns) != tc.ns {
				t.Errorf("got %s", m)
			}
			if tc.name != "steered" {
				checkScope(t, m, 0)
			}
		})
	}
}

func TestOptionsFromBelow(t *testing.T) {
	g := load(t, block("fallthrough"), zoneBelow(t))
	m, _ := serve(t, g, ask("tailored.example.com.", dns.TypeA, "203.0.113.0/24"))
	checkScope(t, m, 20)
	if n := len(m.IsEdns0().Option); n != 2 {
		t.Errorf("%d options in %s", n, m)
	}
}

// TestSOABelow holds that our negatives carry the SOA of the plugin below.
func TestSOABelow(t *testing.T) {
	g := load(t, block("fallthrough"), zoneBelow(t))
	m, _ := serve(t, g, ask("v4.example.com.", dns.TypeAAAA, ""))
	soa := m.Ns[0].(*dns.SOA)
	if soa.Serial != 2026 || soa.Hdr.Ttl != 60 {
		t.Errorf("got %s", soa)
	}
}

// TestNobodyBelow: the plugins below know nothing of the zone, so we do.
func TestNobodyBelow(t *testing.T) {
	g := load(t, block("fallthrough"), test.NextHandler(dns.RcodeServerFailure, errors.New("no next plugin found")))
	m, _ := serve(t, g, ask("api.example.com.", dns.TypeHTTPS, "203.0.113.0/24"))
	if m.Rcode != dns.RcodeSuccess || len(m.Ns) != 1 {
		t.Errorf("got %s", m)
	}
	m, _ = serve(t, g, ask("nope.example.com.", dns.TypeA, "203.0.113.0/24"))
	if m.Rcode != dns.RcodeNameError || len(m.Ns) != 1 {
		t.Errorf("got %s", m)
	}
}

// TestFallthroughZones: only names in the zones named are asked below.
func TestFallthroughZones(t *testing.T) {
	g := load(t, block("fallthrough below.example.com"), zoneBelow(t))
	m, _ := serve(t, g, ask("example.com.", dns.TypeMX, ""))
	if len(m.Answer) != 0 || m.Ns[0].(*dns.SOA).Serial == 2026 {
		t.Errorf("got %s", m)
	}
}

// TestReplyKept: what a plugin below handed over is not changed.
func TestReplyKept(t *testing.T) {
	kept := new(dns.Msg)
	g := load(t, block("fallthrough"), plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		kept.SetRcode(r, dns.RcodeNameError)
		kept.SetEdns0(4096, false)
		return dns.RcodeSuccess, w.WriteMsg(kept)
	}))
	m, _ := serve(t, g, ask("api.example.com.", dns.TypeTXT, "203.0.113.0/24"))
	if m.Rcode != dns.RcodeSuccess || kept.Rcode != dns.RcodeNameError || len(kept.IsEdns0().Option) > 0 || len(kept.Extra) != 1 {
		t.Errorf("got %s, kept %s", m, kept)
	}
}
