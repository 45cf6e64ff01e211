package steer

import "sync/atomic"

// spill is what a query knows of who takes its client. Where every candidate
// takes everybody it stays as it is made.
type spill struct {
	need, other facts // what a region must have, for the query's family and the other one
	part        facts // what marks a region as taking a part of its clients
	forced      bool  // nobody takes the client, so that whoever is not dialled to 0 must
	spilled     bool  // a candidate before the one found declined
	drew        bool  // the turn of a split was taken
	first       int   // index of the region that it named
	trickled    Region
	declined    regionSet
	declines    int    // how many regions declined
	even        uint64 // what the last test in turn leaves to draw by, as even as its point
}

// spillStages is how many counters a region has: for clients that it is the first
// to be asked for, the second, and so on. With one counter only, what a region says
// would depend on what others said before.
const spillStages = 4

// ask sets what a candidate must have: usable, for its part of the clients, or open.
func (q *query) ask(fact facts) {
	list := q.client.List
	q.need, q.other, q.part = q.snapshot.need(fact, list, q.family), 0, 0
	if other := q.family.other(); q.host.offers[other] {
		q.other = q.snapshot.need(fact, list, other)
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

// admits says whether region r, which may take but a part of its clients, takes this
// one: if its hash lies below the threshold, so that a part of p2 takes all that a
// smaller part of p1 does. In turn, it is a sequence of low discrepancy (multiples
// of the golden ratio) that each counter goes through for itself, so that the part
// is met over any stretch of resolutions.
func (q *query) admits(r Region) bool {
	if q.forced {
		return q.snapshot.dialled(r)
	}
	if r == q.trickled || q.declined.has(r) {
		return false // asked before: a list can name a region twice
	}
	t := q.host.cell(q.snapshot, q.client.List, r, q.family)
	if t == everybody {
		return true
	}
	point := q.admissionPoint(r)
	if t.takes(point) {
		return true
	}
	q.declined.add(r)
	q.declines++
	q.spilled = true
	if q.host.spread == Balanced {
		q.even = t.stretchAbove(point)
	}
	return false
}

// admissionPoint is where the client falls for the admission of region r.
func (q *query) admissionPoint(r Region) uint64 {
	if q.host.spread != Balanced {
		return salted(q.key.sum(q.host, q.client), q.host.admissions[r])
	}
	return q.turn(&q.host.spillTurns[q.family][min(q.declines, spillStages-1)][r])
}

// lever is a purpose of a point that only levers have.
type lever uint8

const (
	leverShare lever = iota
	leverTrickle
	leverShed
	leverKinds
)

// point is where the client falls for a lever of region r: by hash, or in turn. The
// shares of a list count by their rank, each list for itself; the others by region.
func (q *query) point(kind lever, r Region, rank int) uint64 {
	if q.host.spread != Balanced {
		return salted(q.key.sum(q.host, q.client), q.host.leverSalts[kind][r])
	}
	i := int(r)
	if kind == leverShare {
		i = q.client.List*spillStages + min(rank, spillStages-1)
	}
	return q.turn(&q.host.leverTurns[q.family][kind][i])
}

// turn takes the next point of a counter, or looks at it.
func (q *query) turn(counter *atomic.Uint64) uint64 {
	if q.peek {
		return counter.Load() * golden
	}
	return (counter.Add(1) - 1) * golden
}

// otherTakes says whether region r would take the client for the other family. In
// turn, that is known only where it takes everybody.
func (q *query) otherTakes(r Region) bool {
	has := q.snapshot.regions[r]
	f := q.family.other()
	switch {
	case has&q.other == 0, r == q.trickled:
		return false
	case has&partial.of(f) == 0:
		return true
	}
	t := q.host.cell(q.snapshot, q.client.List, r, f)
	if t == everybody || q.host.spread == Balanced {
		return t == everybody
	}
	return t.takes(q.admissionPoint(r))
}

// another is the index of the next region to ask among those of a split that have
// neither declined nor given the client on, by their weights; -1 if there is none.
// It follows from what the last test leaves, which is as even as a draw.
func (q *query) another(sp *split) int {
	left := uint64(0)
	for i, r := range sp.regions {
		if q.asks(r) {
			left += sp.size(i)
		}
	}
	draw := below(q.even, left)
	for i, r := range sp.regions {
		if !q.asks(r) {
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

// asks says whether region r can still be asked. One that is not forced has said no.
func (q *query) asks(r Region) bool {
	return r != q.trickled && !q.declined.has(r) && (!q.forced || q.snapshot.dialled(r))
}
