package build

import (
	"cmp"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"sort"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// piece is a prefix with leaves of one choice.
type piece struct {
	prefix   netip.Prefix
	from, to int   // its leaves
	region   uint8 // or none: it has no entry
}

// reach is by how many bits a prefix may be shorter than what its halves have
// measurements of, by family: what nobody measured is not spoken for by much.
var reach = [2]int{3, 8}

// partition makes as few pieces as the leaves allow: neighbours with a region that all of
// them may get are one. Pieces are never shorter than allowed and don't overlap.
type partition struct {
	c      *chooser
	spread bool // leaves may change along with their neighbours
	pieces []piece
}

func (c *chooser) partition(spread bool) []piece {
	p := &partition{c: c, spread: spread}
	for from := 0; from < len(c.leaves); {
		k := c.leaves[from].key
		trunk := k.cut(c.o.shortest(k))
		n := sort.Search(len(c.leaves)-from, func(i int) bool {
			l := c.leaves[from+i].key
			return l.cut(c.o.shortest(k)) != trunk || l>>familyBit != k>>familyBit
		})
		p.emit(p.part(from, from+n))
		from += n
	}
	slices.SortFunc(p.pieces, func(a, b piece) int { return cmp.Compare(a.from, b.from) }) // parts end before what they are in
	return p.pieces
}

// part is a prefix whose leaves may all get the same regions; with none, its pieces
// are there already.
type part struct {
	from, to int
	bits     int
	set      uint64
}

// part looks at the smallest prefix around some leaves.
func (p *partition) part(from, to int) part {
	leaves := p.c.leaves[from:to]
	k := leaves[0].key
	if to-from == 1 {
		set := leaves[0].set
		if p.spread {
			set |= leaves[0].spread
		}
		return part{from, to, int(leaves[0].bits), set}
	}
	length := bits.LeadingZeros64(uint64(k^leaves[len(leaves)-1].key)) - (63 - familyBit) - 1
	half := from + sort.Search(len(leaves), func(i int) bool { return leaves[i].key.bit(length) == 1 })
	a, b := p.part(from, half), p.part(half, to)
	family := 0
	if k.is6() {
		family = 1
	}
	whole := part{from, to, length, a.set & b.set}
	if length < p.c.o.shortest(k) || max(a.bits, b.bits)-length-1 > reach[family] {
		whole.set = 0
	}
	if whole.set == 0 {
		p.emit(a)
		p.emit(b)
	}
	return whole
}

// emit chooses for a part and makes it a piece.
func (p *partition) emit(a part) {
	if a.set == 0 {
		return
	}
	k := p.c.leaves[a.from].key
	p.pieces = append(p.pieces, piece{k.prefix(a.bits), a.from, a.to, p.c.pick(a)})
}

// pick takes no entry if that will do, else the region that most of the demand
// has now, else the fastest.
func (c *chooser) pick(a part) uint8 {
	if a.set&withoutEntry != 0 {
		return none
	}
	if a.set&(a.set-1) == 0 {
		return uint8(bits.TrailingZeros64(a.set))
	}
	var now [MaxRegions]uint64
	var ms, weight [MaxRegions]float64
	for i := a.from; i < a.to; i++ {
		l := &c.leaves[i]
		if cur := l.current(); cur != none && a.set>>cur&1 == 1 {
			now[cur] += uint64(l.demand)
		}
		for r, cell := range c.evidence(l) {
			if cell.Samples > 0 {
				ms[r] += float64(cell.P75) * float64(l.demand)
				weight[r] += float64(l.demand)
			}
		}
	}
	best, most, least := none, uint64(0), math.Inf(1)
	for r := range len(c.o.Regions) {
		if a.set>>r&1 == 0 {
			continue
		}
		mean := math.MaxFloat64
		if weight[r] > 0 {
			mean = ms[r] / weight[r]
		}
		if best == none || now[r] > most || now[r] == most && mean < least {
			best, most, least = r, now[r], mean
		}
	}
	return uint8(best)
}

// evidence gives the cells that a leaf was decided by, one for each region; nil:
// there are none.
func (c *chooser) evidence(l *leaf) []latency.Cell {
	if l.evidence < 0 {
		return nil
	}
	n := len(c.o.Regions)
	return c.cells[int(l.evidence)*n : int(l.evidence+1)*n]
}

// entry makes a piece an entry of the map. Its cells are means by demand of what its
// leaves were decided by; its samples are their own, also where they were decided together with
// others: their part of what that rests on.
func (c *chooser) entry(p *piece) latency.Entry {
	n := len(c.o.Regions)
	ms, failed, weight, okWeight := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	samples := make([]float64, n)
	measured := false
	for i := p.from; i < p.to; i++ {
		l := &c.leaves[i]
		for r, cell := range c.evidence(l) {
			d := float64(l.demand)
			measured = true
			samples[r] += float64(cell.Samples) * d / c.pools[l.evidence] // its own part of the pool
			if cell.Samples > 0 {
				ms[r] += d * float64(cell.P75)
				okWeight[r] += d
			}
			if cell.Samples > 0 || cell.Failed > 0 {
				failed[r] += d * float64(cell.Failed)
				weight[r] += d
			}
		}
	}
	e := latency.Entry{Prefix: p.prefix}
	cells := make([]latency.Cell, n)
	leastFailed := math.Inf(1)
	for r := range n {
		if weight[r] == 0 {
			continue
		}
		cells[r] = latency.Cell{Failed: float32(failed[r] / weight[r])}
		if okWeight[r] > 0 {
			cells[r].Samples = uint32(min(max(math.Round(samples[r]), 1), math.MaxUint32))
			cells[r].P75 = float32(ms[r] / okWeight[r])
		}
		leastFailed = min(leastFailed, failed[r]/weight[r])
		if uint8(r) != p.region {
			e.Order = append(e.Order, uint8(r))
		}
	}
	cost := func(r uint8) float64 { // those that fail come last
		if cells[r].Samples == 0 || float64(cells[r].Failed) >= leastFailed+failedPart {
			return maxRTT + float64(cells[r].Failed)
		}
		return float64(cells[r].P75)
	}
	slices.SortStableFunc(e.Order, func(a, b uint8) int {
		switch x, y := cost(a), cost(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	e.Order = append([]uint8{p.region}, e.Order...)
	if measured {
		for _, r := range e.Order {
			e.Cells = append(e.Cells, cells[r])
		}
	}
	return e
}
