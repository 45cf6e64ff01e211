package steer

import (
	"math"
	"slices"
)

// explain lists the candidates of l in the client's order, each once, and after
// them the regions that the last resort names, if it was asked.
func (q *query) explain(l *List, d *Decision) []TraceCandidate {
	resort := d.Outcome != OutcomeAnswer
	named := resort && q.host.lastResort.Kind == Regions
	need := q.need
	if resort && q.host.lastResort.Kind == Open {
		need = q.snapshot.need(open, q.client.List, q.family)
	}
	var list []TraceCandidate
	seen := make(map[Region]bool)
	add := func(r Region, tier string, weight uint32) {
		if seen[r] {
			return
		}
		seen[r] = true
		c := q.explainOne(r, need, d)
		c.Tier, c.Weight = tier, weight
		if named && c.Status == statusChosen {
			c.Status = statusPassed // as a candidate; the last resort names it below
		}
		list = append(list, c)
	}
	for _, w := range q.splitOrder(l) {
		add(w.Region, "split", w.Weight)
	}
	for _, w := range l.Split {
		add(w.Region, "standby", 0)
	}
	for _, r := range l.Order {
		add(r, "order", 0)
	}
	if named {
		list = append(list, q.explainNamed(l, d)...)
	}
	return list
}

// explainNamed lists the regions that the last resort names.
func (q *query) explainNamed(l *List, d *Decision) (list []TraceCandidate) {
	regions := q.host.lastResort.Regions
	need := open.of(q.family)
	if d.Region != NoRegion && q.snapshot.has(d.Region, usable.of(q.family)) {
		need = usable.of(q.family)
	}
	for _, r := range regions {
		c := q.explainOne(r, need, d)
		c.Tier = "last_resort"
		if !l.allows(r) {
			c.Status, c.Why = statusPassed, "fenced"
		}
		list = append(list, c)
	}
	return list
}

// The words for TraceCandidate.Status.
const (
	statusChosen = "chosen"
	statusShared = "shared"
	statusNext   = "next"
	statusPassed = "passed"
)

// explainOne says what became of region r where one of the needed facts must hold.
func (q *query) explainOne(r Region, need facts, d *Decision) TraceCandidate {
	s := q.snapshot
	spilled := q.spills(r, d)
	state := s.Region(r, q.family)
	c := TraceCandidate{
		Region:      q.host.regions[r],
		Levers:      q.explainLevers(r),
		Written:     s.pools[q.family][r].written,
		Endpoints:   q.explainEndpoints(r, d),
		OtherFamily: (!state.Usable || spilled) && q.otherTakes(r),
	}
	if state.Availability < 1 {
		c.Availability = math.Ceil(state.Availability*1e4) / 1e4
	}
	switch {
	case !state.Usable:
		c.Why = q.unusable(r)
	case state.Shared && !s.has(r, q.need):
		c.Why = "soak"
	case r == q.trickled:
		c.Why = "trickled"
	case spilled:
		c.Why = "spilled"
	case state.Shared && d.By != ByShare:
		c.Why = "alone"
	case state.HeldUp:
		c.Why = "held_up"
	}
	switch {
	case r == d.Region:
		c.Status = statusChosen
		if d.By == ByShare && c.Why == "soak" {
			c.Why = ""
		}
	case !s.has(r, need), r == q.trickled, spilled && !q.mustServe(r, d), q.spared(r, d):
		c.Status = statusPassed
	case slices.Contains(q.inPlay(d), r):
		c.Status = statusShared
	default:
		c.Status = statusNext
	}
	return c
}

// mustServe says whether region r, which doesn't take the client, is in line to
// serve nevertheless, for nobody does.
func (q *query) mustServe(r Region, d *Decision) bool {
	return d.By == ByForced && (q.snapshot.dialled(r) || !q.snapshot.dialled(d.Region))
}

// spared says whether region r, which is dialled to 0, is left out of a last resort that
// opens other regions.
func (q *query) spared(r Region, d *Decision) bool {
	return d.Outcome == OutcomeLastResort && q.host.lastResort.Kind == Open && !q.snapshot.dialled(r) && q.snapshot.dialled(d.Region)
}

// spills says whether region r, though usable, doesn't take the client.
func (q *query) spills(r Region, d *Decision) bool {
	switch {
	case d.Outcome != OutcomeAnswer || !q.snapshot.has(r, partial.of(q.family)) || !q.snapshot.has(r, q.need), r == q.trickled:
		return false
	case r == d.Region:
		return q.declined.has(r) // it serves because no candidate takes the client
	}
	return !q.admits(r)
}

// explainLevers lists the levers that are moved and bear on region r.
func (q *query) explainLevers(r Region) (list []TraceLever) {
	if q.snapshot.levers == nil {
		return nil
	}
	l := &q.snapshot.levers[r]
	add := func(moved bool, lever string, part float64, why string) {
		if moved {
			list = append(list, TraceLever{lever, part, why})
		}
	}
	admission, share := l.admits(q.client.List), l.Share
	if !l.carries(&q.host.lists[q.client.List]) {
		share = 0
	}
	add(l.Dial < 1, "dial", l.Dial, l.Why.Dial)
	add(l.Ramp < 1, "ramp", l.Ramp, l.Why.Ramp)
	add(admission < 1, "admission", admission, l.Why.Admission)
	add(l.Shared, "share", share, l.Why.Share)
	add(l.Trickle > 0, "trickle", l.Trickle, l.Why.Trickle)
	return list
}

