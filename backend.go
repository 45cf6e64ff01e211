package gslb

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/guard"
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

// Publish implements control.Backend.
func (b backend) Publish(_ context.Context, next *control.Overrides, digest string) error {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if digest != "" && digest != b.r.digest() {
		return control.ErrStale
	}
	tellOverrides(b.ledger.inService, next)
	b.ledger.inService = next
	b.r.steering.law.state = b.r.steering.law.state.Release()
	b.r.moved(time.Now())
	return nil
}

// moved takes into service that clients move: the law has its say at once, as it
// must know who takes what.
func (r *registry) moved(now time.Time) {
	for _, g := range r.instances() {
		g.refresh(now)
	}
	r.steering.step(now)
	for _, g := range r.latest() {
		if g.lawful() {
			g.refresh(now)
		}
	}
}

// WhatIf implements control.Backend: what would be is worked out on copies, by the
// same functions that do it.
func (b backend) WhatIf(_ context.Context, next *control.Overrides) (control.Report, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	for _, o := range next.All() {
		if o.Area == "" || b.ledger.inService.Find(o.ID) == o {
			continue // one that a reload has left without effect is no fault of this change
		}
		if err := b.r.marked(o); err != nil {
			return control.Report{}, err
		}
	}
	now := time.Now()
	instances := b.r.latest()
	before := b.r.views()
	after := make([]view, len(before))
	for i, g := range instances {
		m := g.moves(now)
		m.Overrides = next
		after[i] = view{g, before[i].plan, before[i].plan.Snapshots(g.verdict, m), before[i].demand}
	}
	was := b.r.steering.law.foretell(before, now)
	is := b.r.steering.law.foretell(after, now)
	pairs := make([]guard.Pair, len(before))
	for i, g := range instances {
		if is.out != nil {
			m := g.moves(now)
			m.Overrides = next
			is.admitted[i].move(m)
			after[i].snapshots = before[i].plan.Snapshots(g.verdict, m)
		}
		pairs[i].Old = &guard.Side{Plan: before[i].plan, Snapshots: before[i].snapshots, Demand: before[i].demand.byList()}
		if was.out != nil {
			pairs[i].Old.Load = was.loads[i]
		}
		pairs[i].New = &guard.Side{Plan: after[i].plan, Snapshots: after[i].snapshots}
	}
	report := guard.Compare(pairs)
	out := reportOf(report)
	if was.out != nil {
		out.DeficitBefore, out.DeficitAfter = was.out.Deficit, is.out.Deficit
	}
	for i, g := range instances {
		for _, r := range guard.Refusals(&g.block.Guard, report, pairs[i].New) {
			refusal := control.Refusal{Guard: r.Guard, Reason: r.Why}
			if !slices.Contains(out.Refusals, refusal) {
				out.Refusals = append(out.Refusals, refusal)
			}
		}
	}
	return out, nil
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
	out := control.Report{MovedBlocks: 100 * r.Blocks, MovedDemand: percent(r.Demand), Regions: []control.RegionReport{}, Flows: []control.Flow{}}
	if r.Known {
		total := r.Total
		out.Demand = &total
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
		out.Flows = append(out.Flows, control.Flow{From: regionName(m.From), To: regionName(m.To), Blocks: 100 * m.Blocks, Demand: percent(m.Demand)})
	}
	for _, s := range r.Stranded {
		why := "no region of the list would be usable"
		if s.Fenced {
			why += " inside its fence"
		}
		out.Stranded = append(out.Stranded, control.Stranded{Host: s.Host, List: s.Regions, Blocks: 100 * s.Blocks, Why: why})
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

// Return implements control.Backend.
func (b backend) Return(_ context.Context, endpoint netip.Addr, check string) error {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	found, waiting := false, false
	for _, g := range b.r.latest() {
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
							if p.State().Waiting { // on others it would count in advance
								waiting = true
								p.Return()
							}
						}
					}
				}
			}
		}
	}
	switch {
	case !found:
		return &control.Invalid{Field: "endpoint", Text: fmt.Sprintf("check %s has no probe of endpoint %s", check, endpoint), Missing: true}
	case !waiting:
		return &control.Invalid{Field: "check", Text: fmt.Sprintf("check %s of endpoint %s waits for nobody", check, endpoint),
			Hint: "only a check with `return manual` whose probes are good again waits to be returned"}
	}
	return nil
}
