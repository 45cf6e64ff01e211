package steer

import "sync/atomic"

// Decide chooses the region and the answer for c and family f. It takes no lock
// and, with a nil tr, allocates nothing. With a trace it decides the same and
// fills tr; it then takes no turn of spread Balanced, but looks at the next one.
//
// c.List must be an index of the host's lists, and s a snapshot of this host.
func (h *Host) Decide(s *Snapshot, c *Client, f Family, tr *Trace) Decision {
	if tr != nil {
		return h.traced(s, *c, f, tr)
	}
	q := query{host: h, snapshot: s, client: c, family: f, spill: spill{trickled: NoRegion}}
	return q.decide()
}

// traced decides with a trace. It has a client of its own: what a trace is made of
// stays on the heap, and queries' clients must not.
func (h *Host) traced(s *Snapshot, c Client, f Family, tr *Trace) Decision {
	q := query{host: h, snapshot: s, client: &c, family: f, peek: true, spill: spill{trickled: NoRegion}}
	d := q.decide()
	q.trace(&d, tr)
	return d
}

// query is one decision in progress.
type query struct {
	host     *Host
	snapshot *Snapshot
	client   *Client
	family   Family
	peek     bool // leave the counters alone
	key      key
	spill
}

func (q *query) decide() Decision {
	h := q.host
	d := Decision{Region: NoRegion}
	if !h.offers[q.family] {
		d.Outcome = OutcomeNoFamily // true for everybody, so for scope 0
		return d
	}
	l := &h.lists[q.client.List]
	if l.Refuse {
		d.Outcome = OutcomeRefused // no data, which resolvers share whatever its scope
		return d
	}
	d.Scope, _ = h.scope(q.client)
	q.ask(usable)
	if q.snapshot.levers == nil || !q.fromShare(&d) {
		q.choose(l, &d)
	}
	if d.Outcome == OutcomeFailed {
		return d
	}
	d.Class = q.class(&d)
	d.TTL = h.ttl[d.Class]
	if d.Answer == nil {
		d.Answer = q.answer(d.Region)
	}
	return d
}

// choose decides between the candidates of l, or by the last resort.
func (q *query) choose(l *List, d *Decision) {
	r, moved := q.candidate(l)
	if r == NoRegion && q.declines > 0 { // nowhere to spill to: the first usable candidate serves
		r, moved = q.force(l)
		d.By = ByForced
	}
	d.Region, d.FamilyMoved = r, d.FamilyMoved || moved
	if r == NoRegion {
		q.resort(l, d)
		return
	}
	if d.By == ByForced {
		return
	}
	d.By = ByChoice
	if q.spilled {
		d.By = BySpill
	}
	if q.snapshot.levers != nil {
		q.pass(l, d)
	}
}

// force is the candidate that serves though none takes the client: the first, and
// one dialled to 0 only if all are.
func (q *query) force(l *List) (Region, bool) {
	if q.snapshot.levers != nil {
		q.forced, q.part = true, q.need // everybody is asked
		if r, moved := q.candidate(l); r != NoRegion {
			return r, moved
		}
	}
	q.part = 0
	return q.candidate(l)
}

// pass is what becomes of a client that a region has: a host that sheds sends those
// away whom the law doesn't admit, and a part of the others trickles to the next
// candidate that takes it. What trickles is never shed, and never trickles on.
func (q *query) pass(l *List, d *Decision) {
	r := d.Region
	if q.sheds(r) {
		d.Answer, d.Shed, d.By = q.snapshot.shed, true, ByShed
		return
	}
	t := q.snapshot.trickles[r]
	if t == 0 {
		return
	}
	point := q.point(leverTrickle, r, 0)
	if !t.takes(point) {
		return
	}
	if q.host.spread == Balanced {
		q.even = t.stretch(point)
	}
	q.trickled, q.part = r, q.need // everybody is asked, so that r can be left out
	next, moved := q.candidate(l)
	d.FamilyMoved = d.FamilyMoved || moved
	if next == NoRegion || q.sheds(next) {
		q.trickled = NoRegion
		return
	}
	d.Region, d.By = next, ByTrickle
}

// sheds says whether region r, which has the client, must shed it.
func (q *query) sheds(r Region) bool {
	s := q.snapshot
	if s.shed == nil || s.admitted == nil || s.admitted[r] == nil {
		return false
	}
	t := s.admitted[r][q.client.List]
	return t != everybody && !t.takes(q.point(leverShed, r, 0))
}

// class is the class of state of an answer.
func (q *query) class(d *Decision) TTLClass {
	switch {
	case d.Outcome == OutcomeLastResort:
		return ClassLastResort
	case q.snapshot.pools[q.family][d.Region].streak:
		return ClassStreak
	}
	return ClassSteady
}

