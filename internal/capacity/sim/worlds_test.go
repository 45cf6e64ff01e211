package sim

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/capacity"
)

// demand is the demand by list after all events.
func (sc *Scenario) demand() []float64 {
	c := Controls{Demand: slices.Clone(sc.Demand)}
	for _, e := range sc.Events {
		e.Change(&c)
	}
	return c.Demand
}

// lumps is by region the part of its capacity that the largest resolver has, which no law can split.
func (sc *Scenario) lumps() []float64 {
	sum := 0.0
	for i := range sc.Resolvers {
		sum += math.Pow(float64(i+1), -sc.Zipf)
	}
	largest, out := slices.Max(sc.demand())/sum, make([]float64, len(sc.Regions))
	for r := range out {
		out[r] = largest / sc.Regions[r].Capacity
	}
	return out
}

// follow is in how many seconds after Shock resolvers have followed so far that no region is full of
// those who still keep an old answer, whom no law reaches: what has to leave a region must not be more,
// by them, than what is left free above the target.
func (sc *Scenario) follow() (seconds int) {
	home := make([]float64, len(sc.Regions))
	for l, d := range sc.demand() {
		home[sc.Lists[l][0]] += d
	}
	left := func(at, ttl int) float64 { return max(0, 1-float64(at)/float64(ttl)) }
	for r, region := range sc.Regions {
		free := (1 - capacity.DefaultTarget) * region.Capacity
		leave := home[r] - capacity.DefaultTarget*region.Capacity
		at := sc.TTL
		for leave*(sc.Clamp*left(at, sc.ClampFor)+sc.Sticky*left(at, sc.StickyFor)) > free {
			at++
		}
		seconds = max(seconds, at)
	}
	return seconds
}

// longest is for how many seconds a region may be above full: until loads are read and all has moved, and
// resolvers have followed, and then half a TTL longer, as it is the trim that sees that those who stay are more
// than their hashes promised.
func (sc *Scenario) longest() int { return 180 + sc.follow() + sc.TTL/2 }

// damped says when the first region was damped, if any.
func (res *Result) damped() (at int, yes bool) {
	for at := range res.Scenario.Length {
		if out := res.Steps[at]; out != nil && slices.ContainsFunc(out.Sinks, func(o capacity.SinkOutput) bool { return o.Damped }) {
			return at, true
		}
	}
	return 0, false
}

// settles holds the run of a scenario with resolvers none of which matters by itself against the
// bounds of the law: no region is above full for longer than resolvers take to follow, and nothing is
// taken for a big resolver. It says whether all that keeps still after a while: below 100 % and without
// swings.
func settles(t *testing.T, res *Result, full float64, settled int) bool {
	t.Helper()
	sc := res.Scenario
	above, a := res.Above(1, 2400, sc.Length), res.Amplitude(settled, sc.Length)
	t.Logf("%s: peak %.2f, amplitude %.3f, above 100 %% for %d s after settling", sc.Name, res.Peak(Shock, sc.Length), a, above)
	if l, most := res.Longest(full, Shock, sc.Length), sc.longest(); l > most {
		t.Errorf("%s: above %v for %d s; want %d s at most", sc.Name, full, l, most)
	}
	if at, yes := res.damped(); yes {
		t.Errorf("%s: damped at %d s", sc.Name, at)
	}
	return above <= 30 && a < 0.05
}

// Where no resolver matters by itself, two of many worlds may swing by more than 5 %, as where
// signals are twice as late as the law takes them to be.
func TestRandomEqualResolvers(t *testing.T) {
	restless := 0
	for seed := range uint64(48) {
		sc := random(seed)
		sc.Zipf = 0
		res := sc.Run(Ours)
		if !settles(t, res, 1, 2700) {
			restless++
		}
		if a := res.Amplitude(2700, sc.Length); a >= 0.08 {
			t.Errorf("%s: amplitude %.3f", sc.Name, a)
		}
	}
	if restless > 2 {
		t.Errorf("%d don't settle", restless)
	}
}

// Where resolvers differ, one may be up to 13 % of a region, and no law can split it. The bounds hold but
// for one such that comes or goes at either end of a swing.
func TestRandomResolvers(t *testing.T) {
	const settled = 2700
	swings, damped := 0, 0
	for seed := range uint64(48) {
		sc := random(seed)
		res := sc.Run(Ours)
		t.Logf("%s: peak %.2f, amplitude %.3f", sc.Name, res.Peak(Shock, sc.Length), res.Amplitude(settled, sc.Length))
		if l, most := res.Longest(1, Shock, sc.Length), sc.longest(); l > most {
			t.Errorf("%s: above 100 %% for %d s; want %d s at most", sc.Name, l, most)
		}
		for r, lump := range sc.lumps() {
			low, high := res.Range(r, settled, sc.Length)
			if full := max(1, (1+capacity.DeadBand)*capacity.DefaultTarget+lump); high > full+0.02 {
				t.Errorf("%s: region %d is at %.3f after settling; want %.3f at most", sc.Name, r, high, full)
			}
			if a := (high - low) / 2; a >= 0.05+lump {
				t.Errorf("%s: amplitude %.3f of region %d, of which a resolver may be %.3f", sc.Name, a, r, lump)
			}
		}
		if res.Amplitude(settled, sc.Length) >= 0.05 {
			swings++
		}
		if _, yes := res.damped(); yes {
			damped++
		}
	}
	t.Logf("an amplitude of 0.05 or more: %d; damped: %d", swings, damped)
	if swings > 8 || damped > 3 {
		t.Errorf("an amplitude of 0.05 or more: %d; damped: %d", swings, damped)
	}
}
