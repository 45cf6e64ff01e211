//go:build e2e

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// What the Internet Systems Consortium's list for EDNS compliance asks with dig,
// and what must and must not be in the output.
func TestDigCompliance(t *testing.T) {
	dig := tool(t, "dig", "-v")
	_, corefile := signed(t)
	s := serve(t, corefile)
	const ok, badvers = "status: NOERROR", "status: BADVERS"
	for _, c := range []struct {
		args   string
		want   []string
		banned []string
	}{
		{"+norec +noedns SOA", []string{ok, "IN\tSOA"}, []string{"OPT PSEUDOSECTION"}},
		{"+norec +edns=0 +nocookie SOA", []string{ok, "EDNS: version: 0", "IN\tSOA"}, nil},
		{"+norec +edns=100 +noednsneg +nocookie SOA", []string{badvers, "EDNS: version: 0"}, []string{"IN\tSOA\tns"}},
		{"+norec +ednsopt=100 +nocookie SOA", []string{ok, "EDNS: version: 0", "IN\tSOA"}, []string{"OPT=100"}},
		{"+norec +ednsflags=0x80 +nocookie SOA", []string{ok, "EDNS: version: 0", "IN\tSOA"}, []string{"MBZ"}},
		{"+norec +ednsflags=0x4000 +nocookie SOA", []string{ok, "EDNS: version: 0", "IN\tSOA"}, []string{"MBZ"}},
		{"+norec +dnssec +nocookie SOA", []string{ok, "flags: do", "RRSIG"}, nil},
		{"+norec +dnssec +bufsize=512 +ignore +nocookie DNSKEY", []string{ok, "flags: do"}, []string{"FORMERR"}},
		{"+norec +edns=100 +noednsneg +ednsopt=100 +nocookie SOA", []string{badvers, "EDNS: version: 0"}, []string{"OPT=100", "IN\tSOA\tns"}},
		{"+norec +cookie SOA", []string{ok, "IN\tSOA"}, []string{"COOKIE"}},
		{"+norec +nsid +nocookie SOA", []string{ok, "IN\tSOA"}, []string{"NSID"}},
		{"+norec +subnet=0 +nocookie SOA", []string{ok, "CLIENT-SUBNET: 0.0.0.0/0/0"}, nil},
		{"+norec +tcp +nocookie SOA", []string{ok, "IN\tSOA"}, nil},
		{"+norec +zflag +nocookie SOA", []string{ok, "IN\tSOA"}, nil},
		{"+norec +opcode=15 +nocookie SOA", []string{"status: NOTIMP"}, nil},
		{"+norec +nocookie TYPE1000", []string{ok, "IN\tSOA"}, nil},
		{"+norec +adflag +cdflag +nocookie A", []string{ok}, []string{"flags: qr aa ad"}},
	} {
		for _, name := range []string{"example.com", "www.example.com"} {
			if name != "example.com" && strings.HasSuffix(c.args, "DNSKEY") {
				continue
			}
			t.Run(c.args+" "+name, func(t *testing.T) {
				out := output(t, dig, s.addr, append(strings.Fields(c.args), name)...)
				for _, w := range c.want {
					if !strings.Contains(out, w) {
						t.Errorf("no %q in\n%s", w, out)
					}
				}
				for _, b := range c.banned {
					if strings.Contains(out, b) {
						t.Errorf("%q in\n%s", b, out)
					}
				}
			})
		}
	}
}

// The client subnet as dig sends it and shows it, with the whole world loaded.
func TestDigSubnet(t *testing.T) {
	dig := tool(t, "dig", "-v")
	s := serveExample(t, "quickstart")
	shown := regexp.MustCompile(`CLIENT-SUBNET: (\S+)`)
	for _, c := range []struct{ subnet, qtype, addr, shown string }{
		{"193.0.6.0/24", "A", "203.0.113.45", "193.0.6.0/24/19"},
		{"193.0.6.139/32", "A", "203.0.113.45", "193.0.6.139/32/19"},
		{"8.8.8.0/24", "AAAA", "2001:db8:a::22", "8.8.8.0/24/16"},
		{"2001:200::/56", "A", "192.0.2.88", "2001:200::/56/32"},
		{"10.0.0.0/8", "A", "192.0.2.88", "10.0.0.0/8/8"},
	} {
		out := output(t, dig, s.addr, "+norec", "+nocookie", "+subnet="+c.subnet, "api.example.org", c.qtype)
		m := shown.FindStringSubmatch(out)
		if len(m) == 0 || m[1] != c.shown || !strings.Contains(out, fmt.Sprintf("IN\t%s\t%s\n", c.qtype, c.addr)) {
			t.Errorf("+subnet=%s %s: want %s and %s in\n%s", c.subnet, c.qtype, c.addr, c.shown, out)
		}
	}
}

// delv validates what is signed on the fly, for clients of each region.
func TestDelv(t *testing.T) {
	delv := tool(t, "delv", "-v")
	key, path := makeKey(t, t.TempDir(), "example.com")
	file := writeFile(t, t.TempDir(), "db.example.com", zoneText)
	s := serve(t, `example.com:53 {
    dnssec {
        key file `+path+`
    }
    gslb {
        geoip country testdata/ipv4only.mmdb
        region eu { clients continent EU }
        region us { clients rest }
        host www.example.com *.wild.example.com {
            pool eu 192.0.2.1
            pool us 192.0.2.2
        }
        fallthrough
    }
    file `+file+`
}`)
	anchor := writeFile(t, t.TempDir(), "anchor", fmt.Sprintf("trust-anchors { \"example.com.\" static-key %d %d %d %q; };\n",
		key.Flags, key.Protocol, key.Algorithm, key.PublicKey))
	for _, c := range []struct{ name, from, question, want string }{
		{"one region", "127.1.0.1", "www.example.com A", "192.0.2.1"},
		{"another region", "127.2.0.1", "www.example.com A", "192.0.2.2"},
		{"wildcard", "127.2.0.1", "x.wild.example.com A", "192.0.2.2"},
		{"mixed case", "127.1.0.1", "wWw.exAMple.com A", "192.0.2.1"},
		{"from the file", "127.1.0.1", "static.example.com A", "192.0.2.80"},
		{"CNAME into a host", "127.1.0.1", "alias.example.com A", "192.0.2.1"},
		{"no data, steered", "127.1.0.1", "www.example.com AAAA", "negative response, fully validated"},
		{"no data, another type", "127.2.0.1", "www.example.com HTTPS", "negative response, fully validated"},
		{"missing", "127.1.0.1", "missing.example.com A", "negative response, fully validated"},
		{"apex", "127.1.0.1", "example.com MX", "10 www.example.com."},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"-b", c.from, "-a", anchor, "+root=example.com"}, strings.Fields(c.question)...)
			out := output(t, delv, s.addr, args...)
			if !strings.Contains(out, "fully validated") || !strings.Contains(out, c.want) {
				t.Errorf("want it fully validated, and %q, in\n%s", c.want, out)
			}
		})
	}
}
