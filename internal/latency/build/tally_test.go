package build

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
)

func tallyOf(ms ...float64) *tally {
	t := &tally{}
	for _, x := range ms {
		t.add(uint32(math.Round(x*unitsPerMs)), 1, weightOne)
	}
	return t
}

func upTo(n int, step float64) (ms []float64) {
	for i := range n {
		ms = append(ms, float64(i+1)*step)
	}
	return ms
}

// TestExclusiveQuartile holds p75 to what statistics.quantiles(n=4)[2] of Python
// gives.
func TestExclusiveQuartile(t *testing.T) {
	for _, c := range []struct {
		ms   []float64
		want float64
	}{
		{upTo(200, 1), 150.75},
		{upTo(8, 10), 67.5},
		{upTo(3, 1), 3},
		{upTo(4, 1), 3.75},
		{[]float64{5, 5, 5, 5, 80, 90}, 82.5},
		{upTo(512, 0.5), 192.375},
	} {
		if s := tallyOf(c.ms...).stat(); math.Abs(s.p75-c.want) > 1e-9 {
			t.Errorf("%v: p75 is %v, want %v", c.ms, s.p75, c.want)
		}
	}
}

// TestInterval holds the confidence interval of 200 samples to the order
// statistics 138 and 162.
func TestInterval(t *testing.T) {
	if s := tallyOf(upTo(200, 1)...).stat(); s.low != 137 && s.low != 138 || s.high != 162 && s.high != 163 {
		t.Errorf("interval of 1 to 200 is %v to %v, want 138 to 162", s.low, s.high)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	covered, const_ := 0, 4000
	for range const_ {
		ta := &tally{}
		for range 200 {
			ta.add(uint32(rng.IntN(1e6))+1, 1, weightOne)
		}
		if s := ta.stat(); s.low <= 7500 && s.high >= 7500 {
			covered++
		}
	}
	t.Logf("the interval covers the true p75 in %d of %d cases", covered, const_)
	if part := float64(covered) / float64(const_); part < 0.94 || part > 0.98 {
		t.Errorf("the interval covers the true p75 in %.3f of cases, want 0.95", part)
	}
}

// TestSketch holds that beyond the samples kept exactly the error stays within
// Accuracy, and that bins and quantiles are those of the DDSketch library.
func TestSketch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	library, err := ddsketch.NewDefaultDDSketch(Accuracy)
	if err != nil {
		t.Fatal(err)
	}
	var all []uint32
	ta := &tally{}
	for range 20001 {
		units := uint32(min(100*(40+15*math.Exp(0.9*rng.NormFloat64())), maxRTT*unitsPerMs))
		all = append(all, units)
		ta.add(units, 1, weightOne)
		if err := library.Add(float64(units) / unitsPerMs); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	if !ta.binned {
		t.Fatal("20001 samples are kept exactly")
	}
	for _, q := range []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99} {
		var got [1]float64
		ta.at([]float64{q*20000 + 1}, got[:])
		exact := float64(all[int(q*20000)]) / unitsPerMs
		theirs, err := library.GetValueAtQuantile(q)
		if err != nil || math.Abs(got[0]-exact) > 1.01*Accuracy*exact || math.Abs(got[0]-theirs) > 0.011 {
			t.Errorf("quantile %v is %v, exactly %v, by the library %v: %v", q, got[0], exact, theirs, err)
		}
	}
}

// TestMergeOrder holds that a tally of parts is the tally of the whole in any order.
func TestMergeOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var whole tally
		parts := make([]*tally, 1+rng.IntN(5))
		for i := range parts {
			parts[i] = &tally{}
			for range rng.IntN(700) {
				units, weight := uint32(1+rng.IntN(1e5)), uint64(1+rng.IntN(weightOne))
				parts[i].add(units, 1, weight)
				whole.add(units, 1, weight)
			}
		}
		whole.spread()
		want := whole.stat()
		for range 3 {
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			var sum tally
			for _, p := range parts {
				sum.merge(p)
			}
			sum.spread()
			if got := sum.stat(); got != want {
				t.Fatalf("parts make %v, the whole %v", &got, &want)
			}
			sum.reset()
			sum.spread()
			if s := sum.stat(); s != (stat{}) {
				t.Fatalf("a tally that was emptied has %v", &s)
			}
		}
	}
}

// TestShape holds that rows with only a p75 keep it, and get an interval that narrows
// with the root of their number.
func TestShape(t *testing.T) {
	for _, n := range []uint64{1, 4, 61, 62, 63, 200, 1000, 123457} {
		for _, ms := range []float64{0.05, 12, 83.4, 2500} {
			var c cell
			c.shape(uint32(ms*unitsPerMs), n)
			c.binned = true
			var ta tally
			ta.addCell(&c, weightOne)
			s := ta.stat()
			if ta.raw != n {
				t.Errorf("%d samples became %d", n, ta.raw)
			}
			if n >= 61 && math.Abs(s.p75-ms) > 0.03*ms {
				t.Errorf("%d samples with p75 %v have %v", n, ms, s.p75)
			}
			if ms > 1 && n == 200 && (s.high-s.low)/s.p75 < 0.08 || n == 123457 && (s.high-s.low)/s.p75 > 0.05 {
				t.Errorf("interval of %d is %v to %v", n, s.low, s.high)
			}
		}
	}
}
