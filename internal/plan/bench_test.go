package plan_test

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"

	"github.com/oschwald/geoip2-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2"
)

const worldFile = "../../testdata/world-country.mmdb"

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

const worldBlock = `gslb bench.test {
	geoip country ` + worldFile + `
	region eu {
		clients continent EU AF
	}
	region us {
		clients continent NA SA
	}
	region ap {
		clients rest
	}
	host sticky-all.bench.test {
		pool eu 192.0.2.1 192.0.2.2 2001:db8:e::1
		pool us 198.51.100.1 198.51.100.2 2001:db8:a::1
		pool ap 203.0.113.1 203.0.113.2 2001:db8:c::1
	}
	host sticky-1-of-8.bench.test {
		answers 1
		pool eu 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6 192.0.2.7 192.0.2.8 2001:db8:e::1
		pool us 198.51.100.1 198.51.100.2 198.51.100.3 198.51.100.4 198.51.100.5 198.51.100.6 198.51.100.7 198.51.100.8 2001:db8:a::1
		pool ap 203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.4 203.0.113.5 203.0.113.6 203.0.113.7 203.0.113.8 2001:db8:c::1
	}
	host resolver-3-of-8.bench.test {
		answers 3
		spread resolver
		pool eu 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6 192.0.2.7 192.0.2.8 2001:db8:e::1
		pool us 198.51.100.1 198.51.100.2 198.51.100.3 198.51.100.4 198.51.100.5 198.51.100.6 198.51.100.7 198.51.100.8 2001:db8:a::1
		pool ap 203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.4 203.0.113.5 203.0.113.6 203.0.113.7 203.0.113.8 2001:db8:c::1
	}
	host balanced.bench.test {
		answers 1
		spread balanced
		split eu 70 us 30
		pool eu 192.0.2.1 192.0.2.2 2001:db8:e::1
		pool us 198.51.100.1 198.51.100.2 2001:db8:a::1
	}
}`

func worldPlan(tb testing.TB) *plan.Plan {
	tb.Helper()
	block, err := config.Parse(nil, tokens(worldBlock))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := plan.Build(block, plan.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// subnets are random client subnets of public IPv4 space.
func subnets() []netip.Prefix {
	r := rand.New(rand.NewPCG(5, 5))
	ps := make([]netip.Prefix, 1<<14)
	for i := range ps {
		v := r.Uint32()
		ps[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(v>>24)%223 + 1, byte(v >> 16), byte(v >> 8)}), 24)
	}
	return ps
}

var resolver = netip.MustParseAddr("192.0.2.53")

// BenchmarkDecision is the whole decision, from client subnet to addresses. It
// stands beside BenchmarkDatabase, so that one run gives the ratio.
func BenchmarkDecision(b *testing.B) {
	p := worldPlan(b)
	clients := subnets()
	for _, h := range p.Hosts {
		snapshot := h.Steer.NewSnapshot(func(steer.Region, int) steer.EndpointState { return steer.EndpointState{} }, nil)
		name, _, _ := strings.Cut(h.Config.Names[0], ".")
		b.Run("host="+name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c := h.Locate(clients[i&(len(clients)-1)], resolver)
				if d := h.Steer.Decide(snapshot, &c, steer.V4, nil); d.Answer == nil {
					b.Fatal("no answer")
				}
			}
		})
	}
}

// BenchmarkDatabase is what other servers do for each query: look the client up
// in the database and decode the record.
func BenchmarkDatabase(b *testing.B) {
	data, err := os.ReadFile(worldFile)
	if err != nil {
		b.Fatal(err)
	}
	clients := subnets()
	b.Run("decode=two-codes", func(b *testing.B) {
		reader, err := maxminddb.OpenBytes(data)
		if err != nil {
			b.Fatal(err)
		}
		var record struct {
			Continent struct {
				Code string `maxminddb:"code"`
			} `maxminddb:"continent"`
			Country struct {
				ISOCode string `maxminddb:"iso_code"`
			} `maxminddb:"country"`
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := reader.Lookup(clients[i&(len(clients)-1)].Addr()).Decode(&record); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode=geoip2.Country", func(b *testing.B) {
		reader, err := geoip2.OpenBytes(data)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := reader.Country(clients[i&(len(clients)-1)].Addr()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestDecisionAllocates holds that a decision allocates nothing.
func TestDecisionAllocates(t *testing.T) {
	p := worldPlan(t)
	clients := subnets()
	for _, h := range p.Hosts {
		snapshot := h.Steer.NewSnapshot(func(steer.Region, int) steer.EndpointState { return steer.EndpointState{} }, nil)
		i := 0
		n := testing.AllocsPerRun(1000, func() {
			c := h.Locate(clients[i], resolver)
			h.Steer.Decide(snapshot, &c, steer.V4, nil)
			i++
		})
		if n > 0 {
			t.Errorf("%s: %v allocations for each decision", h.Config.Names[0], n)
		}
	}
}
