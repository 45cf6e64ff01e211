package topology_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/geodb"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// worldDatabase is the world-wide country database of testdata.
var worldDatabase = sync.OnceValues(func() (*topology.Database, error) {
	data, err := os.ReadFile("../../testdata/world-country.mmdb")
	if err != nil {
		return nil, err
	}
	db, err := geodb.OpenBytes("world", data, geodb.Country)
	if err != nil {
		return nil, err
	}
	return database(db), nil
})

func database(db *geodb.DB) *topology.Database {
	d := &topology.Database{Networks: db.Networks()}
	for _, r := range db.Records() {
		d.Facts = append(d.Facts, topology.Facts{
			Continent: r.Continent, Country: r.Country, Subdivisions: r.Subdivisions,
			Lat: r.Lat, Lon: r.Lon, Coordinates: r.HasCoordinates, ASN: r.ASN,
		})
	}
	return d
}

// threeRegions is the plain case: Europe and Africa, the Americas, the rest.
func threeRegions(geo *topology.Database) *topology.Input {
	eu, us := topology.Region(0), topology.Region(1)
	ap := topology.Region(2)
	near := func(r *topology.Region) topology.Spec { return topology.Spec{Near: r} }
	rest := near(&ap)
	return &topology.Input{
		Regions: []topology.RegionInfo{{Name: "eu", Pooled: true}, {Name: "us", Pooled: true}, {Name: "ap", Pooled: true}},
		Rules: []topology.Rule{
			{Alts: []topology.Alt{{Kind: topology.Continent, Codes: []string{"EU", "AF"}}}, Spec: near(&eu)},
			{Alts: []topology.Alt{{Kind: topology.Continent, Codes: []string{"NA", "SA"}}}, Spec: near(&us)},
		},
		Rest: &rest, Geo: geo, Depth: 3, Fill: true, Max4: 24, Max6: 56,
	}
}

// places is how many cities byDistance invents for each country.
const places = 16

// byDistance spreads n regions over the earth, invents places near each other
// for every country, and puts each network into one of its country's.
func byDistance(geo *topology.Database, n, depth int) *topology.Input {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	in := &topology.Input{Geo: &topology.Database{}, Depth: depth, Fill: true, Max4: 24, Max6: 56}
	for i := range n {
		in.Regions = append(in.Regions, topology.RegionInfo{
			Name: fmt.Sprint("r", i), Pooled: true, Located: true, Lat: r.Float64()*120 - 50, Lon: r.Float64()*360 - 180,
		})
	}
	for _, f := range geo.Facts {
		lat, lon := r.Float64()*120-50, r.Float64()*340-170
		for range places {
			f.Lat, f.Lon, f.Coordinates = lat+r.Float64()*10-5, lon+r.Float64()*20-10, true
			in.Geo.Facts = append(in.Geo.Facts, f)
		}
	}
	in.Geo.Networks = func(yield func(netip.Prefix, int) bool) {
		r := rand.New(rand.NewPCG(4, 4))
		for p, i := range geo.Networks {
			if !yield(p, i*places+r.IntN(places)) {
				return
			}
		}
	}
	return in
}

// cities cuts n networks of random lengths out of the IPv4 and IPv6 space and
// gives each one of 20,000 places.
func cities(n int) *topology.Database {
	r := rand.New(rand.NewPCG(2, 2))
	d := &topology.Database{}
	for range 20000 {
		d.Facts = append(d.Facts, topology.Facts{
			Continent: []string{"EU", "NA", "AS", "SA"}[r.IntN(4)], Country: fmt.Sprint(r.IntN(200)),
			Lat: r.Float64()*180 - 90, Lon: r.Float64()*360 - 180, Coordinates: true,
		})
	}
	nets := make([]netip.Prefix, 0, n)
	for i := range n {
		a := netip.AddrFrom4([4]byte{byte(20 + i>>16), byte(i >> 8), byte(i)})
		if i >= n/2 {
			j := i - n/2
			a = netip.AddrFrom16([16]byte{0x2a, byte(j >> 16), byte(j >> 8), byte(j)})
		}
		nets = append(nets, netip.PrefixFrom(a, 24+a.BitLen()/128*8))
	}
	picks := make([]int, n)
	for i := range picks {
		picks[i] = r.IntN(len(d.Facts))
	}
	d.Networks = pairs(nets, picks)
	return d
}

func pairs(nets []netip.Prefix, picks []int) iter.Seq2[netip.Prefix, int] {
	return func(yield func(netip.Prefix, int) bool) {
		for i, p := range nets {
			if !yield(p, picks[i]) {
				return
			}
		}
	}
}

