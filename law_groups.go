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

// hearing is all that a step of the law looks at. Nothing in it changes any more, so
// judging takes no lock.
type hearing struct {
	state   *capacity.State
	views   []view
	weights [][][]float64 // answers held of late by view, host and list
	at      [][][]int     // sinks by view, host and region
	sinks   sinks
	in      capacity.Input
	rows    []groupOf // by in.Groups
}

// hear gathers what a step looks at.
func (l *law) hear(views []view, now time.Time) *hearing {
	h := &hearing{state: l.state, views: views, sinks: sinks{index: make(map[sinkKey]int)}}
	h.in = capacity.Input{Now: now, TTL: time.Second}
	if !slices.ContainsFunc(views, func(w view) bool { return w.g.lawful() }) {
		return h
	}
	for _, v := range views {
		h.weights = append(h.weights, v.demand.held(v.plan))
	}
	h.gather()
	h.sinks.complete(&l.signals, now)
	return h
}

// again is the same with other snapshots of the same hosts, by view: of everything else
// it hears what h heard.
func (h *hearing) again(snapshots [][]*steer.Snapshot) *hearing {
	next := &hearing{state: h.state, views: slices.Clone(h.views), weights: h.weights, in: h.in, sinks: sinks{index: make(map[sinkKey]int)}}
	for i := range next.views {
		next.views[i].snapshots = snapshots[i]
	}
	if h.weights == nil {
		return next
	}
	next.gather()
	next.sinks.complete(new(signals), h.in.Now)
	for i := range next.sinks.list {
		next.sinks.list[i].Signal = h.sinks.list[i].Signal
	}
	return next
}

// fewest is the part of all weights that a host has to have for its TTL to count as the time in which
// clients as a whole follow.
const fewest = 0.01

// gather adds up what sinks are like.
func (h *hearing) gather() {
	shedding, total := false, 0.0
	h.at = make([][][]int, len(h.views))
	for i, v := range h.views {
		for k, host := range v.plan.Hosts {
			h.at[i] = append(h.at[i], h.sinks.pools(v.plan, host, v.snapshots[k], sum(h.weights[i][k])+1))
			shedding = shedding || host.Config.Shed != nil
			total += sum(h.weights[i][k])
		}
	}
	for i, v := range h.views {
		for k, host := range v.plan.Hosts {
			if sum(h.weights[i][k]) >= fewest*total {
				h.in.TTL = max(h.in.TTL, time.Duration(host.Config.TTL)*time.Second)
			}
		}
	}
	if shedding {
		h.sinks.at(elsewhere, &config.Levers{})
	}
}

// judge makes the step.
func (h *hearing) judge() verdicts {
	v := verdicts{state: h.state}
	if len(h.sinks.list) == 0 {
		return v
	}
	lists := 0
	for i := range h.weights {
		for k := range h.weights[i] {
			lists += len(h.weights[i][k])
		}
	}
	h.in.Groups, h.rows = make([]capacity.Group, 0, lists), make([]groupOf, 0, lists) // for most, one each
	for i := range h.views {
		for k := range h.views[i].plan.Hosts {
			h.host(i, k)
		}
	}
	h.in.Sinks = h.sinks.list
	v.sinks = h.sinks
	v.state, v.out = capacity.Step(h.state, &h.in)
	v.admitted = h.admit(v.out)
	v.loads = h.spread(v.out)
	return v
}

// groupOf says which cells a group of the law stands for.
type groupOf struct {
	view, host, list int
	part             float64 // of the list's clients that go this way
	regions          []steer.Region
	open             []float64 // by candidate of the group
	sheds            bool      // after the last region comes what is shed to a name
	forced           bool      // nobody takes them but as a last resort
}

// host adds the groups of a host: one for each list and way through it.
func (h *hearing) host(view, index int) {
	v := &h.views[view]
	host, snapshot := v.plan.Hosts[index], v.snapshots[index]
	f, at := family(host), h.at[view][index]
	for list := range host.Need.Topology.Lists {
		open, forced := h.open(host, snapshot, list, at)
		for _, o := range orders(&host.Need.Topology.Lists[list], open) {
			o.regions = slices.DeleteFunc(o.regions, func(r steer.Region) bool {
				return open[r] == 0 && snapshot.Region(r, f).Shared // a soak is no candidate
			})
			row := groupOf{view, index, list, o.part, o.regions, nil, false, forced}
			for _, r := range row.regions {
				row.open = append(row.open, open[r])
			}
			switch {
			case len(row.regions) == 0:
			case host.Config.Shed != nil:
				h.shed(row)
			default:
				h.add(row)
			}
		}
	}
}

// open is the part of a list's clients that each region takes of those who come to
// it, but for what the law admits. If no candidate takes anybody, it is all for the
// one that is forced to.
func (h *hearing) open(host *plan.Host, s *steer.Snapshot, list int, at []int) (open []float64, forced bool) {
	f := family(host)
	open = make([]float64, len(at))
	for r := range open {
		if host.Pooled(steer.Region(r)) {
			open[r] = host.Steer.Open(s, list, steer.Region(r), f, h.sinks.list[at[r]].Full)
		}
	}
	l := &host.Need.Topology.Lists[list]
	takes := func(r topology.Region) bool { return open[r] > 0 }
	if slices.ContainsFunc(l.Order, takes) || slices.ContainsFunc(l.Split, func(w topology.Weighted) bool { return takes(w.Region) }) {
		return open, false
	}
	most, must := 0.0, -1
	for r, part := range host.Steer.Flow(s, list, f)[:len(open)] {
		if part > most && !s.Region(steer.Region(r), f).Shared {
			most, must = part, r
		}
	}
	if must >= 0 {
		open[must] = 1
	}
	return open, true
}

