package steer

import "math/bits"

// spill is what a query knows of who takes its client. Where every candidate
// takes everybody it stays as it is made.
type spill struct {
	need, other facts // what a region must have, for the query's family and the other one
	part        facts // what marks a region as taking a part of its clients
	declined    regionSet
	declines    int    // how many regions declined
	point       uint64 // where, and at which threshold, the last one did
	threshold   uint64
	first       int  // index of the region that the turn of a split named first,
	drew        bool // if it did
}

// spillStages is how many counters a region has: for clients that it is the first
// to be asked for, the second, and so on. With one counter only, what a region says
// would depend on what others said before.
const spillStages = 4

// ask sets what a candidate must have: usable, for its part of the clients, or
// open, for everybody.
func (q *query) ask(fact facts) {
	q.need, q.other, q.part = fact.of(q.family), 0, 0
	if q.host.offers[q.family.other()] {
		q.other = fact.of(q.family.other())
	}
	if fact == usable {
		q.part = partial.of(q.family)
	}
}

// takes says whether region r takes the client. Every choice between candidates
// asks here, and nowhere else.
func (q *query) takes(r Region) bool {
	has := q.snapshot.regions[r]
	return has&q.need != 0 && (has&q.part == 0 || q.admits(r))
}

// admits says whether region r, which takes but a part of its clients, takes this
// one: if its hash lies below the threshold, so that a part of p2 takes all that a
// smaller part of p1 does. In turn, it is a sequence of low discrepancy (multiples
// of the golden ratio) that each counter goes through for itself, so that the part
// is met over any stretch of resolutions.
func (q *query) admits(r Region) bool {
	if q.declined.has(r) {
		return false // asked before: a list can name a region twice
	}
	threshold := q.snapshot.pools[q.family][r].admission
	point := q.admissionPoint(r)
	if point < threshold {
		return true
	}
	q.declined.add(r)
	q.declines++
	q.point, q.threshold = point, threshold
	return false
}

// admissionPoint is where the client falls for the admission of region r.
func (q *query) admissionPoint(r Region) uint64 {
	if q.host.spread != Balanced {
		return salted(q.key.sum(q.host, q.client), q.host.admissions[r])
	}
	turn := &q.host.spillTurns[q.family][min(q.declines, spillStages-1)][r]
	if q.peek {
		return turn.Load() * golden
	}
	return (turn.Add(1) - 1) * golden
}

// otherTakes says whether region r would take the client for the other family. In
// turn, that is known only where it takes everybody.
func (q *query) otherTakes(r Region) bool {
	has := q.snapshot.regions[r]
	f := q.family.other()
	switch {
	case has&q.other == 0:
		return false
	case has&partial.of(f) == 0:
		return true
	case q.host.spread == Balanced:
		return false
	}
	return q.admissionPoint(r) < q.snapshot.pools[f][r].admission
}

// another is the index of the next region to ask among those of a split that have
// not declined, by their weights; -1 if all have. It follows from where the last
// draw lay beyond its threshold, which is as even as the draw itself.
func (q *query) another(sp *split) int {
	left := uint64(0)
	for i, r := range sp.regions {
		if !q.declined.has(r) {
			left += sp.size(i)
		}
	}
	part, _ := bits.Div64(q.point-q.threshold, 0, -q.threshold)
	draw, _ := bits.Mul64(part, left)
	for i, r := range sp.regions {
		if q.declined.has(r) {
			continue
		}
		if size := sp.size(i); draw >= size {
			draw -= size
			continue
		}
		return i
	}
	return -1
}
