package steer

import "math/bits"

// soaked is what the soaks of a snapshot mean for one list and family.
type soaked struct {
	// usable and open are what a candidate must have: to be no soak, or, where the
	// list has no other, that alone.
	usable, open facts
	shares       []share // in the order that regions are written; none where soaks are candidates
}

// share is one region's part of those whom the shares before it leave.
type share struct {
	region Region
	taken  threshold
}

// soak sorts out which regions are soaks, and for whom. Without any it leaves
// s.soaks nil.
func (h *Host) soak(s *Snapshot) {
	any := false
	for r := range s.regions {
		if s.levers[r].Shared {
			any = true
			continue
		}
		for f := range Family(families) {
			if s.has(Region(r), usable.of(f)) {
				s.regions[r] |= normal.of(f)
			}
			if s.has(Region(r), open.of(f)) {
				s.regions[r] |= normalOpen.of(f)
			}
		}
	}
	if !any {
		return
	}
	for f := range Family(families) {
		s.soaks[f] = make([]soaked, len(h.lists))
		for id := range h.lists {
			s.soaks[f][id] = h.soakOf(s, &h.lists[id], f)
		}
	}
}

func (h *Host) soakOf(s *Snapshot, l *List, f Family) soaked {
	so := soaked{usable: normal.of(f), open: normalOpen.of(f)}
	if !s.any(l, so.open) {
		so.open = open.of(f)
	}
	if !s.any(l, so.usable) {
		so.usable = usable.of(f)
		return so
	}
	so.shares = h.shares(s, l, f)
	return so
}

// shares are the shares of l's clients. Each region asks a hash of its own, so
// the second must take p2/(1-p1) of what comes to it to get p2 of all. Rounding
// goes down: no share is ever exceeded.
func (h *Host) shares(s *Snapshot, l *List, f Family) (shares []share) {
	var named regionSet
	for _, r := range l.regions() {
		named.add(r)
	}
	given := uint64(0) // to the shares before, of 2^64
	for r := range s.levers {
		lv := &s.levers[r]
		if !lv.Shared || !lv.carries(l) || !named.has(Region(r)) || !s.has(Region(r), usable.of(f)) {
			continue
		}
		t := s.pools[f][r].taken.times(thresholdOf(lv.Share))
		switch left := -given; {
		case t == 0:
			continue
		case t == everybody, given > 0 && uint64(t) >= left:
			return append(shares, share{Region(r), everybody}) // all that is left
		case given == 0:
			shares = append(shares, share{Region(r), t})
		default:
			of, _ := bits.Div64(uint64(t), 0, left)
			shares = append(shares, share{Region(r), threshold(of)})
		}
		given += uint64(t)
	}
	return shares
}

// need is what a candidate of a list must have to be usable, or open: soaks are
// candidates only where there are no others.
func (s *Snapshot) need(fact facts, list int, f Family) facts {
	if s.soaks[f] == nil {
		return fact.of(f)
	}
	if fact == open {
		return s.soaks[f][list].open
	}
	return s.soaks[f][list].usable
}

// fromShare gives the client to a soak if it falls into a share. It sets
// FamilyMoved if for the other family it falls into an earlier one.
func (q *query) fromShare(d *Decision) bool {
	soaks := q.snapshot.soaks[q.family]
	if soaks == nil {
		return false
	}
	for i, sh := range soaks[q.client.List].shares {
		if sh.taken.takes(q.point(leverShare, sh.region, i)) {
			d.Region, d.By = sh.region, ByShare
			break
		}
	}
	if q.host.offers[q.family.other()] && q.host.spread != Balanced {
		for _, sh := range q.snapshot.soaks[q.family.other()][q.client.List].shares {
			if sh.region >= d.Region {
				break
			}
			d.FamilyMoved = d.FamilyMoved || sh.taken.takes(q.point(leverShare, sh.region, 0))
		}
	}
	return d.Region != NoRegion
}
