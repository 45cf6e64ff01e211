package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// noon is when tests of verdicts begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rules is a check with the defaults and changes.
func rules(change func(*check.Check)) *check.Check {
	c := check.Defaults("web", check.HTTP)
	if change != nil {
		change(&c)
	}
	return &c
}

// resultOf gives the result a letter stands for: p pass, f fail, F full, i internal.
func resultOf(letter rune) Result {
	return map[rune]Result{
		'p': {Class: ClassOK},
		'f': {Status: Fail, Class: ClassConnect, Reason: "refused"},
		'F': {Status: Full, Class: ClassFull, Reason: "429"},
		'i': {Status: Fail, Class: ClassInternal, Reason: "no socket"},
	}[letter]
}

// TestMachineRules writes results as letters, one for each interval (s skips
// an interval, a ages, R returns), and the verdict after each: u up, d
// down, f full, ? unknown but taken for up, ! unknown but taken for down; in
// capitals (^ and v for ? and !) while a streak has begun.
func TestMachineRules(t *testing.T) {
	tests := []struct {
		name          string
		change        func(*check.Check)
		saved         Verdict
		results, want string
	}{
		{"first pass decides", nil, 0, "p", "u"},
		{"first failures don't until fall", nil, 0, "fff", "^^d"},
		{"a pass in between", nil, 0, "ffpff", "^^uUU"},
		{"fall in a row", nil, 0, "pffpfff", "uUUuUUd"},
		{"rise in a row", nil, 0, "fffppppfppppp", "^^dDDDDdDDDDu"},
		{"fall 1, rise 1", func(c *check.Check) { c.Fall, c.Rise = 1, 1 }, 0, "pfpfp", "ududu"},
		{"initial down", func(c *check.Check) { c.Initial = check.InitialDown }, 0, "pppppf", "vvvvuU"},
		{"initial down, failing", func(c *check.Check) { c.Initial = check.InitialDown }, 0, "f", "d"},
		{"saved down", nil, VerdictDown, "ppppp", "vvvvu"},
		{"saved down, failing", nil, VerdictDown, "f", "d"},
		{"saved down, initial up", func(c *check.Check) { c.Initial = check.InitialUp }, VerdictDown, "ff", "^^"},
		{"saved up, failing", nil, VerdictUp, "fff", "^^d"},
		{"saved full", nil, VerdictFull, "pp", "Fu"},

		{"full at once, two passes end it", nil, 0, "pFpFppp", "ufFfFuu"},
		{"full counts as a pass", nil, 0, "ffFff", "^^fFF"},
		{"full rises", nil, 0, "fffFFFFFpp", "^^dDDDDfFu"},
		{"full long before the fall is over", func(c *check.Check) { c.Rise = 1 }, 0, "Ffffp", "fFFdu"},
		{"failure interrupts the end of full", nil, 0, "Fpfpp", "fFFFu"},

		{"within: passes don't clear", func(c *check.Check) { c.FallWithin = 40 * time.Second }, 0, "pfpfpf", "uUUUUd"},
		{"within: the first is too old", func(c *check.Check) { c.FallWithin = 30 * time.Second }, 0, "pfpfpfppppp", "uUUUUUUUUuu"},
		{"within: exact fit", func(c *check.Check) { c.FallWithin = 20 * time.Second }, 0, "fff", "^^d"},
		{"within: what was before a rise is forgotten",
			func(c *check.Check) { c.FallWithin, c.Rise = 10*time.Minute, 1 }, 0, "fffpfff", "^^duUUd"},

		{"over: count is not enough", func(c *check.Check) { c.RiseOver = time.Minute }, 0, "fffppppppp", "^^dDDDDDDu"},
		{"over: a failure starts it again", func(c *check.Check) { c.RiseOver, c.Rise = 20*time.Second, 2 }, 0, "fffppfppp", "^^dDDdDDu"},
		{"over: an age is not a number", func(c *check.Check) { c.RiseOver = time.Second }, 0, "fffppppp", "^^dDDDDu"},

		{"accumulate", func(c *check.Check) { c.Accumulate, c.Rise = true, 3 }, 0, "fppfppf", "^UUUUUd"},
		{"accumulate: rise passes clear", func(c *check.Check) { c.Accumulate, c.Rise = true, 3 }, 0, "fpfpppff", "^UUUUuUU"},
		{"accumulate: counted anew after a rise", func(c *check.Check) { c.Accumulate, c.Rise = true, 2 }, 0, "fffppfpf", "^^dDuUUU"},

		{"hold: third flip stays", func(c *check.Check) { c.HoldFlips, c.Fall, c.Rise = 3, 1, 1 }, 0, "pfpfppp", "ududddd"},
		{"hold: an operator ends it", func(c *check.Check) { c.HoldFlips, c.Fall, c.Rise = 3, 1, 1 }, 0, "pfpfpRf", "ududdud"},
		{"manual", func(c *check.Check) { c.Manual, c.Rise = true, 2 }, 0, "fffppppRp", "^^ddddduu"},
		{"manual: the word before it passes", func(c *check.Check) { c.Manual, c.Rise = true, 2 }, 0, "fffRppfff", "^^ddDuUUd"},
		{"manual: the word holds for one return", func(c *check.Check) { c.Manual, c.Rise, c.Fall = true, 1, 1 }, 0, "fRpfp", "ddudd"},
		{"manual: over a restart", func(c *check.Check) { c.Manual, c.Rise = true, 2 }, VerdictDown, "pppR", "!ddu"},
		{"the word without need", nil, 0, "pR", "uu"},

		{"internal is no result", nil, 0, "piiiiiiffif", "uuuuuuuUUUd"},
		{"internal only is unknown", nil, 0, "piiiiia", "uuuuuu?"},
		{"aging", nil, 0, "pssssa", "uuuuu?"},
		{"not yet aged", nil, 0, "pssa", "uuuu"},
		{"aged down is taken for last", nil, 0, "fffssssappppp", "^^ddddd!vvvvu"},
		{"aged streak is forgotten", nil, 0, "pffssssaffp", "uUUUUUU?^^u"},
		{"aged, initial up", func(c *check.Check) { c.Initial = check.InitialUp }, 0, "fffssssa", "^^ddddd?"},
		{"aged, initial down", func(c *check.Check) { c.Initial = check.InitialDown }, 0, "pppppssssa", "vvvvuuuuu!"},
		{"aged beyond the age of last", func(c *check.Check) { c.InitialAge = time.Minute }, 0, "fffssssasssa", "^^ddddd!!!!?"},
		{"aged, manual", func(c *check.Check) { c.Manual, c.Initial = true, check.InitialUp }, 0, "fffssssaR", "^^ddddd!?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := rules(tt.change)
			if err := Validate(c); err != nil {
				t.Fatal(err)
			}
			at := noon
			m := NewMachine(c, Saved{Verdict: tt.saved, At: at, Since: at}, at)
			var got strings.Builder
			for _, letter := range tt.results {
				switch letter {
				case 's':
				case 'a':
					m.Age(at)
				case 'R':
					m.Return(at)
				default:
					m.Observe(at, resultOf(letter))
				}
				got.WriteByte(look(&m))
				if letter != 'a' && letter != 'R' {
					at = at.Add(c.Interval)
				}
			}
			if got.String() != tt.want {
				t.Errorf("%s: got %s, want %s", tt.results, &got, tt.want)
			}
		})
	}
}

