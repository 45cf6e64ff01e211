package steer

// Open is the part, 0..1, of a list's clients that region r takes of those who come to
// it as a candidate, before the capacity law has its say: by its availability, dial and
// ramp. It is 0 where r is no candidate of the list: not usable, or a soak beside others.
// judged says that the law judges what is full by itself: what a region in which all that
// is alive is full would give up for that is then left out.
func (h *Host) Open(s *Snapshot, list int, r Region, f Family, judged bool) float64 {
	if !s.has(r, s.need(usable, list, f)) {
		return 0
	}
	ps := &s.pools[f][r]
	t := ps.availability
	if judged {
		t = ps.whole
	}
	l := s.leversOf(r)
	return t.times(thresholdOf(l.Dial)).times(thresholdOf(l.Ramp)).part()
}

// Alive is the availability of region r for family f as it would be if nothing of it was
// full; 0 where it is not usable.
func (s *Snapshot) Alive(r Region, f Family) float64 {
	switch ps := &s.pools[f][r]; {
	case !s.has(r, usable.of(f)):
		return 0
	case ps.full:
		return ps.whole.part()
	default:
		return ps.availability.part()
	}
}

// admitRounds is how many rounds Admit makes at most, and admitError the error of a
// flow at which it is content.
const (
	admitRounds = 40
	admitError  = 1e-4
)

// Admit is the admissions, by region, with which the clients of a list are distributed
// as wanted over its candidates, as far as thresholds can do that. open are the parts of
// [Host.Open], and ready is what is admitted where nobody comes; all are by region, and
// wanted adds up to 1. Regions that are no candidates have 1.
//
// A split asks its regions in random order, so how much comes to one depends on what
// the others take. Every round corrects each admission by the ratio of what is wanted
// and what it brings; with one candidate less than asked the excess falls on the others,
// so the rounds converge.
func (h *Host) Admit(list int, open, wanted, ready []float64) []float64 {
	out := make([]float64, len(h.regions))
	for r := range out {
		out[r] = 1
	}
	var runners, tail []Region
	var weights []float64
	l := &h.lists[list]
	for i, r := range l.regions() {
		switch w := l.weight(r); {
		case open[r] <= 0:
			out[r] = ready[r]
		case w > 0 && i < len(l.Split):
			runners, weights = append(runners, r), append(weights, w)
		default:
			tail = append(tail, r)
		}
	}
	h.admitRunners(runners, weights, len(tail) == 0, open, wanted, out)
	left := 1.0
	for _, r := range runners {
		left *= 1 - open[r]*out[r]
	}
	for _, r := range tail {
		if left < admitError {
			out[r] = ready[r]
			continue
		}
		out[r] = within(wanted[r]/(left*open[r]), 1, 1)
		left -= left * open[r] * out[r]
	}
	return out
}

// admitRunners works out the admissions of a split. last says that there is nobody after
// it, so that those whom nobody takes come back to it.
func (h *Host) admitRunners(runners []Region, weights []float64, last bool, open, wanted, out []float64) {
	parts := make([]float64, len(runners))
	total := sum(weights)
	for range admitRounds {
		left := 1.0
		for i, r := range runners {
			parts[i] = open[r] * out[r]
			left *= 1 - parts[i]
		}
		worst := 0.0
		for i, won := range race(weights, parts) {
			r := runners[i]
			if last {
				won += left * weights[i] / total
			}
			before := out[r]
			if won > 0 {
				out[r] = within(before*wanted[r]/won, 1, 1)
			}
			worst = max(worst, out[r]-before, before-out[r])
		}
		if worst < admitError {
			return
		}
	}
}

// weight is the weight that a split gives region r; 0: it is no part of it.
func (l *List) weight(r Region) (w float64) {
	for _, one := range l.Split {
		if one.Region == r && one.Weight > 0 {
			w = float64(one.Weight) // as everywhere, the last one counts
		}
	}
	return w
}
