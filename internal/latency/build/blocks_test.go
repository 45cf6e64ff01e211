package build

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// randomLeaves makes leaves near each other, with random sets.
func randomLeaves(rng *rand.Rand, o *Options) *chooser {
	c := newChooser(o, Clients)
	var keys []key
	for range 1 + rng.IntN(60) {
		if rng.IntN(2) == 0 {
			keys = append(keys, newKey4(Clients, 10<<24|uint32(rng.IntN(1<<5))<<8|uint32(rng.IntN(3))<<18, o.Longest4))
		} else {
			a := netip.AddrFrom16([16]byte{0x20, 1, 4: byte(rng.IntN(2)), 6: byte(rng.IntN(1 << 4))})
			keys = append(keys, newKey(Clients, a, o.Longest6))
		}
	}
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		set := uint64(rng.IntN(7) + 1)
		if rng.IntN(3) == 0 {
			set |= withoutEntry
		}
		c.leaves = append(c.leaves, leaf{bits: uint8(c.o.longest(k)), entry: -1,
			key: k, demand: 1, evidence: -1, set: set, stay: set,
			spread: uint64(rng.Uint32() & rng.Uint32() & 7), geo: uint8(rng.IntN(3)), prev: none,
		})
	}
	return c
}

// TestPieces holds that pieces are in order and apart from each other, not shorter or longer than
// allowed, cover all leaves, and give each one a region that it may get; and that two pieces
// that are halves of one prefix could not be one.
func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	o := &Options{Regions: regions, Longest4: 24, Shortest4: 14, Longest6: 56, Shortest6: 40}
	merged := 0
	for range 3000 {
		c := randomLeaves(rng, o)
		for _, spread := range []bool{false, true} {
			pieces := c.partition(spread)
			next := 0
			for i, p := range pieces {
				k := c.leaves[p.from].key
				if p.from != next || p.to <= p.from || p.prefix.Bits() < o.shortest(k) || p.prefix.Bits() > o.longest(k) || p.prefix != p.prefix.Masked() {
					t.Fatalf("piece %+v after leaf %d", p, next)
				}
				if i > 0 && p.prefix.Overlaps(pieces[i-1].prefix) {
					t.Fatalf("%v overlaps %v", p.prefix, pieces[i-1].prefix)
				}
				for _, l := range c.leaves[p.from:p.to] {
					may := l.set
					if spread {
						may |= l.spread
					}
					if region := l.key.prefix(o.longest(l.key)); !p.prefix.Contains(region.Addr()) || p.region == none && may&withoutEntry == 0 || p.region != none && may>>p.region&1 == 0 {
						t.Fatalf("leaf %+v is in piece %+v", l, p)
					}
				}
				next = p.to
				if p.to-p.from > 1 {
					merged++
				}
				if i > 0 && halves(pieces[i-1].prefix, p.prefix) && p.prefix.Bits() > o.shortest(k) && common(c, spread, pieces[i-1].from, p.to) != 0 {
					t.Fatalf("%v and %v could be one", pieces[i-1], p)
				}
			}
			if next != len(c.leaves) {
				t.Fatalf("pieces end at leaf %d of %d", next, len(c.leaves))
			}
		}
	}
	t.Logf("%d pieces of several leaves", merged)
	if merged < 1000 {
		t.Errorf("%d pieces of several leaves: the test shows little", merged)
	}
}

// halves tells whether two prefixes are the halves of one.
func halves(a, b netip.Prefix) bool {
	return a.Bits() == b.Bits() && netip.PrefixFrom(a.Addr(), a.Bits()-1).Masked() == netip.PrefixFrom(b.Addr(), b.Bits()-1).Masked()
}

func common(c *chooser, spread bool, from, to int) uint64 {
	all := ^uint64(0)
	for _, l := range c.leaves[from:to] {
		may := l.set
		if spread {
			may |= l.spread
		}
		all &= may
	}
	return all
}

// TestReach holds that an entry doesn't speak for much that nobody measured.
func TestReach(t *testing.T) {
	c := newChooser(&Options{Regions: regions, Longest4: 24, Shortest4: 12, Longest6: 56, Shortest6: 20}, Clients)
	for _, p := range []string{"10.0.0.0/24", "10.15.0.0/24", "11.0.0.0/24", "11.0.1.0/24", "11.0.2.0/24"} {
		c.leaves = append(c.leaves, leaf{key: newKey(Clients, netip.MustParsePrefix(p).Addr(), 24), bits: 24, entry: -1, demand: 1, evidence: -1, set: 1, geo: us, prev: none})
	}
	var got []string
	for _, p := range c.partition(true) {
		got = append(got, p.prefix.String())
	}
	if want := []string{"10.0.0.0/24", "10.15.0.0/24", "11.0.0.0/22"}; !slices.Equal(got, want) {
		t.Errorf("pieces are %v, want %v", got, want)
	}
}

// TestKeys holds that keys keep prefixes and their order.
func TestKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	random := func() netip.Addr {
		var b [16]byte
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if rng.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		return netip.AddrFrom16(b)
	}
	for range 5000 {
		a, b := random(), random()
		kind, bits := Kind(rng.IntN(2)), 1+rng.IntN(32)
		if a.Is6() {
			bits = 1 + rng.IntN(56)
		}
		k, want := newKey(kind, a, bits), netip.PrefixFrom(a, bits).Masked()
		if k.prefix(bits) != want || k.kind() != kind || k.is6() != a.Is6() || k.cut(bits) != k {
			t.Fatalf("%v of %v is %x, which is %v", bits, a, k, k.prefix(bits))
		}
		if x, y := newKey(kind, a, 32), newKey(kind, b, 32); x != y && (x < y) != a.Less(b) {
			t.Fatalf("keys of %v and %v are in the wrong order", a, b)
		}
	}
}
