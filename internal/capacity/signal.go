package capacity

import (
	"math"
	"time"
)

// period is d, or its default where it is none.
func period(d time.Duration) time.Duration {
	if d <= 0 || d > time.Hour {
		return DefaultPeriod
	}
	return d
}

// capacity is the sink's capacity, or 0 where none is known.
func (s *Sink) capacity() float64 { return amount(s.Capacity) }

// target is the part of the capacity that placing aims at.
func (s *Sink) target() float64 {
	if t := clamp(s.Target, 0, 1); t > 0 {
		return t
	}
	return DefaultTarget
}

// open is the part of what comes that the sink takes as a candidate, before its
// admission.
func (s *Sink) open() float64 {
	if s.Drained || s.Soak {
		return 0
	}
	return mul(clamp(s.Health, 0, 1), clamp(s.Dial, 0, 1))
}

// believable says whether v can be a load of the sink.
func (s *Sink) believable(v float64) bool {
	limit := MaxLoad
	if c := s.capacity(); c > 0 {
		limit = min(limit, mul(c, AbsurdLoad))
	}
	return v >= 0 && v <= limit // false for NaN
}

// hear takes in the sink's signal. What can't be, or hardly can, is no new reading: the last
// good one stays, and its age goes on. It says whether it refused one.
func (m *Memory) hear(s *Sink, now time.Time) (refused bool) {
	sig := &s.Signal
	if !sig.Valid {
		return false
	}
	if !s.believable(sig.Value) || sig.Age < 0 {
		return true
	}
	at := now.Add(-sig.Age)
	if !m.LoadAt.IsZero() && !at.After(m.LoadAt) {
		return false // known, or older than what is
	}
	if m.doubts(s, at) {
		return true
	}
	if m.LoadAt.IsZero() {
		m.Demand, m.Recent = sig.Value, sig.Value // nothing is known of it but this
	}
	if m.LoadAt.IsZero() || sig.Value != m.Load {
		m.Load, m.Since, m.Came, m.Stuck = sig.Value, at, m.Comes, false
	} else if m.stuck() {
		at = m.LoadAt
	}
	m.LoadAt, m.Period = at, period(sig.Period)
	return false
}

// doubts says whether the sink's signal of a time tells of so much more than it can take that it has
// to say so for a period: a counter that is reset or read twice makes one such value, which would
// have everybody flee.
func (m *Memory) doubts(s *Sink, at time.Time) bool {
	most := mul(s.capacity(), DoubtfulLoad)
	switch {
	case most == 0 || s.Signal.Value <= most || m.Load > most:
		m.Doubt = time.Time{}
		return false
	case m.Doubt.IsZero():
		m.Doubt = at
	}
	return at.Sub(m.Doubt) < period(s.Signal.Period)
}

// stuck says whether the signal, which has said the very same value for a while, can't
// mean it: a sensor that broke at a high load would otherwise have its sink
// emptied, and the others filled. A load that stays the same to the last bit is believed
// only while the same comes there. The value then counts as old as it is.
func (m *Memory) stuck() bool {
	if m.Came == 0 { // it was heard before the first step knew who comes
		m.Came = m.Comes
	}
	if !m.Stuck && m.Load > 0 && math.Abs(m.Comes-m.Came) > mul(m.Came, DeadBand) {
		m.Stuck, m.LoadAt = true, m.Since
	}
	return m.Stuck
}

// fade is the say of the last good signal at now: 1 while it is fresh, 0 when it
// is absent. Readings that come every second may well take ten to arrive, always, so a
// shorter period than the default counts as that.
func (m *Memory) fade(now time.Time) (float64, Reading) {
	if m.LoadAt.IsZero() {
		return 0, Never
	}
	periods := now.Sub(m.LoadAt).Seconds() / max(period(m.Period), DefaultPeriod).Seconds()
	switch {
	case periods <= FreshPeriods:
		return 1, Fresh
	case periods >= AbsentPeriods:
		return 0, Absent
	}
	return (AbsentPeriods - periods) / (AbsentPeriods - FreshPeriods), Fading
}
