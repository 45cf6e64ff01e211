package topology

import (
	"math/bits"
	"slices"
)

// capped derives the view that client subnets are looked up in: no block is
// longer than limit bits. A capped block that would hold several lists takes
// the one of most of its addresses, of two equals the one at the lower
// address. If any of it is fenced, only the lists of fenced addresses count: a
// fence holds for all it names, and may hold for their neighbours. If any of it
// is special, so is the capped block.
func capped(family int, blocks []block, limit int, cells *interner[final], lists []List) []block {
	if !longerThan(blocks, limit) {
		return blocks
	}
	out := make([]block, 0, len(blocks))
	for i := 0; i < len(blocks); {
		b := blocks[i]
		if int(b.bits) <= limit {
			out = append(out, b)
			i++
			continue
		}
		start := b.start.masked(limit)
		j := i
		for j < len(blocks) && start.covers(limit, blocks[j].start) {
			j++
		}
		out = append(out, block{start, uint8(limit), majority(blocks[i:j], widths[family], cells, lists)})
		i = j
	}
	same := func(vals []uint32, _ key, _ int) uint32 { return vals[0] }
	l := layer{}
	l[family] = out
	return fold(family, same, &l)
}

func longerThan(blocks []block, limit int) bool {
	for _, b := range blocks {
		if int(b.bits) > limit {
			return true
		}
	}
	return false
}

// majority picks the value for the blocks of one capped block.
func majority(blocks []block, width int, cells *interner[final], lists []List) uint32 {
	type tally struct {
		list   uint32
		hi, lo uint64 // addresses
	}
	var tallies []tally
	var barrier uint32
	fenced := slices.ContainsFunc(blocks, func(b block) bool { return lists[cells.values[b.val].list].Fenced })
	for _, b := range blocks {
		f := cells.values[b.val]
		barrier = max(barrier, f.barrier)
		if fenced && !lists[f.list].Fenced {
			continue
		}
		i := 0
		for i < len(tallies) && tallies[i].list != f.list {
			i++
		}
		if i == len(tallies) {
			tallies = append(tallies, tally{list: f.list})
		}
		t := &tallies[i]
		var carry uint64
		if n := width - int(b.bits); n < 64 {
			t.lo, carry = bits.Add64(t.lo, 1<<n, 0)
			t.hi += carry
		} else {
			t.hi += 1 << (n - 64)
		}
	}
	best := tallies[0]
	for _, t := range tallies[1:] {
		if t.hi > best.hi || t.hi == best.hi && t.lo > best.lo {
			best = t
		}
	}
	return cells.id(final{best.list, barrier})
}
