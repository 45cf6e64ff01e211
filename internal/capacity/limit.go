package capacity

import "math"

// setLimits sets how much placing gives each sink. plain is the limit of its
// capacity and of its roof; the trim's part of it is what counts.
func (w *work) setLimits() {
	for r := range w.sinks {
		k, m, s := &w.sinks[r], &w.state.Sinks[r], &w.in.Sinks[r]
		k.plain = math.Inf(1)
		if k.cap > 0 {
			k.plain = mul(k.cap, s.target())
		}
		w.setRoof(k, m, s)
		w.setTrim(k, m, s)
		k.trim = 1 - mul(1-m.Trim, k.fade)
		k.limit = mul(k.plain, k.trim)
		// What others spill may raise it that far.
		k.growth = math.Inf(1)
		switch g := amount(s.Growth); {
		case k.cap > 0 && m.LoadAt.IsZero():
			k.growth = 0 // nobody knows its room
		case g > 0 && m.Watched > 0:
			k.growth = mul(m.Baseline, 1+g)
		}
	}
}

// setRoof learns from a full sink what it can take, and trusts it with more again
// when it is not full any more. The limit follows its load down from one loop delay
// to the next, for as long as it says it is full.
func (w *work) setRoof(k *sink, m *Memory, s *Sink) {
	switch {
	case s.Full && k.load > 0:
		if m.Roof == 0 || k.load < m.Roof {
			m.Roof = k.load
		}
		// Whoever is alive keeps a part, as with the trim.
		m.Roof = max(m.Roof, mul(TrimFloor, min(k.demand, k.plain)))
	case m.Roof > 0:
		m.Roof += mul(m.Roof, mul(RoofGrowth, min(1, w.dt/w.tau())))
		if keep := mul(m.Roof, FullKeep); keep >= k.plain || keep >= mul(2, k.demand) {
			m.Roof = 0
		}
	}
	if m.Roof > 0 {
		k.plain = min(k.plain, mul(m.Roof, FullKeep))
	}
}

// setTrim corrects the limit where the load goes on to differ from what it should
// be, by a slow multiplicative law: the ratio to the power of a gain per loop delay, so
// that the loop's gain does not depend on the unknown demand. What the last plan
// wanted there, and what is still on its way back from there, is no deviation.
func (w *work) setTrim(k *sink, m *Memory, s *Sink) {
	switch {
	case s.Soak || k.open == 0 || k.cap == 0 || k.fade == 0:
		m.Trim = 1
		return
	case k.fade < 1 || w.first || s.Health <= 0:
		return
	}
	part := mul(w.calm, min(1, w.dt/w.tau()))
	trim := m.Trim
	switch goal := max(k.plain, m.Plan, k.underway); {
	case k.load > mul(goal, 1+DeadBand):
		trim = max(mul(trim, pow(goal/k.load, mul(GainDown, part))), trim-TrimStep)
	case k.load < mul(k.plain, 1-DeadBand):
		trim = min(trim/max(tiny, pow(k.load/k.plain, mul(GainUp, part))), trim+TrimStep)
	}
	// Forget as the estimate does, so that instances agree in the end.
	trim = pow(clamp(trim, TrimFloor, 1), 1-mul(TrimLeak, part))
	m.Trim = clamp(trim, TrimFloor, 1)
}

// tau is the mean delay of the loop in seconds: a signal's delay, half of the time
// resolvers keep answers, half of a step.
func (w *work) tau() float64 {
	return w.lag + w.ttl.Seconds()/2 + w.dt/2
}
