package build

import (
	"net/netip"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// walker finds the entries for prefixes that come in the order of addresses.
type walker struct {
	entries []latency.Entry
	at      int
}

// find gives the entry that holds all of a prefix, or -1.
func (w *walker) find(prefix netip.Prefix) int {
	for ; w.at < len(w.entries); w.at++ {
		e := w.entries[w.at].Prefix
		if e.Contains(prefix.Addr()) && e.Bits() <= prefix.Bits() {
			return w.at
		}
		if !e.Addr().Less(prefix.Addr()) {
			return -1
		}
	}
	return -1
}

// entriesOf gives the entries of a map that a kind is for.
func entriesOf(m *latency.Map, k Kind) []latency.Entry {
	if k == Resolvers {
		return m.Resolvers
	}
	return m.Clients
}

// numbersOf gives the numbers that the regions of a map have among others, or none.
func numbersOf(m *latency.Map, regions []string) (numbers []uint8) {
	for _, name := range m.Regions {
		n := none
		if i := slices.Index(regions, name); i >= 0 {
			n = i
		}
		numbers = append(numbers, uint8(n))
	}
	return numbers
}

// previous is the map in service as decisions look at it. The zero value is
// without one.
type previous struct {
	walker
	numbers []uint8
	found   []bool // entries
}

func newPrevious(o *Options, k Kind) *previous {
	p := &previous{}
	if o.Previous != nil {
		p.entries, p.numbers = entriesOf(o.Previous, k), numbersOf(o.Previous, o.Regions)
		p.found = make([]bool, len(p.entries))
	}
	return p
}

// region gives the region of a prefix's entry, or none.
func (p *previous) region(prefix netip.Prefix) uint8 {
	at := p.find(prefix)
	if at < 0 || len(p.entries[at].Order) == 0 {
		return none
	}
	p.found[at] = true
	return p.numbers[p.entries[at].Order[0]]
}
