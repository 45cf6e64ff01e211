package capacity

import (
	"math"
	"testing"
	"time"
)

func TestJumps(t *testing.T) {
	const period = 15 * time.Second
	for name, c := range map[string]struct {
		mark  func(n int) (use, way float64) // n periods from the start; way is what admissions alone bring
		jumps int
		size  float64
	}{
		"noise":                                  {func(n int) (float64, float64) { return 0.8 + 0.08*float64(n%2), 50 }, 0, 0},
		"noise of a load far above the capacity": {func(n int) (float64, float64) { return 3 + 0.2*float64(n%2), 50 }, 0, 0},
		// What resolvers do together takes long.
		"a slow cycle": {func(n int) (float64, float64) { return 0.8 + 0.4*math.Abs(float64(n%40-20))/20, 50 }, 0, 0},
		"a cycle that admissions explain": {func(n int) (float64, float64) {
			x := float64(n / 20 % 2)
			return 0.7 + 0.4*x, 35 + 20*x
		}, 0, 0},
		"one that they don't": {func(n int) (float64, float64) {
			x := float64(n / 20 % 2)
			return 0.5 + 0.6*x, 35 + 5*x
		}, 4, 0.6},
		// A reading is the mean of a period.
		"seen over two readings": {func(n int) (float64, float64) {
			x := float64(n / 20 % 2)
			if n%20 == 0 && n > 0 {
				x = 0.4
			}
			return 0.5 + 0.6*x, 35
		}, 4, 0.6},
	} {
		var j Jumps
		ways := make(map[time.Time]float64)
		for n := range 100 {
			at := t0.Add(time.Duration(n) * period)
			use, way := c.mark(n)
			ways[at] = way
			j = j.mark(Mark{at, use}, period)
			was, is, _ := j.change()
			j = j.watch(ratio(ways[is.At], ways[was.At]), period, time.Hour)
		}
		if len(j.Seen) != c.jumps || math.Abs(j.largest(0)-c.size) > 1e-9 {
			t.Errorf("%s: %+v; want %d jumps of %v", name, j.Seen, c.jumps, c.size)
		}
		if j.largest(1.2) != 0 {
			t.Errorf("%s: none went beyond 1.2, but %v", name, j.Seen)
		}
		j = j.mark(Mark{t0.Add(2 * time.Hour), 0.8}, period).watch(0, period, time.Hour)
		if len(j.Seen) > 0 {
			t.Errorf("%s: still there long after", name)
		}
	}
}

// What admissions explain is by the demands known now, whatever they were.
func TestExplained(t *testing.T) {
	marks := []Mark{{t0, 0.2}, {t0.Add(30 * time.Second), 1}}
	w := &work{in: &Input{Now: t0.Add(time.Minute)}, ttl: 20 * time.Second, sinks: make([]sink, 3), state: &State{
		Sinks: []Memory{{Demand: 40, Baseline: 10, Jumps: Jumps{Marks: marks}}, {Demand: 10, Baseline: 30}, {Demand: 7, Baseline: 1, Jumps: Jumps{Marks: marks}}},
		History: []Moment{
			{At: t0.Add(-time.Hour), Cells: []Cell{{0, 0, 1, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}}},
			{At: t0.Add(10 * time.Second), Cells: []Cell{{0, 0, 0.5, 0}, {0, 1, 0.5, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}}},
		},
	}}
	got := w.explained()
	wantNear(t, "A, which kept half from then on", got[0], 1)
	wantNear(t, "C, of which nothing changed", got[2], 0)
	w.state.Sinks[1].Jumps.Marks = marks
	wantNear(t, "B, to which that came", w.explained()[1], 2)
	for r := range w.state.Sinks {
		w.state.Sinks[r].Jumps.Marks = []Mark{{t0, 0.95}, {t0.Add(30 * time.Second), 1}}
	}
	wantNear(t, "what is no jump needs no explanation", w.explained()[1], 0)
}

// lumpy is a plant of two sinks where a part of A's demand is one resolver that goes to A only
// if that takes more than edge of it.
type lumpy struct {
	in         *Input
	s          *State
	out        *Output
	n          int
	edge, lump float64
	rest, b    float64 // demands of A's others and of B
}