// look writes a machine's verdict as one letter.
func look(m *Machine) byte {
	letters := map[Verdict]string{VerdictUp: "uU", VerdictFull: "fF", VerdictDown: "dD", VerdictUnknown: "?^"}
	pair := letters[m.Verdict()]
	if m.Verdict() == VerdictUnknown && m.Assumed() == VerdictDown {
		pair = "!v"
	}
	if m.Streak() {
		return pair[1]
	}
	return pair[0]
}

func TestMachineHoldEnds(t *testing.T) {
	c := rules(func(c *check.Check) { c.HoldFlips, c.Fall, c.Rise = 3, 1, 1 })
	m := NewMachine(c, Saved{}, noon)
	at := noon
	for _, letter := range "pfpf" { // turns at 10, 20 and 30 s
		m.Observe(at, resultOf(letter))
		at = at.Add(c.Interval)
	}
	for ; m.Verdict() == VerdictDown; at = at.Add(c.Interval) {
		m.Observe(at, resultOf('p'))
		if m.Verdict() == VerdictDown && (!m.Held() || m.Streak()) {
			t.Fatalf("at %s held is %v, streak %v", at, m.Held(), m.Streak())
		}
	}
	if got, want := m.Since(), noon.Add(10*time.Second+time.Hour); !got.Equal(want) {
		t.Errorf("up since %s, want %s", got, want)
	}
	if m.Held() {
		t.Error("held while up")
	}
}

func TestMachineSavedFlipsHold(t *testing.T) {
	c := rules(func(c *check.Check) { c.HoldFlips, c.Fall, c.Rise = 3, 1, 1 })
	m := NewMachine(c, Saved{}, noon)
	at := noon
	for _, letter := range "pfpf" {
		m.Observe(at, resultOf(letter))
		at = at.Add(c.Interval)
	}
	saved, ok := m.Saved()
	if !ok || saved.Verdict != VerdictDown || len(saved.Flips) != 3 || !saved.At.Equal(at.Add(-c.Interval)) {
		t.Fatalf("saved %v, %v", saved, ok)
	}
	m = NewMachine(c, saved, at)
	m.Observe(at, resultOf('p'))
	if m.Verdict() != VerdictDown || !m.Held() {
		t.Errorf("after a restart: %s, held %v", m.Verdict(), m.Held())
	}
}

