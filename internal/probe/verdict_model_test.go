package probe

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// event is a result that counted: p, f or F (see resultOf).
type event struct {
	at   time.Time
	what rune
}

// modelMachine keeps all that ever happened and reads each rule off the whole
// of it.
type modelMachine struct {
	c      *check.Check
	events []event
	turned int // the events before the last turn or aging
	aged   int // the events before the last aging
	turns  []time.Time
	saved  time.Time

	down, full, known, returned bool
}

func newModel(c *check.Check, s Saved, at time.Time) *modelMachine {
	m := &modelMachine{c: c, saved: s.At, turns: s.Flips, returned: s.Returned}
	m.down, m.full = s.Verdict == VerdictDown, s.Verdict == VerdictFull
	m.assume(at)
	return m
}

func (m *modelMachine) verdict() (verdict, assumed Verdict) {
	assumed = VerdictUp
	if m.full {
		assumed = VerdictFull
	}
	if m.down {
		assumed = VerdictDown
	}
	if m.known {
		return assumed, assumed
	}
	return VerdictUnknown, assumed
}

func (m *modelMachine) streak(at time.Time) bool {
	if m.down {
		return len(m.row("pF")) > 0 && !m.locked() && !(m.risen() && m.flapping(at))
	}
	ending := m.full && len(m.events) > m.aged && m.events[len(m.events)-1].what == 'p'
	return m.failures(at) > 0 || ending
}

func (m *modelMachine) last() time.Time {
	if len(m.events) == 0 {
		return m.saved
	}
	return m.events[len(m.events)-1].at
}

func (m *modelMachine) locked() bool { return m.c.Manual && m.down && !m.returned }

func (m *modelMachine) assume(at time.Time) {
	old := m.last().IsZero() || at.Sub(m.last()) > m.c.InitialAge
	if m.locked() || m.c.Initial == check.InitialLast && !old {
		return
	}
	m.down, m.full = m.c.Initial == check.InitialDown, false
}

// row gives the results up to the last since the last turn that are all of
// some kinds, newest first.
func (m *modelMachine) row(kinds string) (row []event) {
	for i := len(m.events) - 1; i >= m.turned; i-- {
		e := m.events[i]
		if e.what != rune(kinds[0]) && e.what != rune(kinds[len(kinds)-1]) {
			break
		}
		row = append(row, e)
	}
	return row
}

func (m *modelMachine) failures(at time.Time) (n int) {
	row := 0
	for _, e := range m.events[m.turned:] {
		switch {
		case e.what != 'f':
			if row++; m.c.Accumulate && row >= m.c.Rise || !m.c.Accumulate && m.c.FallWithin == 0 {
				n = 0
			}
		case m.c.FallWithin == 0 || at.Sub(e.at) <= m.c.FallWithin+m.c.Interval/10:
			n, row = n+1, 0
		}
	}
	return n
}

func (m *modelMachine) risen() bool {
	row := m.row("pF")
	return len(row) >= m.c.Rise && row[0].at.Sub(row[len(row)-1].at) >= m.c.RiseOver
}

func (m *modelMachine) flapping(at time.Time) bool {
	n := 0
	for _, turn := range m.turns {
		if at.Sub(turn) < time.Hour {
			n++
		}
	}
	return m.c.HoldFlips > 0 && n >= m.c.HoldFlips
}

func (m *modelMachine) turn(at time.Time) {
	m.down, m.known, m.returned = !m.down, true, false
	m.full = m.full && !m.down
	m.turns = append(m.turns, at)
	m.turned = len(m.events)
}

func (m *modelMachine) observe(at time.Time, what rune) {
	if what == 'i' {
		return
	}
	m.events = append(m.events, event{at, what})
	if n := len(m.events); what == 'F' {
		m.full = true
	} else if n-2 >= m.aged && what == 'p' && m.events[n-2].what == 'p' {
		m.full = false
	}
	switch {
	case m.down == (what == 'f'):
		m.known = true
	case !m.down && m.failures(at) >= m.c.Fall:
		m.turn(at)
	case m.down && m.risen():
		m.known = true
		if !m.locked() && !m.flapping(at) {
			m.turn(at)
		}
	}
}

func (m *modelMachine) age(at time.Time) {
	old := at.Sub(m.last())
	switch {
	case m.known && old > 3*m.c.Interval+m.c.Timeout:
		m.known = false
	case !m.known && m.c.Initial == check.InitialLast && (m.down || m.full) && !m.locked() && old > m.c.InitialAge:
	default:
		return
	}
	m.turned, m.aged = len(m.events), len(m.events)
	m.assume(at)
}

