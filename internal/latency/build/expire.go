package build

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// fewEntries is how many entries a map may lose, whatever part of it they are.
const fewEntries = 5

// addSilent makes leaves of the previous map's entries that nothing was measured of, so that
// they don't go all at once when measurements fail to arrive: they count against the
// budget as any change does. Those that make no difference any more just go.
func (c *chooser) addSilent() {
	mean := uint64(1)
	if n := len(c.leaves); n > 0 {
		mean = c.measured() / uint64(n)
	}
	for i := range c.before.entries {
		if c.before.found[i] {
			continue
		}
		if l, ok := c.silent(i, mean); ok {
			c.leaves = append(c.leaves, l)
		} else {
			c.expired++
		}
	}
	slices.SortFunc(c.leaves, func(a, b leaf) int { return cmp.Compare(a.key, b.key) })
}

// measured is the demand that was measured.
func (c *chooser) measured() (demand uint64) {
	for i := range c.leaves {
		if c.leaves[i].entry < 0 {
			demand += uint64(c.leaves[i].demand)
		}
	}
	return demand
}

// silent makes a leaf of an entry; false if it can't be kept, or says nothing.
func (c *chooser) silent(i int, mean uint64) (leaf, bool) {
	e := &c.before.entries[i]
	k, bits := newKey(c.kind, e.Prefix.Addr(), min(e.Prefix.Bits(), addressBits)), e.Prefix.Bits()
	region := c.before.numbers[e.Order[0]]
	if region == none || bits < c.o.shortest(k) || bits > c.o.longest(k) {
		return leaf{}, false
	}
	l := leaf{key: k, bits: uint8(bits), entry: int32(i), evidence: -1, geo: none, prev: region, why: silent}
	if c.o.Geography != nil {
		order := c.o.Geography(c.kind, e.Prefix)
		if !slices.Contains(order, region) || order[0] == region {
			return l, false
		}
		l.geo = order[0]
	}
	demand := uint64(math.Round(e.Demand()))
	if demand == 0 {
		demand = mean
	}
	l.demand = uint32(min(max(demand, 1), math.MaxUint32))
	l.evidence = c.storeEntry(e, float64(l.demand))
	c.keep(&l)
	return l, true
}

// storeEntry keeps the cells of a previous entry as evidence; -1: it has none.
func (c *chooser) storeEntry(e *latency.Entry, demand float64) int32 {
	if e.Cells == nil {
		return -1
	}
	at, n := len(c.pools), len(c.o.Regions)
	c.cells = append(c.cells, make([]latency.Cell, n)...)
	for i, r := range e.Order {
		if number := c.before.numbers[r]; number != none {
			c.cells[at*n+int(number)] = e.Cells[i]
		}
	}
	c.pools = append(c.pools, demand)
	return int32(at)
}

// expire lets silent entries go as far as a budget allows, those with the least demand
// first. The others wait.
func (c *chooser) expire(s *spent, silent []int, budget uint64) {
	slices.SortFunc(silent, func(a, b int) int {
		l, m := &c.leaves[a], &c.leaves[b]
		return cmp.Or(cmp.Compare(l.demand, m.demand), cmp.Compare(l.key, m.key))
	})
	for _, at := range silent {
		l := &c.leaves[at]
		if s.normal+uint64(l.demand) > budget {
			s.deferred = append(s.deferred, at)
			s.silent++
			continue
		}
		s.normal += uint64(l.demand)
		s.changed = append(s.changed, at)
		c.expired++
		l.moves, l.set = true, withoutEntry
		if l.geo != none {
			l.set |= 1 << l.geo
		}
	}
}

// entryOf makes a piece an entry: one that is kept, as it was.
func (c *chooser) entryOf(p *piece) latency.Entry {
	l := &c.leaves[p.from]
	if p.to-p.from > 1 || l.entry < 0 {
		return c.entry(p)
	}
	e := &c.before.entries[l.entry]
	out := latency.Entry{Prefix: p.prefix}
	for i, r := range e.Order {
		number := c.before.numbers[r]
		if number == none {
			continue
		}
		out.Order = append(out.Order, number)
		if e.Cells != nil {
			out.Cells = append(out.Cells, e.Cells[i])
		}
	}
	return out
}

// halved is an error if more than half of the previous map's entries have none in
// their place. Those of regions that are no more don't count.
func (c *chooser) halved(entries []latency.Entry) error {
	had, lost := 0, 0
	for i := range c.before.entries {
		e := &c.before.entries[i]
		if c.before.numbers[e.Order[0]] == none {
			continue
		}
		for len(entries) > 0 && !entries[0].Prefix.Overlaps(e.Prefix) && entries[0].Prefix.Addr().Less(e.Prefix.Addr()) {
			entries = entries[1:]
		}
		had++
		if len(entries) == 0 || !entries[0].Prefix.Overlaps(e.Prefix) {
			lost++
		}
	}
	if c.o.Force || lost <= fewEntries || 2*lost <= had {
		return nil
	}
	return fmt.Errorf("of the previous map's %d entries for %s %d would be gone, more than half: look whether measurements are missing; -force publishes such a map",
		had, c.kind, lost)
}
