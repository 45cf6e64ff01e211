package main

import (
	"strings"
	"testing"
)

// netText is a zone that isn't ours, with names that lead into ours.
const netText = `$ORIGIN example.net.
$TTL 300
@       IN SOA ns1 hostmaster 2026113001 7200 900 1209600 60
        IN NS  ns1
ns1     IN A   192.0.2.53
www     IN A   192.0.2.81
cdn     IN CNAME www.example.com.
twice   IN CNAME cdn
`

// twoZones serves example.com, steered, and example.net from a file, in one
// server block with a cache or in two.
func twoZones(t *testing.T, cache string, together bool) string {
	t.Helper()
	file := writeFile(t, t.TempDir(), "db.example.net", netText)
	net := "\n    file " + file + " example.net\n}\n"
	if together {
		steered := strings.Replace(strings.Replace(steeredBlock, "gslb {", "gslb example.com {", 1), "FALLTHROUGH", "", 1)
		return "example.com:53 example.net:53 {\n" + cache + steered + net
	}
	return alone + "example.net:53 {\n" + cache + net
}

// The cache keys on the name and not on the client: it must leave ours alone,
// whatever it is told, and keep all else.
func TestCacheBetweenClients(t *testing.T) {
	for _, cache := range []string{
		"cache",
		"cache 300 {\n prefetch 1 1m 10%\n serve_stale 1h\n}",
		"cache 300 {\n success 1000 300 60\n denial 1000 300 60\n servfail 5s\n}",
	} {
		t.Run(strings.ReplaceAll(cache, "\n", " "), func(t *testing.T) {
			s := serve(t, withFile(t, cache))
			for range 3 {
				s.check(t, []exchangeCase{
					{"d01 one client", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
					{"d01 another client", "www.example.com A +subnet=203.0.113.0/24", "192.0.2.3 /24"},
					{"d01 the other family", "www.example.com AAAA +subnet=2001:db8::/56", "2001:db8:a::1 /48"},
					{"d02 no option", "www.example.com A from=127.0.0.9", "192.0.2.4"},
					{"d02 an OPT without one", "www.example.com A +edns", "192.0.2.4"},
					{"d40 negative, one client", "missing.example.com A +subnet=198.51.99.0/24", "NXDOMAIN /0"},
					{"d40 negative, another client", "missing.example.com A +subnet=203.0.113.0/24", "NXDOMAIN /0"},
					{"d40 negative, no option", "missing.example.com A", "NXDOMAIN"},
					{"d40 from the file", "static.example.com A +subnet=203.0.113.0/24", "192.0.2.80 /0"},
					{"d40 CNAME, one client", "alias.example.com A +subnet=198.51.99.0/24", "CNAME www.example.com. /0"},
					{"d40 CNAME, another client", "alias.example.com A +subnet=203.0.113.0/24", "CNAME www.example.com. /0"},
					{"d01 a client whose first region is down", "failing.example.com A +subnet=198.51.96.0/24", "192.0.2.2 /23"},
				})
			}
		})
	}
}

func TestCacheAndForeignZone(t *testing.T) {
	for _, together := range []bool{true, false} {
		name := "in two server blocks"
		if together {
			name = "in one server block"
		}
		t.Run(name, func(t *testing.T) {
			s := serve(t, twoZones(t, "cache", together))
			hits := func() float64 { return metric(t, "coredns_cache_hits_total", "server", "dns://"+s.addr) }
			// A foreign CNAME is answered alone, so there is nothing of one client
			// in it that another could be given; the cache doesn't keep an answer
			// without an end. The cache is outside of us and drops the option.
			for _, subnet := range []string{"198.51.99.0/24", "203.0.113.0/24"} {
				s.check(t, []exchangeCase{
					{"d14 foreign CNAME", "cdn.example.net A +subnet=" + subnet, "CNAME www.example.com."},
					{"d14 foreign chain", "twice.example.net AAAA +subnet=" + subnet, "CNAME cdn.example.net. CNAME www.example.com."},
					{"foreign address", "www.example.net A +subnet=" + subnet, "192.0.2.81"},
					{"foreign NXDOMAIN", "missing.example.net A +subnet=" + subnet, "NXDOMAIN"},
				})
			}
			if n := hits(); n != 2 {
				t.Errorf("%v cache hits for an address and a missing name that were asked for twice", n)
			}
		})
	}
}
