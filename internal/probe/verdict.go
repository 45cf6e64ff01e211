package probe

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// Verdict is what hysteresis makes of the probes of one endpoint.
type Verdict uint8

// The verdicts. VerdictUnknown is that on an endpoint that was never probed, or
// whose prober is dead or late; Machine.Assumed says what to take it for.
const (
	VerdictUnknown Verdict = iota
	VerdictUp
	VerdictFull // alive, but overloaded
	VerdictDown
)

var verdictNames = [...]string{"unknown", "up", "full", "down"}

// String gives the verdict's word.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// MarshalText gives the verdict's word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict's word. Any other text is an error.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, name := range verdictNames {
		if string(text) == name {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("verdict %q: expected unknown, up, full or down", text)
}

// Note is a result that was no plain pass, kept for people.
type Note struct {
	At     time.Time `json:"at"`
	Status Status    `json:"status"`
	Class  Class     `json:"class"`
	Reason string    `json:"reason"` // at most MaxReason bytes
}

// maxNotes is how many notes a Machine keeps: the last ones.
const maxNotes = 3

// Saved is what outlives a process of what is known about one endpoint.
type Saved struct {
	Verdict  Verdict     `json:"verdict"` // never VerdictUnknown, except in the zero value: nothing is known
	Since    time.Time   `json:"since"`
	At       time.Time   `json:"at"` // of the last result
	Flips    []time.Time `json:"flips,omitempty"`
	Returned bool        `json:"returned,omitempty"` // an operator allowed the return of one that is down
	Notes    []Note      `json:"notes,omitempty"`    // the last few reasons, newest first
}

// Machine makes the verdict on one endpoint of its results by the rules of its
// check. It has no clock: times are handed in. A result's time is that of its
// probe's start. It must not be used by two goroutines at once.
//
// The rules, with the fields of check.Check:
//
//   - An endpoint that is up turns down after Fall failures in a row. With
//     FallWithin it does after Fall failures within that time (and a tenth of an
//     interval, by which probes are early or late) since it came up, whatever
//     passed in between. With Accumulate it does after Fall failures, unless
//     Rise passes in a row have cleared them.
//   - One that is down turns up after Rise passes in a row, the last at least
//     RiseOver after the first.
//   - While HoldFlips turns lie within the last hour, one that is down stays so
//     (hold-down). With Manual it stays so until Return is called; Return also
//     ends a hold-down. Rise must be met all the same.
//   - A full result is a pass. It makes the endpoint full at once, or, of one
//     that is down, once it turns up. Two plain passes in a row end that.
//   - An endpoint whose last result is older than three intervals and a timeout
//     is unknown, and is taken for what Initial says: up, down, or what it was
//     last if the last result is not older than InitialAge, else up. So is one
//     that was never probed. One down under Manual that no Return was given for
//     is always taken for down.
//   - An unknown endpoint becomes known by the first result that agrees with
//     what it is taken for; against that it takes Fall failures or Rise passes
//     as ever. So with nothing saved, one that is taken for up is up after a
//     pass, and down after Fall failures.
//   - A result of class ClassInternal says nothing about the endpoint. It is
//     noted and not counted: if there are only such, the endpoint gets unknown.
type Machine struct {
	check     *check.Check
	since     time.Time // of the verdict
	last      time.Time // the last result that counted; zero: none, and nothing saved
	goodSince time.Time // the first of the passes in a row
	past      *past     // nil until needed: most endpoints never fail

	down, full bool // what the endpoint is, or if it is not known, is taken for
	known      bool
	probed     bool
	returned   bool
	held       bool

	failures uint8 // in a row, within FallWithin, or accumulated
	passes   uint8 // in a row, full or not
	calm     uint8 // plain passes in a row
}

type past struct {
	failures []time.Time // those within FallWithin, oldest first
	flips    []time.Time // the last HoldFlips at most, oldest first
	notes    []Note      // newest first; replaced, never written to
}

// NewMachine makes the machine of an endpoint that has not been probed yet. The
// check must be valid (see Validate) and not change any more. saved is what is
// known from before; its zero value if that is nothing.
func NewMachine(c *check.Check, saved Saved, at time.Time) Machine {
	m := Machine{check: c, since: at}
	if saved.Verdict != VerdictUnknown {
		m.last, m.returned = saved.At, saved.Returned
		m.down, m.full = saved.Verdict == VerdictDown, saved.Verdict == VerdictFull
		if n := len(saved.Flips); n > 0 && c.HoldFlips > 0 {
			m.history().flips = append([]time.Time(nil), saved.Flips[max(0, n-c.HoldFlips):]...)
		}
		if n := len(saved.Notes); n > 0 {
			m.history().notes = saved.Notes[:min(n, maxNotes)]
		}
	}
	m.assume(at)
	return m
}

// Verdict is the verdict as of the last Observe or Age.
func (m *Machine) Verdict() Verdict {
	if !m.known {
		return VerdictUnknown
	}
	return m.Assumed()
}

// Assumed is what the endpoint is to be taken for: the verdict, or in place of
// VerdictUnknown what the check's Initial says. It is never VerdictUnknown.
func (m *Machine) Assumed() Verdict {
	switch {
	case m.down:
		return VerdictDown
	case m.full:
		return VerdictFull
	}
	return VerdictUp
}

// Streak tells whether results have begun that, going on, change the verdict.
func (m *Machine) Streak() bool {
	if m.down {
		return m.passes > 0 && !m.held && !m.Waiting()
	}
	return m.failures > 0 || m.full && m.calm > 0
}

// Held tells whether the endpoint would be up but for HoldFlips.
func (m *Machine) Held() bool { return m.held }

// Waiting tells whether the endpoint is down until Return is called.
func (m *Machine) Waiting() bool { return m.check.Manual && m.down && !m.returned }

// Probed tells whether there was any result that counted since NewMachine.
func (m *Machine) Probed() bool { return m.probed }

// Since is when the verdict became what it is.
func (m *Machine) Since() time.Time { return m.since }

// LastAt is the time of the last result that counted, also of one from before
// NewMachine; zero if there is none.
func (m *Machine) LastAt() time.Time { return m.last }

// Notes are the last few results that were no plain passes, newest first. They
// must not be changed.
func (m *Machine) Notes() []Note {
	if m.past == nil {
		return nil
	}
	return m.past.notes
}

// Saved is what is to be kept for NewMachine of a later process; false if
// nothing is known.
func (m *Machine) Saved() (Saved, bool) {
	if m.last.IsZero() {
		return Saved{}, false
	}
	s := Saved{Verdict: m.Assumed(), Since: m.since, At: m.last, Returned: m.returned}
	if m.past != nil {
		s.Flips = append(s.Flips, m.past.flips...)
		s.Notes = m.past.notes
	}
	return s, true
}

func (m *Machine) history() *past {
	if m.past == nil {
		m.past = new(past)
	}
	return m.past
}

// note keeps a result for people if it is worth it.
func (m *Machine) note(at time.Time, r Result) {
	if r.Status == Pass {
		return
	}
	h := m.history()
	notes := make([]Note, 1, maxNotes)
	notes[0] = Note{At: at, Status: r.Status, Class: r.Class, Reason: boundedReason(r.Reason)}
	h.notes = append(notes, h.notes[:min(len(h.notes), maxNotes-1)]...)
}

// boundedReason cuts a text to MaxReason bytes, between characters.
func boundedReason(s string) string {
	if len(s) <= MaxReason {
		return s
	}
	n := MaxReason
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
