package steer

import "math"

// RegionState is the state of one region in a snapshot, for one family.
type RegionState struct {
	// Usable: a candidate that a decision can choose.
	Usable bool
	// Held: it failed, and only MaxDown keeps it usable.
	Held bool
	// Availability is the part of the clients that come which it takes, 0..1; the
	// others spill. It is 0 where the region is not usable.
	Availability float64
	// Healthy is the healthy part: the weight of the endpoints that are alive (up
	// or full) of the weight of all that are not drained, 0..1. It is 0 where there
	// are none.
	Healthy float64
	// Streak: towards another verdict on some endpoint one has begun.
	Streak bool
}

// Region is the state of region r for family f, whether or not the host offers
// the family.
func (s *Snapshot) Region(r Region, f Family) RegionState {
	p := &s.pools[f][r]
	st := RegionState{Usable: s.has(r, usable.of(f)), Streak: p.streak}
	st.Held = st.Usable && p.failed
	if p.counted > 0 {
		st.Healthy = float64(p.healthy) / float64(p.counted)
	}
	switch {
	case s.has(r, partial.of(f)):
		st.Availability = math.Ldexp(float64(p.admission), -64)
	case st.Usable:
		st.Availability = 1
	}
	return st
}

// Held is the number of regions that only MaxDown keeps in service.
func (s *Snapshot) Held() int { return s.held }

// Usable is the number of regions that are usable for family f.
func (s *Snapshot) Usable(f Family) (n int) {
	for r := range s.regions {
		if s.has(Region(r), usable.of(f)) {
			n++
		}
	}
	return n
}

// Lists counts the candidate lists that have no usable candidate for family f,
// for whose clients the last resort answers, and those that have one alone.
func (h *Host) Lists(s *Snapshot, f Family) (without, single int) {
	if !h.offers[f] {
		return 0, 0
	}
	for i := range h.lists {
		l, left := &h.lists[i], 0
		if l.Refuse {
			continue
		}
		for _, r := range l.regions() {
			if s.has(r, usable.of(f)) {
				left++
			}
		}
		switch left {
		case 0:
			without++
		case 1:
			single++
		}
	}
	return without, single
}

// regionSet is a set of regions.
type regionSet [4]uint64

func (s *regionSet) add(r Region) { s[r/64] |= 1 << (r % 64) }

func (s *regionSet) has(r Region) bool { return s[r/64]>>(r%64)&1 == 1 }
