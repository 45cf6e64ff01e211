package steer

import (
	"cmp"
	"math/bits"
	"slices"
)

// poolState is what one pool answers for one family: from the endpoints that are
// alive while it is usable, else from those not drained, which only a last resort
// and MaxDown ask for.
type poolState struct {
	selector
	streak bool
	// admission is the threshold below which the hash of a client must lie to be
	// taken, where the pool is partial.
	admission uint64
	// counted and healthy are the weights of what is not drained, and of what of
	// it is alive.
	counted, healthy uint64
	failed           bool  // it would be usable if those down were up
	since            int64 // when the last of those down failed
}

// assess makes the state of a pool for one family and what is true of it.
func (h *Host) assess(b *batch, p *pool, f Family, states []EndpointState) (ps poolState, known facts) {
	var alive, left []*endpoint
	full := uint64(0)
	for _, e := range p.byFamily[f] {
		known |= present.of(f)
		st := states[e.index]
		if st.Verdict == Drained {
			continue
		}
		known |= open.of(f)
		left = append(left, e)
		ps.counted += uint64(e.weight)
		ps.streak = ps.streak || st.Streak
		switch st.Verdict {
		case Down:
			ps.since = max(ps.since, st.Since)
			continue
		case Full:
			full += uint64(e.weight)
		}
		alive = append(alive, e)
		ps.healthy += uint64(e.weight)
	}
	if !p.enough(len(alive), ps.healthy, ps.counted) {
		ps.failed = p.enough(len(left), ps.counted, ps.counted)
		ps.selector = newSelector(b, left, weightsOf(left), p.answers, h.spread, p.salt)
		return ps, known
	}
	known |= usable.of(f)
	whole := false
	if ps.admission, whole = h.admission(ps.healthy, full, ps.counted); !whole {
		known |= partial.of(f)
	}
	weights := weightsOf(alive)
	if full > 0 && full < ps.healthy {
		favourUp(weights, alive, states)
	}
	ps.selector = newSelector(b, alive, weights, p.answers, h.spread, p.salt)
	return ps, known
}

// favourUp doubles the weights of the endpoints that are not full.
func favourUp(weights []uint64, alive []*endpoint, states []EndpointState) {
	for i, e := range alive {
		if states[e.index].Verdict == Up {
			weights[i] *= 2
		}
	}
}

// enough says whether so many endpoints, healthy of the weight that counts, make
// the pool usable.
func (p *pool) enough(n int, healthy, counted uint64) bool {
	if p.minPct == 0 || n == 0 {
		return n >= p.minHealthy
	}
	return healthy*10000 >= p.minPct*counted
}

// admission is the part of its clients that a usable pool takes, as a threshold
// for hashes:
//
//	min(1, healthy/counted/SpillBelow) x (1 - full/(2 healthy))
//
// The first factor lets an ailing pool overflow before it is gone; the second is
// the half that full endpoints give up. A whole pool takes everybody.
func (h *Host) admission(healthy, full, counted uint64) (threshold uint64, whole bool) {
	part, of := 2*healthy-full, 2*healthy
	if 10000*healthy < h.spillBelow*counted {
		part, of = 10000*part, 2*h.spillBelow*counted // healthy cancels out
	}
	if part >= of {
		return 0, true
	}
	threshold, _ = bits.Div64(part, 0, of)
	return threshold, false
}

// keepUp keeps those regions in service that health has taken out beyond MaxDown.
// A region is out when a family of it has failed and none is usable, so that it
// counts, comes and goes as a whole. Those that failed last stay: the first to
// fail are most likely to have done so for a reason of their own.
func (h *Host) keepUp(s *Snapshot) {
	var out []Region
	for r := range h.pools {
		if h.isOut(s, Region(r)) {
			out = append(out, Region(r))
		}
	}
	s.held = max(0, len(out)-h.maxDown)
	if s.held == 0 {
		return
	}
	slices.SortStableFunc(out, func(a, b Region) int { return cmp.Compare(h.failedAt(s, b), h.failedAt(s, a)) })
	for _, r := range out[:s.held] {
		for f := range Family(families) {
			if s.pools[f][r].failed {
				s.regions[r] |= usable.of(f)
			}
		}
	}
}

// isOut says whether health alone has taken region r out of service.
func (h *Host) isOut(s *Snapshot, r Region) bool {
	failed := false
	for f := range Family(families) {
		if !h.offers[f] {
			continue
		}
		if s.has(r, usable.of(f)) {
			return false
		}
		failed = failed || s.pools[f][r].failed
	}
	return failed
}

// failedAt is when the last endpoint of region r failed.
func (h *Host) failedAt(s *Snapshot, r Region) (at int64) {
	for f := range Family(families) {
		if h.offers[f] {
			at = max(at, s.pools[f][r].since)
		}
	}
	return at
}

func weightsOf(endpoints []*endpoint) (weights []uint64) {
	for _, e := range endpoints {
		weights = append(weights, uint64(e.weight))
	}
	return weights
}
