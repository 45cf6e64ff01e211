package topology

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestModel compares list, kind and scope of every piece of the IPv4 space with
// the model: the scope is the shortest prefix round an address in which all is
// equal, no longer and no shorter, and the kind that of most of it.
func TestModel(t *testing.T) {
	n := 20
	if testing.Short() {
		n = 4
	}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		in := world(r)
		if seed%2 == 1 {
			in = measuredWorld(r)
		}
		top, err := Compile(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, view := range []struct {
			table   *table4
			latency *Measured
		}{{&top.full4, in.Resolvers}, {&top.ecs4, in.Clients}} {
			m := newModel(in, view.latency)
			want := m.scopes()
			for x := range leaves {
				c := view.table.lookup(leafAddr(x)).match()
				if got := text(in, &top.Lists[c.List]); got != m.list[x] || c.Bits != want[x] {
					t.Fatalf("seed %d: %s: got %s/%d, want %s/%d", seed, leafAddr(x), got, c.Bits, m.list[x], want[x])
				}
				size := leaves >> want[x]
				if x%size == 0 && !stands(m.kind[x:x+size], c.Decided) {
					t.Fatalf("seed %d: %s/%d: decided by %s of %v", seed, leafAddr(x), c.Bits, c.Decided, m.kind[x:x+size])
				}
			}
			if in.Clients == in.Resolvers {
				break // one table
			}
		}
		checkPartition(t, top)
	}
}

// stands tells whether a kind may stand for several: it is that of most, or if
// there is none one of them.
func stands(kinds []Kind, k Kind) bool {
	var counts [Kinds]int
	for _, other := range kinds {
		counts[other]++
	}
	return counts[k] > 0 && (2*counts[k] >= len(kinds) || 2*slices.Max(counts[:]) <= len(kinds))
}

// scopes gives for each leaf the shortest prefix in which all is equal.
func (m *model) scopes() []int {
	out := make([]int, leaves)
	for x := range out {
		out[x] = 16
	}
	equal := make([]bool, leaves) // whether the block of the current size is uniform
	for x := range equal {
		equal[x] = true
	}
	for bits, size := 15, 2; bits >= 0; bits, size = bits-1, size*2 {
		for at := 0; at < leaves; at += size {
			h := at + size/2
			if equal[at] && equal[h] && m.list[at] == m.list[h] && m.bar[at] == m.bar[h] {
				for x := at; x < at+size; x++ {
					out[x] = bits
				}
			} else {
				equal[at] = false
			}
		}
	}
	return out
}

// TestCapped compares the view for client subnets with the majority counted
// leaf by leaf.
func TestCapped(t *testing.T) {
	for seed := range 12 {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		in := world(r)
		if seed%2 == 1 {
			in = measuredWorld(r)
		}
		limit := 6 + r.IntN(9)
		in.Max4 = limit
		m := newModel(in, in.Clients)
		top, err := Compile(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		size := leaves >> limit
		for at := 0; at < leaves; at += size {
			want, kinds := m.most(at, size)
			got := top.ecs4.lookup(leafAddr(at)).match()
			if l := text(in, &top.Lists[got.List]); l != want || got.Bits > limit {
				t.Fatalf("seed %d: %s: got %s/%d, want %s", seed, leafAddr(at), l, got.Bits, want)
			}
			if got.Bits == limit && !slices.Contains(kinds, got.Decided) {
				t.Fatalf("seed %d: %s/%d: decided by %s of %v", seed, leafAddr(at), got.Bits, got.Decided, kinds)
			}
		}
		checkPartition(t, top)
	}
}

// most is the list of most pieces, fenced ones before all others, and then the
// marks of most of the pieces that have it. kinds are what gave it to them.
func (m *model) most(at, size int) (list string, kinds []Kind) {
	plain := func(l string) string { l, _, _ = strings.Cut(l, "#"); return l }
	all := m.list[at : at+size]
	var lists, marked []string
	for _, l := range all {
		if strings.Contains(l, "|") {
			lists = append(lists, plain(l))
		}
	}
	if lists == nil {
		for _, l := range all {
			lists = append(lists, plain(l))
		}
	}
	best := commonest(lists)
	for i, l := range all {
		if plain(l) == best {
			marked = append(marked, l)
			kinds = append(kinds, m.kind[at+i])
		}
	}
	return commonest(marked), kinds
}

// commonest is the string that occurs most, of equals the first.
func commonest(all []string) (best string) {
	counts := map[string]int{}
	for _, s := range all {
		counts[s]++
	}
	for _, s := range all {
		if best == "" || counts[s] > counts[best] {
			best = s
		}
	}
	return best
}

// checkPartition holds that the blocks of each view cover everything once, and
// that no two siblings outside special space could be one.
func checkPartition(t *testing.T, top *Topology) {
	t.Helper()
	for _, full := range []bool{true, false} {
		var last netip.Prefix
		var lastList int
		next := netip.IPv4Unspecified()
		for p, list := range top.Blocks(full) {
			if p.Addr().Is6() && next == (netip.Addr{}) && last.Addr().Is4() {
				next = netip.IPv6Unspecified()
			}
			if p.Addr() != next || p != p.Masked() {
				t.Fatalf("block %s where %s should start", p, next)
			}
			if last.IsValid() && last.Bits() == p.Bits() && p.Bits() > 0 && list == lastList && last.Addr().Is4() == p.Addr().Is4() {
				parent := netip.PrefixFrom(last.Addr(), p.Bits()-1)
				special := barrierNear(parent, last) || barrierNear(parent, p)
				if parent.Masked().Addr() == last.Addr() && parent.Contains(p.Addr()) && !special {
					t.Fatalf("siblings %s and %s have one list", last, p)
				}
			}
			last, lastList = p, list
			next = lastAddr(p).Next()
		}
		if next.IsValid() {
			t.Fatalf("nothing from %s on", next)
		}
	}
}

// barrierNear tells whether p lies in a special block that its parent does
// not, or holds one.
func barrierNear(parent, p netip.Prefix) bool {
	for _, s := range specialSpace() {
		if s.prefix.Overlaps(p) && !(s.prefix.Bits() <= parent.Bits() && s.prefix.Contains(parent.Addr())) {
			return true
		}
	}
	return false
}

func lastAddr(p netip.Prefix) netip.Addr {
	k := keyOf(p.Addr())
	width := p.Addr().BitLen()
	for i := p.Bits(); i < width; i++ {
		k = k.withBit(i)
	}
	return k.addr(p.Addr().Is4())
}
