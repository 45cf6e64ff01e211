package topology

import (
	"math/rand/v2"
	"testing"
)

// TestLaws goes through many random inputs with latency maps, marks, fences and
// caps, and samples of each what must hold of all addresses.
func TestLaws(t *testing.T) {
	n := uint64(300)
	if testing.Short() {
		n = 100
	}
	for seed := range n {
		laws(t, seed, 16-int(seed%4)*3)
	}
	laws(t, 139000470, 16) // of a split, standbys alone have a pool
}

// FuzzLaws goes on where TestLaws ends.
func FuzzLaws(f *testing.F) {
	f.Add(uint64(1), uint8(8))
	f.Fuzz(func(t *testing.T, seed uint64, limit uint8) { laws(t, seed, int(limit)%32+1) })
}

// laws holds, for the input of a seed: every address under an entry of a
// latency map has the order of that entry, restricted to the list that it has
// without the map, and the marks of the areas that it is in, whatever block it
// lies in; all of a block has one match; blocks are as few as can be and no
// longer than the cap; and a fence confines all that it names.
func laws(t *testing.T, seed uint64, limit int) {
	r := rand.New(rand.NewPCG(seed, 15))
	in := measuredWorld(r)
	in.Max4 = limit
	top, err := Compile(in)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	bare := *in
	bare.Clients, bare.Resolvers, bare.Marks = nil, nil, nil
	base := mustCompile(t, &bare)
	checkPartition(t, top)
	m := newFacts(in)
	for _, view := range []struct {
		table   *table4
		latency *Measured
		limit   int
	}{{&top.full4, in.Resolvers, 32}, {&top.ecs4, in.Clients, limit}} {
		ms := measurementsOf(view.latency)
		for range 60 {
			x := r.IntN(leaves)
			got := view.table.lookup(leafAddr(x)).match()
			y := keyOf(leafAddr(x)).masked(got.Bits)
			for b := got.Bits; b < 32; b++ {
				if r.IntN(2) == 0 {
					y = y.withBit(b)
				}
			}
			if other := view.table.lookup(y.addr(true)).match(); other != got {
				t.Fatalf("seed %d: %s has %+v, but %s in its block %+v", seed, leafAddr(x), got, y.addr(true), other)
			}
			list := &top.Lists[got.List]
			exact := &base.Lists[base.full4.lookup(leafAddr(x)).match().List]
			if got.Bits > view.limit || list.Fenced && !confined(list) || exact.Fenced && !list.Fenced {
				t.Fatalf("seed %d: %s has %+v: %+v", seed, leafAddr(x), got, list)
			}
			if view.limit < 16 {
				continue // a majority decided
			}
			kind := OrderWritten
			if m.prefixDecides(x) {
				kind = Prefix
			}
			without := text(&bare, exact)
			want, _ := m.after(x, without, kind, ms)
			if l := text(in, list); l != want {
				t.Fatalf("seed %d: %s: got %s, want %s; without map and marks %s", seed, leafAddr(x), l, want, without)
			}
		}
	}
}

// prefixDecides tells whether a rule that begins with prefixes holds a piece.
func (m *model) prefixDecides(x int) bool {
	for i, r := range m.in.Rules {
		if r.Alts[0].Kind == Prefix && m.rules[i] != "-" && m.allHold(r.Alts, leafAddr(x), m.geo[x], m.asn[x]) {
			return true
		}
	}
	return false
}

// confined tells whether a list stays within its fence.
func confined(l *List) bool {
	for _, w := range l.Split {
		if !l.Allowed.Has(w.Region) {
			return false
		}
	}
	for _, r := range l.Order {
		if !l.Allowed.Has(r) {
			return false
		}
	}
	return true
}
