package capacity

import "math"

// recall sets what flows the last admission makes now, of the rows that had one.
func (w *work) recall(s *State) {
	for i := range w.rows {
		r := &w.rows[i]
		if last, ok := s.Rows[r.key]; ok && len(last) == len(r.sinks) {
			r.before = r.made(last)
		}
	}
}

// move sets the admissions: the placement itself when it is urgent or there is
// nothing to go on from, else as much of the way there as a step may move.
func (w *work) move(out *Output) {
	for i := range w.rows {
		r := &w.rows[i]
		w.admit(r) // the placement as far as thresholds can make it
		copy(r.flow, r.made(r.admission))
		if r.before != nil {
			out.Left += mul(r.demand, distance(r.before, r.flow))
		}
	}
	for r, load := range w.wanted() {
		w.sinks[r].wanted = load
	}
	if w.total > 0 {
		out.Left = min(1, out.Left/w.total)
	}
	part := 1.0
	if budget := mul(MaxMove, min(1, w.dt/MoveEvery.Seconds())); !out.Urgent && out.Left > budget {
		part = budget / out.Left
	}
	out.Moved = mul(out.Left, part)
	out.Left -= out.Moved
	for i := range w.rows {
		r := &w.rows[i]
		if part < 1 && r.before != nil {
			for k := range r.flow {
				r.flow[k] = blend(r.before[k], r.flow[k], part)
			}
		}
	}
	for i, load := range w.wanted() {
		w.sinks[i].expected = load
	}
	for i := range w.rows {
		w.admit(&w.rows[i])
	}
}

// distance is the part that has to move from flows a to flows b.
func distance(a, b []float64) float64 {
	sum := 0.0
	for k := range a {
		sum += math.Abs(a[k] - b[k])
	}
	return sum / 2
}

// made is the flows that an admission makes of the row's clients: each open candidate
// takes its part of those who reach it, and who is left goes to the first open one.
func (r *row) made(admission []float64) []float64 {
	flow := make([]float64, len(r.sinks))
	if r.first < 0 {
		return flow
	}
	left := 1.0
	for k, open := range r.open {
		if open == 0 {
			continue
		}
		flow[k] = mul(left, mul(open, clamp(admission[k], 0, 1)))
		left -= flow[k]
	}
	flow[r.first] += max(0, left)
	return flow
}

// admit sets the row's admissions from its flows. The last open candidate takes all
// that reaches it; where it is open for a part alone, the rest comes back to the
// first one, which takes that much less to begin with.
func (w *work) admit(r *row) {
	if r.first < 0 {
		for k := range r.admission {
			r.admission[k] = 1 // nobody is open: what else is done is not for here
		}
		return
	}
	// What must come to the second open candidate for the flows from there on.
	need := 0.0
	for k := r.last; k > r.first; k-- {
		if r.open[k] > 0 {
			need = max(need+r.flow[k], r.flow[k]/r.open[k])
		}
	}
	left := 1.0
	for k, open := range r.open {
		r.admission[k] = 0
		if open == 0 {
			continue
		}
		takes := r.flow[k]
		if k == r.first {
			takes = max(0, 1-need)
		}
		switch {
		case left <= tiny:
			w.prepare(r, k)
			return
		case k == r.last:
			r.admission[k] = 1
		default:
			r.admission[k] = clamp(takes/mul(left, open), 0, 1)
		}
		if r.admission[k] > 1-tiny {
			r.admission[k] = 1
		}
		left -= mul(left, mul(open, r.admission[k]))
	}
}

// prepare sets the admissions from position from on, which nobody reaches now. They count
// from the moment in which those before go down until the next step, so none is to
// take more than there is room for: as if all the demand of the row's home came, in
// waterfall, and what has no room at equal utilisation.
func (w *work) prepare(r *row, from int) {
	left := r.demand
	if r.home >= 0 {
		left = w.sinks[r.home].demand
	}
	comes := left
	takes := make([]float64, len(r.sinks))
	for k := from; k <= r.last; k++ {
		if r.open[k] > 0 {
			s := &w.sinks[r.sinks[k]]
			takes[k] = mul(r.open[k], min(left, max(0, s.limit-s.expected)))
			left -= takes[k]
			w.loads[r.sinks[k]] = s.expected + takes[k]
		}
	}
	if left > mul(comes, tiny) {
		for k, more := range w.level(r, w.loads, left, from) {
			takes[k] += more
		}
	}
	for k := from; k <= r.last; k++ {
		r.admission[k] = 0
		if r.open[k] == 0 {
			continue
		}
		r.admission[k] = 1
		if k < r.last && comes > mul(w.total, tiny) {
			r.admission[k] = clamp(takes[k]/mul(comes, r.open[k]), 0, 1)
		}
		comes = max(0, comes-takes[k])
	}
}

// cells are the flows of every home's demand, for the history.
func (w *work) cells() []Cell {
	f := make(flows, len(w.sinks))
	for i := range w.rows {
		r := &w.rows[i]
		if r.home < 0 || r.share == 0 {
			continue
		}
		if r.first < 0 {
			f.add(r.home, part{nobody, r.share, r.ttl})
		}
		for k, p := range r.made(r.admission) {
			if p > 0 {
				f.add(r.home, part{r.sinks[k], mul(p, r.share), r.ttl})
			}
		}
	}
	return f.cells()
}
