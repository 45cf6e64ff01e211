package plan

import (
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Snapshots gives the state of every host, by Host.Index, from the verdict on
// each endpoint.
func (p *Plan) Snapshots(verdict func(*config.Endpoint) steer.EndpointState) []*steer.Snapshot {
	all := make([]*steer.Snapshot, len(p.Hosts))
	for i := range p.Hosts {
		all[i] = p.Snapshot(i, verdict)
	}
	return all
}

// Snapshot gives the state of one host.
func (p *Plan) Snapshot(index int, verdict func(*config.Endpoint) steer.EndpointState) *steer.Snapshot {
	h := p.Hosts[index]
	return h.Steer.NewSnapshot(func(r steer.Region, e int) steer.EndpointState {
		return verdict(h.Endpoint(r, e))
	})
}

// Written is the verdict that the configuration gives an endpoint. Without a
// word it is up.
func Written(e *config.Endpoint) steer.EndpointState {
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
