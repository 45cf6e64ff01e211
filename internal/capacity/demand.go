package capacity

import (
	"math"
	"slices"
	"time"
)

// Natural demand is what would come to a sink if every sink took everything. Nobody
// measures it: a sink's load is what its own demand and the others' spilled demand
// leave there. But the law knows which flows it admitted. Let A[r][c] be the mean, over
// the TTL of its answers before r's load was measured, of the part of c's natural demand that went
// to r. Then the loads are L = A D, and D is found by multiplicative rounds
//
//	D[c] <- D[c] * (sum over r of A[r][c] * L[r] / (A D)[r]) / (sum over r of A[r][c])
//
// from the demand of the step before. This is expectation-maximisation for
// Poisson counts (Richardson 1972, Lucy 1974; Shepp and Vardi 1982): D stays positive,
// its sum follows the sum of the loads, and with one column it is load / admitted part at
// once. Where columns can't be told apart (a drained region's demand arrives at its
// neighbour's, which has its own) they keep their proportions. A load that lies can
// only distribute the sum differently, so no broken sensor makes demand out of nothing
// for ever. A sink whose signal is absent has no equation: what is thought to
// go there is thought to be there (its factor is 1); a fading one has L/(A D) to the
// power of its fade. What went to nobody shows nowhere, so it is what it was: its factor
// is 1, and the estimate follows by the part that somebody took alone.

// nobody is where the demand goes that nobody takes.
const nobody = -1

// part is a part of one sink's demand, where it goes, and for how long an answer sends it there.
type part struct {
	to   int
	part float64
	ttl  time.Duration // 0: any
}

// flows are where the demand of each sink goes.
type flows [][]part

func (f flows) add(from int, p part) {
	for i := range f[from] {
		if is := &f[from][i]; is.to == p.to && is.ttl == p.ttl {
			is.part += p.part
			return
		}
	}
	f[from] = append(f[from], p)
}

// loads is what demand leaves at each sink.
func (f flows) loads(demand []float64) []float64 {
	out := make([]float64, len(f))
	for c := range f {
		for _, p := range f[c] {
			if p.to != nobody {
				out[p.to] += mul(p.part, demand[c])
			}
		}
	}
	return out
}

// lost is the part of a sink's demand that went to nobody.
func (f flows) lost(c int) (sum float64) {
	for _, p := range f[c] {
		if p.to == nobody {
			sum += p.part
		}
	}
	return sum
}

// past is the mean flows of the history, each over the TTL of its answers (ttl where that isn't
// known) that ends, for each sink, when its load was measured. Without a history everything stayed
// where it belongs.
func (s *State) past(ends []time.Duration, ttl time.Duration, now time.Time) flows {
	f := make(flows, len(s.Sinks))
	for c := range f {
		if len(s.History) == 0 {
			f.add(c, part{to: c, part: 1})
		}
	}
	for i := range s.History {
		begin, end := s.held(i, now)
		for _, c := range s.History[i].Cells {
			if p := c.within(begin, end, ends[c.seen()], ttl); p > 0 {
				f.add(c.From, part{to: c.To, part: p})
			}
		}
	}
	if s.mixed() {
		s.whole(f, ends, ttl, now)
	}
	return f
}

// held is from when to when a moment's flows held, as times before now.
func (s *State) held(i int, now time.Time) (begin, end time.Duration) {
	begin, end = now.Sub(s.History[i].At), -1<<62
	if i == 0 {
		begin = 1 << 62
	}
	if i+1 < len(s.History) {
		end = now.Sub(s.History[i+1].At)
	}
	return begin, end
}

// seen is the sink whose load shows the cell's demand.
func (c *Cell) seen() int {
	if c.To == nobody {
		return c.From
	}
	return c.To
}

// within is the cell's part, as far as it held in the TTL of its answers before a load was
// measured.
func (c *Cell) within(begin, end, measured, ttl time.Duration) float64 {
	if c.TTL > 0 {
		ttl = c.TTL
	}
	from, to := min(begin, measured+ttl), max(end, measured)
	return mul(c.Part, max(0, (from-to).Seconds())/ttl.Seconds())
}

// mixed says whether answers of the history are kept for different times.
func (s *State) mixed() bool {
	var ttl time.Duration
	first := true
	for i := range s.History {
		for _, c := range s.History[i].Cells {
			if !first && c.TTL != ttl {
				return true
			}
			ttl, first = c.TTL, false
		}
	}
	return false
}

