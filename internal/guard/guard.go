// Package guard works out what a change would move before it is made, and says
// whether it may be made. A change is anything that decisions follow from: an
// operator's lever, a Corefile, a location database, a latency map.
package guard

import (
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Side is the state of one block before or after a change.
type Side struct {
	Plan      *plan.Plan
	Snapshots []*steer.Snapshot // by plan.Host.Index
	// Demand is the resolutions observed of late, by host and candidate list, in
	// any unit, and Load the demand in that of the regions' capacity; nil: unknown.
	// Those of the side before the change count.
	Demand, Load [][]float64
}

// Pair is one block before and after a change. Old is nil for a block that is
// new, New for one that goes.
type Pair struct{ Old, New *Side }

// Report is what a change does to all clients together.
type Report struct {
	// Blocks is the part, 0..1, of the blocks whose clients get another region:
	// of IPv4 or IPv6, whichever is more. Demand is that of observed resolutions.
	Blocks, Demand float64
	// Known says that resolutions have been observed, so that Demand means something,
	// and Total is how many.
	Known bool
	Total float64
	// Moves are the parts of blocks that go from one region to another, greatest
	// first. What has no region is none.
	Moves []Move
	// Regions are the parts of blocks and demand that each region has, before and
	// after, by name.
	Regions []Share
	Hosts   []HostReport // those that something moves for, most first
	// Stranded are candidate lists that had a usable region before and have none after.
	Stranded []Stranded
	// Use is the expected load of each region with a known capacity, as a part of
	// that.
	Use map[string]Use
}

// Use is the expected load of a region as a part of its capacity.
type Use struct{ Before, After float64 }

// Move is the part of blocks and demand that goes from one region to another.
type Move struct {
	From, To       string
	Blocks, Demand float64
}

// Share is what a region has before and after a change, 0..1.
type Share struct {
	Region                    string
	BlocksBefore, BlocksAfter float64
	DemandBefore, DemandAfter float64
}

// HostReport is what moves of one host.
type HostReport struct {
	Host           string
	Blocks, Demand float64
}

// Stranded is a candidate list without a usable region.
type Stranded struct {
	Host    string
	Family  string
	Regions []string // of the list
	Fenced  bool
	Lists   int     // that are like it: of the same host and family
	Blocks  float64 // the part, 0..1, of the host's blocks that have these lists
}

// Compare works out what changes between the sides of all pairs.
func Compare(pairs []Pair) *Report {
	c := newComparison()
	for _, p := range pairs {
		if p.Old != nil && p.New != nil {
			c.block(p.Old, p.New)
		}
	}
	return c.report()
}

// comparison adds up what changes. Of two numbers the first is of blocks and the
// second of demand.
type comparison struct {
	total  [2]float64
	moved  [2]float64
	family [2][2]float64 // blocks in all and moved, by family
	moves  map[[2]string]*[2]float64
	before map[string]*[2]float64
	after  map[string]*[2]float64
	hosts  []HostReport
	left   []Stranded
	use    map[string]Use
	// regions are those of the block being compared, before and after.
	regions [2][]config.Region
}

func newComparison() *comparison {
	return &comparison{moves: make(map[[2]string]*[2]float64), before: make(map[string]*[2]float64), after: make(map[string]*[2]float64)}
}

// block compares the hosts that both sides have.
func (c *comparison) block(old, now *Side) {
	grids := make(map[[2]*plan.Need]*grid)
	c.regions = [2][]config.Region{old.Plan.Block.Regions, now.Plan.Block.Regions}
	for i, h := range now.Plan.Hosts {
		j := slices.IndexFunc(old.Plan.Hosts, func(o *plan.Host) bool { return o.Config.Names[0] == h.Config.Names[0] })
		if j < 0 {
			c.stranded(nil, nil, h, now.Snapshots[i])
			continue
		}
		o := old.Plan.Hosts[j]
		key := [2]*plan.Need{o.Need, h.Need}
		if grids[key] == nil {
			grids[key] = newGrid(o, h)
		}
		var demand []float64
		if old.Demand != nil {
			demand = old.Demand[j]
		}
		c.host(grids[key], o, old.Snapshots[j], h, now.Snapshots[i], demand)
		if old.Load != nil {
			c.load(grids[key], o, old.Snapshots[j], h, now.Snapshots[i], old.Load[j])
		}
		c.stranded(o, old.Snapshots[j], h, now.Snapshots[i])
	}
}

// host compares one host. A pair of lists moves by how much the flows of its
// clients differ: choices by threshold and by rendezvous move no more than that.
func (c *comparison) host(g *grid, o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot, demand []float64) {
	report := HostReport{Host: h.Config.Names[0]}
	var sums, moved [2]float64
	oldFlows, newFlows := newFlows(o, os), newFlows(h, hs)
	for f := range g.cells {
		family := steer.Family(f)
		if !o.Steer.Offers(family) && !h.Steer.Offers(family) {
			continue
		}
		for pair, blocks := range g.cells[f] {
			before, after := oldFlows.of(pair[0], family), newFlows.of(pair[1], family)
			amount := [2]float64{blocks, g.part(f, pair, demand)}
			part := c.transport(before, after, amount)
			for k := range amount {
				sums[k] += amount[k]
				moved[k] += amount[k] * part
			}
			c.family[f][0] += blocks
			c.family[f][1] += blocks * part
		}
	}
	for k := range sums {
		c.total[k] += sums[k]
		c.moved[k] += moved[k]
	}
	report.Blocks, report.Demand = ratio(moved[0], sums[0]), ratio(moved[1], sums[1])
	if report.Blocks > 0 || report.Demand > 0 {
		c.hosts = append(c.hosts, report)
	}
}

// transport notes how the flow of an amount changes, and returns the part of it
// that moves. What a region loses goes to those that gain, in proportion.
func (c *comparison) transport(before, after map[string]float64, amount [2]float64) (part float64) {
	gains := make(map[string]float64)
	for name, b := range before {
		add(c.before, name, b, amount)
		part += max(0, b-after[name])
	}
	for name, a := range after {
		add(c.after, name, a, amount)
		if d := a - before[name]; d > 0 {
			gains[name] = d
		}
	}
	if part < tiny {
		return 0
	}
	for from, b := range before {
		loss := b - after[from]
		if loss <= 0 {
			continue
		}
		for to, gain := range gains {
			key := [2]string{from, to}
			if c.moves[key] == nil {
				c.moves[key] = new([2]float64)
			}
			for k := range amount {
				c.moves[key][k] += amount[k] * loss * gain / part
			}
		}
	}
	return part
}

// tiny is a part that is nothing but the rounding of floating point numbers.
const tiny = 1e-9

func add(m map[string]*[2]float64, name string, part float64, amount [2]float64) {
	if m[name] == nil {
		m[name] = new([2]float64)
	}
	for k := range amount {
		m[name][k] += part * amount[k]
	}
}

func ratio(part, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return part / of
}
