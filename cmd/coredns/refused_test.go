package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

// What can't work beside gslb is refused at the start, with the reason.
func TestRefused(t *testing.T) {
	file := writeFile(t, t.TempDir(), "db.example.com", zoneText)
	const block = " gslb {\n region a\n host www.example.com { pool a 192.0.2.1 }\n"
	for _, c := range []struct {
		name, corefile string
		want           []string // in the error
	}{
		{"inherited root zone and cache", ".:53 {\n cache\n" + block + "}\n}\n", []string{"cache", "write the zones after gslb"}},
		{"soa, and one below", "example.com:53 {\n" + block + "soa ns1.example.com hostmaster.example.com\n fallthrough\n}\n file " + file + "\n}\n",
			[]string{"soa is written", "example.com.", "remove one"}},
		{"ns, and an SOA below", "example.com:53 {\n" + block + "ns ns1.example.com\n fallthrough\n}\n file " + file + "\n}\n",
			[]string{"ns is written", "remove one"}},
		{"two blocks", "example.com:53 {\n" + block + "}\n" + block + "}\n}\n", []string{"gslb", "one"}},
		{"unknown word", "example.com:53 {\n" + block + "up_tresh 0.3\n}\n}\n", []string{"up_tresh", "Corefile:"}},
		{"missing database", "example.com:53 {\n" + block + "geoip country missing.mmdb\n}\n}\n", []string{"missing.mmdb"}},
		{"database of another kind", "example.com:53 {\n" + block + "geoip city testdata/asn.mmdb\n}\n}\n", []string{"asn.mmdb", "city"}},
	} {
		t.Run(c.name, func(t *testing.T) { checkRefused(t, c.corefile, c.want) })
	}
}

// A build with gslb in the wrong place refuses the plugins that would go wrong.
func TestRefusedOrder(t *testing.T) {
	right := slices.Clone(dnsserver.Directives)
	defer func() { dnsserver.Directives = right }()
	dir := t.TempDir()
	_, key := makeKey(t, dir, "example.com")
	zone := writeFile(t, dir, "db.example.com", zoneText)
	without := slices.DeleteFunc(slices.Clone(right), func(d string) bool { return d == "gslb" })
	for _, c := range []struct {
		name, before, plugin string
		want                 string
	}{
		{"before cache", "cache", "cache", "runs gslb before cache"},
		{"before dnssec", "dnssec", "dnssec {\n key file " + key + "\n}", "runs gslb before dnssec"},
		{"after file", "auto", "file " + zone, "runs gslb after file"},
		{"after whoami", "on", "whoami", "runs gslb after whoami"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dnsserver.Directives = slices.Insert(slices.Clone(without), slices.Index(without, c.before), "gslb")
			checkRefused(t, "example.com:53 {\n gslb {\n region a\n host www.example.com { pool a 192.0.2.1 }\n }\n"+c.plugin+"\n}\n",
				[]string{c.want, "right after dnssec"})
		})
	}
}

func checkRefused(t *testing.T, corefile string, want []string) {
	t.Helper()
	s, err := start("Corefile", corefile)
	if err == nil {
		s.stop()
		t.Fatal("the server starts")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q, want %q in it", err, w)
		}
	}
}
