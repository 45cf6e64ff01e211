package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "12": "12", "-1.5": "-1.5", "+3": "3", ".5": "0.5", "1e3": "1000", "1E-2": "0.01",
		"NaN": "NaN", "+Inf": "+Inf", "-Inf": "-Inf", "Inf": "+Inf",
		"":                               "there is nothing, expected a number",
		"1 2":                            `"1 2" is not a number`,
		"0x10":                           `"0x10" is not a number`,
		"1_0":                            `"1_0" is not a number`,
		"nan":                            `"nan" is not a number`,
		"inf":                            `"inf" is not a number`,
		"1e":                             `"1e" is not a number`,
		"1,5":                            `"1,5" is not a number`,
		"١":                              `"١" is not a number`,
		"1e999":                          `"1e999" is beyond all numbers that can be read`,
		strings.Repeat("1", maxNumber+1): fmt.Sprintf("%.40q is not a number", strings.Repeat("1", maxNumber)),
	} {
		v, err := parseNumber(text)
		got := fmt.Sprint(v)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"1", "-0", "1e308", "NaN", "0x1p-2", "1_000", " 1", "infinity"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p Pushed
		p.Offer(text, noon)
		r := p.Reading()
		if r.OK() == (r.Err != nil) || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || math.Signbit(r.Value) {
			t.Errorf("%q: %+v", text, r)
		}
		if r.OK() && strings.Trim(text, " \t+-.eE0123456789") != "" {
			t.Errorf("%q is taken for %v", text, r.Value)
		}
	})
}

func TestPushed(t *testing.T) {
	p := &Pushed{Score: true}
	if _, ok := p.Reading().Age(noon); ok || p.Reading().OK() {
		t.Error("a reading of nothing")
	}
	steps := []struct {
		value    string
		want     float64
		at       int // seconds after noon
		err      string
		failures int
	}{
		{" 0.25\t", 0.25, 0, "", 0},
		{"1.01", 0.25, 0, "the value is 1.01, expected a score of 0 to 1", 1},
		{"-0.1", 0.25, 0, "the value is -0.1, expected none below 0", 2},
		{"NaN", 0.25, 0, "the value is NaN, expected a number", 3},
		{"+Inf", 0.25, 0, "the value is infinite, expected a finite number", 4},
		{"0.1, 0.2", 0.25, 0, `"0.1, 0.2" is not a number`, 5},
		{"1", 1, 6, "", 0},
	}
	for i, s := range steps {
		p.Offer(s.value, noon.Add(time.Duration(i)*time.Second))
		r := p.Reading()
		if r.Value != s.want || !r.At.Equal(noon.Add(time.Duration(s.at)*time.Second)) || r.Failures != s.failures ||
			(r.Err == nil) != (s.err == "") || r.Err != nil && r.Err.Error() != s.err {
			t.Errorf("%q: %+v, want %+v", s.value, r, s)
		}
	}
	if age, ok := p.Reading().Age(noon.Add(time.Minute)); !ok || age != 54*time.Second {
		t.Errorf("age %v", age)
	}
	if age, ok := p.Reading().Age(noon); !ok || age != 0 {
		t.Errorf("age %v of a reading from the future", age)
	}
}

// TestTotal compares with the rule done one endpoint at a time.
func TestTotal(t *testing.T) {
	const period = 10 * time.Second
	rng := rand.New(rand.NewPCG(1, 2))
	silentSome := 0
	for range 2000 {
		all := make([]Reading, rng.IntN(6))
		var ages []time.Duration
		sum, counted, failures := 0.0, 0, 0
		for i := range all {
			age := time.Duration(rng.IntN(201)) * time.Second
			if rng.IntN(5) > 0 {
				all[i] = Reading{Value: float64(rng.IntN(100)), At: noon.Add(-age)}
			}
			if rng.IntN(3) == 0 {
				all[i].Err, all[i].Failures = fmt.Errorf("broken %d", i), 1+rng.IntN(9)
				failures = max(failures, all[i].Failures)
			}
			if all[i].OK() && age <= 100*time.Second {
				sum, counted, ages = sum+all[i].Value, counted+1, append(ages, age)
			}
		}
		for _, got := range []Total{Sum(all, period, noon), Mean(all, period, noon)} {
			if got.Counted != counted || got.Silent != len(all)-counted || got.OK() != (counted > 0) || got.Failures != failures {
				t.Fatalf("%+v of %+v", got, all)
			}
			if age, _ := got.Age(noon); counted > 0 && age != slices.Max(ages) {
				t.Fatalf("age %v of %v", age, ages)
			}
			if (got.Err == nil) != (failures == 0 && counted > 0) {
				t.Fatalf("error %v of %+v", got.Err, all)
			}
			silentSome += got.Silent
		}
		mean := 0.0
		if counted > 0 {
			mean = sum / float64(counted)
		}
		if s, m := Sum(all, period, noon).Value, Mean(all, period, noon).Value; s != sum || m != mean {
			t.Fatalf("sum %v mean %v, want %v %v", s, m, sum, mean)
		}
	}
	t.Logf("%d were silent", silentSome)
	if silentSome == 0 {
		t.Error("nothing was silent")
	}
	huge := Reading{Value: math.MaxFloat64, At: noon}
	if got := Sum([]Reading{huge, huge}, period, noon); got.OK() || got.Err == nil || got.Value != 0 {
		t.Errorf("%+v", got)
	}
}
