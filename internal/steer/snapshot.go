package steer

// facts are what a decision asks about a region, one bit each, for both families.
type facts uint8

const (
	usable  facts = 1 << iota // enough endpoints are alive, or MaxDown keeps it (shifted by family)
	_                         //
	open                      // some endpoint is not drained
	_                         //
	present                   // there is some endpoint at all
	_                         //
	partial                   // usable, but for a part of the clients only
	_                         //
)

// of is the bit of one family.
func (f facts) of(family Family) facts { return f << family }

// Snapshot is the immutable state of one host: which regions are usable, for
// whom, and what each would answer.
type Snapshot struct {
	regions []facts // by Region
	pools   [families][]poolState
	// splits are the draws of Balanced, by Family and list id.
	splits [families][]split
	// addresses is the last resort's answer, by Family; nil: none.
	addresses [families]*Answer
	states    [][]EndpointState // by Region and endpoint, for the trace
	held      int               // regions that MaxDown keeps in service
}

// split is the draw among the regions of a list's split that are in play.
type split struct {
	draws
	regions []Region
}

// NewSnapshot makes a snapshot from the state of every endpoint: i is its index in
// PoolConfig.Endpoints. It may be called at any time; calls wait for each other.
func (h *Host) NewSnapshot(state func(r Region, i int) EndpointState) *Snapshot {
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
	if h.spread == Balanced {
		for f := range Family(families) {
			s.splits[f] = h.drawSplits(s, f)
		}
	}
	return s
}

// drawSplits makes the draws of every list's split among the regions that its
// policy has in play: the usable ones, or the open ones where none is usable.
func (h *Host) drawSplits(s *Snapshot, f Family) []split {
	splits := make([]split, len(h.lists))
	for id := range h.lists {
		l := &h.lists[id]
		need := usable.of(f)
		if !s.any(l, need) {
			need = open.of(f)
		}
		var weights []uint64
		for _, w := range l.Split {
			if w.Weight > 0 && s.has(w.Region, need) {
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