// candidate is the first candidate of l that takes the client, and whether one
// before it was passed over for the query's family alone.
func (q *query) candidate(l *List) (r Region, moved bool) {
	r = NoRegion
	if len(l.Split) > 0 {
		r, moved = q.fromSplit(l)
	}
	for i := 0; r == NoRegion && i < len(l.Order); i++ {
		if q.takes(l.Order[i]) {
			r = l.Order[i]
		} else if q.otherTakes(l.Order[i]) {
			moved = true
		}
	}
	return r, moved
}

// fromSplit chooses among the split of l: among its weighted regions in turn or by
// rendezvous, else the first standby.
func (q *query) fromSplit(l *List) (r Region, moved bool) {
	if q.host.spread == Balanced {
		r, moved = q.drawn(l)
	} else {
		r, moved = q.rendezvous(l)
	}
	for i := 0; r == NoRegion && i < len(l.Split); i++ {
		if w := l.Split[i]; w.Weight > 0 {
			continue
		} else if q.takes(w.Region) {
			r = w.Region
		} else if q.otherTakes(w.Region) {
			moved = true
		}
	}
	return r, moved
}

// rendezvous is the best bid among the weighted regions of a split. The key and so
// the bids are the same for both families; a better bid of a region that only
// takes the other family is a move, and one of a region that declined a spill.
func (q *query) rendezvous(l *List) (won Region, moved bool) {
	var best, missed, declined score
	won, moved = NoRegion, false
	spilled := false
	for _, w := range l.Split {
		if w.Weight == 0 {
			continue
		}
		taken := q.takes(w.Region)
		other := !taken && q.otherTakes(w.Region)
		refused := !taken && q.declined.has(w.Region)
		if !taken && !other && !refused {
			continue
		}
		b := bid(q.key.sum(q.host, q.client), q.host.salts[w.Region], w.Weight)
		if taken && (won == NoRegion || b.before(best)) {
			best, won = b, w.Region
		}
		if other && (!moved || b.before(missed)) {
			missed, moved = b, true
		}
		if refused && (!spilled || b.before(declined)) {
			declined, spilled = b, true
		}
	}
	if won != NoRegion {
		q.spilled = spilled && declined.before(best)
		moved = moved && missed.before(best)
	}
	return won, moved
}

// drawn is the next in turn among the weighted regions of a split. While some are
// in play nobody can tell which region another draw would have named, so a move
// is one only when none takes the client.
func (q *query) drawn(l *List) (Region, bool) {
	sp := &q.snapshot.splits[q.family][q.client.List]
	if len(sp.regions) > 0 && q.snapshot.has(sp.regions[0], q.need) {
		if !q.drew {
			turn := &q.host.listTurns[q.family][q.client.List]
			q.first, q.drew = q.inTurn(&sp.draws, turn), true
		}
		i := q.first
		if q.trickled != NoRegion {
			i = q.another(sp)
		}
		for ; i >= 0; i = q.another(sp) {
			if q.takes(sp.regions[i]) {
				return sp.regions[i], false
			}
		}
	}
	for _, w := range l.Split {
		if w.Weight > 0 && q.otherTakes(w.Region) {
			return NoRegion, true
		}
	}
	return NoRegion, false
}

// inTurn takes the next turn, or looks at it.
func (q *query) inTurn(d *draws, turn *atomic.Uint64) int {
	if q.peek || len(d.ends) == 1 {
		return d.inTurn(turn.Load())
	}
	return d.inTurn(turn.Add(1) - 1)
}

// answer is what region r's pool gives.
func (q *query) answer(r Region) *Answer {
	p := &q.snapshot.pools[q.family][r]
	switch {
	case len(p.answers) == 1:
		return p.answers[0]
	case q.host.spread == Balanced:
		return p.answers[q.inTurn(&p.draws, &q.host.poolTurns[q.family][r])]
	}
	return p.answers[p.choose(q.key.sum(q.host, q.client))]
}

// resort decides when no candidate of l is usable. It never brings back a drained
// endpoint.
func (q *query) resort(l *List, d *Decision) {
	d.Outcome = OutcomeLastResort
	lr := &q.host.lastResort
	switch lr.Kind {
	case Open:
		q.ask(open)
		d.Region, _ = q.force(l)
	case Regions:
		d.Region = q.named(l, lr.Regions)
	case Addresses:
		d.Answer = q.snapshot.addresses[q.family]
	}
	if d.Region != NoRegion || d.Answer != nil {
		return
	}
	d.Outcome = OutcomeFailed
	switch {
	case q.snapshot.any(l, present.of(q.family)) && !q.snapshot.any(l, open.of(q.family)):
		d.Reason = ReasonAllDrained
	case lr.Kind == Closed:
		d.Reason = ReasonClosed
	default:
		d.Reason = ReasonNothingLeft
	}
}

// named is the first usable of the regions that l allows, else the first open one.
func (q *query) named(l *List, regions []Region) Region {
	for _, fact := range [...]facts{usable, open} {
		for _, r := range regions {
			if l.allows(r) && q.snapshot.has(r, fact.of(q.family)) {
				return r
			}
		}
	}
	return NoRegion
}
