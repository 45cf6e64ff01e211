package topology

import (
	"net/netip"
	"slices"
)

// joinKey is what a final list is computed from: located facts, the prefix
// sets that hold the client, and the order it measured.
type joinKey struct{ located, hold, order uint32 }

// join puts the prefix rules, the fences, a latency map unless it is nil, and the
// marks over what the databases said.
func (c *compiler) join(family int, blocks []block, m *measured) []block {
	base := layer{}
	base[family] = blocks
	layers := []*layer{&base, c.prefixes}
	if m != nil {
		layers = append(layers, &m.layer)
	}
	memo := make(map[joinKey]uint32)
	var lastKey joinKey
	lastVal, haveLast := uint32(0), false
	classify := func(vals []uint32, at key, bits int) uint32 {
		k := joinKey{located: vals[0], hold: vals[1]}
		if m != nil {
			k.order = vals[2]
		}
		if haveLast && k == lastKey {
			return lastVal
		}
		v, ok := memo[k]
		if !ok {
			l := c.places.values[k.located]
			d, err := c.decide(l, c.holds[k.hold], m, k.order)
			if err != nil && c.err == nil {
				err.Network = netip.PrefixFrom(at.addr(family == v4), bits)
				c.err = err
			}
			v = withKind(c.finals.id(final{list: c.orders.id(d.list), barrier: l.barrier}), d.by)
			memo[k] = v
		}
		lastKey, lastVal, haveLast = k, v, true
		return v
	}
	return fold(family, kindBits, classify, layers...)
}

// decision is a client's list and what leads to it.
type decision struct {
	list   List
	by     Kind  // what gave it
	rule   int32 // the best rule; noRule for none
	fences []uint32
}

// decide gives the list for located facts, the prefix sets that hold the
// client, and the order that it measured, 0 for none. That comes last, as it puts
// what the rules and the fences leave into another order and adds nothing.
func (c *compiler) decide(l located, holds []held, m *measured, order uint32) (decision, *FenceError) {
	d, marks := c.rank(l, holds)
	cut, err := c.orders.fenced(d.list, c.fences(d.fences))
	if err != nil {
		return d, err
	}
	cut.Marks = marks
	d.list = cut
	if order > 0 && l.barrier == 0 && d.by < Latency {
		if list, ok := d.list.reorder(m.orders[order], m.depth); ok {
			d.list, d.by = list, Latency
		}
	}
	return d, nil
}

// rank finds the list of the best rule, or what else gives one, and the fences
// and marks that apply.
func (c *compiler) rank(l located, holds []held) (d decision, marks uint64) {
	best, list := l.rank, l.list
	d.rule, d.fences, marks = l.rule, c.sets.values[l.fences], l.marks
	for i := range c.rules.prefixes {
		r := &c.rules.prefixes[i]
		bits, ok := r.heldBy(holds)
		if !ok || r.partial >= 0 && !c.sets.has(l.partials, uint32(r.partial)) {
			continue
		}
		switch r.what {
		case ofMark:
			marks |= 1 << r.number
			continue
		case ofFence:
			d.fences = append(d.fences[:len(d.fences):len(d.fences)], uint32(r.number))
			continue
		}
		if r.first != Prefix {
			bits = 0
		}
		if rk := newRank(r.first, bits, r.n); rk > best {
			best, list, d.rule = rk, r.list, int32(r.number)
		}
	}
	d.list = c.orders.lists[list]
	switch {
	case best > 0:
		d.by = best.kind()
	case l.state == filled:
		d.by = Fill
	case c.in.Rest != nil:
		d.by = Rest
	case l.distance:
		d.by = Distance
	}
	return d, marks
}

// heldBy tells whether all prefix sets of the conjunction hold the client, and
// by how long a prefix the first of them does.
func (c *conj) heldBy(holds []held) (bits int, ok bool) {
	for i, set := range c.sets {
		found := false
		for _, h := range holds {
			if h.set == set {
				found = true
				if i == 0 {
					bits = int(h.bits)
				}
			}
		}
		if !found {
			return 0, false
		}
	}
	return bits, true
}

// fences gives fences by number, each once, in the order written.
func (c *compiler) fences(numbers []uint32) []*Fence {
	var fences []*Fence
	for i := range c.in.Fences {
		if slices.Contains(numbers, uint32(i)) {
			fences = append(fences, &c.in.Fences[i])
		}
	}
	return fences
}
