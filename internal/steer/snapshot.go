package steer

import "slices"

// facts are what a decision asks about a region, one bit each, for both families.
type facts uint16

const (
	usable     facts = 1 << iota // enough endpoints are alive, or MaxDown keeps it (shifted by family)
	_                            //
	open                         // some endpoint is not drained
	_                            //
	present                      // there is some endpoint at all
	_                            //
	partial                      // usable, but for a part of the clients only
	_                            //
	normal                       // usable and no soak; set only where there are soaks
	_                            //
	normalOpen                   // open and no soak; likewise
	_                            //
)

// of is the bit of one family.
func (f facts) of(family Family) facts { return f << family }

// Snapshot is the immutable state of one host: which regions are usable, for
// whom, what levers do to them, and what each would answer.
type Snapshot struct {
	regions []facts // by Region
	pools   [families][]poolState
	// splits are the draws of Balanced, by Family and list id.
	splits [families][]split
	// addresses is the last resort's answer, by Family; nil: none.
	addresses [families]*Answer
	states    [][]EndpointState // by Region and endpoint, for the trace
	heldUp    int               // regions that MaxDown keeps in service

	levers   []Levers           // by Region; nil: none is moved, nor what follows
	trickles []threshold        // by Region
	admitted [][]threshold      // by Region and list id, what the law admits; nil: everybody
	soaks    [families][]soaked // by list id; nil: no region is a soak
	shed     *Answer            // what is answered to those shed; nil: they go on
}

// split is the draw among the regions of a list's split that are in play.
type split struct {
	draws
	regions []Region
}

// NewSnapshot makes a snapshot from the state of every endpoint: i is its index in
// PoolConfig.Endpoints. levers gives the levers of every region; nil: none is
// moved. It may be called at any time; calls wait for each other.
func (h *Host) NewSnapshot(state func(r Region, i int) EndpointState, levers func(r Region) Levers) *Snapshot {
	s := &Snapshot{
		regions: make([]facts, len(h.pools)),
		states:  make([][]EndpointState, len(h.pools)),
	}
	b := h.answers.begin()
	defer b.keep()
	for f := range Family(families) {
		s.pools[f] = make([]poolState, len(h.pools))
		if addrs := h.lastResort.of(f); len(addrs) > 0 {
			s.addresses[f] = b.answer(addrs)
		}
	}
	if h.shed != "" {
		s.shed = b.named(h.shed)
	}
	for r, p := range h.pools {
		if p == nil {
			continue
		}
		states := make([]EndpointState, len(p.endpoints))
		for i := range states {
			states[i] = state(Region(r), i)
		}
		s.states[r] = states
		for f := range Family(families) {
			var known facts
			s.pools[f][r], known = h.assess(b, p, f, states)
			s.regions[r] |= known
		}
	}
	h.keepUp(s)
	h.pull(s, levers)
	if h.spread == Balanced {
		for f := range Family(families) {
			s.splits[f] = h.drawSplits(s, f)
		}
	}
	return s
}

// drawSplits makes the draws of every list's split among the regions that its
// policy has in play: the usable ones that are not dialled to 0, all usable ones
// where all are, or the open ones where none is usable.
func (h *Host) drawSplits(s *Snapshot, f Family) []split {
	splits := make([]split, len(h.lists))
	for id := range h.lists {
		l := &h.lists[id]
		need := s.need(usable, id, f)
		if !s.any(l, need) {
			need = s.need(open, id, f)
		}
		some := s.levers != nil && slices.ContainsFunc(l.regions(), func(r Region) bool { return s.has(r, need) && s.dialled(r) })
		var weights []uint64
		for _, w := range l.Split {
			if w.Weight > 0 && s.has(w.Region, need) && (!some || s.dialled(w.Region)) {
				splits[id].regions = append(splits[id].regions, w.Region)
				weights = append(weights, uint64(w.Weight))
			}
		}
		if len(weights) > 0 {
			splits[id].draws = weightDraws(weights)
		}
	}
	return splits
}

// has says whether one of the facts is true of region r.
func (s *Snapshot) has(r Region, need facts) bool { return s.regions[r]&need != 0 }

// any says whether one of the facts is true of some candidate of l.
func (s *Snapshot) any(l *List, need facts) bool {
	for _, w := range l.Split {
		if s.has(w.Region, need) {
			return true
		}
	}
	for _, r := range l.Order {
		if s.has(r, need) {
			return true
		}
	}
	return false
}

// regions is every candidate of l once, as written: the weighted ones of the
// split, its standbys, the order.
func (l *List) regions() (list []Region) {
	var seen regionSet
	list = make([]Region, 0, len(l.Split)+len(l.Order))
	add := func(r Region) {
		if !seen.has(r) {
			seen.add(r)
			list = append(list, r)
		}
	}
	for _, w := range l.Split {
		if w.Weight > 0 {
			add(w.Region)
		}
	}
	for _, w := range l.Split {
		add(w.Region)
	}
	for _, r := range l.Order {
		add(r)
	}
	return list
}
