package guard

import (
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Uses is what is expected to come to each region, or pool, with a capacity, by
// Report.Use's names: the demand in the unit of capacity, where it flows before and
// after. It is nil if no demand is known.
func Uses(pairs []Pair) map[string]Use { return newComparison().uses(pairs) }

func (c *comparison) uses(pairs []Pair) map[string]Use {
	var uses map[string]Use
	for _, p := range pairs {
		if p.Old == nil || p.Old.Load == nil {
			continue
		}
		if uses == nil {
			uses = make(map[string]Use)
		}
		for j, o := range p.Old.Plan.Hosts {
			if j < len(p.Old.Load) {
				c.use(uses, &p, o, p.Old.Load[j])
			}
		}
	}
	return uses
}

// use adds what the clients of one host use.
func (c *comparison) use(uses map[string]Use, p *Pair, o *plan.Host, load []float64) {
	for list, amount := range load {
		if amount > 0 {
			use(uses, p.Old, o, list, amount, func(u *Use) *float64 { return &u.Before })
		}
	}
	if p.New == nil {
		return
	}
	h := Before(p.New.Plan, o) // the other way round: who answers for it then
	if h == nil {
		return
	}
	after := func(u *Use) *float64 { return &u.After }
	if o.Need.Topology == h.Need.Topology {
		for list, amount := range load {
			if amount > 0 {
				use(uses, p.New, h, list, amount, after)
			}
		}
		return
	}
	g := c.grid(o, h, p.New.Plan)
	for _, at := range g.overlaps {
		if amount := g.part(at, load); amount > 0 {
			use(uses, p.New, h, at.is, amount, after)
		}
	}
}

// use adds what comes of one list's clients. Clients of both families move alike; IPv4
// stands for them, where it is offered.
func use(uses map[string]Use, s *Side, h *plan.Host, list int, amount float64, to func(*Use) *float64) {
	f := steer.V4
	if !h.Steer.Offers(f) {
		f = steer.V6
	}
	for r, part := range h.Steer.Flow(s.Snapshots[h.Index], list, f) {
		if r >= len(s.Plan.Block.Regions) || part == 0 {
			continue
		}
		name, whole := sink(h, steer.Region(r), &s.Plan.Block.Regions[r])
		if whole > 0 {
			u := uses[name]
			*to(&u) += amount * part / whole
			uses[name] = u
		}
	}
}

// sink is what the clients of a host in a region load, and its capacity: the pool, if
// that has one of its own, or the region. A score counts as a capacity of 1.
func sink(h *plan.Host, r steer.Region, region *config.Region) (name string, whole float64) {
	name, c := region.Name, region.Levers.Capacity
	if i := slices.IndexFunc(h.Config.Pools, func(p config.Pool) bool { return p.Region == region.Name }); i >= 0 {
		if own := h.Config.Pools[i].Levers.Capacity; own != nil {
			name, c = h.Config.Names[0]+" "+region.Name, own
		}
	}
	switch {
	case c == nil:
		return name, 0
	case c.Score:
		return name, 1
	}
	return name, c.Value
}
