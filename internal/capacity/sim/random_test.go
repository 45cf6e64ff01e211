package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// random is a scenario of any size with demand that changes at Shock to what the
// capacities can hold, TTLs, steps and delays of all kinds, and delays that no age
// shows.
func random(seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, 1))
	sc := Base(fmt.Sprint("random ", seed))
	sc.Seed, sc.Resolvers, sc.Length = seed, 600, 4200
	n := 2 + rng.IntN(5)
	limit := 0.0
	for r := range n {
		sc.Regions = append(sc.Regions, Region{Name: fmt.Sprint(r), Capacity: 20 + 60*rng.Float64()})
		limit += 0.9 * sc.Regions[r].Capacity
	}
	for l := range n + rng.IntN(n) {
		list := rng.Perm(n)
		for i, r := range list {
			if l < n && r == l {
				list[0], list[i] = list[i], list[0]
			}
		}
		sc.Lists = append(sc.Lists, list)
	}
	spread := func(load float64) []float64 {
		d, sum := make([]float64, len(sc.Lists)), 0.0
		for i := range d {
			d[i] = rng.ExpFloat64()
			sum += d[i]
		}
		for i := range d {
			d[i] *= load * limit / sum
		}
		return d
	}
	sc.Demand = spread(0.5)
	next := spread(0.6 + 0.32*rng.Float64())
	sc.Events = append(sc.Events, Event{Shock, func(c *Controls) { copy(c.Demand, next) }})
	sc.TTL = []int{20, 30, 60, 120, 300}[rng.IntN(5)]
	sc.Step = []int{5, 10, 15, 30}[rng.IntN(4)]
	sc.Period = []int{10, 15, 30}[rng.IntN(3)]
	sc.Delay, sc.Hidden = rng.IntN(20), rng.IntN(15)
	return sc
}

func TestRandomScenarios(t *testing.T) {
	oscillates := 0
	for seed := range uint64(16) {
		sc := random(seed)
		res := sc.Run(Ours)
		t.Logf("%s: peak %v, amplitude %v", sc.Name, res.Peak(Shock, sc.Length), res.Amplitude(2700, sc.Length))
		if l := res.Longest(1, Shock, sc.Length); l > 180+sc.TTL {
			t.Errorf("%s: above 100 %% for %d s with a TTL of %d s", sc.Name, l, sc.TTL)
		}
		if n := res.Above(1, 2400, sc.Length); n > 30 {
			t.Errorf("%s: above 100 %% for %d s after settling", sc.Name, n)
		}
		if a := res.Amplitude(2700, sc.Length); a >= 0.05 {
			t.Errorf("%s: amplitude %.3f", sc.Name, a)
		}
		if seed < 6 && sc.Run(Watermark(0.8, 1)).Amplitude(2700, sc.Length) >= 0.05 {
			oscillates++
		}
	}
	if oscillates == 0 {
		t.Error("the watermark law never oscillates")
	}
}

// Loads that are read every second or so arrive when they are many periods old, and
// show every step that resolvers make: both are as they should be.
func TestLoadsThatComeOften(t *testing.T) {
	for _, seed := range []uint64{3, 28} {
		for _, ttl := range []int{30, 300} {
			for _, period := range []int{1, 5} {
				for _, delay := range []int{0, 10, 30} {
					sc := random(seed)
					sc.Name = fmt.Sprintf("random %d, TTL %d s, loads every %d s, %d s late", seed, ttl, period, delay)
					sc.TTL, sc.Step, sc.Period, sc.Delay, sc.Hidden = ttl, period, period, delay, 0
					res := sc.Run(Ours)
					t.Logf("%s: peak %v, amplitude %v", sc.Name, res.Peak(Shock, sc.Length), res.Amplitude(3300, sc.Length))
					if l := res.Longest(1.01, Shock, sc.Length); l > 180+ttl {
						t.Errorf("%s: above 101 %% for %d s", sc.Name, l)
					}
					if n := res.Above(1, 2400, sc.Length); n > 30 {
						t.Errorf("%s: above 100 %% for %d s after settling", sc.Name, n)
					}
					if a := res.Amplitude(3300, sc.Length); a >= 0.05 {
						t.Errorf("%s: amplitude %.3f", sc.Name, a)
					}
					for at, out := range res.Steps {
						for r, o := range out.Sinks {
							if o.Damped {
								t.Fatalf("%s: region %d is damped at %d s", sc.Name, r, at)
							}
						}
					}
				}
			}
		}
	}
}
