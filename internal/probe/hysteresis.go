package probe

import (
	"math"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

const (
	// fullEnds is how many plain passes in a row end the verdict full.
	fullEnds = 2
	// flipWindow is the time HoldFlips turns are counted in.
	flipWindow = time.Hour
	// staleIntervals and a timeout are how old a verdict's last result gets.
	staleIntervals = 3
)

// Observe takes in the result of a probe that began at the given time. It tells
// whether Verdict, Assumed or Streak changed.
func (m *Machine) Observe(at time.Time, r Result) (changed bool) {
	m.note(at, r)
	if r.Class == ClassInternal {
		return false
	}
	return m.watched(at, func() {
		m.last, m.probed = at, true
		if r.Status == Fail {
			m.failed(at)
		} else {
			m.passed(at, r.Status == Full)
		}
	})
}

// Excuse takes in a failure that is not to be held against the endpoint: it is
// noted, and keeps the verdict from getting stale. Streaks that had begun are
// forgotten.
func (m *Machine) Excuse(at time.Time, r Result) {
	m.note(at, r)
	m.last, m.probed = at, true
	m.forget()
}

// Age lets a verdict go whose last result is too old. It tells whether Verdict,
// Assumed or Streak changed.
func (m *Machine) Age(at time.Time) (changed bool) {
	expires, ok := m.Expires()
	if !ok || !at.After(expires) {
		return false
	}
	return m.watched(at, func() {
		m.known = false
		m.forget()
		m.assume(at)
	})
}

// Expires is the time after which Age has an effect if no result comes before;
// false if it never has.
func (m *Machine) Expires() (time.Time, bool) {
	switch {
	case m.known:
		return m.last.Add(staleIntervals*m.check.Interval + m.check.Timeout), true
	case m.check.Initial == check.InitialLast && m.Assumed() != VerdictUp && !m.Waiting():
		return m.last.Add(m.check.InitialAge), true
	}
	return time.Time{}, false
}

// Return is an operator's word that the endpoint may come up again. It does at
// once if it has passed well enough, else as soon as it has. Of an endpoint that
// is not down it has no effect. It tells whether Verdict, Assumed or Streak
// changed.
func (m *Machine) Return(at time.Time) (changed bool) {
	if !m.down {
		return false
	}
	return m.watched(at, func() {
		m.returned, m.held = true, false
		if m.past != nil {
			m.past.flips = nil
		}
		switch {
		case m.risen(m.last):
			m.turn(at, false)
		case !m.known:
			m.assume(at)
		}
	})
}

// Recall undoes the turn to down that was the last change: the endpoint is
// again what it was before, with no failures counted. It has no effect if the
// last change was another.
func (m *Machine) Recall(turned time.Time, verdict, assumed Verdict, since time.Time) {
	if !m.down || !m.since.Equal(turned) {
		return
	}
	m.known = verdict != VerdictUnknown
	m.down, m.full = assumed == VerdictDown, assumed == VerdictFull
	m.since = since
	m.forget()
	if h := m.past; h != nil && len(h.flips) > 0 {
		h.flips = h.flips[:len(h.flips)-1]
	}
}

// watched runs change, keeps since right, and tells whether anything that
// others see changed.
func (m *Machine) watched(at time.Time, change func()) bool {
	verdict, assumed, streak := m.Verdict(), m.Assumed(), m.Streak()
	change()
	if m.Verdict() != verdict {
		m.since = at
	}
	return m.Verdict() != verdict || m.Assumed() != assumed || m.Streak() != streak
}

// forget ends all streaks.
func (m *Machine) forget() {
	m.failures, m.passes, m.calm, m.held = 0, 0, 0, false
	if m.past != nil {
		m.past.failures = nil
	}
}

// assume sets what an endpoint that is not known is taken for.
func (m *Machine) assume(at time.Time) {
	switch c := m.check; {
	case m.Waiting():
	case c.Initial == check.InitialDown:
		m.down, m.full = true, false
	case c.Initial == check.InitialUp || m.last.IsZero() || at.Sub(m.last) > c.InitialAge:
		m.down, m.full = false, false
	}
}

func (m *Machine) failed(at time.Time) {
	m.passes, m.calm, m.held = 0, 0, false
	if m.down {
		m.known = true
		return
	}
	if m.check.FallWithin == 0 {
		m.failures = addOne(m.failures)
	} else {
		h := m.history()
		h.failures = append(m.recent(at), at)
		m.failures = uint8(min(len(h.failures), math.MaxUint8))
	}
	if int(m.failures) >= m.check.Fall {
		m.turn(at, true)
	}
}

func (m *Machine) passed(at time.Time, full bool) {
	if m.passes == 0 {
		m.goodSince = at
	}
	m.passes = addOne(m.passes)
	if full {
		m.full, m.calm = true, 0
	} else if m.calm = addOne(m.calm); m.calm >= fullEnds {
		m.full = false
	}
	if !m.down {
		m.known = true
		m.forgive(at)
		return
	}
	if !m.risen(at) {
		return
	}
	m.known = true
	if m.held = !m.Waiting() && m.flapping(at); !m.held && !m.Waiting() {
		m.turn(at, false)
	}
}

// forgive lets go of the failures that a pass clears.
func (m *Machine) forgive(at time.Time) {
	switch c := m.check; {
	case c.FallWithin > 0:
		m.failures = uint8(len(m.recent(at)))
	case !c.Accumulate || int(m.passes) >= c.Rise:
		m.failures = 0
	}
}

// recent drops the failures before the window that ends now and gives the rest.
func (m *Machine) recent(at time.Time) []time.Time {
	if m.past == nil {
		return nil
	}
	window := m.check.FallWithin + jitterSpan(m.check.Interval)
	m.past.failures = dropBefore(m.past.failures, at.Add(-window))
	return m.past.failures
}

func (m *Machine) risen(at time.Time) bool {
	return m.passes > 0 && int(m.passes) >= m.check.Rise && at.Sub(m.goodSince) >= m.check.RiseOver
}

// flapping tells whether HoldFlips turns lie less than flipWindow back.
func (m *Machine) flapping(at time.Time) bool {
	n := m.check.HoldFlips
	if n == 0 || m.past == nil || len(m.past.flips) < n {
		return false
	}
	return at.Sub(m.past.flips[len(m.past.flips)-n]) < flipWindow
}

// turn makes an endpoint known to be down, or not.
func (m *Machine) turn(at time.Time, down bool) {
	m.down, m.known, m.returned = down, true, false
	m.failures = 0
	m.full = m.full && !down
	if m.past != nil {
		m.past.failures = nil
	}
	if n := m.check.HoldFlips; n > 0 {
		h := m.history()
		if len(h.flips) >= n {
			h.flips = h.flips[:copy(h.flips, h.flips[len(h.flips)-n+1:])]
		}
		h.flips = append(h.flips, at)
	}
}

// dropBefore drops times before a limit from the front of a sorted list,
// in place.
func dropBefore(times []time.Time, limit time.Time) []time.Time {
	n := 0
	for n < len(times) && times[n].Before(limit) {
		n++
	}
	return times[:copy(times, times[n:])]
}

func addOne(n uint8) uint8 {
	if n == math.MaxUint8 {
		return n
	}
	return n + 1
}
