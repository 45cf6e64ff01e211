// Package guard works out what a change would move before it is made, and says
// whether it may be made. A change is anything that decisions follow from: an
// operator's lever, a Corefile, a location database, a latency map.
//
// What moves is counted in blocks: the pieces into which the topologies before and
// after, laid over each other, cut the address space. Every block is one, however
// large, as a block is what location data tells apart. There are IPv4 and IPv6 blocks
// (of clients), those that client subnets are looked up in and those of resolvers,
// and each may ask for A and AAAA. These are counted apart, and that kind counts of
// which the greatest part moves, unless it has less than a hundredth of all blocks: a latency map that is wrong for resolvers alone, or
// a family that a region has lost, must not hide behind the others. Special-purpose
// space whose client subnets are ignored has no clients by subnet.
//
// Blocks say little where one of them is half the world. So what moves is counted in
// address space as well, by the same kinds: IPv4 by addresses, without special-purpose
// space; IPv6, most of which is empty and whose allocations say nothing of how many
// use them, by the networks that the location database knows.
//
// Whose client subnets count decides what a client is known by. How many clients come by
// resolvers that send subnets isn't known, so it isn't known either how many move if
// that changes: the report only says that it does.
//
// A client moves if it gets another region, by name. A region that a new Corefile
// calls by another name, with the same endpoints for the host, is the same. Who had no
// region before, and gets one, doesn't move; who loses it does. Hosts with a target
// that has never been resolved are left out: nobody knows yet what they answer.
package guard

