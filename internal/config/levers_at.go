package config

import (
	"slices"
	"time"
)

// LeverState is what the levers of a region or a pool say at one time.
type LeverState struct {
	Drain    bool
	DrainPos Pos     // of the line that drains
	Dial     float64 // percent; 100 when nothing is written
	DialPos  Pos     // of the line that dials; zero: none does
	Share    *Share  // nil: no share is in force, or `share off`
	Trickle  float64 // percent
}

// At gives the state in force at t, and the next instant at which it may
// change; the zero time if it never will. Of the lines of one lever, one with an
// end wins over those without, and of the latter that with the latest from. It
// is safe for concurrent use.
func (l *Levers) At(t time.Time) (LeverState, time.Time) {
	s := LeverState{Dial: 100, Share: l.shareAt(t)}
	if i := inForce(l.Drain, t); i >= 0 {
		s.Drain, s.DrainPos = true, l.Drain[i].Pos
	}
	if i := inForce(l.Dial, t); i >= 0 {
		s.Dial, s.DialPos = l.Dial[i].Percent, l.Dial[i].Pos
	}
	if l.Trickle != nil {
		s.Trickle = l.Trickle.Value
	}
	var next time.Time
	for _, other := range []time.Time{nextOf(l.Drain, t), nextOf(l.Dial, t), nextOf(l.Share, t)} {
		next = earlier(next, other)
	}
	return s, next
}

// shareAt gives the share in force; nil: none.
func (l *Levers) shareAt(t time.Time) *Share {
	if i := inForce(l.Share, t); i >= 0 && !l.Share[i].Off {
		return &l.Share[i]
	}
	return nil
}

// Over gives the levers of a pool, l, in a region that has those of region.
// Drains add up, as no drain may be undone by another word; any other word of
// the pool replaces the region's. Capacity and load go together.
func (l Levers) Over(region Levers) Levers {
	sum := region
	sum.Drain = slices.Concat(l.Drain, region.Drain)
	if len(l.Dial) > 0 {
		sum.Dial = l.Dial
	}
	if len(l.Share) > 0 {
		sum.Share = l.Share
	}
	if l.Trickle != nil {
		sum.Trickle = l.Trickle
	}
	if l.Ramp != nil {
		sum.Ramp = l.Ramp
	}
	if l.Capacity != nil {
		sum.Capacity, sum.Load = l.Capacity, l.Load
	}
	return sum
}

// LeversOf gives the levers that hold for a pool: its own over its region's.
func (b *Block) LeversOf(p *Pool) Levers {
	r := b.regionOf(p.Region)
	if r == nil {
		return p.Levers
	}
	return p.Levers.Over(r.Levers)
}

// scheduled is one line of a lever.
type scheduled interface {
	when() When
	pos() Pos
}

func (d Drain) when() When { return d.When }
func (d Dial) when() When  { return d.When }
func (s Share) when() When { return s.When }

func (p Pos) pos() Pos { return p }

// inForce gives the line that decides at t; -1: none.
func inForce[L scheduled](lines []L, t time.Time) int {
	best := -1
	for i, line := range lines {
		w := line.when()
		switch {
		case !w.Active(t):
		case w.closed():
			return i
		case best < 0 || w.From.After(lines[best].when().From):
			best = i
		}
	}
	return best
}

// nextOf gives the next instant at which a line begins or ends to hold.
func nextOf[L scheduled](lines []L, t time.Time) (next time.Time) {
	for _, line := range lines {
		next = earlier(next, line.when().Next(t))
	}
	return next
}

// earlier gives the earlier of two times, of which zero ones are none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