// unusable says in one word why region r is not usable for the query's family.
func (q *query) unusable(r Region) string {
	p := q.host.pools[r]
	switch {
	case p == nil:
		return "no_pool"
	case !q.snapshot.has(r, present.of(q.family)):
		return "no_family"
	case !q.snapshot.has(r, open.of(q.family)):
		return "drained"
	}
	if q.snapshot.pools[q.family][r].healthy > 0 {
		return "min_healthy"
	}
	return "down"
}

// explainEndpoints lists the endpoints of region r in the query's family.
func (q *query) explainEndpoints(r Region, d *Decision) (list []TraceEndpoint) {
	p := q.host.pools[r]
	if p == nil {
		return nil
	}
	for i, e := range p.endpoints {
		if familyOf(e.addr) != q.family && p.name == "" {
			continue
		}
		st := &q.snapshot.states[r][i]
		written := q.snapshot.pools[q.family][r].written
		list = append(list, TraceEndpoint{
			Addr: e.addr, Weight: uint32(e.weighed(st, written)), Weighed: st.Weighed && !written, Verdict: st.Verdict.String(), Streak: st.Streak, Reason: st.Reason,
			Answered: r == d.Region && slices.Contains(d.Answer.Addrs, e.addr),
		})
	}
	return list
}

// splitOrder is the weighted regions of a split as bids order them. In turn there
// is no such order, and it stays as written.
func (q *query) splitOrder(l *List) (order []Weighted) {
	for _, w := range l.Split {
		if w.Weight > 0 {
			order = append(order, w)
		}
	}
	if q.host.spread == Balanced {
		return order
	}
	of := func(w Weighted) score {
		return bid(q.key.sum(q.host, q.client), q.host.salts[w.Region], w.Weight)
	}
	slices.SortStableFunc(order, func(a, b Weighted) int {
		switch {
		case of(a).before(of(b)):
			return -1
		case of(b).before(of(a)):
			return 1
		}
		return 0
	})
	return order
}

// inPlay is the regions of which the next in turn was d's; none if it was not drawn.
func (q *query) inPlay(d *Decision) []Region {
	named := d.Outcome == OutcomeLastResort && q.host.lastResort.Kind == Regions
	if q.host.spread != Balanced || named {
		return nil
	}
	sp := &q.snapshot.splits[q.family][q.client.List]
	if !slices.Contains(sp.regions, d.Region) {
		return nil
	}
	return sp.regions
}

// shares is the distribution of answers of spread Balanced: exact, or in
// millionths where a candidate spills or a lever is moved.
func (q *query) shares(d *Decision) (shares []TraceShare) {
	l := &q.host.lists[q.client.List]
	if d.Outcome == OutcomeAnswer && (q.snapshot.levers != nil || q.snapshot.any(l, partial.of(q.family))) {
		return q.flowShares()
	}
	regions := q.inPlay(d)
	if regions == nil {
		return q.poolShares(shares, d.Region, 1, 1)
	}
	sp := &q.snapshot.splits[q.family][q.client.List]
	for i, r := range regions {
		shares = q.poolShares(shares, r, sp.size(i), sp.total())
	}
	return shares
}

// flowShares is the flow in millionths.
func (q *query) flowShares() (shares []TraceShare) {
	const of = 1e6
	millionths := func(part float64) uint64 { return uint64(math.Round(max(part, 0) * of)) }
	fl := q.host.flow(q.snapshot, q.client.List, q.family)
	for r := range fl.regions {
		if n := millionths(fl.regions[r] - fl.shed[r]); n > 0 {
			shares = q.poolShares(shares, Region(r), n, of)
		}
		if n := millionths(fl.shed[r]); n > 0 {
			shares = append(shares, newShare(q.host.regions[r], q.snapshot.shed, n, of))
		}
	}
	return shares
}

// poolShares appends the answers of region r, which gets part of the resolutions.
// Equal answers from several draws are added up.
func (q *query) poolShares(shares []TraceShare, r Region, part, of uint64) []TraceShare {
	p := &q.snapshot.pools[q.family][r]
	if len(p.answers) == 1 {
		return append(shares, newShare(q.host.regions[r], p.answers[0], part, of))
	}
	sizes := make(map[*Answer]uint64)
	for i, a := range p.answers {
		sizes[a] += p.draws.size(i)
	}
	for _, a := range p.answers {
		if size := sizes[a]; size > 0 {
			shares = append(shares, newShare(q.host.regions[r], a, part*size, of*p.draws.total()))
			delete(sizes, a)
		}
	}
	return shares
}

// newShare makes a share with its fraction in lowest terms.
func newShare(region string, a *Answer, part, of uint64) TraceShare {
	g := gcd(part, of)
	return TraceShare{region, a.Addrs, a.Name, part / g, of / g}
}
