package steer

import "slices"

// Flow is the part of list's clients, spread uniformly over all keys, that each
// region is expected to get for family f; the last element is the part that is
// shed to a name. What a last resort gives is counted where it names regions, so
// the sum is less than 1 only if addresses or nothing at all are answered.
//
// It is worked out from thresholds and weights, for every spread: a soak, an
// order and what trickles are products of independent parts, and a split is a race
// of exponential bids, see [race]. It is as exact as float64 sums are, about 1e-8.
func (h *Host) Flow(s *Snapshot, list int, f Family) []float64 {
	fl := h.flow(s, list, f)
	for r := range fl.shed {
		fl.regions[r] -= fl.shed[r]
	}
	total := 0.0
	for _, p := range fl.shed {
		total += p
	}
	return append(fl.regions, total)
}

// flow is how the clients of one list are distributed.
type flow struct {
	host     *Host
	snapshot *Snapshot
	list     int
	family   Family
	regions  []float64 // by Region: what it gets, with what it sheds
	shed     []float64 // by Region: what of that it sheds
}

func (h *Host) flow(s *Snapshot, list int, f Family) *flow {
	fl := &flow{h, s, list, f, make([]float64, len(h.regions)), make([]float64, len(h.regions))}
	l := &h.lists[list]
	if l.Refuse || !h.offers[f] {
		return fl
	}
	left := 1.0
	if s.soaks[f] != nil {
		for _, sh := range s.soaks[f][list].shares {
			fl.regions[sh.region] += left * sh.taken.part()
			left *= 1 - sh.taken.part()
		}
	}
	if need := s.need(usable, list, f); s.any(l, need) {
		fl.choose(fl.line(need, true), left)
	} else {
		fl.resort(l)
	}
	return fl
}

// line is the candidates of a list that are usable, or open: those that race by
// weight, and after them the tail in its order.
type line struct {
	runners []Region
	weights []float64 // of the runners
	parts   []float64 // of what comes to each runner, what it takes
	tail    []Region
	rest    []float64 // the same for the tail
}

// line is the line of candidates with the fact, each taking its cell's part, or all.
func (fl *flow) line(need facts, cells bool) (ln line) {
	l := &fl.host.lists[fl.list]
	ln.tail, ln.rest = make([]Region, 0, len(l.Order)), make([]float64, 0, len(l.Order))
	for _, r := range l.regions() {
		if !fl.snapshot.has(r, need) {
			continue
		}
		part := 1.0
		if cells {
			part = fl.host.cell(fl.snapshot, fl.list, r, fl.family).part()
		}
		if w := l.weight(r); w > 0 {
			ln.runners, ln.weights, ln.parts = append(ln.runners, r), append(ln.weights, w), append(ln.parts, part)
		} else {
			ln.tail, ln.rest = append(ln.tail, r), append(ln.rest, part)
		}
	}
	return ln
}

// choose distributes a part of the clients over a line.
func (fl *flow) choose(ln line, part float64) {
	left := part
	for i, won := range race(ln.weights, ln.parts) {
		fl.give(ln, i, ln.runners[i], part*won)
		left *= 1 - ln.parts[i]
	}
	for k, r := range ln.tail {
		fl.give(ln, len(ln.runners)+k, r, left*ln.rest[k])
		left *= 1 - ln.rest[k]
	}
	fl.force(ln, left)
}

// give gives a part to region r, the i-th of the line: some of it is shed, some of
// the rest trickles on.
func (fl *flow) give(ln line, i int, r Region, part float64) {
	shed := part * fl.sheds(r)
	fl.regions[r] += part
	fl.shed[r] += shed
	if fl.snapshot.levers == nil || part <= 0 {
		return
	}
	t := fl.snapshot.trickles[r].part()
	if t == 0 {
		return
	}
	move := func(next Region, of float64) {
		p := t * of * (1 - fl.sheds(r)) * (1 - fl.sheds(next))
		fl.regions[r] -= p
		fl.regions[next] += p
	}
	left, from := part, 0
	if i < len(ln.runners) {
		left = 0
		if ln.parts[i] > 0 {
			seconds, alone := second(ln.weights, ln.parts, i)
			scale := part / (sum(seconds) + alone)
			for j, p := range seconds {
				move(ln.runners[j], p*scale)
			}
			left = alone * scale
		}
	} else {
		from = i - len(ln.runners) + 1
	}
	for k := from; k < len(ln.tail); k++ {
		move(ln.tail[k], left*ln.rest[k])
		left *= 1 - ln.rest[k]
	}
}

// force gives what no candidate takes to the first that is not dialled to 0, or to
// the first.
func (fl *flow) force(ln line, part float64) {
	if part <= 0 {
		return
	}
	for _, ok := range []func(Region) bool{fl.snapshot.dialled, func(Region) bool { return true }} {
		total := 0.0
		for i, r := range ln.runners {
			if ok(r) {
				total += ln.weights[i]
			}
		}
		for i, r := range ln.runners {
			if ok(r) {
				fl.regions[r] += part * ln.weights[i] / total
			}
		}
		if total > 0 {
			return
		}
		if i := slices.IndexFunc(ln.tail, ok); i >= 0 {
			fl.regions[ln.tail[i]] += part
			return
		}
	}
}

// resort distributes all clients by the last resort.
func (fl *flow) resort(l *List) {
	switch lr := &fl.host.lastResort; lr.Kind {
	case Open:
		fl.force(fl.line(fl.snapshot.need(open, fl.list, fl.family), false), 1)
	case Regions:
		q := query{host: fl.host, snapshot: fl.snapshot, family: fl.family}
		if r := q.named(l, lr.Regions); r != NoRegion {
			fl.regions[r] = 1
		}
	}
}

// sheds is the part of what region r has that it sheds.
func (fl *flow) sheds(r Region) float64 {
	s := fl.snapshot
	if s.shed == nil || s.admitted == nil || s.admitted[r] == nil {
		return 0
	}
	return 1 - s.admitted[r][fl.list].part()
}