func TestMachineSavedAge(t *testing.T) {
	for _, tt := range []struct {
		age  time.Duration
		want Verdict
	}{{0, VerdictDown}, {10 * time.Minute, VerdictDown}, {10*time.Minute + 1, VerdictUp}} {
		m := NewMachine(rules(nil), Saved{Verdict: VerdictDown, At: noon.Add(-tt.age)}, noon)
		if m.Verdict() != VerdictUnknown || m.Assumed() != tt.want || m.Probed() {
			t.Errorf("age %s: %s, taken for %s, probed %v", tt.age, m.Verdict(), m.Assumed(), m.Probed())
		}
	}
	if m := NewMachine(rules(nil), Saved{}, noon); m.Assumed() != VerdictUp {
		t.Errorf("nothing saved: %s", m.Assumed())
	}
	m := NewMachine(rules(nil), Saved{}, noon)
	if s, ok := m.Saved(); ok {
		t.Errorf("nothing known, yet saved: %v", s)
	}
}

func TestMachineAgeBound(t *testing.T) {
	c := rules(nil)
	m := NewMachine(c, Saved{}, noon)
	if _, ok := m.Expires(); ok {
		t.Error("what was never known expires")
	}
	m.Observe(noon, resultOf('p'))
	bound := noon.Add(3*c.Interval + c.Timeout)
	if at, ok := m.Expires(); !ok || !at.Equal(bound) {
		t.Errorf("expires %s, %v, want %s", at, ok, bound)
	}
	if m.Age(bound) || m.Verdict() != VerdictUp {
		t.Error("aged at the bound")
	}
	if !m.Age(bound.Add(1)) || m.Verdict() != VerdictUnknown || !m.Since().Equal(bound.Add(1)) {
		t.Errorf("after the bound: %s since %s", m.Verdict(), m.Since())
	}
	if m.Age(bound.Add(time.Hour)) {
		t.Error("changed again")
	}
}

func TestMachineExcuse(t *testing.T) {
	c := rules(func(c *check.Check) { c.Fall = 1 })
	m := NewMachine(c, Saved{}, noon)
	m.Observe(noon, resultOf('p'))
	for i := range 100 {
		at := noon.Add(time.Duration(i) * c.Interval)
		m.Excuse(at, resultOf('f'))
		if m.Age(at) || m.Verdict() != VerdictUp || m.Streak() {
			t.Fatalf("after %d: %s", i, m.Verdict())
		}
	}
	if len(m.Notes()) != maxNotes {
		t.Errorf("%d notes", len(m.Notes()))
	}
}

func TestMachineRecall(t *testing.T) {
	c := rules(func(c *check.Check) { c.Fall, c.HoldFlips = 1, 5 })
	m := NewMachine(c, Saved{}, noon)
	m.Observe(noon, resultOf('F'))
	down := noon.Add(c.Interval)
	m.Observe(down, resultOf('f'))
	m.Recall(noon, VerdictUp, VerdictUp, noon)
	if m.Verdict() != VerdictDown {
		t.Error("another turn was recalled")
	}
	m.Recall(down, VerdictFull, VerdictFull, noon)
	if s, _ := m.Saved(); m.Verdict() != VerdictFull || !m.Since().Equal(noon) || len(s.Flips) != 0 || m.Streak() {
		t.Errorf("recalled: %s since %s, flips %v", m.Verdict(), m.Since(), s.Flips)
	}
}

func TestMachineNotes(t *testing.T) {
	m := NewMachine(rules(nil), Saved{}, noon)
	for i := range 5 {
		m.Observe(noon, Result{Status: Fail, Class: ClassStatus, Reason: fmt.Sprint(i, strings.Repeat("ä", MaxReason))})
		m.Observe(noon, Result{Class: ClassOK})
	}
	var got []string
	for _, n := range m.Notes() {
		got = append(got, n.Reason[:1])
		if len(n.Reason) != MaxReason-1 || !strings.HasSuffix(n.Reason, "ä") {
			t.Errorf("%d bytes: %q", len(n.Reason), n.Reason)
		}
	}
	if !slices.Equal(got, []string{"4", "3", "2"}) {
		t.Errorf("notes %v", got)
	}
}

func TestMachineIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Machine{}); size > 128 {
		t.Errorf("%d bytes", size)
	}
}

func TestVerdictText(t *testing.T) {
	for v := VerdictUnknown; v <= VerdictDown; v++ {
		text, err := v.MarshalText()
		var back Verdict
		if err != nil || back.UnmarshalText(text) != nil || back != v {
			t.Errorf("%d: %s, %v, %d", v, text, err, back)
		}
	}
	var v Verdict
	if err := v.UnmarshalText([]byte("dead")); err == nil {
		t.Error("no error")
	}
	if got := Verdict(9).String(); got != "verdict 9" {
		t.Error(got)
	}
}
