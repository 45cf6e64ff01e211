package sim

import (
	"testing"

	"github.com/seed-945f90c5/gslb/internal/capacity"
)

// bounds are what a run must keep to.
type bounds struct {
	full    float64 // the utilisation that counts as too much; 0: 1
	longest int     // seconds for which a region may be above it without a break
	overall int     // and in all
	settled int     // when all has settled
	swing   float64 // half of the difference between highest and lowest after that; 0: 0.05
}

// breaks says which bounds the run breaks.
func (b bounds) breaks(res *Result) (broken []string) {
	full, swing, end := b.full, b.swing, res.Scenario.Length
	if full == 0 {
		full = 1
	}
	if swing == 0 {
		swing = 0.05
	}
	if res.Longest(full, 0, end) > b.longest || res.Above(full, 0, end) > b.overall {
		broken = append(broken, "overload")
	}
	if res.Amplitude(b.settled, end) >= swing {
		broken = append(broken, "amplitude")
	}
	if res.Above(full, b.settled, end) > 0 {
		broken = append(broken, "overload after settling")
	}
	return broken
}

// hold runs the scenario with our law, which must keep the bounds, and with the naive
// ones, which must not: else the scenario tells nothing.
func hold(t *testing.T, sc Scenario, b bounds) *Result {
	t.Helper()
	ours := sc.Run(Ours)
	end := sc.Length
	t.Logf("%s: above 100 %% for %d s at most, %d s in all, overload %.0f, peak after settling %.3f, amplitude %.3f",
		sc.Name, ours.Longest(1, 0, end), ours.Above(1, 0, end), ours.Overload(0, end), ours.Peak(b.settled, end), ours.Amplitude(b.settled, end))
	if broken := b.breaks(ours); broken != nil {
		t.Errorf("%s breaks %v", sc.Name, broken)
	}
	for name, law := range map[string]func() Law{"nearest": Nearest, "watermark": Watermark(0.8, 1)} {
		res := sc.Run(law)
		broken := b.breaks(res)
		t.Logf("%s: %s breaks %v, overload %.0f, amplitude %.3f", sc.Name, name, broken, res.Overload(0, end), res.Amplitude(b.settled, end))
		if broken == nil {
			t.Errorf("%s: %s keeps all bounds, too", sc.Name, name)
		}
	}
	return ours
}

func TestCascadeIsADeficitSharedEvenly(t *testing.T) {
	sc := Cascade("cascade", 36, 24)
	res := sc.Run(Ours)
	from, to := sc.Length-900, sc.Length
	b, c := res.Mean(B, from, to), res.Mean(C, from, to)
	if b < 1.47 || b > 1.53 || c < 1.47 || c > 1.53 {
		t.Errorf("B %.3f, C %.3f; want 1.5 each", b, c)
	}
	if a := res.Amplitude(from, to); a >= 0.05 {
		t.Errorf("amplitude %.3f", a)
	}
	if p := res.Peak(0, to); p > 1.55 {
		t.Errorf("peak %.3f", p)
	}
	for _, out := range res.Steps {
		if out.Urgent && (out.Deficit < 27 || out.Deficit > 33) {
			t.Errorf("deficit %v when A is known to be down; want 30", out.Deficit)
		}
	}
	last := res.Steps[sc.Length-sc.Step]
	if last == nil || last.Deficit < 28 || last.Deficit > 32 {
		t.Errorf("last step: %+v; want a deficit of 30", last)
	}
	if nearest := sc.Run(Nearest); nearest.Mean(B, from, to) < 1.9 {
		t.Error("nearest only spares B")
	}
	if watermark := sc.Run(Watermark(0.8, 1)); watermark.Amplitude(from, to) < 0.5 {
		t.Error("the watermark law doesn't oscillate")
	}
}

// The room is exactly what is needed, so 100 % can be met only within the noise of
// what is measured: 2 %.
func TestCascadeWithRoom(t *testing.T) {
	hold(t, Cascade("cascade with room", 45, 45), bounds{full: 1.02, longest: 0, overall: 0, settled: 1200})
}

func TestSurge(t *testing.T) {
	res := hold(t, Surge("surge"), bounds{longest: 120, overall: 120, settled: 1200})
	if res.Peak(1200, res.Scenario.Length) > 0.96 {
		t.Error("the target, 0.9, is missed by more than droop and noise")
	}
	sc := Surge("surge")
	if b := (bounds{longest: 120, overall: 120, settled: 1200}).breaks(sc.Run(BangBang(0.9))); b == nil {
		t.Error("bang-bang keeps all bounds, too")
	}
}

func TestFrozenSensor(t *testing.T) {
	res := hold(t, Frozen(), bounds{longest: 120, overall: 120, settled: 1200})
	if r := res.Steps[1200].Sinks[B].Reading; r != capacity.Absent {
		t.Errorf("the frozen signal is %v", r)
	}
}

func TestStuckSensor(t *testing.T) {
	res := hold(t, Stuck(), bounds{longest: 120, overall: 120, settled: 1500})
	if !res.Steps[1200].Sinks[A].Stuck {
		t.Error("the stuck signal is not found out")
	}
}

