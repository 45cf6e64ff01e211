package topology

import "math/bits"

// capped derives the view that client subnets are looked up in: no block is
// longer than limit bits. A capped block that would hold several lists takes
// the one of most of its addresses, of two equals the one at the lower
// address. If any of it is fenced, only the lists of fenced addresses count: a
// fence holds for all it names, and may hold for their neighbours. Marks don't
// count for this: they are those of most addresses that have the list. If any of
// it is special, so is the capped block.
func (c *compiler) capped(family int, blocks []block, limit int) []block {
	if !longerThan(blocks, limit) {
		return blocks
	}
	n := len(c.orders.lists)
	m := majority{c: c, width: widths[family], list: newTallies(n), marked: newTallies(n), kind: newTallies(Kinds)}
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
		out = append(out, block{start, uint8(limit), m.of(blocks[i:j])})
		i = j
	}
	same := func(vals []uint32, _ key, _ int) uint32 { return vals[0] }
	l := layer{}
	l[family] = out
	return fold(family, kindBits, same, &l)
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
type majority struct {
	c                  *compiler
	width              int
	list, marked, kind tallies
}

func (m *majority) of(blocks []block) uint32 {
	lists, plain := m.c.orders.lists, m.c.orders.plain
	var barrier uint32
	fenced := false
	for _, b := range blocks {
		f := m.c.finalOf(b)
		barrier = max(barrier, f.barrier)
		fenced = fenced || lists[f.list].Fenced
	}
	for _, b := range blocks {
		if f := m.c.finalOf(b); lists[f.list].Fenced || !fenced {
			m.list.add(plain[f.list], m.width-int(b.bits))
		}
	}
	best := m.list.most()
	for _, b := range blocks {
		if f := m.c.finalOf(b); plain[f.list] == best {
			m.marked.add(f.list, m.width-int(b.bits))
			m.kind.add(uint32(kindOf(b.val)), m.width-int(b.bits))
		}
	}
	return withKind(m.c.finals.id(final{m.marked.most(), barrier}), Kind(m.kind.most()))
}

// tallies count addresses by list, or by kind.
type tallies struct {
	at  []int32 // by number: one more than its place in all
	all []tally // in the order first seen
}

type tally struct {
	number uint32
	hi, lo uint64
}

func newTallies(n int) tallies { return tallies{at: make([]int32, n)} }

// add counts 2^host addresses for a number.
func (t *tallies) add(number uint32, host int) {
	if t.at[number] == 0 {
		t.all = append(t.all, tally{number: number})
		t.at[number] = int32(len(t.all))
	}
	n := &t.all[t.at[number]-1]
	if host < 64 {
		var carry uint64
		n.lo, carry = bits.Add64(n.lo, 1<<host, 0)
		n.hi += carry
	} else {
		n.hi += 1 << (host - 64)
	}
}

// most gives the number with the most addresses, of equals the one first seen,
// and begins anew.
func (t *tallies) most() uint32 {
	best := t.all[0]
	for _, n := range t.all {
		t.at[n.number] = 0
		if n.hi > best.hi || n.hi == best.hi && n.lo > best.lo {
			best = n
		}
	}
	t.all = t.all[:0]
	return best.number
}
