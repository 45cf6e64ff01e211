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
	// availability is the part of its clients that the pool takes for its health;
	// taken is that with the region's dial and ramp.
	availability, taken threshold
	// full: all that is alive is full. whole is then the availability as if nothing was,
	// and otherwise the availability.
	full  bool
	whole threshold
	// counted and healthy are the weights of what is not drained, and of what of
	// it is alive.
	counted, healthy uint64
	failed           bool  // it would be usable if those down were up
	since            int64 // when the last of those down failed
	written          bool  // live weights were all 0, and the configured ones hold
}

// assess makes the state of a pool for one family and what is true of it.
func (h *Host) assess(b *batch, p *pool, f Family, states []EndpointState) (ps poolState, known facts) {
	ps.availability, ps.whole = everybody, everybody
	ps.written = p.allZero(f, states)
	alive, left, full := 0, 0, uint64(0)
	for _, e := range p.byFamily[f] {
		st := &states[e.index]
		weight := e.weighed(st, ps.written)
		if weight == 0 {
			continue
		}
		known |= present.of(f)
		if st.Verdict == Drained {
			continue
		}
		known |= open.of(f)
		left++
		ps.counted += weight
		ps.streak = ps.streak || st.Streak
		switch st.Verdict {
		case Down:
			ps.since = max(ps.since, st.Since)
			continue
		case Full:
			full += weight
		}
		alive++
		ps.healthy += weight
	}
	worst := Full
	if p.enough(alive, ps.healthy, ps.counted) {
		known |= usable.of(f)
		ps.availability = h.availability(ps.healthy, full, ps.counted)
		ps.full = full > 0 && full == ps.healthy
		ps.whole = h.availability(ps.healthy, 0, ps.counted)
		if !ps.full {
			ps.whole = ps.availability
		}
	} else {
		ps.failed = p.enough(left, ps.counted, ps.counted)
		worst = Down
	}
	favour := worst == Full && full > 0 && full < ps.healthy
	ps.selector = h.selector(b, p, f, states, ps.written, worst, favour)
	return ps, known
}

// selector chooses from the endpoints of a pool that are no worse than a verdict,
// by the weights that hold, or, to favour them, by twice that for those that are up.
func (h *Host) selector(b *batch, p *pool, f Family, states []EndpointState, written bool, worst Verdict, favour bool) selector {
	endpoints := make([]*endpoint, 0, len(p.byFamily[f]))
	weights := make([]uint64, 0, len(p.byFamily[f]))
	for _, e := range p.byFamily[f] {
		st := &states[e.index]
		weight := e.weighed(st, written)
		if weight == 0 || st.Verdict > worst {
			continue
		}
		if favour && st.Verdict == Up {
			weight *= 2
		}
		endpoints, weights = append(endpoints, e), append(weights, weight)
	}
	if p.name != "" && len(endpoints) > 0 {
		return selector{answers: []*Answer{b.named(p.name)}}
	}
	return newSelector(b, endpoints, weights, p.answers, h.spread, p.salt)
}

// allZero says whether live weights leave a family of the pool none at all.
func (p *pool) allZero(f Family, states []EndpointState) bool {
	live := false
	for _, e := range p.byFamily[f] {
		if e.weighed(&states[e.index], false) > 0 {
			return false
		}
		live = live || states[e.index].Weighed
	}
	return live
}

// weighed is the endpoint's weight: the live one, if there is one, or as written.
func (e *endpoint) weighed(st *EndpointState, written bool) uint64 {
	if st.Weighed && !written {
		return uint64(min(st.Weight, MaxWeight))
	}
	return uint64(e.weight)
}

// enough says whether so many endpoints, healthy of the weight that counts, make
// the pool usable.
func (p *pool) enough(n int, healthy, counted uint64) bool {
	if p.minPct == 0 || n == 0 {
		return n >= p.minHealthy
	}
	return healthy*10000 >= p.minPct*counted
}

// availability is the part of its clients that a usable pool takes for its health:
//
//	min(1, healthy/counted/SpillBelow) x (1 - full/(2 healthy))
//
// The first factor lets an ailing pool overflow before it is gone; the second is
// the half that full endpoints give up. A whole pool takes everybody.
func (h *Host) availability(healthy, full, counted uint64) threshold {
	part, of := 2*healthy-full, 2*healthy
	if 10000*healthy < h.spillBelow*counted {
		part, of = 10000*part, 2*h.spillBelow*counted // healthy cancels out
	}
	if part >= of {
		return everybody
	}
	t, _ := bits.Div64(part, 0, of)
	return threshold(t)
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
	s.heldUp = max(0, len(out)-h.maxDown)
	if s.heldUp == 0 {
		return
	}
	slices.SortStableFunc(out, func(a, b Region) int { return cmp.Compare(h.failedAt(s, b), h.failedAt(s, a)) })
	for _, r := range out[:s.heldUp] {
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
