package capacity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// death is the state after a step with everybody up, and the input in which A is down.
func death(caps, loads []float64) (*State, *Input) {
	in := input(caps, loads)
	s, _ := Step(nil, in)
	dead := *in
	dead.Sinks = append([]Sink(nil), in.Sinks...)
	dead.Now = t0.Add(15 * time.Second)
	dead.Sinks[0].Health = 0
	return s, &dead
}

func TestCascadeWithoutRoom(t *testing.T) {
	s, in := death([]float64{48, 36, 24}, []float64{40, 30, 20})
	_, out := Step(s, in)
	wantNear(t, "deficit", out.Deficit, 30)
	wantNear(t, "B", out.Sinks[1].Expected, 54)
	wantNear(t, "C", out.Sinks[2].Expected, 36)
	if !out.Urgent || out.Left != 0 {
		t.Errorf("urgent %v, %v left; want everything moved at once", out.Urgent, out.Left)
	}
}

func TestCascadeWithRoom(t *testing.T) {
	s, in := death([]float64{48, 45, 45}, []float64{40, 30, 20})
	_, out := Step(s, in)
	wantNear(t, "deficit", out.Deficit, 0)
	wantNear(t, "B", out.Sinks[1].Expected, 45)
	wantNear(t, "C", out.Sinks[2].Expected, 45)
	flow := flowsOf(in, out, 0)
	wantNear(t, "A's to B", flow[1]*40, 15)
	wantNear(t, "A's to C", flow[2]*40, 25)
}

// Between the death and the next step the admissions of before count. They keep the
// neighbour from being overrun, too.
func TestAdmissionsAreReadyForADeath(t *testing.T) {
	for _, c := range [][]float64{{48, 45, 45}, {48, 36, 24}} {
		in := input(c, []float64{40, 30, 20})
		_, out := Step(nil, in)
		in.Sinks[0].Health = 0
		flow := flowsOf(in, out, 0)
		_, want := Step(nil, in) // as if it had been so from the start
		if got := 30 + 40*flow[1]; math.Abs(got-want.Sinks[1].Expected) > 1 && got > c[1] {
			t.Errorf("capacities %v: %v at B until the next step", c, got)
		}
	}
}

func TestWaterfall(t *testing.T) {
	in := input([]float64{4000, 9000}, []float64{4600, 1000})
	_, out := Step(nil, in)
	wantNear(t, "spilled", flowsOf(in, out, 0)[1]*4600, 600)
}

func TestAStepMovesTenPointsAtMost(t *testing.T) {
	in := input([]float64{100, 100}, []float64{50, 50})
	s, _ := Step(nil, in)
	in.Sinks[0].Signal.Value = 200
	in.Sinks[1].Capacity = 1000
	moved := 0.0
	for n := 1; n <= 40; n++ {
		in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
		before := s
		var out *Output
		s, out = Step(s, in)
		if out.Moved > MaxMove+1e-9 {
			t.Fatalf("step %d moved %v", n, out.Moved)
		}
		moved += out.Moved
		if n == 1 && len(before.History) > 0 {
			// A second later only a part of the budget is there again.
			hasty := *in
			hasty.Now = in.Now.Add(time.Second)
			if _, o := Step(s, &hasty); o.Moved > MaxMove/5+1e-9 {
				t.Errorf("a step after 1 s moved %v", o.Moved)
			}
		}
	}
	if moved < 0.2 {
		t.Errorf("moved %v in all", moved)
	}
}

func TestGrowthLimitsWhatOthersSpill(t *testing.T) {
	in := input([]float64{50, 100, 100}, []float64{50, 40, 10})
	in.Sinks[1].Growth = 0.3
	s, _ := Step(nil, in)
	for n := 1; n <= 2; n++ { // A's demand rises to 80; loads stay as they are until the spill begins
		in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
		in.Sinks[0].Signal.Value = 80
		s, _ = Step(s, in)
	}
	_, out := Step(s, in)
	if w := out.Sinks[1].Wanted; w > 52*(1+1e-6) || w < 50 {
		t.Errorf("%v at B; want 52, 1.3 times its own 40", w)
	}
	if out.Sinks[2].Wanted < 11 {
		t.Errorf("%v at C; want the rest", out.Sinks[2].Wanted)
	}
}

func TestFullSinksShrink(t *testing.T) {
	in := input([]float64{100, 1000}, []float64{50, 10})
	s, _ := Step(nil, in)
	now := 0
	run := func(full bool, steps int) (load float64) {
		in.Sinks[0].Full = full
		for range steps {
			now++
			in.Now = t0.Add(time.Duration(now) * 30 * time.Second)
			before := in.Sinks[0].Signal.Value
			var out *Output
			s, out = Step(s, in)
			if full && out.Sinks[0].Limit > 0.9*before+1e-9 {
				t.Fatalf("step %d: limit %v with a load of %v", now, out.Sinks[0].Limit, before)
			}
			a, b := flowsOf(in, out, 0), flowsOf(in, out, 1)
			in.Sinks[0].Signal.Value = 50*a[0] + 10*b[0]
			in.Sinks[1].Signal.Value = 50*a[1] + 10*b[1]
		}
		return in.Sinks[0].Signal.Value
	}
	if load := run(true, 6); load > 40 || load < 5 {
		t.Errorf("%v after six steps of being full", load)
	}
	if load := run(false, 3); load > 47 {
		t.Errorf("%v right after; it must come back slowly", load)
	}
	if load := run(false, 200); load < 49 {
		t.Errorf("%v long after; want all of its own back", load)
	}
}

