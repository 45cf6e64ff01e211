package sim

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
)

// away is our law that makes no step from..to seconds: what it admitted then holds. Where it
// restarts, it goes on from a copy of its state.
type away struct {
	state    *capacity.State
	last     [][]float64
	from, to int
	restarts bool
}

func (a *away) Step(in *capacity.Input) ([][]float64, *capacity.Output) {
	now := int(in.Now.Sub(start) / time.Second)
	if now >= a.from && now < a.to {
		return a.last, nil
	}
	if a.restarts && now >= a.to {
		text, err := json.Marshal(a.state)
		if err != nil {
			panic(err)
		}
		a.state, a.restarts = &capacity.State{}, false
		if err := json.Unmarshal(text, a.state); err != nil {
			panic(err)
		}
	}
	var out *capacity.Output
	a.state, out = capacity.Step(a.state, in)
	a.last = out.Admission
	return a.last, out
}

// Who was away in the middle of a spill, or heard nothing, finds resolvers where it had
// sent them. However long that was, and whatever the demand did meanwhile, it goes on from there, and makes
// nothing worse than it finds it.
func TestAway(t *testing.T) {
	for ttl, long := range map[int]int{60: 3600, 300: 900} {
		for _, from := range []int{Shock + 40, 1800} {
			for _, demand := range []float64{40, 60, 66} {
				for _, how := range []string{"paused", "restarted", "deaf"} {
					sc := Surge("")
					sc.Resolvers = 600
					sc.TTL = ttl
					to := from + long
					sc.Length = to + 1800
					sc.Events = append(sc.Events, Event{from + long/2, func(c *Controls) { c.Demand[A] = demand }})
					law := func() Law { return &away{from: from, to: to, restarts: how == "restarted"} }
					if how == "deaf" {
						law = Ours
						sc.Events = append(sc.Events,
							Event{from, func(c *Controls) { c.Frozen = []bool{true, true, true} }},
							Event{to, func(c *Controls) { c.Frozen = []bool{false, false, false} }})
					}
					res := sc.Run(law)
					name := fmt.Sprintf("TTL %d s, %s at %d s for %d s, A's demand now %v", ttl, how, from, long, demand)
					before, after := res.Peak(to-60, to), res.Peak(to, sc.Length)
					t.Logf("%s: peak %v, it was %v", name, after, before)
					if after > max(before+0.02, 0.97) {
						t.Errorf("%s: peak %.3f afterwards, it was %.3f", name, after, before)
					}
					if n := res.Above(1, to+60+ttl, sc.Length); n > 0 {
						t.Errorf("%s: above 100 %% for %d s after settling", name, n)
					}
				}
			}
		}
	}
}
