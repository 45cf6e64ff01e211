// Command beacons writes made-up measurements as CSV, to try the building of maps
// at scale:
//
//	go run ./internal/latency/build/testdata/beacons -n 1000000 -prefixes 40000 | gslbctl map build …
//
// The same seed gives the same bytes.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 1_000_000, "measurements")
	prefixes := flag.Int("prefixes", 40_000, "client prefixes, a quarter of them /56")
	regions := flag.String("regions", "eu,us,ap,sa,af", "names of regions")
	seed := flag.Uint64("seed", 1, "seed")
	from := flag.String("from", "2026-11-01", "first day")
	days := flag.Int("days", 1, "days")
	resolvers := flag.Int("resolvers", 0, "resolver prefixes; 0: no column for them")
	flag.Parse()
	first, err := time.Parse(time.DateOnly, *from)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	g := generator{rng: *seed, names: strings.Split(*regions, ","), prefixes: *prefixes, resolvers: *resolvers,
		from: first.Unix(), seconds: uint64(*days) * 86400}
	w.WriteString(g.head())
	var line []byte
	for range *n {
		line = g.line(line[:0])
		if _, err := w.Write(line); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type generator struct {
	rng                 uint64
	names               []string
	prefixes, resolvers int
	from                int64
	seconds             uint64
}

// next is splitmix64.
func (g *generator) next() uint64 {
	g.rng += 0x9e3779b97f4a7c15
	return mix(g.rng)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (g *generator) uniform() float64 { return float64(g.next()>>11) / (1 << 53) }

// normal is the sum of uniform ones, near enough.
func (g *generator) normal() float64 {
	s := -6.0
	for range 3 {
		x := g.next()
		for range 4 {
			s += float64(x&0xffff) / 65536
			x >>= 16
		}
	}
	return s
}

func (g *generator) head() string {
	if g.resolvers > 0 {
		return "time,client,resolver,region,rtt_ms,ok\n"
	}
	return "time,client,region,rtt_ms,ok\n"
}

// line is a measurement. Few prefixes have many of them: demand falls with the
// square of the rank.
func (g *generator) line(b []byte) []byte {
	u := g.uniform()
	p := uint64(float64(g.prefixes) * u * u)
	region := g.next() % uint64(len(g.names))
	// Prefixes that are near have the same best region, in runs of 64.
	base := 40 + float64(mix(p>>6^region<<40)%40)
	b = strconv.AppendInt(b, g.from+int64(g.next()%g.seconds), 10)
	b = append(b, ',')
	b = append(g.addr(p).AppendTo(b), ',')
	if g.resolvers > 0 {
		r := mix(p>>8) % uint64(g.resolvers)
		b = append(netip.AddrFrom4([4]byte{9, byte(r >> 16), byte(r >> 8), byte(r)}).AppendTo(b), ',')
	}
	b = append(append(b, g.names[region]...), ',')
	if g.next()%100 == 0 {
		return append(b, ",false\n"...)
	}
	b = strconv.AppendFloat(b, base+15*math.Exp(0.9*g.normal()), 'f', 1, 64)
	return append(b, ",true\n"...)
}

// addr is an address of a prefix by its rank.
func (g *generator) addr(p uint64) netip.Addr {
	host := byte(g.next())
	if p%4 == 3 {
		p >>= 2
		return netip.AddrFrom16([16]byte{0x2a, byte(p >> 20), byte(p >> 12), byte(p >> 4), byte(p << 4), 0, 0, 0, 8: 1, 15: host})
	}
	p = p>>2*3 + p&3
	return netip.AddrFrom4([4]byte{20 + byte(p>>16), byte(p >> 8), byte(p), host})
}
