package topology

import (
	"net/netip"
	"slices"
)

// joinKey is what a final list is computed from.
type joinKey struct{ located, hold uint32 }

// join puts the prefix rules and the fences over what the databases said.
func (c *compiler) join(family int, blocks []block, cells *interner[final]) []block {
	base := layer{}
	base[family] = blocks
	memo := make(map[joinKey]uint32)
	var lastKey joinKey
	lastVal, haveLast := uint32(0), false
	classify := func(vals []uint32, at key, bits int) uint32 {
		k := joinKey{vals[0], vals[1]}
		if haveLast && k == lastKey {
			return lastVal
		}
		v, ok := memo[k]
		if !ok {
			l := c.places.values[k.located]
			list, err := c.decide(l, c.holds[k.hold])
			if err != nil && c.err == nil {
				err.Network = netip.PrefixFrom(at.addr(family == v4), bits)
				c.err = err
			}
			v = cells.id(final{list: list, barrier: l.barrier})
			memo[k] = v
		}
		lastKey, lastVal, haveLast = k, v, true
		return v
	}
	return fold(family, classify, &base, c.prefixes)
}

// decide gives the list for located facts and the prefix sets that hold the
// client.
func (c *compiler) decide(l located, holds []held) (uint32, *FenceError) {
	list, _, fences := c.rank(l, holds)
	if len(fences) == 0 {
		return list, nil
	}
	return c.confine(list, fences)
}

// rank finds the list of the best rule, that rule, and the fences that apply.
func (c *compiler) rank(l located, holds []held) (list uint32, rule int32, fences []uint32) {
	best := l.rank
	list, rule = l.list, l.rule
	fences = c.sets.values[l.fences]
	for i := range c.rules.prefixes {
		r := &c.rules.prefixes[i]
		bits, ok := r.heldBy(holds)
		if !ok || r.partial >= 0 && !c.sets.has(l.partials, uint32(r.partial)) {
			continue
		}
		if r.fence >= 0 {
			fences = append(fences[:len(fences):len(fences)], uint32(r.fence))
			continue
		}
		if r.first != Prefix {
			bits = 0
		}
		if rk := newRank(r.first, bits, r.n); rk > best {
			best, list, rule = rk, r.list, int32(r.rule)
		}
	}
	return list, rule, fences
}

// confine cuts a list to fences.
func (c *compiler) confine(list uint32, numbers []uint32) (uint32, *FenceError) {
	cut, err := c.orders.fenced(c.orders.lists[list], c.fences(numbers))
	if err != nil {
		return list, err
	}
	return c.orders.id(cut), nil
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
