package capacity

import (
	"math"
	"testing"
	"time"
)

// settle makes steps of 15 s, with the loads that there are by the time since the first of them.
func settle(s *State, in *Input, steps int, loads func(since time.Duration) []float64) (*State, *Output) {
	var out *Output
	begin := in.Now
	for range steps {
		in.Now = in.Now.Add(15 * time.Second)
		for r, load := range loads(in.Now.Sub(begin)) {
			in.Sinks[r].Signal.Value = load
		}
		s, out = Step(s, in)
	}
	return s, out
}

// left is the part of those who came a minute ago and still do, since they were sent away.
func left(since time.Duration) float64 { return max(0, 1-since.Seconds()/60) }

// TestKeepsByRows has A closed for those who bring nine tenths of its demand, though open as a
// whole by what else its hosts do: what it keeps is what its own demand's candidates say.
func TestKeepsByRows(t *testing.T) {
	in := input([]float64{200, 200}, []float64{100, 40})
	in.Groups = []Group{
		{Weight: 90, Sinks: []int{0, 1}, Open: []float64{1, 1}},
		{Weight: 10, Sinks: []int{0, 1}, Open: []float64{1, 1}},
		{Weight: 400, Sinks: []int{1, 0}, Open: []float64{1, 1}},
	}
	s, _ := settle(nil, in, 20, func(time.Duration) []float64 { return []float64{100, 40} })
	in.Groups[0].Open, in.Sinks[0].Dial = []float64{0, 1}, 0.85
	_, out := settle(s, in, 200, func(since time.Duration) []float64 {
		wave := 1 + 0.001*math.Sin(since.Seconds())
		return []float64{wave * (10 + 90*left(since)), wave * (40 + 90*(1-left(since)))}
	})
	if d := out.Sinks[0].Demand; math.Abs(d-100) > 10 {
		t.Errorf("demand of A is said to be %.1f, want 100", d)
	}
}

// TestLostDemand holds that what nobody takes is deficit, that it stays what it was whatever loads
// do, and that what is known beside it is still followed.
func TestLostDemand(t *testing.T) {
	for _, tail := range []float64{0, 0.2} { // of those sent away, that never ask again
		in := input([]float64{200, 200}, []float64{100, 40})
		in.Groups = []Group{{Weight: 75, Sinks: []int{0}}, {Weight: 25, Sinks: []int{0}}, {Weight: 40, Sinks: []int{1}}}
		s, out := settle(nil, in, 20, func(time.Duration) []float64 { return []float64{100, 40} })
		wantNear(t, "deficit", out.Deficit, 0)
		in.Groups[0].Open, in.Sinks[0].Dial = []float64{0}, 0.25
		s, out = settle(s, in, 200, func(since time.Duration) []float64 {
			wave := 1 + 0.001*math.Sin(since.Seconds())
			return []float64{wave * (25 + 75*max(tail*max(0, 1-since.Seconds()/600), left(since))), wave * 40}
		})
		if math.Abs(out.Deficit-75) > 8 || math.Abs(out.Sinks[0].Demand-100) > 10 {
			t.Errorf("tail %v: demand %.1f, deficit %.1f; want 100 and 75", tail, out.Sinks[0].Demand, out.Deficit)
		}
		in.Groups[1].Open, in.Groups[2].Open, in.Sinks[0].Drained, in.Sinks[1].Drained = []float64{0}, []float64{0}, true, true
		_, out = settle(s, in, 200, func(since time.Duration) []float64 {
			return []float64{25 * max(tail, left(since)), 40 * max(tail, left(since))}
		})
		if math.Abs(out.Deficit-140) > 14 || out.Deficit != out.Demand {
			t.Errorf("tail %v: deficit %.1f of %.1f when nobody takes anything; want 140", tail, out.Deficit, out.Demand)
		}
	}
}

// TestAwayWithoutALoad has A, whose load nobody measures, go away and come back by tenths: while it doesn't keep
// its own, the others' loads say how much that is, and no more.
func TestAwayWithoutALoad(t *testing.T) {
	in := input([]float64{1000, 100, 100}, []float64{0, 70, 20}) // A's demand is 10
	in.Sinks[0].Signal = Signal{}
	there := [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}} // where the clients are
	var s *State
	for n := range 280 {
		in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
		in.Sinks[0].Health, in.Sinks[0].Dial = 1, 1
		switch {
		case n >= 40 && n < 120:
			in.Sinks[0].Health = 0
		case n >= 120 && n < 200:
			in.Sinks[0].Dial = float64(1+(n-120)/8) / 10
		}
		var out *Output
		s, out = Step(s, in)
		loads := make([]float64, 3)
		for g, demand := range []float64{10, 70, 20} {
			for r, part := range flowsOf(in, out, g) {
				there[g][r] += (part - there[g][r]) / 4
				loads[r] += demand * there[g][r] * (1 + 0.001*float64(n%3))
			}
		}
		for r := 1; r < 3; r++ {
			in.Sinks[r].Signal.Value = loads[r]
		}
		if away := n >= 50; away && (out.Deficit > 0 || loads[1] > 81 || loads[2] > 25) {
			t.Fatalf("step %d: a deficit of %.1f, loads %.1f", n, out.Deficit, loads)
		}
	}
}
