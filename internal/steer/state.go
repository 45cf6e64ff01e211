package steer

import "slices"

// RegionState is the state of one region in a snapshot, for one family.
type RegionState struct {
	// Usable: a candidate that a decision can choose.
	Usable bool
	// HeldUp: it failed, and only MaxDown keeps it usable.
	HeldUp bool
	// Availability is the part of the clients that come which it takes for its
	// health, 0..1; the others spill. It is 0 where the region is not usable.
	Availability float64
	// Dial and Ramp hold back more: the region takes Availability x Dial x Ramp, and
	// of a list what the law admits of that. Of what it takes, the part Trickle goes
	// on. A Shared region is a soak and gets the part Share instead. See [Levers].
	Dial, Ramp, Share, Trickle float64
	Shared                     bool
	// Healthy is the healthy part: the weight of the endpoints that are alive (up
	// or full) of the weight of all that are not drained, 0..1. It is 0 where there
	// are none.
	Healthy float64
	// Streak: towards another verdict on some endpoint one has begun.
	Streak bool
	// Drained: it has endpoints, and operators have drained all of them. Failed: it
	// would be usable if those that are down were up.
	Drained, Failed bool
	Empty           bool // it has no endpoint of the family
	Full            bool // it is usable, and all that is alive is full
}

// Why says in a few words why a region is not usable; empty: it is.
func (s *RegionState) Why() string {
	switch {
	case s.Usable:
		return ""
	case s.Empty:
		return "no endpoint of this family"
	case s.Drained:
		return "drained"
	case s.Failed && s.Healthy > 0:
		return "too few endpoints are alive"
	case s.Failed:
		return "down"
	}
	return "too few endpoints are left"
}

// Region is the state of region r for family f, whether or not the host offers
// the family.
func (s *Snapshot) Region(r Region, f Family) RegionState {
	p, l := &s.pools[f][r], s.leversOf(r)
	st := RegionState{
		Usable: s.has(r, usable.of(f)), Streak: p.streak,
		Dial: l.Dial, Ramp: l.Ramp, Share: l.Share, Trickle: l.Trickle, Shared: l.Shared,
	}
	st.Failed, st.HeldUp = p.failed, st.Usable && p.failed
	st.Empty = !s.has(r, present.of(f))
	st.Drained = !st.Empty && !s.has(r, open.of(f))
	if p.counted > 0 {
		st.Healthy = float64(p.healthy) / float64(p.counted)
	}
	if st.Usable {
		st.Availability, st.Full = p.availability.part(), p.full
		if l.Full {
			st.Availability = p.whole.part()
		}
	}
	return st
}

// Admission is the part of a list's clients that the capacity law admits to region
// r, 0..1.
func (s *Snapshot) Admission(list int, r Region) float64 {
	if s.levers == nil {
		return 1
	}
	return s.levers[r].admits(list)
}

// HeldUp is the number of regions that only MaxDown keeps in service.
func (s *Snapshot) HeldUp() int { return s.heldUp }

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
// for whose clients the last resort answers, and those that have one alone. A soak
// counts, for it serves where nobody else does.
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

// Stranded gives the candidate lists none of whose regions is both usable for family f and
// dialled above 0: their clients are left to the last resort, or to a region that
// is to take nobody.
func (h *Host) Stranded(s *Snapshot, f Family) (lists []int) {
	if !h.offers[f] {
		return nil
	}
	for i := range h.lists {
		l := &h.lists[i]
		if !l.Refuse && !slices.ContainsFunc(l.regions(), func(r Region) bool { return s.has(r, usable.of(f)) && s.dialled(r) }) {
			lists = append(lists, i)
		}
	}
	return lists
}

// regionSet is a set of regions.
type regionSet [4]uint64

func (s *regionSet) add(r Region) { s[r/64] |= 1 << (r % 64) }

func (s *regionSet) has(r Region) bool { return s[r/64]>>(r%64)&1 == 1 }
