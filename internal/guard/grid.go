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

// grid counts the blocks that have one candidate list before a change and another one,
// or the same, after it.
type grid struct {
	overlaps []*overlap          // by lists and group
	found    map[[3]int]*overlap // the same ones
	rows     []float64           // blocks of all groups, by list before
	blocks   [groups]float64     // of all overlaps
	space    [groups]float64     // of all overlaps
}

// overlap is the blocks of one group that have one list before and one after.
type overlap struct {
	was, is, group int
	blocks         float64
	space          float64 // IPv4 addresses, or located IPv6 networks
	some           sampler // of the blocks, to ask for clients in them
}

// mostPlaces is how many blocks of an overlap are kept at most.
const mostPlaces = 64

// grid lays the blocks of one host over those of another; o is nil for a host that
// is new.
func (c *comparison) grid(o, h *plan.Host, p *plan.Plan) *grid {
	if o == nil {
		o = h
	}
	key := [2]*plan.Need{o.Need, h.Need}
	if c.grids[key] == nil {
		c.grids[key] = newGrid(o.Need, h.Need, p.Block.ECS.Off, c.networks(h.Need, o.Need))
	}
	return c.grids[key]
}

// newGrid lays partitions over each other; networks are the IPv6 networks to locate in both.
func newGrid(o, h *plan.Need, off bool, networks []netip.Prefix) *grid {
	g := &grid{found: make(map[[3]int]*overlap), rows: make([]float64, len(o.Topology.Lists))}
	for view := range 2 {
		if view == subnets && off {
			continue
		}
		for p, lists := range overlay(o, h, view == resolvers) {
			special := (view == subnets || p.Addr().Is4()) && h.Topology.Locate(p, p.Addr()).Special > 0
			if view == subnets && special {
				continue // nobody is there
			}
			at := g.overlap(lists[0], lists[1], groupOf(view, p))
			at.some.add(p, mostPlaces)
			g.rows[at.was]++
			at.blocks++
			g.blocks[at.group]++
			if p.Addr().Is4() && !special {
				g.occupy(at, float64(uint64(1)<<(32-p.Bits())))
			}
		}
		for _, p := range networks {
			was, in := located(o, view, p)
			is, still := located(h, view, p)
			if in && still {
				g.occupy(g.overlap(was, is, groupOf(view, p)), 1)
			}
		}
	}
	slices.SortFunc(g.overlaps, func(a, b *overlap) int {
		return cmp.Or(cmp.Compare(a.was, b.was), cmp.Compare(a.is, b.is), cmp.Compare(a.group, b.group))
	})
	return g
}

// overlap gives the one of two lists and a group.
func (g *grid) overlap(was, is, group int) *overlap {
	key := [3]int{was, is, group}
	at := g.found[key]
	if at == nil {
		at = &overlap{was: was, is: is, group: group}
		g.found[key], g.overlaps = at, append(g.overlaps, at)
	}
	return at
}

// occupy adds to the space of an overlap.
func (g *grid) occupy(at *overlap, n float64) {
	at.space += n
	g.space[at.group] += n
}

// part is how much of the demand of its list an overlap has. Demand is known by list,
// and spread over the blocks of a list evenly.
func (g *grid) part(at *overlap, demand []float64) float64 {
	if at.was >= len(demand) {
		return 0
	}
	return demand[at.was] * at.blocks / g.rows[at.was]
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
