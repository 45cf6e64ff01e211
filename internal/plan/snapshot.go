package plan

import (
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Snapshots gives the state of every host, by Host.Index, from the verdict on
// each endpoint and from what moves clients; nil: nothing does, not even what is
// written.
func (p *Plan) Snapshots(verdict func(*config.Endpoint) steer.EndpointState, m *Moves) []*steer.Snapshot {
	all := make([]*steer.Snapshot, len(p.Hosts))
	for i := range p.Hosts {
		all[i] = p.Snapshot(i, verdict, m)
	}
	return all
}

// Snapshot gives the state of one host.
func (p *Plan) Snapshot(index int, verdict func(*config.Endpoint) steer.EndpointState, m *Moves) *steer.Snapshot {
	h := p.Hosts[index]
	if m == nil {
		return h.Steer.NewSnapshot(func(r steer.Region, i int) steer.EndpointState { return verdict(h.Endpoint(r, i)) }, nil)
	}
	settings := make([]Settings, len(p.Block.Regions))
	for r := range settings {
		if pool := h.Pool(steer.Region(r)); pool != nil {
			settings[r] = p.Settings(h, pool, m)
		}
	}
	state := func(r steer.Region, i int) steer.EndpointState {
		e := h.Endpoint(r, i)
		return m.Endpoint(h, h.Pool(r), e, &settings[r], verdict(e))
	}
	return h.Steer.NewSnapshot(state, func(r steer.Region) steer.Levers {
		if h.Pool(r) == nil {
			return steer.NoLevers()
		}
		return p.levers(h, r, &settings[r], m)
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
