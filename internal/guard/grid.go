package guard

import (
	"net/netip"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// grid counts, by family, the blocks that had one candidate list and get another.
type grid struct {
	cells [2]map[[2]int]float64
	lists [2]map[int]float64 // by old list
	pairs map[[2]int]float64 // of both families
	rows  map[int]float64
}

// newGrid lays the blocks of one host over those of another.
func newGrid(o, h *plan.Host) *grid {
	g := &grid{pairs: make(map[[2]int]float64), rows: make(map[int]float64)}
	for f := range g.cells {
		g.cells[f] = make(map[[2]int]float64)
		g.lists[f] = make(map[int]float64)
	}
	for p, list := range h.Need.Topology.Blocks(false) {
		f := 1
		if p.Addr().Is4() {
			f = 0
		}
		was := list
		if o.Need != h.Need {
			was = locate(o, p)
		}
		g.cells[f][[2]int{was, list}]++
		g.lists[f][was]++
		g.pairs[[2]int{was, list}]++
		g.rows[was]++
	}
	return g
}

// locate gives the candidate list of a block's first address as a client subnet.
func locate(h *plan.Host, p netip.Prefix) int {
	return h.Locate(p, p.Addr()).List
}

// part is how much of the demand of a pair's old list the pair stands for: the
// demand is known by list, and spread over the blocks of both families evenly.
func (g *grid) part(f int, pair [2]int, demand []float64) float64 {
	if pair[0] >= len(demand) || g.rows[pair[0]] == 0 {
		return 0
	}
	return demand[pair[0]] * g.cells[f][pair] / g.rows[pair[0]]
}

// Nowhere stands for clients without a region.
const Nowhere = "none"

// flows keeps the flows of a host's lists.
type flows struct {
	host     *plan.Host
	snapshot *steer.Snapshot
	known    map[[2]int]map[string]float64
}

func newFlows(h *plan.Host, s *steer.Snapshot) *flows {
	return &flows{h, s, make(map[[2]int]map[string]float64)}
}

// of is the part of the clients of a list that each region gets, by name.
func (fl *flows) of(list int, f steer.Family) map[string]float64 {
	key := [2]int{list, int(f)}
	if m := fl.known[key]; m != nil {
		return m
	}
	m := make(map[string]float64)
	left := 1.0
	for r, part := range fl.host.Steer.Flow(fl.snapshot, list, f) {
		if part <= tiny {
			continue
		}
		name := "shed"
		if r < len(fl.host.Need.Input.Regions) {
			name = fl.host.Need.Input.Regions[r].Name
		}
		m[name] += part
		left -= part
	}
	if left > 1e-6 {
		m[Nowhere] = left
	}
	fl.known[key] = m
	return m
}
