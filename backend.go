package gslb

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/probe"
)

// backend is what the control API has of the running plugin: the latest generation,
// which follows the overrides of a ledger.
type backend struct {
	r      *registry
	ledger *ledger
}

var _ control.Backend = backend{}

// Digest implements control.Backend: that of all plans together.
func (b backend) Digest() string {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	return b.r.digest()
}

func (r *registry) digest() string {
	var words []string
	for _, g := range r.latest() {
		words = append(words, fmt.Sprintf("%016x", g.live.Load().plan.Digest))
	}
	return strings.Join(words, "-")
}

// views are the states of the latest generation.
func (r *registry) views() (all []view) {
	for _, g := range r.latest() {
		s := g.live.Load()
		all = append(all, view{g, s.plan, s.snapshots, s.demand})
	}
	return all
}

// reportOf puts a comparison into the words of the API.
func reportOf(r *guard.Report) control.Report {
	percent := func(part float64) *float64 {
		if !r.Known {
			return nil
		}
		p := 100 * part
		return &p
	}
	out := control.Report{MovedBlocks: 100 * r.Blocks, MovedDemand: percent(r.Demand), Kind: r.Kind, Regions: []control.RegionReport{}, Flows: []control.Flow{}}
	if r.SpaceKind != "" {
		space := 100 * r.Space
		out.MovedSpace, out.SpaceKind = &space, r.SpaceKind
	}
	if r.Known {
		total := r.Total
		out.Demand = &total
	}
	for _, k := range r.Kinds {
		out.Kinds = append(out.Kinds, control.KindReport{Kind: k.Name, Blocks: 100 * k.Part, MovedBlocks: 100 * k.Moved})
	}
	for _, h := range r.Hosts {
		out.Hosts = append(out.Hosts, control.HostReport{Host: h.Host, View: h.View, MovedBlocks: 100 * h.Blocks, MovedDemand: percent(h.Demand)})
	}
	for _, s := range r.Regions {
		one := control.RegionReport{
			Name: regionName(s.Region), BlocksBefore: 100 * s.BlocksBefore, BlocksAfter: 100 * s.BlocksAfter,
			DemandBefore: percent(s.DemandBefore), DemandAfter: percent(s.DemandAfter),
		}
		if use, ok := r.Use[s.Region]; ok {
			before, after := 100*use.Before, 100*use.After
			one.UtilisationBefore, one.UtilisationAfter = &before, &after
		}
		out.Regions = append(out.Regions, one)
	}
	for _, m := range r.Moves {
		if m.Blocks == 0 && m.Demand == 0 {
			continue // of another kind, that has most of the space that moves
		}
		out.Flows = append(out.Flows, control.Flow{From: regionName(m.From), To: regionName(m.To), Blocks: 100 * m.Blocks, Demand: percent(m.Demand)})
	}
	for _, s := range r.Stranded {
		why := "no region of the list would be usable"
		if s.Fenced {
			why += " inside its fence"
		}
		out.Stranded = append(out.Stranded, control.Stranded{Host: s.Host, View: s.View, List: s.Regions, Blocks: 100 * s.Blocks, Why: why})
	}
	return out
}

// regionName is how the API calls a region: none is the empty name.
func regionName(name string) string {
	if name == guard.Nowhere {
		return ""
	}
	return name
}

// Returnable implements control.Backend.
func (b backend) Returnable(_ context.Context, endpoint netip.Addr, check string) error {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	_, err := b.r.waiting(endpoint, check)
	return err
}

// Return implements control.Backend.
func (b backend) Return(_ context.Context, endpoint netip.Addr, check string) error {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	list, err := b.r.waiting(endpoint, check)
	for _, p := range list {
		p.Return()
	}
	return err
}

// waiting are the probes of an endpoint that wait to be returned for a check, each once: on
// others a return would count in advance. The error is an *Invalid where there are none.
func (r *registry) waiting(endpoint netip.Addr, check string) (list []*probe.Probe, err error) {
	found := false
	for _, g := range r.latest() {
		for _, h := range g.live.Load().plan.Hosts {
			for i := range h.Config.Pools {
				for k := range h.Config.Pools[i].Endpoints {
					e := &h.Config.Pools[i].Endpoints[k]
					if e.Addr != endpoint {
						continue
					}
					for _, p := range g.health.endpoints[e] {
						if p.Check().Name == check {
							found = true
							if p.State().Waiting && !slices.Contains(list, p) {
								list = append(list, p)
							}
						}
					}
				}
			}
		}
	}
	switch {
	case !found:
		return nil, &control.Invalid{Field: "endpoint", Text: fmt.Sprintf("check %s has no probe of endpoint %s", check, endpoint), Missing: true}
	case len(list) == 0:
		return nil, &control.Invalid{Field: "check", Text: fmt.Sprintf("check %s of endpoint %s waits for nobody", check, endpoint),
			Hint: "only a check with `return manual` whose probes are good again waits to be returned"}
	}
	return list, nil
}
