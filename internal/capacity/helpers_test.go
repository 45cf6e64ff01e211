package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// input is sinks A, B, C, ... with these capacities, loads just measured and a
// target of 1, and a group for each, of them all from its own on.
func input(caps, loads []float64) *Input {
	in := &Input{Now: t0, TTL: time.Minute}
	for r, c := range caps {
		in.Sinks = append(in.Sinks, Sink{
			Name: string(rune('A' + r)), Capacity: c, Target: 1, Health: 1, Dial: 1,
			Signal: Signal{Value: loads[r], Period: 15 * time.Second, Valid: true},
		})
		g := Group{Weight: 1}
		for k := range caps {
			g.Sinks = append(g.Sinks, (r+k)%len(caps))
		}
		in.Groups = append(in.Groups, g)
	}
	return in
}

// near says whether a and b differ by at most a millionth of the larger one.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1e-3)
}

func wantNear(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !near(got, want) {
		t.Errorf("%s: %v; want %v", what, got, want)
	}
}

// flowsOf is what an output's admission makes of the group's clients.
func flowsOf(in *Input, out *Output, g int) []float64 {
	flow := make([]float64, len(in.Sinks))
	left, first := 1.0, -1
	for k, r := range in.Groups[g].Sinks {
		s := &in.Sinks[r]
		if s.Drained || s.Soak || s.Health*s.Dial <= 0 {
			continue
		}
		if first < 0 {
			first = r
		}
		p := left * s.Health * s.Dial * out.Admission[g][k]
		flow[r] += p
		left -= p
	}
	if first >= 0 {
		flow[first] += left
	}
	return flow
}

// randomWork is a step before placing: sinks with limits, rows with demand and
// costs all their own. All amounts are whole numbers.
func randomWork(rng *rand.Rand, costs bool) *work {
	n := 2 + rng.IntN(5)
	in := &Input{Now: t0}
	for r := range n {
		in.Sinks = append(in.Sinks, Sink{Name: string(rune('A' + r)), Capacity: float64(1 + rng.IntN(60)), Target: 1, Health: 1, Dial: 1})
		if rng.IntN(8) == 0 {
			in.Sinks[r].Health = 0
		}
	}
	for range 1 + rng.IntN(8) {
		g := Group{Weight: 1, Sinks: rng.Perm(n)[:1+rng.IntN(n)]}
		if costs {
			at := 0.0
			for range g.Sinks {
				at += 1 + 20*rng.Float64()
				g.Cost = append(g.Cost, at)
			}
		}
		in.Groups = append(in.Groups, g)
	}
	w := begin(&State{}, in)
	w.makeRows()
	for r := range w.sinks {
		k := &w.sinks[r]
		k.plain, k.limit, k.trim, k.growth = k.cap, k.cap, 1, math.Inf(1)
	}
	for i := range w.rows {
		w.rows[i].demand = float64(1 + rng.IntN(40))
		w.total += w.rows[i].demand
	}
	return w
}