func TestDoubledDelay(t *testing.T) {
	hold(t, Late(), bounds{longest: 150, overall: 150, settled: 1200})
}

// The bounds follow from the caches: most resolvers ask again within a TTL.
func TestLifetimes(t *testing.T) {
	hold(t, Lifetime(30), bounds{longest: 90, overall: 90, settled: 1200})
	hold(t, Lifetime(60), bounds{longest: 120, overall: 120, settled: 1200})
	hold(t, Lifetime(300), bounds{longest: 300, overall: 300, settled: 1800})
}

// No law can split a resolver; what counts is that it is not sent to and fro. When there
// is room for it, everybody is at home again.
func TestOneBigResolver(t *testing.T) {
	const settled, night, quiet = 1800, 7200, 9000
	for _, seed := range []uint64{2, 3, 4, 11} { // its hash lies at 0.89, 0.92, 0.70, 0.90
		sc := OneBig()
		sc.Seed, sc.Length = seed, 10800
		for i := 1; i <= 10; i++ {
			part := 1 - 0.06*float64(i)
			sc.Events = append(sc.Events, Event{night + 120*i, func(c *Controls) { copy(c.Demand, []float64{60 * part, 20 * part, 20 * part}) }})
		}
		res := sc.Run(Ours)
		t.Logf("seed %d: amplitude %v, at night A has %v", seed, res.Amplitude(settled, night), res.Mean(A, quiet, sc.Length))
		if l := res.Longest(1, 0, sc.Length); l > 240 {
			t.Errorf("seed %d: above 100 %% for %d s", seed, l)
		}
		if a := res.Amplitude(settled, night); a >= 0.05 {
			t.Errorf("seed %d: amplitude %.3f", seed, a)
		}
		if n := res.Above(1, settled, night); n > 0 {
			t.Errorf("seed %d: above 100 %% for %d s after settling", seed, n)
		}
		if o := res.Steps[night-sc.Step].Sinks[A]; !o.Damped || o.Lump < 25 || o.Lump > 40 {
			t.Errorf("seed %d: %+v; want A damped, with a lump of 30", seed, o)
		}
		if a, o := res.Mean(A, quiet, sc.Length), res.Steps[sc.Length-sc.Step].Sinks[A]; a < 0.47 || o.Damped {
			t.Errorf("seed %d: at night A has %.3f, damped %v; want its 24 of 48 back", seed, a, o.Damped)
		}
	}
	sc := OneBig()
	if w := sc.Run(Watermark(0.8, 1)); w.Amplitude(settled, sc.Length) < 0.05 {
		t.Error("the watermark law doesn't oscillate")
	}
}

func TestTwoInstances(t *testing.T) {
	sc := TwoInstances()
	res := hold(t, sc, bounds{longest: 120, overall: 240, settled: 2700})
	join, end := sc.Instances[1].Start, sc.Length
	t.Logf("apart by %.3f at first, %.3f after 20 minutes, %.3f in the last", res.Apart(0, 1, join, join+60), res.Apart(0, 1, join+1200, join+1260), res.Apart(0, 1, end-1200, end))
	if a := res.Apart(0, 1, join, end); a > 0.25 {
		t.Errorf("apart by %.3f", a)
	}
	if a := res.Apart(0, 1, join+1200, end); a > capacity.MaxMove {
		t.Errorf("apart by %.3f 20 minutes later; want a step's move at most", a)
	}
	if a := res.Apart(0, 1, end-1200, end); a > 0.03 {
		t.Errorf("apart by %.3f in the end", a)
	}
	// Two that saw the same surge, one of them for twice as long, hardly differ.
	sc.Instances[1].Start = 307
	if a := sc.Run(Ours).Apart(0, 1, 307, end); a > capacity.MaxMove {
		t.Errorf("apart by %.3f with states of 5 and 10 minutes", a)
	}
}

func TestRecovery(t *testing.T) {
	res := hold(t, Recovery(), bounds{longest: 0, overall: 0, settled: 4500})
	if a := res.Mean(A, 4500, 5400); a < 0.8 {
		t.Errorf("A has %.3f in the end; want its 40 of 48 back", a)
	}
}

func TestAllDown(t *testing.T) {
	sc := AllDown()
	res := sc.Run(Ours)
	if a := res.Amplitude(3900, sc.Length); a >= 0.05 {
		t.Errorf("amplitude %.3f", a)
	}
	if l := res.Longest(1, 0, sc.Length); l > 180 {
		t.Errorf("above 100 %% for %d s", l)
	}
	if n := res.Above(1, 2700, sc.Length); n > 0 {
		t.Errorf("above 100 %% for %d s long after", n)
	}
	if b := (bounds{longest: 180, overall: 240, settled: 3900}).breaks(sc.Run(Nearest)); b == nil {
		t.Error("nearest only keeps all bounds, too")
	}
}

func TestRunsAreReproducible(t *testing.T) {
	sc := Surge("surge")
	sc.Length = 900
	a, b := sc.Run(Ours), sc.Run(Ours)
	for r := range a.Load {
		if !equal(a.Load[r], b.Load[r]) {
			t.Fatalf("region %d differs", r)
		}
	}
}