// whole has the parts of each sink's demand, as a load shows them, add up to all of it. Where
// one TTL takes the place of another, their windows overlap, or leave a gap.
func (s *State) whole(f flows, ends []time.Duration, ttl time.Duration, now time.Time) {
	type window struct {
		begin, end time.Duration
		cell       Cell
	}
	windows := make([][]window, len(f)) // by sink whose demand it is
	for i := range s.History {
		begin, end := s.held(i, now)
		for _, c := range s.History[i].kept() {
			windows[c.From] = append(windows[c.From], window{begin, end, c})
		}
	}
	for c := range f {
		for i := range f[c] {
			p, sum := &f[c][i], 0.0
			seen := Cell{From: c, To: p.to}
			for k := range windows[c] {
				w := &windows[c][k]
				sum += w.cell.within(w.begin, w.end, ends[seen.seen()], ttl)
			}
			if sum > 0 {
				p.part /= sum
			}
		}
	}
}

// kept is the moment's flows by whose demand it is and for how long answers are kept, wherever it
// goes.
func (m *Moment) kept() (list []Cell) {
	begin := 0 // of the cells of one sink's demand
	for _, c := range m.Cells {
		if begin < len(list) && list[begin].From != c.From {
			begin = len(list)
		}
		if i := slices.IndexFunc(list[begin:], func(o Cell) bool { return o.TTL == c.TTL }); i >= 0 {
			list[begin+i].Part += c.Part
		} else {
			list = append(list, Cell{From: c.From, TTL: c.TTL, Part: c.Part})
		}
	}
	return list
}

// droop is f where a part of each open sink's demand stays there, whatever was
// admitted.
func (f flows) droop(sinks []sink) flows {
	out := make(flows, len(f))
	for c := range f {
		stay := mul(Droop, sinks[c].keeps)
		for _, p := range f[c] {
			out.add(c, part{to: p.to, part: mul(p.part, 1-stay)})
		}
		out.add(c, part{to: c, part: stay})
	}
	return out
}

// estimate makes the rounds: demand is the prior, loads have the say given by
// fades. The result is a new slice.
func (f flows) estimate(demand, loads, fades []float64) []float64 {
	d := make([]float64, len(demand))
	for c := range d {
		// What is nothing stays nothing by multiplication.
		d[c] = demand[c]
		if fades[c] > 0 {
			d[c] = max(d[c], mul(loads[c], 0.01))
		}
	}
	factor := make([]float64, len(d))
	for range DemandRounds {
		for r, is := range f.loads(d) {
			factor[r] = 1
			if fades[r] > 0 && is > 0 {
				factor[r] = pow(loads[r]/is, fades[r])
			}
		}
		for c := range f {
			sum, of := 0.0, 0.0
			for _, p := range f[c] {
				is := 1.0
				if p.to != nobody {
					is = factor[p.to]
				}
				sum += mul(p.part, is)
				of += p.part // 1, but for windows that differ
			}
			if of > 0 {
				d[c] = min(mul(d[c], sum/of), MaxLoad)
			}
		}
	}
	return d
}