func (p *lumpy) run(minutes int) {
	for range 4 * minutes {
		p.n++
		p.in.Now = t0.Add(time.Duration(p.n) * 15 * time.Second)
		p.s, p.out = Step(p.s, p.in)
		a := flowsOf(p.in, p.out, 0)[0]
		there := 0.0
		if a > p.edge {
			there = p.lump
		}
		noise := 1 + 0.001*float64(p.n%3-1)
		p.in.Sinks[0].Signal.Value = noise * (p.rest*a + there)
		p.in.Sinks[1].Signal.Value = noise * (p.b + p.rest*(1-a) + p.lump - there)
	}
}

func newLumpy() *lumpy {
	p := &lumpy{in: input([]float64{45, 100}, []float64{30, 20}), edge: 0.85, rest: 30, b: 20}
	p.in.TTL = time.Second
	p.in.Groups[1].Sinks = []int{1} // B's stay where they are
	p.run(5)
	p.lump = 30
	p.run(60)
	return p
}

func TestWhatJumpsIsDamped(t *testing.T) {
	p := newLumpy()
	if o := p.out.Sinks[0]; !o.Damped || o.Lump < 29 || o.Lump > 40 || p.out.Sinks[1].Damped {
		t.Fatalf("%+v; want A damped, with a lump of about 30", o)
	}
	for range 6 * 60 {
		if p.run(1); p.in.Sinks[0].Signal.Value > 45 || !p.out.Sinks[0].Damped {
			t.Fatalf("minute %d: load %v, %+v", p.n/4, p.in.Sinks[0].Signal.Value, p.out.Sinks[0])
		}
	}
}

func TestDampingEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*lumpy)
		minutes int
		forgets bool // so that it takes three jumps again
	}{
		"there is room":      {func(p *lumpy) { p.in.Sinks[0].Capacity = 70 }, 5, false},
		"the lump is gone":   {func(p *lumpy) { p.lump = 0 }, 5, false},
		"most of it is gone": {func(p *lumpy) { p.lump = 7 }, 5, false},
		"an operator acts":   {func(p *lumpy) { p.s, p.lump, p.b = p.s.Release(), 0, p.b+p.lump }, 1, true},
		"A goes down": {func(p *lumpy) {
			p.in.Sinks[0].Health = 0
			p.run(1)
			p.in.Sinks[0].Health, p.lump, p.b = 1, 0, p.b+p.lump
		}, 5, true},
	} {
		p := newLumpy()
		c.change(p)
		if p.run(c.minutes); p.out.Sinks[0].Damped {
			t.Errorf("%s: still damped: %+v", name, p.s.Sinks[0].Damping)
		}
		if forgot := p.s.Sinks[0].Damping == (Damping{}); forgot != c.forgets {
			t.Errorf("%s: %+v; want it forgotten: %v", name, p.s.Sinks[0].Damping, c.forgets)
		}
		if p.run(20); flowsOf(p.in, p.out, 0)[0] < 0.99 {
			t.Errorf("%s: A takes %v of its own", name, flowsOf(p.in, p.out, 0)[0])
		}
	}
	// Where nothing shows that the lump is gone, it is tried in the end.
	p := newLumpy()
	p.lump, p.b = 0, p.b+p.lump
	if p.run(int((MaxDamp - 2*time.Hour).Minutes())); !p.out.Sinks[0].Damped {
		t.Error("it ended without a reason")
	}
	if p.run(2 * 60); p.out.Sinks[0].Damped {
		t.Error("it never ends")
	}
	// So it is where the load isn't read any more.
	p = newLumpy()
	p.in.Sinks[0].Signal.Valid = false
	if p.run(int(MaxDamp.Minutes()) + 60); p.out.Sinks[0].Damped {
		t.Error("without a load it never ends")
	}
}

// What an operator does to a capacity is no jump of the load.
func TestOtherCapacitiesAreNoJumps(t *testing.T) {
	in := input([]float64{100, 100}, []float64{60, 20})
	s, _ := Step(nil, in)
	for n := range 120 {
		in.Now = t0.Add(time.Duration(n+1) * 15 * time.Second)
		in.Sinks[0].Capacity = 100
		if n/8%2 == 1 {
			in.Sinks[0].Capacity = 62
		}
		in.Sinks[0].Signal.Value, in.Sinks[1].Signal.Value = 60+0.1*float64(n%3), 20
		var out *Output
		if s, out = Step(s, in); out.Sinks[0].Damped || out.Sinks[0].Oscillating {
			t.Fatalf("step %d: %+v", n, out.Sinks[0])
		}
	}
}
