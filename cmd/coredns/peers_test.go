package main

import (
	"fmt"
	"testing"
)

// Cases that other servers got wrong or were asked for, numbered as in their
// collection (b); each is a small server, a question and the right answer. Cases
// that a vector, a rule, a report or a test of a package holds are not repeated.
var peersCases = []struct {
	name     string
	corefile string
	cases    []exchangeCase
}{
	{"names", alone, []exchangeCase{
		{"b01 HTTPS of a name with addresses only", "www.example.com HTTPS", "NODATA"},
		{"b01 any type of it", "www.example.com TYPE65280", "NODATA"},
		{"b12 a zone that only ends like ours", "www.notexample.com A +subnet=198.51.99.0/24", "REFUSED"},
		{"b16 negatives are authoritative, with SOA", "missing.example.com A", "NXDOMAIN"},
		{"b26 AAAA of an IPv4 name", "v4.example.com AAAA", "NODATA"},
		{"b35 a name outside of every zone", "example.net A +subnet=198.51.99.0/24", "REFUSED"},
		{"b40 empty non-terminal", "ent.example.com A", "NODATA"},
		{"b40 of a service name", "_tcp.svc.example.com A", "NODATA"},
		{"b40 below it", "x.ent.example.com A", "NXDOMAIN"},
		{"b70 above a wildcard", "wild.example.com AAAA", "NODATA"},
		{"b75 wildcard", "any.wild.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		{"b75 wildcard, deeper", "a.b.wild.example.com A +subnet=198.51.99.0/24", "192.0.2.2 /24"},
		{"b75 type of a wildcard", "any.wild.example.com MX", "NODATA"},
		{"b75 no wildcard below a name that exists", "x.www.example.com A", "NXDOMAIN"},
		{"b27 IPv6 endpoint", "www.example.com AAAA +subnet=203.0.113.0/24", "2001:db8:c::1 /24"},
		{"b38 an endpoint that is down is not answered", "failing.example.com A +subnet=198.51.96.0/24", "192.0.2.2 /23"},
		{"b63 everyone else's scope leaves rules out", "www.example.com A +subnet=203.0.112.0/24", "192.0.2.4 /24"},
		{"b01 DS", "www.example.com DS", "NODATA"},
		{"another class", "www.example.com A +ch", "REFUSED"},
	}},
	{"nested networks", `example.com:53 {
    gslb {
        spread resolver
        region a { clients prefix 10.0.0.0/8 }
        region b { clients prefix 10.1.0.0/16 }
        region c { clients rest }
        host www.example.com {
            pool a 192.0.2.1
            pool b 192.0.2.2
            pool c 192.0.2.3
        }
    }
}`, []exchangeCase{
		{"b13 the longest prefix", "www.example.com A +subnet=10.1.2.0/24", "192.0.2.2 /16"},
		{"b74 its neighbour", "www.example.com A +subnet=10.2.0.0/24", "192.0.2.1 /15"},
		{"b74 far from it", "www.example.com A +subnet=10.128.0.0/24", "192.0.2.1 /9"},
	}},
	{"written orders", `example.com:53 {
    gslb {
        region a b c
        host failover.example.com {
            order a b c
            pool a { endpoint 192.0.2.1 down }
            pool b 192.0.2.2 192.0.2.3
            pool c 192.0.2.4
        }
        host threshold.example.com {
            order a b
            pool a {
                endpoint 192.0.2.1 down
                endpoint 192.0.2.5
                min_healthy 2
            }
            pool b 192.0.2.2
        }
        host zero.example.com {
            order a
            pool a {
                endpoint 192.0.2.1 weight 0
                endpoint 192.0.2.5 weight 3
                answers 1
            }
        }
        host gone.example.com {
            order a b
            pool a { endpoint 192.0.2.1 down }
            pool b { endpoint 192.0.2.2 down }
        }
        host closed.example.com {
            order a
            last_resort closed
            pool a { endpoint 192.0.2.1 down }
        }
        host drained.example.com {
            order a b
            pool a { endpoint 192.0.2.1 drain }
            pool b { endpoint 192.0.2.2 down }
        }
    }
}`, []exchangeCase{
		{"b02 all endpoints of the pool", "failover.example.com A", "192.0.2.2 192.0.2.3"},
		{"b30 the next region in order", "failover.example.com A +subnet=198.51.100.0/24", "192.0.2.2 192.0.2.3 /16"},
		{"b31 and that one alone", "failover.example.com A +tcp", "192.0.2.2 192.0.2.3"},
		{"b32 weight 0 is not listed", "zero.example.com A", "192.0.2.5"},
		{"b47 a pool below its threshold is passed over", "threshold.example.com A", "192.0.2.2"},
		{"b07 last resort open", "gone.example.com A", "192.0.2.1"},
		{"b07 last resort closed", "closed.example.com A +subnet=198.51.100.0/24", "SERVFAIL /16"},
		{"b25 open leaves out what is drained", "drained.example.com A", "192.0.2.2"},
	}},
	{"families", `example.com:53 {
    gslb {
        spread resolver
        region a { clients prefix 198.51.100.0/24 }
        region b { clients rest }
        host mixed.example.com {
            families mixed
            pool a 192.0.2.1
            pool b 192.0.2.2 2001:db8:b::1
        }
        host same.example.com {
            pool a {
                endpoint 192.0.2.1
                endpoint 2001:db8:a::1 down
            }
            pool b 192.0.2.2 2001:db8:b::1
        }
    }
}`, []exchangeCase{
		{"b56 A where there is one", "mixed.example.com A +subnet=198.51.100.0/24", "192.0.2.1 /24"},
		{"b56 AAAA from the next region", "mixed.example.com AAAA +subnet=198.51.100.0/24", "2001:db8:b::1 /24"},
		{"b56 a family that is lost moves alone", "same.example.com AAAA +subnet=198.51.100.0/24", "2001:db8:b::1 /24"},
		{"b56 and the other one stays", "same.example.com A +subnet=198.51.100.0/24", "192.0.2.1 /24"},
		{"b43 a client by IPv6", "mixed.example.com A +subnet=2001:db8::/56", "192.0.2.2 /21"},
	}},
	{"places", `example.com:53 {
    gslb {
        geoip city testdata/city.mmdb
        geoip asn testdata/asn.mmdb
        spread resolver
        region us { location 39.04 -77.49 }
        region eu { location 50.11 8.68 }
        region ap { location 1.35 103.82 }
        region nowhere
        region isp { clients asn 65551 }
        clients prefix 127.9.0.0/16 { order nowhere }
        host www.example.com {
            pool eu 192.0.2.1
            pool us 192.0.2.2
            pool ap 192.0.2.3
            pool nowhere 192.0.2.4
            pool isp 192.0.2.5
        }
    }
}`, []exchangeCase{
		{"b28 no option: the resolver's place", "www.example.com A from=127.1.0.1", "192.0.2.1"},
		{"b28 another resolver", "www.example.com A from=127.2.0.1", "192.0.2.2"},
		{"b28 AAAA of it", "www.example.com AAAA from=127.2.0.1", "NODATA"},
		{"b37 a resolver that a rule names", "www.example.com A from=127.9.0.1", "192.0.2.4"},
		{"b53 far south is not nearest to a region without location", "www.example.com A from=127.8.0.1", "192.0.2.3"},
		{"b15 no coordinates: the order written, not 0,0", "www.example.com A +subnet=203.0.113.64/26", "192.0.2.2 /5"},
		{"b15 0,0 of nowhere is no place", "www.example.com A +subnet=192.0.2.0/26", "192.0.2.2 /9"},
		{"b61 an AS has exact scopes", "www.example.com A +subnet=2001:db8:8000::/48", "192.0.2.5 /34"},
		{"b68 and so has its neighbour", "www.example.com A +subnet=2001:db8:c000::/48", "192.0.2.3 /34"},
	}},
}

func TestPeersCases(t *testing.T) {
	for _, c := range peersCases {
		t.Run(c.name, func(t *testing.T) { serve(t, c.corefile).check(t, c.cases) })
	}
}

// b23: a name with both families gets all endpoints of each, though its clients
// ask for A and AAAA in turn. b44: weights are exact, a weight of 0 included.
func TestPeersTurns(t *testing.T) {
	s := serve(t, `example.com:53 {
    gslb {
        spread balanced
        region a
        host www.example.com {
            pool a {
                endpoint 192.0.2.1 weight 5
                endpoint 192.0.2.2 weight 1
                endpoint 192.0.2.3 weight 0
                endpoint 2001:db8::1
                endpoint 2001:db8::2
                answers 1
            }
        }
    }
}`)
	const rounds = 60
	got := make(map[string]int)
	for range rounds {
		for _, qtype := range []string{"A", "AAAA"} {
			got[brief(s.exchange(t, "www.example.com "+qtype))]++
		}
	}
	want := map[string]int{"192.0.2.1": 50, "192.0.2.2": 10, "2001:db8::1": 30, "2001:db8::2": 30}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("in %d rounds %v, want %v", rounds, got, want)
	}
}