func TestSoakIsNobodysCandidate(t *testing.T) {
	in := input([]float64{40, 100, 100}, []float64{60, 10, 5})
	in.Sinks[1].Soak = true
	_, out := Step(nil, in)
	if flow := flowsOf(in, out, 0); flow[1] != 0 {
		t.Errorf("A's clients go to the soak: %v", flow)
	}
	wantNear(t, "soak's flow", out.Sinks[1].Wanted, 10)
}

func TestNoWeightIsTheSmallestWeight(t *testing.T) {
	for _, w := range []float64{0, 1e-12, math.NaN(), -1} {
		in := input([]float64{50, 30, 100}, []float64{100, 10, 10})
		in.Groups = append(in.Groups, Group{Weight: w, Sinks: []int{0, 2, 1}})
		_, out := Step(nil, in)
		flow := flowsOf(in, out, 3)
		wantNear(t, "stays", flow[0], 0.5)
		wantNear(t, "goes on", flow[2], 0.5)
	}
}

func TestTheStateIsPlainDataAndNeverChanges(t *testing.T) {
	in := input([]float64{48, 36, 36}, []float64{60, 20, 20})
	var s *State
	for n := range 20 {
		in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
		in.Sinks[0].Signal.Value = 60 - float64(n%5)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var copied *State
		if err := json.Unmarshal(text, &copied); err != nil {
			t.Fatal(err)
		}
		next, out := Step(s, in)
		fromCopy, same := Step(copied, in)
		if !reflect.DeepEqual(out, same) || !reflect.DeepEqual(next.Rows, fromCopy.Rows) {
			t.Fatalf("step %d differs after JSON", n)
		}
		if after, _ := json.Marshal(s); string(after) != string(text) {
			t.Fatalf("step %d changed its state", n)
		}
		s = next
	}
}

func TestAnOlderConfigurationsStateServes(t *testing.T) {
	in := input([]float64{48, 36, 36}, []float64{60, 20, 20})
	s, _ := Step(nil, in)
	for n := 1; n < 10; n++ {
		in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
		s, _ = Step(s, in)
	}
	demand := s.Sinks[0].Demand
	// B goes, D comes, and the order turns round.
	now := input([]float64{30, 36, 48}, []float64{5, 20, 43})
	now.Now = in.Now.Add(15 * time.Second)
	for r, name := range []string{"D", "C", "A"} {
		now.Sinks[r].Name = name
	}
	next, out := Step(s, now)
	if d := out.Sinks[2].Demand; d < 50 {
		t.Errorf("A's demand %v; it was %v, and a third of it spills", d, demand)
	}
	wantNear(t, "D's demand", out.Sinks[0].Demand, 5)
	if !reflect.DeepEqual(next.Names, []string{"D", "C", "A"}) {
		t.Errorf("names %v", next.Names)
	}
}

// The order of groups and sinks changes nothing that matters.
func TestOrderOfGroupsDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 100 {
		in := randomInput(rng)
		_, a := Step(nil, in)
		perm := rng.Perm(len(in.Groups))
		turned := *in
		turned.Groups = make([]Group, len(perm))
		for i, p := range perm {
			turned.Groups[i] = in.Groups[p]
		}
		_, b := Step(nil, &turned)
		for r := range a.Sinks {
			if w, v := a.Sinks[r].Wanted, b.Sinks[r].Wanted; math.Abs(w-v) > 1e-3*(1+w) && a.Deficit == 0 {
				t.Fatalf("sink %d: %v and %v", r, w, v)
			}
		}
	}
}

// randomInput is sinks of every kind with groups over them.
func randomInput(rng *rand.Rand) *Input {
	n := 2 + rng.IntN(6)
	in := &Input{Now: t0, TTL: time.Minute}
	for r := range n {
		s := Sink{
			Name: string(rune('A' + r)), Capacity: float64(rng.IntN(80)), Health: 1, Dial: 1,
			Drained: rng.IntN(10) == 0, Soak: rng.IntN(10) == 0,
			Signal: Signal{Value: 60 * rng.Float64(), Valid: rng.IntN(6) > 0},
		}
		if rng.IntN(4) == 0 {
			s.Health, s.Dial = float64(rng.IntN(3))/2, float64(rng.IntN(3))/2
		}
		in.Sinks = append(in.Sinks, s)
	}
	for range 1 + rng.IntN(8) {
		in.Groups = append(in.Groups, Group{Weight: rng.Float64(), Sinks: rng.Perm(n)[:1+rng.IntN(n)]})
	}
	return in
}

// With nobody open there is nothing to decide: what is done then is not for here, and
// no admission stands in its way.
func TestNobodyIsOpen(t *testing.T) {
	for name, close := range map[string]func(*Sink){
		"drained": func(s *Sink) { s.Drained = true },
		"dial 0":  func(s *Sink) { s.Dial = 0 },
		"down":    func(s *Sink) { s.Health = 0 },
	} {
		in := input([]float64{50, 50}, []float64{40, 30})
		s, _ := Step(nil, in)
		in.Now = t0.Add(15 * time.Second)
		for r := range in.Sinks {
			close(&in.Sinks[r])
		}
		next, out := Step(s, in)
		for g, row := range out.Admission {
			if row[0] != 1 || row[1] != 1 {
				t.Errorf("%s, group %d: %v; want all 1", name, g, row)
			}
		}
		// And its demand is still known when they are back.
		wantNear(t, name+": demand", next.Sinks[0].Demand+next.Sinks[1].Demand, 70)
	}
}
