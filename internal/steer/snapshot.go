package steer

// facts are what a decision asks about a region, one bit each, for both families.
type facts uint8

const (
	usable  facts = 1 << iota // enough endpoints are up (shifted by family)
	_                         //
	open                      // some endpoint is not drained
	_                         //
	present                   // there is some endpoint at all
	_                         //
)

// of is the bit of one family.
func (f facts) of(family Family) facts { return f << family }

// Snapshot is the immutable state of one host: which regions are usable, and what
// each would answer.
type Snapshot struct {
	regions []facts // by Region
	pools   [families][]poolState
	// splits are the draws of Balanced, by Family and list id.
	splits [families][]split
	// addresses is the last resort's answer, by Family; nil: none.
	addresses [families]*Answer
	states    [][]EndpointState // by Region and endpoint, for the trace
}

// poolState is what one pool answers for one family: from the endpoints that are
// up while it is usable, else from those not drained, which only a last resort
// asks for.
type poolState struct {
	selector
	streak bool
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
			s.pools[f][r], s.regions[r] = p.assess(b, f, states, h.spread, s.regions[r])
		}
	}
	if h.spread == Balanced {
		for f := range Family(families) {
			s.splits[f] = h.drawSplits(s, f)
		}
	}
	return s
}

// assess makes the state of a pool for one family and adds the facts to known.
func (p *pool) assess(b *batch, f Family, states []EndpointState, spread Spread, known facts) (poolState, facts) {
	var ps poolState
	var up, left []*endpoint
	for _, e := range p.byFamily[f] {
		known |= present.of(f)
		st := states[e.index]
		if st.Verdict == Drained {
			continue
		}
		known |= open.of(f)
		left = append(left, e)
		if st.Verdict == Up {
			up = append(up, e)
		}
		ps.streak = ps.streak || st.Streak
	}
	if p.enough(f, up) {
		known |= usable.of(f)
		left = up
	}
	ps.selector = newSelector(b, left, p.answers, spread, p.salt)
	return ps, known
}

// enough says whether these endpoints make the pool usable.
func (p *pool) enough(f Family, up []*endpoint) bool {
	if p.minPct == 0 || len(up) == 0 {
		return len(up) >= p.minHealthy
	}
	return sum(up)*10000 >= p.minPct*sum(p.byFamily[f])
}

// sum is the weight of endpoints.
func sum(endpoints []*endpoint) (weight uint64) {
	for _, e := range endpoints {
		weight += uint64(e.weight)
	}
	return weight
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
			if w.Weight > 0 && s.admits(w.Region, need) {
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

// admits says whether region r takes a client that needs these facts of it. Every
// choice between regions asks here, and nowhere else.
func (s *Snapshot) admits(r Region, need facts) bool { return s.regions[r]&need != 0 }

// any says whether some candidate of l is admitted.
func (s *Snapshot) any(l *List, need facts) bool {
	for _, w := range l.Split {
		if s.admits(w.Region, need) {
			return true
		}
	}
	for _, r := range l.Order {
		if s.admits(r, need) {
			return true
		}
	}
	return false
}
