package capacity

import (
	"time"
)

// sink is a sink in one step.
type sink struct {
	cap, target, open float64
	fade              float64
	reading           Reading
	refused           bool
	damped            bool    // takes no more of anybody than it did
	lump              float64 // what jumps then

	rows   int     // whose home it is
	weight float64 // of those
	keeps  float64 // part of its demand that it takes by their availability
	lost   float64 // part of its demand that nobody takes
	demand float64 // natural
	base   float64 // the part of its load that no candidate list moves

	load     float64 // as far as it is known
	underway float64 // what the flows of the last TTL bring, by the estimate
	plain    float64 // the limit before the trim
	limit    float64
	trim     float64 // with the signal's fade
	growth   float64 // flow up to which others may raise it
	wanted   float64 // flow, once all is moved
	expected float64 // flow, once resolvers have followed this step
}

// work is one step in progress.
type work struct {
	in    *Input
	state *State // the new one
	sinks []sink
	rows  []row
	rowOf []int
	seen  []bool    // scratch, by sink
	loads []float64 // scratch, by sink

	first bool
	dt    float64 // seconds since the last step
	lag   float64 // seconds by which signals are late
	ttl   time.Duration
	calm  float64 // factor on all gains
	total float64 // natural demand
}

// Step makes one step. It never changes s, which may be nil or the zero State at
// first, and is safe for concurrent use; equal arguments give equal results. in may
// hold anything: what is out of range counts as the nearest that is not, or as unknown.
//
// It is to be called in even periods (5 to 30 s), and at once when a sink's
// availability changes: until then the last admission holds, in which those not reached
// so far already take no more than they have room for.
func Step(s *State, in *Input) (*State, *Output) {
	if s == nil {
		s = &State{}
	}
	w := begin(s, in)
	out := &Output{Urgent: w.urgent() || in.Settled}
	w.makeRows()
	w.estimateDemand()
	w.setLimits()
	w.splitDemand()
	for r := range w.sinks {
		w.total += w.sinks[r].demand
	}
	w.recall(s)
	residue := w.place()
	w.augment(residue)
	w.spread(residue)
	w.move(out)
	w.finish(out)
	return w.state, out
}

// begin reads the input.
func begin(s *State, in *Input) *work {
	n := len(in.Sinks)
	w := &work{
		in: in, state: s.adopt(in.Sinks, in.Now), sinks: make([]sink, n), seen: make([]bool, n), loads: make([]float64, n),
		first: s.Last.IsZero(), ttl: max(time.Second, min(in.TTL, time.Hour)), calm: 1,
	}
	if !w.first {
		w.dt = min(seconds(in.Now.Sub(w.state.Last)), BaselineSpan.Seconds())
	}
	longest := time.Duration(0)
	for r := range w.sinks {
		k, m, s := &w.sinks[r], &w.state.Sinks[r], &in.Sinks[r]
		k.cap, k.target, k.open = s.capacity(), s.target(), s.open()
		known := m.Stuck
		if k.refused = m.hear(s, in.Now); m.Stuck && !known {
			w.state.rewind(m.Since)
		}
		k.fade, k.reading = m.fade(in.Now)
		if k.fade > 0 {
			longest = max(longest, m.Period)
		}
	}
	if longest == 0 {
		longest = DefaultPeriod
	}
	w.lag = seconds(min(in.Delay, time.Hour)) + longest.Seconds()
	w.watchSwings()
	return w
}

// urgent says whether a sink lost availability since the last step, and remembers
// what each has now.
func (w *work) urgent() bool {
	lost := false
	for r := range w.sinks {
		m := &w.state.Sinks[r]
		if m.Open >= 0 && m.Open-w.sinks[r].open >= UrgentLoss-tiny {
			lost = true
			m.Demand = max(m.Demand, m.Recent)
		}
		m.Open = w.sinks[r].open
	}
	if loss := &w.state.Loss; lost && !w.in.Now.Before(loss.Until) {
		*loss = Loss{At: w.in.Now, Until: w.in.Now.Add(w.ttl + time.Duration(mul(w.lag, 1e9)))}
		for r := range w.sinks {
			loss.All += w.state.Sinks[r].Demand
		}
	}
	return lost
}

// deficit is the demand that nobody is fit to take: what sinks are to take above their limits
// or of rows that are forced on them, and the rows that nobody takes.
func (w *work) deficit() (sum float64) {
	forced := make([]float64, len(w.sinks))
	for i := range w.rows {
		switch r := &w.rows[i]; {
		case r.first < 0:
			sum += r.demand
		case r.forced:
			forced[r.sinks[r.first]] += r.demand
		}
	}
	for r := range w.sinks {
		k := &w.sinks[r]
		if over := max(k.wanted-k.plain, forced[r]); over > mul(w.total, tiny) {
			sum += over
		}
	}
	return sum
}

// finish fills in the output and the state.
func (w *work) finish(out *Output) {
	out.Admission = make([][]float64, len(w.rowOf))
	for g, i := range w.rowOf {
		out.Admission[g] = w.rows[i].admission
	}
	out.Demand = w.total
	out.Delay = time.Duration(mul(w.tau(), 1e9))
	out.Sinks = make([]SinkOutput, len(w.sinks))
	longest := time.Duration(0)
	for r := range w.sinks {
		k, m := &w.sinks[r], &w.state.Sinks[r]
		m.Plan = k.wanted
		if k.fade > 0 {
			longest = max(longest, w.in.Now.Sub(m.LoadAt))
			if len(m.Jumps.Marks) > 0 {
				longest = max(longest, w.in.Now.Sub(m.Jumps.Marks[0].At))
			}
		}
		o := &out.Sinks[r]
		*o = SinkOutput{
			Demand: k.demand, Load: k.load, Limit: k.limit, Wanted: k.wanted, Expected: k.expected,
			Trim: k.trim, Fade: k.fade, Reading: k.reading, Refused: k.refused,
		}
		if k.cap > 0 {
			o.Utilisation = min(k.load/k.cap, AbsurdLoad)
		}
		o.Oscillating, o.Amplitude = m.Swings.verdict()
		o.Stuck, o.Damped, o.Lump = m.Stuck, k.damped, k.lump
	}
	out.Deficit = w.deficit()
	w.state.Rows = make(map[string][]float64, len(w.rows))
	for i := range w.rows {
		w.state.Rows[w.rows[i].key] = w.rows[i].admission
	}
	w.state.remember(w.in.Now, w.cells(), w.ttl+longest+max(0, min(w.in.Delay, time.Hour)))
	w.state.Last = w.in.Now
}
