package guard

import (
	"fmt"
	"iter"
	"math"
	"net/netip"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// knowing is a database of some IPv4 networks and of n IPv6 networks.
func knowing(n int) *topology.Database {
	var networks iter.Seq2[netip.Prefix, int] = func(yield func(netip.Prefix, int) bool) {
		for i := range 2*n + 1 {
			p := netip.MustParsePrefix(fmt.Sprintf("20.%d.%d.0/24", i/256%256, i%256))
			if i > n {
				p = netip.MustParsePrefix(fmt.Sprintf("2a00:%x::/32", i-n-1))
			}
			if !yield(p, 0) {
				return
			}
		}
	}
	return &topology.Database{Networks: networks, Facts: make([]topology.Facts, 1)}
}

// Networks are taken evenly, and a few say nothing.
func TestNetworks(t *testing.T) {
	for _, tc := range []struct{ known, most, every int }{
		{enough, 5000, 1}, {5000, 5000, 1}, {5001, 5000, 2}, {10000, 5000, 2}, {10001, 5000, 4}, {60000, 5000, 16}, {1001, 7, 256},
	} {
		got := networksOf(knowing(tc.known), tc.most)
		if want := (tc.known + tc.every - 1) / tc.every; len(got) != want || len(got) > tc.most {
			t.Errorf("%+v: %d networks; want %d", tc, len(got), want)
			continue
		}
		for i, p := range got {
			if p.String() != netip.MustParsePrefix(fmt.Sprintf("2a00:%x::/32", i*tc.every)).String() {
				t.Errorf("%+v: number %d is %s", tc, i, p)
				break
			}
		}
	}
	for _, db := range []*topology.Database{nil, knowing(enough - 1)} {
		if got := networksOf(db, 5000); got != nil {
			t.Errorf("%d networks of too few", len(got))
		}
	}
}

// world is a block whose clients a database of the world locates. more are further rules.
func world(more string) string {
	return "geoip country world-country.mmdb\nregion eu {\nclients continent EU AF\n}\nregion us {\nclients continent NA SA\n}\nregion ap {\nclients rest\n}\n" +
		more + "\nhost api.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\npool ap 192.0.2.3\n}\n"
}

// moves6 is how many of a database's IPv6 networks, one by one, get another region first.
func moves6(old, now *plan.Plan) float64 {
	all, moved := 0.0, 0.0
	first := func(p *plan.Plan, n netip.Prefix) string {
		h := p.Hosts[0]
		l := h.Need.Topology.Lists[h.Locate(n, n.Addr()).List]
		return h.Need.Input.Regions[l.Order[0]].Name
	}
	for n := range now.Hosts[0].Need.Input.Geo.Networks {
		if c := now.Hosts[0].Locate(n, n.Addr()); c.Fixed || c.Addr.Is4() {
			continue
		}
		all++
		if first(old, n) != first(now, n) {
			moved++
		}
	}
	return moved / all
}

// The space of IPv6 is the networks that are known, however large the blocks are that
// have them: what nobody uses has no say.
func TestSpaceOfIPv6(t *testing.T) {
	old := build(t, world(""))
	for _, tc := range []struct {
		more  string
		above float64 // of the space
	}{
		{"clients prefix 3000::/4 4000::/2 8000::/1 {\norder us eu\n}", -1},
		{"clients prefix 2a00::/12 2001::/16 {\norder ap us\n}", 0.25},
		{"clients prefix 2000::/3 {\norder ap us\n}", 0.5},
	} {
		now := build(t, world(tc.more))
		r, want := Compare([]Pair{{Old: written(old), New: written(now)}}), moves6(old, now)
		t.Logf("%s: %.4f of the blocks of %s, %.4f of the space of %s", tc.more, r.Blocks, r.Kind, r.Space, r.SpaceKind)
		if math.Abs(r.Space-want) > 0.02 || want <= tc.above || want > 0 && r.SpaceKind[:4] != "IPv6" {
			t.Errorf("%s: %.4f of the space of %s move; want %.4f", tc.more, r.Space, r.SpaceKind, want)
		}
		m := Remember(old).Refusals(&now.Block.Guard, now)
		if refused := len(m) > 0; refused != (want > 0.5) {
			t.Errorf("%s: at a start %v", tc.more, m)
		}
	}
}
