package guard

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/plan"
)

// groups are the kinds of blocks: those of client subnets and of resolvers, IPv4 and
// IPv6.
const groups = 4

// Views of a topology.
const (
	subnets   = 0
	resolvers = 1
)

// groupOf is the group of a block in a view.
func groupOf(view int, p netip.Prefix) int {
	if p.Addr().Is4() {
		return 2 * view
	}
	return 2*view + 1
}

// grid counts, by group, the blocks that have one candidate list before a change and
// another one, or the same, after it.
type grid struct {
	overlaps []*overlap // by lists
	rows     []float64  // blocks of all groups, by list before
	all      float64    // blocks of all groups
}

// overlap is the blocks of one list before that have one list after.
type overlap struct {
	was, is int
	blocks  [groups]float64
	all     float64
	some    []place // at most maxPlaces of the blocks, the last ones
}

// place is a block, and the view that it is of.
type place struct {
	view  int
	block netip.Prefix
}

// maxPlaces is how many blocks of an overlap are kept to ask for clients in them.
const maxPlaces = 32

// grid lays the blocks of one host over those of another; o is nil for a host that
// is new.
func (c *comparison) grid(o, h *plan.Host, p *plan.Plan) *grid {
	if o == nil {
		o = h
	}
	key := [2]*plan.Need{o.Need, h.Need}
	if c.grids[key] == nil {
		c.grids[key] = newGrid(o.Need, h.Need, p.Block.ECS.Off)
	}
	return c.grids[key]
}

func newGrid(o, h *plan.Need, off bool) *grid {
	g := &grid{rows: make([]float64, len(o.Topology.Lists))}
	found := make(map[[2]int]*overlap)
	for view := range 2 {
		if view == subnets && off {
			continue
		}
		for p, lists := range overlay(o, h, view == resolvers) {
			if view == subnets && h.Topology.Locate(p, p.Addr()).Special > 0 {
				continue // nobody is there
			}
			at := found[lists]
			if at == nil {
				at = &overlap{was: lists[0], is: lists[1]}
				found[lists] = at
				g.overlaps = append(g.overlaps, at)
			}
			at.keep(place{view, p})
			at.blocks[groupOf(view, p)]++
			g.rows[at.was]++
			at.all++
			g.all++
		}
	}
	slices.SortFunc(g.overlaps, func(a, b *overlap) int { return cmp.Or(cmp.Compare(a.was, b.was), cmp.Compare(a.is, b.is)) })
	return g
}

func (at *overlap) keep(p place) {
	if len(at.some) < maxPlaces {
		at.some = append(at.some, p)
		return
	}
	at.some[int(at.all)%maxPlaces] = p
}

// part is how much of the demand of its list an overlap has. Demand is known by list,
// and spread over the blocks of a list evenly.
func (g *grid) part(at *overlap, demand []float64) float64 {
	if at.was >= len(demand) {
		return 0
	}
	return demand[at.was] * at.all / g.rows[at.was]
}

// overlay gives the pieces into which two partitions together cut the address space,
// with the list that each has in either. Both partitions leave no gap, so of two
// blocks that meet one holds the other, and the smaller is a piece.
func overlay(o, h *plan.Need, full bool) iter.Seq2[netip.Prefix, [2]int] {
	return func(yield func(netip.Prefix, [2]int) bool) {
		if o.Topology == h.Topology {
			for p, list := range o.Topology.Blocks(full) {
				if !yield(p, [2]int{list, list}) {
					return
				}
			}
			return
		}
		next, stop := iter.Pull2(iter.Seq2[netip.Prefix, int](o.Topology.Blocks(full)))
		defer stop()
		was, list, ok := next()
		for is, to := range h.Topology.Blocks(full) {
			for ok && !was.Overlaps(is) { // it lies before
				was, list, ok = next()
			}
			for ok && is.Bits() < was.Bits() && is.Contains(was.Addr()) {
				if !yield(was, [2]int{list, to}) {
					return
				}
				was, list, ok = next()
			}
			if ok && was.Overlaps(is) && !yield(is, [2]int{list, to}) {
				return
			}
		}
	}
}
