package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestDemandOfOneSinkIsLoadByAdmittedPart(t *testing.T) {
	// 0.6 of A's demand stayed, the rest went to B.
	f := flows{{{0, 0.6, 0}, {1, 0.4, 0}}, {{1, 1, 0}}}
	d := f.estimate([]float64{30, 30}, []float64{36, 44}, []float64{1, 1})
	if math.Abs(d[0]-60) > 0.05 || math.Abs(d[1]-20) > 0.05 {
		t.Errorf("%v; want 60 and 20", d)
	}
}

// solve is Gaussian elimination.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		best := i
		for j := i; j < n; j++ {
			if math.Abs(a[j][i]) > math.Abs(a[best][i]) {
				best = j
			}
		}
		a[i], a[best], b[i], b[best] = a[best], a[i], b[best], b[i]
		for j := range n {
			if j != i {
				q := a[j][i] / a[i][i]
				for k := range n {
					a[j][k] -= q * a[i][k]
				}
				b[j] -= q * b[i]
			}
		}
	}
	for i := range n {
		b[i] /= a[i][i]
	}
	return b
}

// Where columns differ enough, the rounds of some steps find what elimination does.
func TestDemandIsTheSolutionOfTheSystem(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 300 {
		size := 2 + rng.IntN(6)
		truth, ones := make([]float64, size), make([]float64, size)
		f := make(flows, size)
		a := make([][]float64, size)
		for r := range a {
			a[r] = make([]float64, size)
		}
		for c := range f {
			truth[c], ones[c] = 5+50*rng.Float64(), 1
			rest := 0.4 * rng.Float64()
			f.add(c, part{to: c, part: 1 - rest})
			f.add(c, part{to: rng.IntN(size), part: rest})
			for _, p := range f[c] {
				a[p.to][c] = p.part
			}
		}
		loads := f.loads(truth)
		got := make([]float64, size)
		copy(got, loads)
		for range 10 {
			got = f.estimate(got, loads, ones)
		}
		for c, want := range solve(a, append([]float64(nil), loads...)) {
			if math.Abs(got[c]-want) > 0.005*want {
				t.Fatalf("case %d: %v at %d; want %v", n, got[c], c, want)
			}
		}
	}
}

func TestDemandThatCannotBeToldApartKeepsItsProportions(t *testing.T) {
	// A is drained: all its demand arrives at B.
	f := flows{{{1, 1, 0}}, {{1, 1, 0}}}
	d := f.estimate([]float64{40, 20}, []float64{0, 90}, []float64{1, 1})
	wantNear(t, "A", d[0], 60)
	wantNear(t, "B", d[1], 30)
}

func TestDemandKeepsTheSumOfLoadsAndNeverGoesNegative(t *testing.T) {
	// A's sensor lies: it shows 50 although a tenth of A's demand stayed there. No D
	// fits; the sum is that of the loads all the same.
	f := flows{{{0, 0.1, 0}, {1, 0.9, 0}}, {{1, 1, 0}}}
	d := f.estimate([]float64{40, 20}, []float64{50, 56}, []float64{1, 1})
	wantNear(t, "sum", d[0]+d[1], 106)
	if d[0] < 0 || d[1] < 0 {
		t.Errorf("negative demand: %v", d)
	}
}

func TestAbsentSignalsAreNoLoads(t *testing.T) {
	f := flows{{{0, 1, 0}}, {{1, 1, 0}}}
	d := f.estimate([]float64{40, 20}, []float64{0, 30}, []float64{0, 1})
	wantNear(t, "A, absent", d[0], 40)
	wantNear(t, "B", d[1], 30)
	d = f.estimate([]float64{40, 20}, []float64{10, 30}, []float64{0.5, 1})
	if !(d[0] > 9 && d[0] < 40) {
		t.Errorf("A, fading: %v; want between the estimate, 40, and the signal, 10", d[0])
	}
}

// The flows that count for a sink are those of the TTL before its load was measured.
func TestPastIsTheMeanOfTheWindow(t *testing.T) {
	stay := []Cell{{0, 0, 1, 0}, {1, 1, 1, 0}}
	move := []Cell{{0, 1, 1, 0}, {1, 1, 1, 0}}
	s := &State{Sinks: make([]Memory, 2), History: []Moment{{At: t0, Cells: stay}, {At: t0.Add(time.Minute), Cells: move}}}
	now := t0.Add(90 * time.Second)
	f := s.past([]time.Duration{0, 0}, time.Minute, now)
	wantNear(t, "stays, until now", f[0][0].part, 0.5)
	wantNear(t, "moved, until now", f[0][1].part, 0.5)
	f = s.past([]time.Duration{15 * time.Second, 15 * time.Second}, time.Minute, now)
	wantNear(t, "stays, until 15 s ago", f[0][0].part, 0.75)
	// What answers of 15 s did is over, and those of 2 minutes have reached one in four.
	s.History[0].Cells = []Cell{{0, 0, 0.5, 15 * time.Second}, {0, 0, 0.5, 2 * time.Minute}, {1, 1, 1, 0}}
	s.History[1].Cells = []Cell{{0, 1, 0.5, 15 * time.Second}, {0, 1, 0.5, 2 * time.Minute}, {1, 1, 1, 0}}
	f = s.past([]time.Duration{0, 0}, time.Minute, now)
	wantNear(t, "stays, with two TTLs", f[0][0].part, 0.5*0.75)
	wantNear(t, "moved, with two TTLs", f[0][1].part, 0.5+0.5*0.25)
	// One TTL takes the place of the other: together they are all of the demand.
	s.History[0].Cells, s.History[1].Cells = []Cell{{0, 0, 1, 40 * time.Second}, {1, 1, 1, 0}}, []Cell{{0, 1, 1, time.Minute}, {1, 1, 1, 0}}
	f = s.past([]time.Duration{0, 0}, time.Minute, now)
	wantNear(t, "stays, with another TTL", f[0][0].part, 1.0/3)
	wantNear(t, "moved, with another TTL", f[0][1].part, 2.0/3)
	f = (&State{Sinks: make([]Memory, 2)}).past([]time.Duration{0, 0}, time.Minute, now)
	wantNear(t, "without a history", f[1][0].part, 1)
}

func TestSilentSinksAreTakenForFull(t *testing.T) {
	in := input([]float64{100, 50}, []float64{200, 0})
	in.Sinks[1].Signal = Signal{}
	_, out := Step(nil, in)
	wantNear(t, "demand of the silent one", out.Sinks[1].Demand, 50)
	if out.Sinks[1].Reading != Never {
		t.Errorf("reading %v", out.Sinks[1].Reading)
	}
	wantNear(t, "deficit", out.Deficit, 100)
}
