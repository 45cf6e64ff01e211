package guard

import (
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Memory is what the plan of one block decides, as far as a sample of its blocks tells:
// with every endpoint up and no lever moved, as those are of the moment.
type Memory struct {
	// Server, View and Zones tell which block it was.
	Server string   `json:"server"`
	View   string   `json:"view,omitempty"`
	Zones  []string `json:"zones"`

	// Off and From are whose client subnets count, as in config.ECS.
	Off  bool           `json:"off,omitempty"`
	From []netip.Prefix `json:"from,omitempty"`

	Regions []string     `json:"regions"`
	Samples [][]sample   `json:"samples"` // one for each topology
	Flows   []table      `json:"flows"`   // hosts that decide alike share one
	Hosts   []hostMemory `json:"hosts"`
}

// sample is the blocks of one group that stand for all of them, and their lists; or
// addresses and networks that stand for all of its space.
type sample struct {
	Group  int            `json:"group"`
	Space  bool           `json:"space,omitempty"`
	Blocks []netip.Prefix `json:"blocks"`
	Lists  []int          `json:"lists"`
}

// table is what the clients of each list get, for each family that is offered.
type table struct {
	Families []familyTable `json:"families"`
	Use      []int         `json:"use"` // regions in use
}

type familyTable struct {
	Family   int       `json:"family"`
	Lists    []listRow `json:"lists"`
	Stranded []int     `json:"stranded,omitempty"`
}

// listRow is the regions that the clients of a list get, and the part of each.
type listRow struct {
	List    int       `json:"l"`
	Regions []int     `json:"r"` // index into Memory.Regions, len(Regions) for shed
	Parts   []float64 `json:"p"`
}

// hostMemory is one host.
type hostMemory struct {
	Names   []string `json:"names"`
	Samples int      `json:"samples"` // index into Memory.Samples
	Flows   int      `json:"flows"`   // index into Memory.Flows
}

// Blocks of a group that are kept: a part of a half of all is then known to two hundredths,
// as a rule, and where hosts have many topologies to six.
const (
	mostBlocks  = 2048
	leastBlocks = 256
	allBlocks   = 1 << 16 // of a group in all topologies
)

// Remember makes the memory of a plan. Hosts with a target that was never resolved
// are left out.
func Remember(p *plan.Plan) *Memory {
	m := &Memory{Zones: p.Block.Zones, Off: p.Block.ECS.Off, From: p.Block.ECS.From}
	for i := range p.Block.Regions {
		m.Regions = append(m.Regions, p.Block.Regions[i].Name)
	}
	index, tables := make(map[*plan.Need]int), make(map[string]int)
	for _, h := range p.Hosts {
		if h.Unknown() {
			continue
		}
		i, ok := index[h.Need]
		if !ok {
			i = len(m.Samples)
			index[h.Need] = i
			m.Samples = append(m.Samples, samples(h, p.Block.ECS.Off, min(max(allBlocks/len(p.Needs), leastBlocks), mostBlocks)))
		}
		t := tableOf(h, m.Samples[i])
		key, _ := json.Marshal(t) // it can't fail: these are numbers
		j, ok := tables[string(key)]
		if !ok {
			j = len(m.Flows)
			tables[string(key)] = j
			m.Flows = append(m.Flows, t)
		}
		m.Hosts = append(m.Hosts, hostMemory{h.Config.Names, i, j})
	}
	return m
}

// samples takes every n-th block of each group, and of its space, at most so many.
func samples(h *plan.Host, off bool, most int) (list []sample) {
	for view := range 2 {
		if view == subnets && off {
			continue
		}
		var all [2][]netip.Prefix
		for p := range h.Need.Topology.Blocks(view == resolvers) {
			if view == resolvers || h.Need.Topology.Locate(p, p.Addr()).Special == 0 {
				f := groupOf(0, p)
				all[f] = append(all[f], p)
			}
		}
		for f := range all {
			s := sample{Group: 2*view + f}
			every := (len(all[f]) + most - 1) / most
			for i := 0; i < len(all[f]); i += max(every, 1) {
				l, _ := located(h.Need, view, all[f][i])
				s.Blocks, s.Lists = append(s.Blocks, all[f][i]), append(s.Lists, l)
			}
			list = append(list, s)
		}
		for f, all := range [][]netip.Prefix{addresses4(most), networksOf(database(h.Need), most)} {
			s := sample{Group: 2*view + f, Space: true}
			for _, p := range all {
				if l, ok := located(h.Need, view, p); ok {
					s.Blocks, s.Lists = append(s.Blocks, p), append(s.Lists, l)
				}
			}
			list = append(list, s)
		}
	}
	return list
}

// tableOf is what the clients of a host get, by the lists that the samples have.
func tableOf(h *plan.Host, list []sample) (t table) {
	seen := make([]bool, len(h.Need.Topology.Lists))
	for _, s := range list {
		for _, l := range s.Lists {
			seen[l] = true
		}
	}
	s := calm(h)
	use := inUse(h, s, nil)
	for r, info := range h.Need.Input.Regions {
		if slices.Contains(use, info.Name) {
			t.Use = append(t.Use, r)
		}
	}
	for f := steer.V4; f <= steer.V6; f++ {
		if !h.Steer.Offers(f) {
			continue
		}
		ft := familyTable{Family: int(f), Stranded: h.Steer.Stranded(s, f)}
		for l := range seen {
			if !seen[l] {
				continue
			}
			row := listRow{List: l}
			for r, part := range h.Steer.Flow(s, l, f) {
				if part > tiny {
					row.Regions, row.Parts = append(row.Regions, r), append(row.Parts, part)
				}
			}
			ft.Lists = append(ft.Lists, row)
		}
		t.Families = append(t.Families, ft)
	}
	return t
}

// calm is a host's state with every endpoint up but for what is written of it.
func calm(h *plan.Host) *steer.Snapshot {
	return h.Steer.NewSnapshot(func(r steer.Region, i int) steer.EndpointState { return plan.Written(h.Endpoint(r, i)) }, nil)
}

// Refusals are the guards of a block that its plan doesn't pass, coming after the one
// remembered.
func (m *Memory) Refusals(g *config.Guard, p *plan.Plan) []Refusal {
	c := newComparison()
	c.learn(p)
	for _, name := range m.Regions {
		c.name(name)
	}
	after, grids := &Side{Plan: p}, make(map[sampled]*grid)
	for _, h := range p.Hosts {
		s := calm(h)
		after.Snapshots = append(after.Snapshots, s)
		if h.Unknown() {
			continue
		}
		old := m.host(h)
		if old == nil {
			c.fresh(h, s, p)
			continue
		}
		key := sampled{old.Samples, h.Need}
		if grids[key] == nil {
			grids[key] = sampleGrid(m.Samples[old.Samples], h, p.Block.ECS.Off)
		}
		c.believe(&config.ECS{Off: m.Off, From: m.From}, h, p)
		c.remembered(m, old, grids[key], h, s)
	}
	return Refusals(g, c.report(), after)
}

// host is what is remembered of a host; nil: nothing.
func (m *Memory) host(h *plan.Host) *hostMemory {
	for _, name := range h.Config.Names {
		for i := range m.Hosts {
			if slices.Contains(m.Hosts[i].Names, name) {
				return &m.Hosts[i]
			}
		}
	}
	return nil
}

// Names are those of the hosts remembered.
func (m *Memory) Names() (names []string) {
	for i := range m.Hosts {
		names = append(names, m.Hosts[i].Names...)
	}
	return names
}

// remembered compares a host with what is remembered of it.
func (c *comparison) remembered(m *Memory, old *hostMemory, g *grid, h *plan.Host, s *steer.Snapshot) {
	fl, t := c.flows(h, s, nil), &m.Flows[old.Flows]
	u := served{host: h, known: true, after: inUse(h, s, nil)}
	for _, r := range t.Use {
		u.before = append(u.before, m.Regions[r])
	}
	c.served = append(c.served, u)
	for i := range t.Families {
		ft := &t.Families[i]
		f := steer.Family(ft.Family)
		before := m.flows(c, ft)
		left, lists := h.Steer.Stranded(s, f), make(map[int]float64)
		for _, at := range g.overlaps {
			ch := change{before: before[at.was], after: fl.of(at.is, f)}
			ch.differ()
			c.add(at, f, &ch)
			if slices.Contains(left, at.is) && !slices.Contains(ft.Stranded, at.was) && before[at.was][nowhere] < 1-tiny {
				lists[at.is] += at.blocks
			}
		}
		if len(ft.Stranded) == 0 { // the sample may have missed it, but nobody was
			for _, l := range left {
				lists[l] += 0
			}
		}
		c.note(h, f, lists, sum(g.blocks[:]))
	}
}

// sampled are the samples of a topology, and the one that they are located in.
type sampled struct {
	samples int
	need    *plan.Need
}

// sampleGrid lays samples over the blocks of a host; those of client subnets only where
// these count.
func sampleGrid(list []sample, h *plan.Host, off bool) *grid {
	g := &grid{found: make(map[[3]int]*overlap)}
	for _, one := range list {
		if off && one.Group/2 == subnets {
			continue
		}
		for i, p := range one.Blocks {
			is, _ := located(h.Need, one.Group/2, p)
			at := g.overlap(one.Lists[i], is, one.Group)
			if one.Space {
				g.occupy(at, 1)
				continue
			}
			at.blocks++
			g.blocks[at.group]++
		}
	}
	return g
}

// flows are the parts that a table has, by list.
func (m *Memory) flows(c *comparison, ft *familyTable) map[int][]float64 {
	lists := make(map[int][]float64)
	for _, row := range ft.Lists {
		parts, left := make([]float64, len(c.names)), 1.0
		for i, r := range row.Regions {
			to := shed
			if r < len(m.Regions) {
				to = c.index[m.Regions[r]]
			}
			parts[to] += row.Parts[i]
			left -= row.Parts[i]
		}
		if left > tiny {
			parts[nowhere] = left
		}
		lists[row.List] = parts
	}
	return lists
}