// b18, b37: with the default spread a client keeps its region and its scope,
// whichever resolver asks and for whichever family.
func TestPeersSticky(t *testing.T) {
	s := serve(t, `example.com:53 {
    gslb {
        region a b
        host www.example.com {
            split a 50 b 50
            pool a 192.0.2.1 2001:db8:a::1
            pool b 192.0.2.2 2001:db8:b::1
        }
    }
}`)
	same := map[string]string{"192.0.2.1 /16": "2001:db8:a::1 /16", "192.0.2.2 /16": "2001:db8:b::1 /16"}
	seen := make(map[string]bool)
	for net := range 64 {
		first := brief(s.exchange(t, fmt.Sprintf("www.example.com A +subnet=198.%d.0.0/24", net)))
		seen[first] = true
		for _, host := range []int{1, 200} {
			for _, from := range []string{"127.1.0.1", "127.77.0.1"} {
				q := fmt.Sprintf("+subnet=198.%d.%d.0/24 from=%s", net, host, from)
				if got := brief(s.exchange(t, "www.example.com A "+q)); got != first {
					t.Errorf("A %s: %s, want %s", q, got, first)
				}
				if got := brief(s.exchange(t, "www.example.com AAAA "+q)); got != same[first] {
					t.Errorf("AAAA %s: %s, want %s", q, got, same[first])
				}
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("64 networks all got one of %v", seen)
	}
}