// TestScopesOfTheWorld holds the number of distinct scopes over all of IPv4
// under the project's bounds: what resolvers must keep for every name.
func TestScopesOfTheWorld(t *testing.T) {
	geo, err := worldDatabase()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name             string
		in               *topology.Input
		resolver, sticky int // bounds
	}{
		{"three regions by continent", threeRegions(geo), 150_000, 200_000},
		{"10 regions by distance", byDistance(geo, 10, 3), 300_000, 345_000},
		{"30 regions by distance", byDistance(geo, 30, 3), 300_000, 345_000},
		{"10 regions by distance, depth 8", byDistance(geo, 10, 8), 310_000, 350_000},
		{"30 regions by distance, depth 8", byDistance(geo, 30, 8), 310_000, 350_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			top, err := topology.Compile(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			sticky := stickyScopes(top, 16)
			s := top.Stats()
			t.Logf("IPv4 scopes: resolver %d, sticky 16 %d; IPv6 blocks %d; %d lists; %d KiB", s.ECS4, sticky, s.ECS6, s.Lists, s.Bytes>>10)
			if s.ECS4 > tc.resolver || sticky > tc.sticky {
				t.Errorf("got %d and %d scopes, at most %d and %d are allowed", s.ECS4, sticky, tc.resolver, tc.sticky)
			}
		})
	}
}

// stickyScopes counts the scopes when none is shorter than the grain.
func stickyScopes(top *topology.Topology, grain int) int {
	n := 0
	for p := range top.Blocks(false) {
		if p.Addr().Is4() {
			n += 1 << max(0, grain-p.Bits())
		}
	}
	return n
}

func BenchmarkCompile(b *testing.B) {
	geo, err := worldDatabase()
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, in *topology.Input) {
		b.Run(name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var top *topology.Topology
			for b.Loop() {
				if top, err = topology.Compile(in); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "MiB-held")
			b.ReportMetric(float64(top.Stats().Bytes)/(1<<20), "MiB-tables")
			b.ReportMetric(float64(top.Stats().Lists), "lists")
			b.ReportMetric(float64(top.Stats().ECS4), "v4-blocks")
			b.ReportMetric(float64(top.Stats().ECS6), "v6-blocks")
			runtime.KeepAlive(top)
		})
	}
	run("world/regions=3", threeRegions(geo))
	run("world/regions=10", byDistance(geo, 10, 3))
	run("world/regions=30", byDistance(geo, 30, 3))
	for _, n := range []int{250_000, 500_000, 1_000_000} {
		run(fmt.Sprintf("cities/networks=%d/regions=10", n), byCity(cities(n), 10))
	}
	in := byCity(cities(1_000_000), 10)
	in.Clients = measured(in.Geo, 10, 3)
	run("cities/networks=1000000/regions=10/clients=1000000", in)
	in.Resolvers = measured(in.Geo, 10, 3)
	run("cities/networks=1000000/regions=10/clients=1000000/resolvers=1000000", in)
}

// measured is a latency map with an entry for each network of a database, each
// with an order of k of n regions, drawn by chance: hardly any two merge.
func measured(geo *topology.Database, n, k int) *topology.Measured {
	r := rand.New(rand.NewPCG(6, 6))
	m := &topology.Measured{}
	for range 1 << 14 {
		var order []topology.Region
		for _, i := range r.Perm(n)[:k] {
			order = append(order, topology.Region(i))
		}
		m.Orders = append(m.Orders, order)
	}
	m.Networks = func(yield func(netip.Prefix, int) bool) {
		r := rand.New(rand.NewPCG(7, 7))
		for p := range geo.Networks {
			if !yield(p, r.IntN(len(m.Orders))) {
				return
			}
		}
	}
	return m
}

func byCity(geo *topology.Database, n int) *topology.Input {
	in := byDistance(geo, n, 3)
	in.Geo = geo
	return in
}

func BenchmarkLocate(b *testing.B) {
	geo, err := worldDatabase()
	if err != nil {
		b.Fatal(err)
	}
	top, err := topology.Compile(threeRegions(geo))
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 3))
	transport := netip.MustParseAddr("192.0.2.1")
	subnets := map[string][]netip.Prefix{}
	for range 1 << 14 {
		v := r.Uint32()
		a4 := netip.AddrFrom4([4]byte{byte(v>>24)%223 + 1, byte(v >> 16), byte(v >> 8)})
		a6 := netip.AddrFrom16([16]byte{0x2a, byte(v) & 0x1f, byte(v >> 8), byte(v >> 16), byte(v >> 24)})
		subnets["v4"] = append(subnets["v4"], netip.PrefixFrom(a4, 24))
		subnets["v6"] = append(subnets["v6"], netip.PrefixFrom(a6, 56))
	}
	for _, f := range []string{"v4", "v6"} {
		b.Run("family="+f, func(b *testing.B) {
			b.ReportAllocs()
			ps := subnets[f]
			for i := 0; b.Loop(); i++ {
				top.Locate(ps[i&(len(ps)-1)], transport)
			}
		})
	}
}
