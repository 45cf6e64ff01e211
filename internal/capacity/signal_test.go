package capacity

import (
	"math"
	"testing"
	"time"
)

func TestImpossibleSignalsAreNoReadings(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e9} {
		in := input([]float64{100, 100}, []float64{80, 10})
		s, _ := Step(nil, in)
		in.Now = t0.Add(time.Minute)
		in.Sinks[0].Signal.Value = v
		in.Sinks[1].Signal.Value = 11
		_, out := Step(s, in)
		o := out.Sinks[0]
		if !o.Refused || o.Reading != Fading || o.Load != 80 {
			t.Errorf("%v: refused %v, %v, load %v; want it refused, and the old 80, 4 periods old", v, o.Refused, o.Reading, o.Load)
		}
		if out.Sinks[1].Refused {
			t.Errorf("%v: the other one is refused as well", v)
		}
	}
}

// One reading of far more than there can be moves nobody, however many steps see it; what stands is
// believed at the second one.
func TestADoubtfulLoadHasToStand(t *testing.T) {
	for _, stands := range []bool{false, true} {
		in := input([]float64{100, 100}, []float64{80, 10})
		for r := range in.Sinks {
			in.Sinks[r].Signal.Period = 30 * time.Second
		}
		s, _ := Step(nil, in)
		for n := range 40 {
			in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
			in.Sinks[0].Signal.Age = in.Now.Sub(t0) % (30 * time.Second)
			in.Sinks[0].Signal.Value = 80 + float64(n/2%2)
			doubtful := n == 20 || n == 21 || stands && n > 21
			if doubtful {
				in.Sinks[0].Signal.Value = 80_000 + float64(n/2%2)
			}
			var out *Output
			s, out = Step(s, in)
			o := out.Sinks[0]
			if o.Refused != (n == 20 || n == 21) {
				t.Errorf("stands %v, step %d: refused %v", stands, n, o.Refused)
			}
			if believed := stands && n > 21; (o.Demand > 100) != believed || (out.Deficit > 0) != believed {
				t.Errorf("stands %v, step %d: demand %v, deficit %v", stands, n, o.Demand, out.Deficit)
			}
		}
	}
}

func TestSignalsFade(t *testing.T) {
	in := input([]float64{100, 100}, []float64{80, 10})
	s, _ := Step(nil, in)
	for _, c := range []struct {
		age     time.Duration
		fade    float64
		reading Reading
	}{
		{45 * time.Second, 1, Fresh},
		{60 * time.Second, 6.0 / 7, Fading},
		{135 * time.Second, 1.0 / 7, Fading},
		{150 * time.Second, 0, Absent},
		{time.Hour, 0, Absent},
	} {
		late := *in
		late.Now = t0.Add(c.age)
		late.Sinks = append([]Sink(nil), in.Sinks...)
		late.Sinks[0].Signal.Age = c.age // the same reading, or
		late.Sinks[1].Signal.Valid = false
		_, out := Step(s, &late)
		for r, o := range out.Sinks[:2] {
			if !near(o.Fade, c.fade) || o.Reading != c.reading {
				t.Errorf("%v, sink %d: fade %v, %v; want %v, %v", c.age, r, o.Fade, o.Reading, c.fade, c.reading)
			}
		}
		// Absent is not empty.
		wantNear(t, "demand", out.Sinks[0].Demand, 80)
		wantNear(t, "load", out.Sinks[0].Load, 80)
	}
}

func TestAStuckSensorIsFoundOut(t *testing.T) {
	for _, moves := range []bool{true, false} {
		in := input([]float64{50, 200}, []float64{49, 10})
		s, _ := Step(nil, in)
		in.Sinks[0].Signal.Value = 70
		if !moves {
			in.Sinks[0].Signal.Value = 45
		}
		var out *Output
		for n := 1; n < 30; n++ {
			in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
			in.Sinks[1].Signal.Value = 10 + float64(n%2)
			s, out = Step(s, in)
		}
		if out.Sinks[0].Stuck != moves {
			t.Errorf("moves %v: stuck %v", moves, out.Sinks[0].Stuck)
		}
		if moves && (out.Sinks[0].Reading != Absent || out.Sinks[0].Demand > 90) {
			t.Errorf("%v, demand %v; want it absent, and the demand as before it stuck", out.Sinks[0].Reading, out.Sinks[0].Demand)
		}
	}
}

// A load that has been the same from the start is believed: nothing says that what comes has
// changed.
func TestASteadyLoadIsBelieved(t *testing.T) {
	in := input([]float64{50, 200}, []float64{45, 10})
	s, out := Step(nil, in)
	for n := 1; n < 30; n++ {
		in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
		s, out = Step(s, in)
	}
	for r, o := range out.Sinks {
		if o.Stuck || o.Reading != Fresh {
			t.Errorf("sink %d: stuck %v, %v", r, o.Stuck, o.Reading)
		}
	}
}

func TestTrim(t *testing.T) {
	run := func(load float64, steps int, trim float64) float64 {
		in := input([]float64{100, 1000}, []float64{load, 10})
		for r := range in.Sinks {
			in.Sinks[r].Target = 0
		}
		w := begin(&State{Last: t0.Add(-15 * time.Second)}, in)
		m := &w.state.Sinks[0]
		m.Trim = trim
		k := &w.sinks[0]
		k.plain, k.load = 90, load
		for range steps {
			before := m.Trim
			w.setTrim(k, m, &in.Sinks[0])
			if math.Abs(m.Trim-before) > TrimStep+0.01 {
				t.Fatalf("a step from %v to %v", before, m.Trim)
			}
		}
		return m.Trim
	}
	if got := run(94, 20, 1); got != 1 {
		t.Errorf("within the dead band: %v", got)
	}
	if got := run(120, 1, 1); got > 0.98 || got < 0.93 {
		t.Errorf("one step of overload: %v", got)
	}
	if got := run(280, 500, 1); got > TrimFloor+0.01 {
		t.Errorf("much overload for ever: %v; want the floor", got)
	}
	if up, down := run(60, 1, 0.9)/0.9, 0.9/run(135, 1, 0.9); up >= down {
		t.Errorf("restores by %v and sheds by %v", up, down)
	}
	if got := run(60, 500, 0.2); got < 0.999 {
		t.Errorf("long after: %v", got)
	}
}

func TestSwings(t *testing.T) {
	var s Swings
	at := func(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }
	for n := range 40 { // noise
		s = s.watch(0.8+0.08*float64(n%2), at(n), time.Hour)
	}
	if yes, _ := s.verdict(); yes || len(s.Turns) > 0 {
		t.Errorf("noise: %+v", s)
	}
	for n := range 40 { // of a load far above the capacity
		s = s.watch(3+0.2*float64(n%2), at(n), time.Hour)
	}
	if yes, _ := s.verdict(); yes || len(s.Turns) > 0 {
		t.Errorf("noise: %+v", s)
	}
	s = Swings{}
	for n := range 10 {
		s = s.watch(0.7+0.4*float64(n%2), at(40+n), time.Hour)
	}
	if yes, amplitude := s.verdict(); !yes || math.Abs(amplitude-0.2) > 0.03 {
		t.Errorf("a cycle: %v %v", yes, amplitude)
	}
	s = s.watch(0.7, at(300), time.Hour)
	if yes, _ := s.verdict(); yes {
		t.Error("long ago and still oscillating")
	}
}
