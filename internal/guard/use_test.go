package guard

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Uses are what flows of the demand of every list, spread over its blocks.
func TestUsesFollowFlows(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	above := 0
	for range 25 {
		old, now, texts := randomSides(t, r, false)
		want := make(map[string]Use)
		note := func(s *Side, h *plan.Host, list int, amount float64, to func(*Use) *float64) {
			f := steer.V4
			if !h.Steer.Offers(f) {
				f = steer.V6
			}
			flow := h.Steer.Flow(s.Snapshots[h.Index], list, f)
			for i, region := range s.Plan.Block.Regions {
				if c := region.Levers.Capacity; c != nil && flow[i] > 0 {
					u := want[region.Name]
					*to(&u) += amount * flow[i] / c.Value
					want[region.Name] = u
				}
			}
		}
		for j, o := range old.Plan.Hosts {
			used := make(map[int]bool) // some lists have no block
			for _, p := range pieces(o, o, false) {
				used[p.was.list] = true
			}
			for l := range old.Load[j] {
				if !used[l] {
					old.Load[j][l] = 0
				}
			}
			for l, n := range old.Load[j] {
				note(old, o, l, n, func(u *Use) *float64 { return &u.Before })
			}
			for _, h := range now.Plan.Hosts {
				if h.Config.Names[0] != o.Config.Names[0] {
					continue
				}
				sizes, all := make(map[int]float64), pieces(o, h, now.Plan.Block.ECS.Off)
				for _, p := range all {
					sizes[p.was.list]++
				}
				for _, p := range all {
					note(now, h, p.is.list, old.Load[j][p.was.list]/sizes[p.was.list], func(u *Use) *float64 { return &u.After })
				}
			}
		}
		got := Uses([]Pair{{old, now}})
		for name, u := range want {
			above++
			if off := math.Abs(got[name].Before-u.Before) + math.Abs(got[name].After-u.After); off > 0.02*(1+u.Before+u.After) {
				t.Fatalf("%s: %+v; want %+v\n%s", name, got[name], u, texts)
			}
		}
	}
	if above < 20 {
		t.Errorf("only %d uses were compared", above)
	}
}