func (m *modelMachine) operatorReturns(at time.Time) {
	if !m.down {
		return
	}
	m.returned, m.turns = true, nil
	if m.risen() {
		m.turn(at)
	} else if !m.known {
		m.assume(at)
	}
}

func randomCheck(r *rand.Rand) *check.Check {
	c := check.Defaults("web", check.HTTP)
	c.Interval = time.Duration(1+r.IntN(20)) * time.Second
	c.Timeout = c.Interval/10 + time.Duration(r.Int64N(int64(c.Interval/2)))
	c.Fall, c.Rise = 1+r.IntN(4), 1+r.IntN(5)
	switch r.IntN(3) {
	case 0:
		c.FallWithin = time.Duration(c.Fall-1)*c.Interval + time.Duration(r.Int64N(int64(5*c.Interval)))
	case 1:
		c.Accumulate = true
	}
	if r.IntN(2) == 0 {
		c.RiseOver = time.Duration(r.Int64N(int64(8 * c.Interval)))
	}
	c.HoldFlips = max(0, r.IntN(12)-6)
	c.Manual = r.IntN(4) == 0
	c.Initial = []check.Initial{check.InitialLast, check.InitialUp, check.InitialDown}[r.IntN(3)]
	c.InitialAge = time.Duration(1 + r.Int64N(int64(20*c.Interval)))
	return &c
}

// TestMachineAgainstModel runs random checks through random fates: spells of
// one kind of result, single ones in between, silences, restarts.
func TestMachineAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 42))
	seen := map[Verdict]int{}
	held, waited := 0, 0
	for round := range 1500 {
		c := randomCheck(r)
		if err := Validate(c); err != nil {
			t.Fatal(err)
		}
		at := noon
		var saved Saved
		if r.IntN(2) == 0 {
			saved = Saved{Verdict: Verdict(1 + r.IntN(3)), At: at.Add(-time.Duration(r.Int64N(int64(30 * c.Interval))))}
		}
		m, model := NewMachine(c, saved, at), newModel(c, saved, at)
		spell := 'p'
		for step := range 150 {
			at = at.Add(c.Interval*9/10 + time.Duration(r.Int64N(int64(c.Interval/5))))
			before, assumedBefore, streakBefore, changed := m.Verdict(), m.Assumed(), m.Streak(), false
			switch n := r.IntN(100); {
			case n < 3:
				at = at.Add(time.Duration(r.Int64N(int64(8 * c.Interval))))
				changed = m.Age(at)
				model.age(at)
			case n < 5:
				changed = m.Return(at)
				model.operatorReturns(at)
			case n < 6:
				if s, ok := m.Saved(); ok {
					m = NewMachine(c, s, at)
					model = newModel(c, Saved{Verdict: s.Verdict, Since: s.Since, At: s.At, Flips: model.turns, Returned: s.Returned}, at)
				}
				changed = true
			default:
				if n < 25 {
					spell = rune("ppfffFi"[r.IntN(7)])
				}
				what := spell
				if n > 90 {
					what = rune("pfFi"[r.IntN(4)])
				}
				changed = m.Observe(at, resultOf(what))
				model.observe(at, what)
			}
			verdict, assumed := model.verdict()
			if m.Verdict() != verdict || m.Assumed() != assumed {
				t.Fatalf("round %d, step %d, %+v: %s taken for %s, model: %s, %s", round, step, *c, m.Verdict(), m.Assumed(), verdict, assumed)
			}
			if at := model.last(); m.Probed() && m.Streak() != model.streak(at) {
				t.Fatalf("round %d, step %d, %+v: streak %v while %s", round, step, *c, m.Streak(), m.Verdict())
			}
			if differs := m.Verdict() != before || m.Assumed() != assumedBefore || m.Streak() != streakBefore; differs && !changed {
				t.Fatalf("round %d, step %d: a change was not told", round, step)
			}
			seen[verdict]++
			if m.Held() {
				held++
			}
			if m.Waiting() {
				waited++
			}
		}
	}
	t.Logf("%v, held %d times, waited %d times", seen, held, waited)
	for v := VerdictUnknown; v <= VerdictDown; v++ {
		if seen[v] < 5000 {
			t.Errorf("%s seen %d times", v, seen[v])
		}
	}
	if held < 500 || waited < 500 {
		t.Errorf("held %d times, waited %d times", held, waited)
	}
}
