package topology

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestTable6 compares look-ups with a search from the first block on, in tables large
// enough for an index, whose blocks crowd in some places.
func TestTable6(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for range 30 {
		crowds := []uint64{0, 0x2001 << 48, 0x2a02<<48 | 0x1234<<32, 0xfffff << 44, r.Uint64()}
		near := func() key {
			k := key{hi: crowds[r.IntN(len(crowds))] ^ r.Uint64()>>r.IntN(64)}
			if r.IntN(3) == 0 {
				k.lo = r.Uint64() << r.IntN(64)
			}
			return k
		}
		starts := map[key]bool{{}: true}
		for range indexBlocks + r.IntN(5000) {
			starts[near()] = true
		}
		var blocks []block
		for k := range starts {
			blocks = append(blocks, block{start: k})
		}
		sortBlocks(blocks) // before anything is drawn for them: a map gives them in any order
		for i := range blocks {
			blocks[i].val, blocks[i].bits = uint32(i), uint8(56+r.IntN(2)*72)
			if blocks[i].start.lo != 0 {
				blocks[i].bits = 128
			}
		}
		table := newTable6(blocks, func(b block) cell { return newCell(int(b.val), int(b.bits), 0, false) })
		if table.index.leads == nil {
			t.Fatal("no index")
		}
		for range 500 {
			k := near()
			if r.IntN(2) == 0 { // at a start, or just below
				k = blocks[r.IntN(len(blocks))].start
				if k.hi > 0 && r.IntN(2) == 0 {
					k = key{k.hi - 1, ^uint64(0)}
				}
			}
			want := 0
			for want+1 < len(blocks) && !k.less(blocks[want+1].start) {
				want++
			}
			if got := table.lookup(k.addr(false)).match().List; got != want {
				t.Fatalf("%s: block %d, want %d", netip.AddrFrom16(k.addr(false).As16()), got, want)
			}
		}
	}
}
