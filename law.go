package gslb

import (
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// law is what the law of capacity knows; the registry's lock guards it.
type law struct {
	state   *capacity.State
	out     *capacity.Output // of the last step; nil: no region has a capacity
	sinks   sinks            // of the last step
	next    time.Time
	signals signals
}

// lawEvery is the time between two steps of the law.
const lawEvery = 15 * time.Second

// due tells whether a step is due, and when it is, sets the time of the next.
func (l *law) due(now time.Time) bool {
	if now.Before(l.next) {
		return false
	}
	l.next = now.Add(lawEvery)
	return true
}

func (l *law) close() { l.signals.close() }

// lawful tells whether some region or pool of the block has a capacity.
func (g *GSLB) lawful() bool {
	b := g.block
	return slices.ContainsFunc(b.Regions, func(r config.Region) bool { return r.Levers.Capacity != nil }) ||
		slices.ContainsFunc(b.Hosts, func(h config.Host) bool {
			return slices.ContainsFunc(h.Pools, func(p config.Pool) bool { return p.Levers.Capacity != nil })
		})
}

// sinks are what the law moves demand between: regions by name, over all blocks, and
// pools with a capacity of their own.
type sinks struct {
	list  []capacity.Sink
	index map[string]int
	sums  []sinkSum
}

// sinkSum adds up what the pools of a sink are like, by the resolutions of their
// hosts.
type sinkSum struct {
	weight, health, dial float64
	pools, drained, soak int
	levers               *config.Levers
}

// elsewhere is the sink for what is shed to a name: it takes everything.
const elsewhere = "shed"

// at is the index of a sink; a new one has these levers.
func (s *sinks) at(name string, levers *config.Levers) int {
	i, ok := s.index[name]
	if !ok {
		i = len(s.list)
		s.index[name] = i
		s.list = append(s.list, capacity.Sink{Name: name})
		s.sums = append(s.sums, sinkSum{})
	}
	if s.sums[i].levers == nil || s.sums[i].levers.Capacity == nil {
		s.sums[i].levers = levers
	}
	return i
}

// view is the state of one block that the law looks at.
type view struct {
	g         *GSLB
	plan      *plan.Plan
	snapshots []*steer.Snapshot
	demand    *demand
}

// verdicts is what a step of the law comes to.
type verdicts struct {
	state    *capacity.State
	out      *capacity.Output // nil: no region has a capacity
	sinks    sinks
	admitted []map[admissionKey][]float64 // by view
	loads    [][][]float64                // by view, host and list, in the unit of capacity
}

// step runs the law once for the latest generation, over what was counted and
// measured, and keeps what it admits.
func (s *steering) step(now time.Time) {
	views := s.registry.views()
	for _, v := range views {
		v.demand.settle()
	}
	v := s.law.judge(views, now)
	s.law.state, s.law.out, s.law.sinks = v.state, v.out, v.sinks
	for i, w := range views {
		w.g.admitted, w.g.loads = nil, nil
		if v.out != nil {
			w.g.admitted, w.g.loads = v.admitted[i], v.loads[i]
		}
	}
}

// judge makes a step of the law, and changes nothing.
func (l *law) judge(views []view, now time.Time) verdicts {
	v := verdicts{state: l.state}
	if !slices.ContainsFunc(views, func(w view) bool { return w.g.lawful() }) {
		return v
	}
	in := capacity.Input{Now: now, TTL: time.Second}
	all := sinks{index: make(map[string]int)}
	var rows []groupOf
	for i := range views {
		rows = append(rows, all.gather(i, &views[i], &in)...)
	}
	all.complete(&l.signals, now)
	in.Sinks = all.list
	v.sinks = all
	v.state, v.out = capacity.Step(l.state, &in)
	v.admitted = admit(views, rows, v.out)
	v.loads = spread(views, rows, &in, v.out)
	return v
}

// groupOf says which cells a group of the law stands for.
type groupOf struct {
	view    int
	host    int
	list    int
	part    float64 // of the list's clients: those of a split start with different regions
	regions []steer.Region
}

// gather adds the sinks and the groups of a block.
func (s *sinks) gather(index int, v *view, in *capacity.Input) (rows []groupOf) {
	for i, h := range v.plan.Hosts {
		in.TTL = max(in.TTL, time.Duration(h.Config.TTL)*time.Second)
		lists := v.demand.hosts[i].lists
		at := s.pools(v.plan, h, v.snapshots[i], sum(lists)+1)
		for list := range h.Need.Topology.Lists {
			for _, o := range orders(h, list) {
				row := groupOf{index, i, list, o.part, nil}
				group := capacity.Group{Weight: lists[list] * o.part}
				for _, r := range o.regions {
					if s.list[at[r]].Soak {
						continue
					}
					row.regions = append(row.regions, r)
					group.Sinks = append(group.Sinks, at[r])
					if h.Config.Shed != nil && v.snapshots[i].Region(r, family(h)).Usable {
						group.Sinks = append(group.Sinks, s.at(elsewhere, &config.Levers{}))
						break
					}
				}
				if len(row.regions) > 0 {
					group.Cost = costs(h, row.regions, len(group.Sinks))
					in.Groups, rows = append(in.Groups, group), append(rows, row)
				}
			}
		}
	}
	return rows
}

// pools adds up the state of the sinks that a host has pools in; at gives their
// indexes by region.
func (s *sinks) pools(p *plan.Plan, h *plan.Host, snapshot *steer.Snapshot, weight float64) (at []int) {
	f := family(h)
	at = make([]int, len(p.Block.Regions))
	for r := range p.Block.Regions {
		region := &p.Block.Regions[r]
		pool := h.Pool(steer.Region(r))
		if pool == nil {
			continue
		}
		i := s.at(sinkName(h, pool), leversOfSink(region, pool))
		st := snapshot.Region(steer.Region(r), f)
		sum := &s.sums[i]
		sum.weight += weight
		sum.pools++
		sum.dial += weight * st.Dial * st.Ramp
		if st.Usable {
			sum.health += weight * st.Availability
		} else if st.Drained {
			sum.drained++
		}
		if st.Shared {
			sum.soak++
		}
		s.list[i].Soak = sum.soak == sum.pools
		at[r] = i
	}
	return at
}

// sinkName names what a pool's clients load: its region, or itself if it has a
// capacity of its own.
func sinkName(h *plan.Host, pool *config.Pool) string {
	if pool.Levers.Capacity != nil {
		return h.Config.Names[0] + " " + pool.Region
	}
	return pool.Region
}

func leversOfSink(region *config.Region, pool *config.Pool) *config.Levers {
	if pool.Levers.Capacity != nil {
		return &pool.Levers
	}
	return &region.Levers
}

// complete works out what every sink is.
func (s *sinks) complete(signals *signals, now time.Time) {
	for i := range s.list {
		sink, sum := &s.list[i], &s.sums[i]
		sink.Health, sink.Dial = 1, 1
		if sum.weight > 0 {
			sink.Health, sink.Dial = sum.health/sum.weight, sum.dial/sum.weight
		}
		sink.Drained = sum.pools > 0 && sum.drained == sum.pools
		if c := sum.levers.Capacity; c != nil {
			sink.Capacity, sink.Target, sink.Growth = c.Value, c.Target/100, c.Growth/100
			if c.Score {
				sink.Capacity = 1
			}
			sink.Signal = signals.read(sink.Name, c.Score, now)
		}
	}
}

// family is the one that stands for a host in the law, as clients of both families
// move alike.
func family(h *plan.Host) steer.Family {
	if h.Steer.Offers(steer.V4) {
		return steer.V4
	}
	return steer.V6
}

// ordered is an order in which a part of a list's clients go through its regions.
type ordered struct {
	part    float64
	regions []steer.Region
}

// orders takes a list apart: a split has an order for each region it may start
// with, and then the others by weight.
func orders(h *plan.Host, list int) []ordered {
	l := &h.Need.Topology.Lists[list]
	if l.Refuse {
		return nil
	}
	var tail []steer.Region
	for _, r := range l.Order {
		tail = append(tail, steer.Region(r))
	}
	split := slices.Clone(l.Split)
	slices.SortStableFunc(split, func(a, b topology.Weighted) int { return int(b.Weight) - int(a.Weight) })
	total := 0.0
	for _, w := range split {
		total += float64(w.Weight)
	}
	if total == 0 {
		for i := len(split) - 1; i >= 0; i-- {
			tail = slices.Insert(tail, 0, steer.Region(split[i].Region))
		}
		return []ordered{{1, tail}}
	}
	var all []ordered
	for _, first := range split {
		if first.Weight == 0 {
			continue
		}
		o := ordered{float64(first.Weight) / total, []steer.Region{steer.Region(first.Region)}}
		for _, w := range split {
			if w != first {
				o.regions = append(o.regions, steer.Region(w.Region))
			}
		}
		o.regions = append(o.regions, tail...)
		all = append(all, o)
	}
	return all
}

// costs are how far each candidate is from the first, in kilometres, if the places
// of all are known; n is how many there are, with what is shed.
func costs(h *plan.Host, regions []steer.Region, n int) []float64 {
	if n != len(regions) {
		return nil
	}
	first := &h.Need.Input.Regions[regions[0]]
	var list []float64
	for i, r := range regions {
		to := &h.Need.Input.Regions[r]
		if !first.Located || !to.Located {
			return nil
		}
		list = append(list, float64(plan.Kilometres(first.Lat, first.Lon, to.Lat, to.Lon)))
		if i > 0 { // an order that is not by distance was written: it holds
			list[i] = max(list[i], list[i-1]+1)
		}
	}
	return list
}

// admit turns what the law admits into parts by view, pool and list. The orders of a
// split are put together by what comes to a region in each.
func admit(views []view, rows []groupOf, out *capacity.Output) (admitted []map[admissionKey][]float64) {
	type key struct{ view, host, region, list int }
	type cell struct{ taken, come float64 }
	cells := make(map[key]cell)
	for i, row := range rows {
		left := row.part
		for j, r := range row.regions {
			part := out.Admission[i][j]
			k := key{row.view, row.host, int(r), row.list}
			come := max(left, 1e-6)
			c := cells[k]
			cells[k] = cell{c.taken + come*part, c.come + come}
			left *= 1 - part
		}
	}
	admitted = make([]map[admissionKey][]float64, len(views))
	for i := range admitted {
		admitted[i] = make(map[admissionKey][]float64)
	}
	for k, c := range cells {
		if c.taken >= c.come {
			continue
		}
		h := views[k.view].plan.Hosts[k.host]
		at := admissionKey{h.Config.Names[0], steer.Region(k.region)}
		row := admitted[k.view][at]
		if row == nil {
			row = slices.Repeat([]float64{1}, len(h.Need.Topology.Lists))
			admitted[k.view][at] = row
		}
		row[k.list] = c.taken / c.come
	}
	return admitted
}

// spread gives the natural demand of every list: that of the sink it begins with, by
// weight.
func spread(views []view, rows []groupOf, in *capacity.Input, out *capacity.Output) [][][]float64 {
	totals := make([]float64, len(in.Sinks))
	weight := func(i int) float64 { return in.Groups[i].Weight + 1e-9 }
	for i := range rows {
		totals[in.Groups[i].Sinks[0]] += weight(i)
	}
	loads := make([][][]float64, len(views))
	for i, v := range views {
		loads[i] = make([][]float64, len(v.plan.Hosts))
		for j, h := range v.plan.Hosts {
			loads[i][j] = make([]float64, len(h.Need.Topology.Lists))
		}
	}
	for i, row := range rows {
		first := in.Groups[i].Sinks[0]
		loads[row.view][row.host][row.list] += out.Sinks[first].Demand * weight(i) / totals[first]
	}
	return loads
}

// admissionKey is a pool: the first name of its host, and its region.
type admissionKey struct {
	host   string
	region steer.Region
}

// admission is what the law admits to a host's pool, by list; nil: everybody. What
// was admitted under another topology says nothing.
func (g *GSLB) admission(h *plan.Host, r steer.Region) []float64 {
	row := g.admitted[admissionKey{h.Config.Names[0], r}]
	if len(row) != len(h.Need.Topology.Lists) {
		return nil
	}
	return row
}

func sum(list []float64) (total float64) {
	for _, v := range list {
		total += v
	}
	return total
}