// estimateDemand sets every sink's natural demand, and the load on its way to it.
func (w *work) estimateDemand() {
	n := len(w.sinks)
	prior, loads, fades := make([]float64, n), make([]float64, n), make([]float64, n)
	ends := make([]time.Duration, n)
	w.assume()
	for r := range w.sinks {
		k, m := &w.sinks[r], &w.state.Sinks[r]
		prior[r], loads[r] = m.Demand, m.Load
		if w.in.Sinks[r].Health > 0 { // the load of what is down is no demand
			fades[r] = k.fade
		}
		if k.fade > 0 {
			ends[r] = w.in.Now.Sub(m.LoadAt) + max(0, w.in.Delay)
		}
	}
	past := w.state.past(ends, w.ttl, w.in.Now)
	found := past.droop(w.sinks).estimate(prior, loads, fades)
	w.conserve(prior, found)
	was, is := 0.0, 0.0
	for r := range w.sinks {
		m := &w.state.Sinks[r]
		was += m.Demand
		if lost := max(w.sinks[r].lost, past.lost(r)); lost > 0 {
			found[r] = blend(m.Demand, found[r], max(0, 1-lost))
		}
		m.Demand = blend(m.Demand, found[r], w.follow())
		is += m.Demand
	}
	for r := range w.sinks {
		m, slow := &w.state.Sinks[r], min(1, w.dt/RecentSpan.Seconds())
		if w.in.Sinks[r].Soak || w.sinks[r].keeps >= LeastKept {
			m.Recent = max(m.Demand, blend(m.Recent, m.Demand, slow))
		} else if was > 0 {
			// Its demand shows in nobody's load by itself: it keeps its proportion, and noise
			// must not carry that off.
			m.Recent = amount(mul(m.Recent, is/was))
			m.Demand = blend(m.Demand, m.Recent, slow)
		}
		prior[r] = m.Demand
		w.sinks[r].demand = m.Demand
	}
	comes := past.loads(ones(n))
	for r, load := range past.loads(prior) {
		k, m := &w.sinks[r], &w.state.Sinks[r]
		m.Comes = comes[r]
		k.underway = load
		k.load = load
		if fades[r] > 0 {
			k.load = m.Load
			m.average(w.dt)
		}
	}
}

// conserve holds what is found against what there was when availability was lost: clients that
// move come from somewhere. Until resolvers have followed, readings of different age may
// show the same clients in two places, and whoever asks sooner than the TTL has it is taken for
// many. Only loads that were all read since can say that there are more in sum.
func (w *work) conserve(prior, found []float64) {
	loss := &w.state.Loss
	if !w.in.Now.Before(loss.Until) {
		return
	}
	heard, rise, sum := 0.0, 0.0, 0.0
	for r := range found {
		if w.sinks[r].keeps < LeastKept && !w.state.Sinks[r].LoadAt.IsZero() {
			found[r] = max(found[r], prior[r]) // that its load falls says nothing of demand
		}
		sum += found[r]
		rise += max(0, found[r]-prior[r])
		if m := &w.state.Sinks[r]; w.in.Sinks[r].Health > 0 && m.LoadAt.After(loss.At) {
			heard += m.Load
		} else if w.in.Sinks[r].Health > 0 {
			heard = math.Inf(-1)
		}
	}
	if over := sum - max(loss.All, heard); over > 0 && rise > 0 {
		for r := range found {
			found[r] -= mul(max(0, found[r]-prior[r]), min(1, over/rise))
		}
	}
}

// assume sets a demand for sinks of which nothing was ever heard: they are taken to
// be as full as they are meant to be, never empty, so that nobody spills there
// without need. While they don't keep all of it, the others' loads say how much it is. Without a capacity nothing but this instance's own counts is
// there to go by.
func (w *work) assume() {
	heard, own := 0.0, 0.0
	for r := range w.sinks {
		m := &w.state.Sinks[r]
		if m.LoadAt.IsZero() && (m.Demand == 0 || w.sinks[r].keeps > 1-LeastKept) { // what it doesn't keep shows elsewhere
			m.Demand = mul(w.sinks[r].cap, w.in.Sinks[r].target())
		}
		if m.Demand > 0 && w.sinks[r].weight > 0 {
			heard, own = heard+m.Demand, own+w.sinks[r].weight
		}
	}
	scale := 1.0
	if own > 0 {
		scale = heard / own
	}
	for r := range w.sinks {
		if m := &w.state.Sinks[r]; m.LoadAt.IsZero() && w.sinks[r].cap == 0 {
			m.Demand = amount(mul(w.sinks[r].weight, scale))
		}
	}
}

// follow is how far the estimate goes in this step: it has the time constant of
// the signals' delay, so that a delay which is wrong by as much as itself is
// harmless.
func (w *work) follow() float64 {
	if w.first {
		return 1
	}
	return w.dt / (w.dt + w.lag/w.calm)
}

// average takes the demand into the long-term one, after dt seconds.
func (m *Memory) average(dt float64) {
	watched := min(seconds(m.Watched)+dt, BaselineSpan.Seconds())
	if m.Watched == 0 {
		m.Baseline = m.Demand
	} else {
		m.Baseline = blend(m.Baseline, m.Demand, dt/watched)
	}
	m.Watched = max(1, time.Duration(mul(watched, 1e9)))
}

func ones(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = 1
	}
	return s
}