import (
	"net/netip"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// Side is the state of one block before or after a change.
type Side struct {
	Plan      *plan.Plan
	Snapshots []*steer.Snapshot // by plan.Host.Index
	View      string            // whose queries the block gets, for the report; empty: of any
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
	// Blocks is the part, 0..1, of the blocks whose clients get another region: of
	// that kind of blocks of which it is the greatest. Demand is that of observed
	// resolutions.
	Blocks, Demand float64
	Kind           string // of blocks, in words
	// Space is the part of the address space whose clients get another region, of that kind
	// of which it is the greatest, which SpaceKind names.
	Space     float64
	SpaceKind string
	// Subnets tells in words how it changes whose client subnets count; empty: it doesn't,
	// or bears on nobody.
	Subnets string
	// Kinds are all kinds of blocks that there are, in a fixed order.
	Kinds []Kind
	// Known says that resolutions have been observed, so that Demand means something,
	// and Total is how many.
	Known bool
	Total float64
	// Moves are the parts of blocks, of space (of the same kinds) and of demand that go
	// from one region to another, greatest first. What has no region is Nowhere.
	Moves []Move
	// Regions are the parts of blocks (of the same kind) and demand that each region
	// has, before and after, by name.
	Regions []Share
	Hosts   []HostReport // those that something moves for, most first
	// Stranded are candidate lists of clients that had a usable region before and
	// have none after.
	Stranded []Stranded
	// Use is the expected load of each region, or pool, with a known capacity, as a
	// part of that; by region, or by host and region as in "api.example.com. eu".
	Use map[string]Use

	served []served
}

// served are the regions in use for a host of the side after, and, where it is known,
// for what was there before.
type served struct {
	host          *plan.Host
	known         bool
	before, after []string
}

// Use is the expected load of a region as a part of its capacity.
type Use struct{ Before, After float64 }

// Move is the part of blocks, space and demand that goes from one region to another.
type Move struct {
	From, To              string
	Blocks, Space, Demand float64
}

// Share is what a region has before and after a change, 0..1.
type Share struct {
	Region                    string
	BlocksBefore, BlocksAfter float64
	DemandBefore, DemandAfter float64
}

// Kind is one kind of blocks.
type Kind struct {
	Name  string  // in words
	Part  float64 // of all blocks, 0..1
	Moved float64 // the part of these blocks whose clients get another region, 0..1
}

// HostReport is what moves of one host: of its blocks, of those of clients by subnet
// or of resolvers, IPv4 or IPv6, of which the greatest part moves.
type HostReport struct {
	Host, View     string
	Blocks, Demand float64
}

// Stranded is a candidate list without a usable region.
type Stranded struct {
	Host    string
	View    string
	Family  string
	Regions []string // of the list
	Fenced  bool
	Lists   int     // that are like it: of the same host and family
	Blocks  float64 // the part, 0..1, of the host's blocks that have these lists
}

// Names of what is no region.
const (
	Nowhere = "none" // no answer, or the addresses of a last resort
	Shed    = "shed" // the name that a full region sheds to
)

// Compare works out what changes between the sides of all pairs. It changes nothing,
// and any number may run at once.
func Compare(pairs []Pair) *Report {
	c := newComparison()
	hosts := 0
	for _, p := range pairs {
		for _, s := range []*Side{p.Old, p.New} {
			if s != nil {
				c.learn(s.Plan)
			}
		}
		if p.New != nil {
			hosts += len(p.New.Plan.Hosts)
		}
	}
	c.samples = min(max(allSamples/max(hosts, 1), leastSamples), mostSamples)
	for _, p := range pairs {
		if p.New == nil {
			continue
		}
		c.view = p.New.View
		if p.Old != nil {
			c.block(p.Old, p.New)
			continue
		}
		for i, h := range p.New.Plan.Hosts {
			c.fresh(h, p.New.Snapshots[i], p.New.Plan)
		}
	}
	r := c.report()
	r.Use = c.uses(pairs)
	return r
}

// comparison adds up what changes.
type comparison struct {
	names   []string       // of what clients get
	index   map[string]int // by name
	blocks  [groups * 2]tally
	space   [groups * 2]tally
	demand  tally
	subnets string  // Report.Subnets
	total   float64 // resolutions
	hosts   []HostReport
	left    []Stranded
	served  []served
	grids   map[[2]*plan.Need]*grid
	known   map[*topology.Database][]netip.Prefix // see networks
	samples int                                   // clients to ask for, for each host and family
	view    string                                // of the pair at hand
}

// nowhere and shed are indexes of comparison.names.
const (
	nowhere = 0
	shed    = 1
)

func newComparison() *comparison {
	c := &comparison{index: make(map[string]int), grids: make(map[[2]*plan.Need]*grid), known: make(map[*topology.Database][]netip.Prefix)}
	c.name(Nowhere)
	c.name(Shed)
	return c
}

// name gives the index of a name.
func (c *comparison) name(name string) int {
	i, ok := c.index[name]
	if !ok {
		i = len(c.names)
		c.index[name], c.names = i, append(c.names, name)
	}
	return i
}

// learn gives every region of a plan its index, before there are flows.
func (c *comparison) learn(p *plan.Plan) {
	for i := range p.Block.Regions {
		c.name(p.Block.Regions[i].Name)
	}
}

// block compares the hosts that both sides have.
func (c *comparison) block(old, now *Side) {
	for i, h := range now.Plan.Hosts {
		o := Before(old.Plan, h)
		switch {
		case o == nil:
			c.fresh(h, now.Snapshots[i], now.Plan)
		case !o.Unknown(): // if h is, the names that it now has could not be resolved in time
			j := o.Index
			var demand []float64
			if old.Demand != nil {
				demand = old.Demand[j]
			}
			c.served = append(c.served, served{h, true, inUse(o, old.Snapshots[j], renamed(o, h)), inUse(h, now.Snapshots[i], nil)})
			c.believe(&old.Plan.Block.ECS, h, now.Plan)
			g := c.grid(o, h, now.Plan)
			c.host(g, o, old.Snapshots[j], h, now.Snapshots[i], demand)
			c.strand(g, o, old.Snapshots[j], h, now.Snapshots[i])
		}
	}
}

// fresh notes a host that is new.
func (c *comparison) fresh(h *plan.Host, s *steer.Snapshot, p *plan.Plan) {
	if !h.Unknown() {
		c.served = append(c.served, served{host: h, after: inUse(h, s, nil)})
		c.strand(c.grid(nil, h, p), nil, nil, h, s)
	}
}

// Before gives the host of a plan that answered for a host of another: for the first
// of its names that the plan knows, a wildcard included. It is nil if there is none.
func Before(p *plan.Plan, h *plan.Host) *plan.Host {
	for _, name := range h.Config.Names {
		for _, zone := range p.Block.Zones {
			if o, _ := p.Find(zone, name); o != nil {
				return o
			}
		}
	}
	return nil
}

// host compares one host.
func (c *comparison) host(g *grid, o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot, demand []float64) {
	report := HostReport{Host: h.Config.Names[0], View: c.view}
	before, after := c.flows(o, os, renamed(o, h)), c.flows(h, hs, nil)
	var wanted, gone float64
	families := offered(o, h)
	for _, f := range families {
		var sums, moved [groups]float64
		for _, one := range c.changes(g, before, after, f, demand) {
			at := one.at
			sums[at.group] += at.blocks
			moved[at.group] += at.blocks * one.moved()
			c.add(at, f, &one)
			n := g.part(at, demand) / float64(len(families))
			wanted += n
			gone += n * one.moved()
			c.demand.add(n, &one)
		}
		for k := range sums {
			report.Blocks = max(report.Blocks, ratio(moved[k], sums[k]))
		}
	}
	c.total += sum(demand)
	report.Demand = ratio(gone, wanted)
	if report.Blocks > 0 || report.Demand > 0 {
		c.hosts = append(c.hosts, report)
	}
}

// offered are the families that a host has before or after a change.
func offered(o, h *plan.Host) (list []steer.Family) {
	for f := steer.V4; f <= steer.V6; f++ {
		if o.Steer.Offers(f) || h.Steer.Offers(f) {
			list = append(list, f)
		}
	}
	return list
}

// renamed gives the new names of a host's regions that are only called differently:
// the old name is gone, the new one is new, and the endpoints are the same.
func renamed(o, h *plan.Host) map[string]string {
	names := make(map[string]string)
	for i := range o.Config.Pools {
		was := o.Config.Pools[i].Region
		if named(h, was) {
			continue
		}
		for j := range h.Config.Pools {
			is := h.Config.Pools[j].Region
			if !named(o, is) && slices.Equal(addresses(o, i), addresses(h, j)) {
				names[was] = is
				break
			}
		}
	}
	return names
}

// named tells whether the block of a host has a region of the name.
func named(h *plan.Host, region string) bool {
	for i := range h.Need.Input.Regions {
		if h.Need.Input.Regions[i].Name == region {
			return true
		}
	}
	return false
}

// addresses are where a pool's clients go, in order.
func addresses(h *plan.Host, pool int) (list []string) {
	p := &h.Config.Pools[pool]
	for i := range p.Endpoints {
		list = append(list, p.Endpoints[i].Addr.String())
	}
	for i := range p.Targets {
		list = append(list, p.Targets[i].Name)
	}
	slices.Sort(list)
	return list
}

// ratio is a part of a whole; of nothing it is none.
func ratio(part, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return part / of
}
