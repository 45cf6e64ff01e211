package gslb

import (
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// snapshots makes the state of every host of a plan from the verdicts on its
// endpoints.
func snapshots(p *plan.Plan) []*steer.Snapshot {
	all := make([]*steer.Snapshot, len(p.Hosts))
	for i, h := range p.Hosts {
		all[i] = h.Steer.NewSnapshot(func(r steer.Region, e int) steer.EndpointState {
			return verdict(h.Endpoint(r, e))
		})
	}
	return all
}

// verdict is what the configuration says of an endpoint. Without a word it is
// up.
func verdict(e *config.Endpoint) steer.EndpointState {
	switch e.State {
	case config.StateDown:
		return steer.EndpointState{Verdict: steer.Down, Reason: "written down"}
	case config.StateDrain:
		return steer.EndpointState{Verdict: steer.Drained, Reason: "written drain"}
	case config.StateUp:
		return steer.EndpointState{Verdict: steer.Up, Reason: "written up"}
	}
	return steer.EndpointState{Verdict: steer.Up}
}
