package guard

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// stranded notes the lists of a host that have no usable region, but had one.
func (c *comparison) stranded(o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot) {
	for f := steer.V4; f <= steer.V6; f++ {
		if !h.Steer.Offers(f) {
			continue
		}
		if o != nil && o.Need == h.Need {
			was := o.Steer.Stranded(os, f)
			c.strand(h, f, slices.DeleteFunc(h.Steer.Stranded(hs, f), func(l int) bool { return slices.Contains(was, l) }))
			continue
		}
		if o != nil && len(o.Steer.Stranded(os, f)) > 0 {
			continue // it was so before, for whichever list
		}
		c.strand(h, f, h.Steer.Stranded(hs, f))
	}
}

func (c *comparison) strand(h *plan.Host, f steer.Family, lists []int) {
	if len(lists) == 0 {
		return
	}
	l := h.Need.Topology.Lists[lists[0]]
	s := Stranded{Host: h.Config.Names[0], Family: f.String(), Fenced: l.Fenced, Lists: len(lists), Blocks: partOf(h, lists)}
	for _, w := range l.Split {
		s.Regions = append(s.Regions, h.Need.Input.Regions[w.Region].Name)
	}
	for _, r := range l.Order {
		s.Regions = append(s.Regions, h.Need.Input.Regions[r].Name)
	}
	c.left = append(c.left, s)
}

// partOf is the part of a host's blocks that have one of the lists.
func partOf(h *plan.Host, lists []int) float64 {
	all, those := 0.0, 0.0
	for _, l := range h.Need.Topology.Blocks(false) {
		all++
		if slices.Contains(lists, l) {
			those++
		}
	}
	return ratio(those, all)
}

// load adds up what is expected to come to each region with a capacity, before
// and after.
func (c *comparison) load(g *grid, o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot, load []float64) {
	if c.use == nil {
		c.use = make(map[string]Use)
	}
	add := func(regions []config.Region, flow map[string]float64, amount float64, to func(*Use) *float64) {
		for i := range regions {
			if whole := capacityOf(&regions[i]); whole > 0 {
				use := c.use[regions[i].Name]
				*to(&use) += amount * flow[regions[i].Name] / whole
				c.use[regions[i].Name] = use
			}
		}
	}
	before, after := newFlows(o, os), newFlows(h, hs)
	for pair, blocks := range g.pairs {
		if pair[0] >= len(load) {
			continue
		}
		amount := load[pair[0]] * blocks / g.rows[pair[0]]
		add(c.regions[0], before.of(pair[0], one(o)), amount, func(u *Use) *float64 { return &u.Before })
		add(c.regions[1], after.of(pair[1], one(h)), amount, func(u *Use) *float64 { return &u.After })
	}
}

// one is the family that stands for a host where demand isn't known by family.
func one(h *plan.Host) steer.Family {
	if h.Steer.Offers(steer.V4) {
		return steer.V4
	}
	return steer.V6
}

func capacityOf(r *config.Region) float64 {
	switch c := r.Levers.Capacity; {
	case c == nil:
		return 0
	case c.Score:
		return 1
	default:
		return c.Value
	}
}

// report puts the sums into their final form.
func (c *comparison) report() *Report {
	r := &Report{
		Blocks: max(ratio(c.family[0][1], c.family[0][0]), ratio(c.family[1][1], c.family[1][0])),
		Demand: ratio(c.moved[1], c.total[1]), Known: c.total[1] > 0, Total: c.total[1],
		Hosts: c.hosts, Stranded: c.left, Use: c.use,
	}
	for key, m := range c.moves {
		r.Moves = append(r.Moves, Move{key[0], key[1], ratio(m[0], c.total[0]), ratio(m[1], c.total[1])})
	}
	slices.SortFunc(r.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.Blocks+b.Demand, a.Blocks+a.Demand), cmp.Compare(a.From+a.To, b.From+b.To))
	})
	names := maps.Clone(c.before)
	maps.Copy(names, c.after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s := Share{Region: name}
		if b := c.before[name]; b != nil {
			s.BlocksBefore, s.DemandBefore = ratio(b[0], c.total[0]), ratio(b[1], c.total[1])
		}
		if a := c.after[name]; a != nil {
			s.BlocksAfter, s.DemandAfter = ratio(a[0], c.total[0]), ratio(a[1], c.total[1])
		}
		r.Regions = append(r.Regions, s)
	}
	slices.SortFunc(r.Hosts, func(a, b HostReport) int {
		return cmp.Or(cmp.Compare(b.Blocks+b.Demand, a.Blocks+a.Demand), cmp.Compare(a.Host, b.Host))
	})
	return r
}