// add adds a group.
func (h *hearing) add(row groupOf) {
	host := h.views[row.view].plan.Hosts[row.host]
	at := h.at[row.view][row.host]
	g := capacity.Group{Weight: h.weights[row.view][row.host][row.list] * row.part, Open: row.open, Forced: row.forced, Cost: host.Need.Costs(row.list, row.regions)}
	g.TTL = time.Duration(host.Config.TTL) * time.Second
	for _, r := range row.regions {
		g.Sinks = append(g.Sinks, at[r])
	}
	if row.sheds { // nobody knows where to
		g.Sinks = append(g.Sinks, h.sinks.index[elsewhere])
		g.Cost = append(g.Cost, g.Cost[len(g.Cost)-1]+plan.Unplaced)
	}
	h.in.Groups, h.rows = append(h.in.Groups, g), append(h.rows, row)
}

// shed adds the groups of a host that sheds to a name: a region that is full sends
// nobody on to the next. So there is one for each region that clients come to by health
// and levers, which takes them or sheds them.
func (h *hearing) shed(row groupOf) {
	first := slices.IndexFunc(row.open, func(p float64) bool { return p > 0 })
	if first < 0 {
		row.open, row.sheds = append(row.open, 0), true
		h.add(row)
		return
	}
	left := row.part
	add := func(k int, part, sheds float64) {
		open := make([]float64, k+2)
		open[k], open[k+1] = 1, sheds
		h.add(groupOf{row.view, row.host, row.list, part, row.regions[:k+1], open, true, row.forced})
		left -= part
	}
	for k, part := range row.open {
		if part > 0 && left > 0 && !row.forced {
			add(k, left*part, 1)
		}
	}
	if left > 1e-12 { // whom nobody takes comes back to the first, which must take them
		add(first, left, 0)
	}
}

// ordered is a way in which a part of a list's clients goes through its regions.
type ordered struct {
	part    float64
	regions []steer.Region
}

// maxOrders is how many orders of arrival of a split are told apart.
const maxOrders = 64

// orders takes a list apart. A split is a race, in which a region comes next by its
// weight among those that are left; so there is a way for each order of arrival of those
// that are open. Of many regions, only the first few of each are told apart.
func orders(l *topology.List, open []float64) []ordered {
	if l.Refuse {
		return nil
	}
	var split []topology.Weighted
	var tail []steer.Region
	seen := make(map[topology.Region]bool)
	for _, w := range l.Split {
		if w.Weight > 0 && !seen[w.Region] {
			seen[w.Region] = true
			split = append(split, w)
		}
	}
	for _, w := range l.Split {
		if !seen[w.Region] {
			seen[w.Region] = true
			tail = append(tail, steer.Region(w.Region))
		}
	}
	for _, r := range l.Order {
		if !seen[r] {
			seen[r] = true
			tail = append(tail, steer.Region(r))
		}
	}
	if len(split) == 0 {
		return []ordered{{1, tail}}
	}
	slices.SortStableFunc(split, func(a, b topology.Weighted) int { return int(b.Weight) - int(a.Weight) })
	return firsts(split, open, tail)
}

// firsts are the orders of arrival by the region that comes first, which is where the
// demand belongs even while it is closed.
func firsts(split []topology.Weighted, open []float64, tail []steer.Region) (all []ordered) {
	closed := func(w topology.Weighted) bool { return open[w.Region] == 0 }
	total := weightOf(split)
	for i, w := range split {
		rest := slices.DeleteFunc(slices.Delete(slices.Clone(split), i, i+1), closed)
		depth := 0
		for count := len(split) * len(rest); depth < len(rest) && count <= maxOrders; count *= max(1, len(rest)-depth) {
			depth++
		}
		all = append(all, arrivals(rest, depth, float64(w.Weight)/total, []steer.Region{steer.Region(w.Region)}, tail)...)
	}
	return all
}

// arrivals are the orders in which the regions of a split arrive after those before, as
// far as depth; the others are in the order given.
func arrivals(split []topology.Weighted, depth int, part float64, before, tail []steer.Region) (all []ordered) {
	if depth == 0 || len(split) == 0 {
		o := ordered{part, slices.Clone(before)}
		for _, w := range split {
			o.regions = append(o.regions, steer.Region(w.Region))
		}
		o.regions = append(o.regions, tail...)
		return []ordered{o}
	}
	total := weightOf(split)
	for i, w := range split {
		rest := slices.Delete(slices.Clone(split), i, i+1)
		next := append(slices.Clone(before), steer.Region(w.Region))
		all = append(all, arrivals(rest, depth-1, part*float64(w.Weight)/total, next, tail)...)
	}
	return all
}

func weightOf(split []topology.Weighted) (total float64) {
	for _, w := range split {
		total += float64(w.Weight)
	}
	return total
}
