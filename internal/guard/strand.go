package guard

import (
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// strand notes the lists of a host that have no usable region, and clients who had
// one: of a host, or a family, that is new all of them. Those who were refused had
// none. o is nil for a host that is new.
func (c *comparison) strand(g *grid, o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot) {
	for f := steer.V4; f <= steer.V6; f++ {
		left := h.Steer.Stranded(hs, f)
		if len(left) == 0 {
			continue
		}
		var already []int
		fresh := o == nil || !o.Steer.Offers(f)
		if !fresh {
			already = o.Steer.Stranded(os, f)
		}
		lists := make(map[int]float64) // how many of the clients' blocks, by list
		for _, at := range g.overlaps {
			if !slices.Contains(left, at.is) {
				continue
			}
			had := fresh || !slices.Contains(already, at.was) && !o.Need.Topology.Lists[at.was].Refuse
			if had {
				lists[at.is] += at.blocks
			}
		}
		c.note(h, f, lists, sum(g.blocks[:]))
	}
}

// Worse are the guards usable and require of a block that don't let its levers or
// health pass from one state to another: before and after have one plan.
func Worse(g *config.Guard, before, after *Side) []Refusal {
	c := newComparison()
	for i, h := range after.Plan.Hosts {
		os, hs := before.Snapshots[i], after.Snapshots[i]
		if h.Unknown() {
			continue
		}
		c.served = append(c.served, served{h, true, inUse(h, os, nil), inUse(h, hs, nil)})
		if len(h.Steer.Stranded(hs, steer.V4))+len(h.Steer.Stranded(hs, steer.V6)) > 0 {
			c.strand(c.grid(h, h, after.Plan), h, os, h, hs)
		}
	}
	return c.report().lost(g, after)
}

// note puts the lists that are stranded into the report.
func (c *comparison) note(h *plan.Host, f steer.Family, lists map[int]float64, all float64) {
	if len(lists) == 0 {
		return
	}
	first, blocks := -1, 0.0
	for list, n := range lists {
		blocks += n
		if first < 0 || n > lists[first] || n == lists[first] && list < first {
			first = list
		}
	}
	l := h.Need.Topology.Lists[first]
	s := Stranded{Host: h.Config.Names[0], View: c.view, Family: f.String(), Fenced: l.Fenced, Lists: len(lists), Blocks: ratio(blocks, all)}
	for _, w := range l.Split {
		s.Regions = append(s.Regions, h.Need.Input.Regions[w.Region].Name)
	}
	for _, r := range l.Order {
		s.Regions = append(s.Regions, h.Need.Input.Regions[r].Name)
	}
	c.left = append(c.left, s)
}

// inUse are the regions that take clients of a host, of any family; alias gives other
// names to some.
func inUse(h *plan.Host, s *steer.Snapshot, alias map[string]string) (names []string) {
	for r, info := range h.Need.Input.Regions {
		for f := steer.V4; f <= steer.V6; f++ {
			st := s.Region(steer.Region(r), f)
			if !h.Steer.Offers(f) || !st.Usable || st.Dial == 0 {
				continue
			}
			name := info.Name
			if other, ok := alias[name]; ok {
				name = other
			}
			names = append(names, name)
			break
		}
	}
	return names
}
