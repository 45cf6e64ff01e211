package gslb

import (
	"context"
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// outlook is a copy of all that a change of overrides goes by: what is in service, what
// moves clients, and what the law hears. Nothing in it changes any more, so working
// with it takes no lock.
type outlook struct {
	inService *control.Overrides
	heard     *hearing // its views are the latest instances as they are
	blocks    []still  // by view
}

// still is what snapshots of a block are made of.
type still struct {
	verdict func(*config.Endpoint) steer.EndpointState
	moves   *plan.Moves
	demand  [][]float64 // by host and list
	follows bool        // the overrides of the ledger, not those of a load of the Corefile before or after
}

// outlook makes the copy of these views; the registry's lock is held.
func (b backend) outlook(views []view, now time.Time) *outlook {
	o := &outlook{inService: b.ledger.inService, heard: b.r.steering.law.hear(views, now)}
	for _, v := range o.heard.views {
		o.blocks = append(o.blocks, still{v.g.stillVerdict(), v.g.stillMoves(now), v.demand.byList(), v.g.ledger == b.ledger})
	}
	return o
}

// stillVerdict is the verdict on endpoints as it is now; the registry's lock is held.
func (g *GSLB) stillVerdict() func(*config.Endpoint) steer.EndpointState {
	known := make(map[*config.Endpoint]steer.EndpointState, len(g.health.endpoints))
	for e := range g.health.endpoints {
		known[e] = g.verdict(e)
	}
	return func(e *config.Endpoint) steer.EndpointState {
		if st, ok := known[e]; ok {
			return st
		}
		return plan.Judge(e, nil)
	}
}

// stillMoves are the moves of now, of the plan in service, that ask nobody any more what
// they are; the registry's lock is held.
func (g *GSLB) stillMoves(now time.Time) *plan.Moves {
	m := g.moves(now)
	admitted := g.admitted // it is replaced, never changed
	admitted.move(m)
	if g.steering == nil {
		return m
	}
	type pool struct {
		host   *plan.Host
		region steer.Region
	}
	back := make(map[pool]float64)
	for _, h := range g.live.Load().plan.Hosts {
		for r := range h.Need.Input.Regions {
			if part := m.Ramp(h, steer.Region(r)); part < 1 {
				back[pool{h, steer.Region(r)}] = part
			}
		}
	}
	m.Ramp = func(h *plan.Host, r steer.Region) float64 {
		if part, ok := back[pool{h, r}]; ok {
			return part
		}
		return 1
	}
	return m
}

// same tells whether a judgement by another outlook holds here: the blocks, their plans and
// overrides are the same, and regions take what they took. Loads and demand always
// change a little, and the law with them: that is left out of it. nil is no judgement.
func (o *outlook) same(other *outlook) bool {
	return other != nil && o.inService == other.inService && slices.EqualFunc(o.heard.views, other.heard.views, view.same)
}

// holds tells whether what is in service is still what an outlook went by; the registry's
// lock is held.
func (b backend) holds(o *outlook) bool {
	return o.inService == b.ledger.inService && slices.EqualFunc(o.heard.views, b.r.views(), view.same)
}

// same tells whether two views are of one plan, and regions take what they take: verdicts,
// levers, and returns after an outage.
func (v view) same(o view) bool {
	if v.plan != o.plan {
		return false
	}
	for i, h := range v.plan.Hosts {
		if v.snapshots[i] == o.snapshots[i] {
			continue
		}
		for r := range h.Need.Input.Regions {
			for f := steer.V4; f <= steer.V6; f++ {
				a, b := v.snapshots[i].Region(steer.Region(r), f), o.snapshots[i].Region(steer.Region(r), f)
				a.Streak, b.Streak = false, false
				if a != b {
					return false
				}
			}
		}
	}
	return true
}

// snapshots are those that a set of overrides would bring, by view. admitted is what
// the law admits; nil: what it does now.
func (o *outlook) snapshots(next *control.Overrides, admitted []admissions) [][]*steer.Snapshot {
	all := make([][]*steer.Snapshot, len(o.blocks))
	for i, b := range o.blocks {
		m := *b.moves
		if b.follows {
			m.Overrides = next
		}
		if admitted != nil {
			admitted[i].move(&m)
		}
		all[i] = o.heard.views[i].plan.Snapshots(b.verdict, &m)
	}
	return all
}

// after is what the law hears with other snapshots in service, by view. What it saw before an
// operator did something says nothing of what comes, see [capacity.State.Release].
func (o *outlook) after(snapshots [][]*steer.Snapshot) *hearing {
	h := o.heard.again(snapshots)
	h.state = h.state.Release()
	return h
}

// step is what the law comes to with a set of overrides in service.
func (o *outlook) step(next *control.Overrides) (*hearing, verdicts) {
	h := o.after(o.snapshots(next, nil))
	return h, h.judge()
}

// foretell works out what a set of overrides would do, where the law will end up if nothing
// else changes, and what guards say of that. It gives up when ctx ends.
func (o *outlook) foretell(ctx context.Context, next *control.Overrides) (control.Report, error) {
	var was, is verdicts
	var pairs []guard.Pair
	var out control.Report
	after := o.snapshots(next, nil)
	for _, work := range []func(){
		func() { was = o.heard.settle() },
		func() { is = o.after(after).settle() },
		func() {
			if is.out != nil {
				after = o.snapshots(next, is.admitted)
			}
			pairs = o.pairs(was, after)
		},
		func() { out = o.report(guard.Compare(pairs), pairs) },
	} {
		if err := ctx.Err(); err != nil {
			return control.Report{}, err
		}
		work()
	}
	if was.out != nil {
		out.DeficitBefore, out.DeficitAfter = was.out.Deficit, is.out.Deficit
	}
	return out, nil
}

// pairs are the blocks as they are and as they would be.
func (o *outlook) pairs(was verdicts, after [][]*steer.Snapshot) []guard.Pair {
	pairs := make([]guard.Pair, len(o.blocks))
	for i, v := range o.heard.views {
		pairs[i].Old = &guard.Side{Plan: v.plan, Snapshots: v.snapshots, Demand: o.blocks[i].demand}
		if was.out != nil {
			pairs[i].Old.Load = was.loads[i]
		}
		pairs[i].New = &guard.Side{Plan: v.plan, Snapshots: after[i], View: v.g.files.view}
	}
	return pairs
}

// report puts a comparison, and what guards say of it, into the words of the API.
func (o *outlook) report(report *guard.Report, pairs []guard.Pair) control.Report {
	out := reportOf(report)
	out.Basis = o
	for i, v := range o.heard.views {
		for _, r := range guard.Refusals(&v.g.block.Guard, report, pairs[i].New) {
			refusal := control.Refusal{Guard: r.Guard, Reason: r.Why}
			if !slices.Contains(out.Refusals, refusal) {
				out.Refusals = append(out.Refusals, refusal)
			}
		}
	}
	return out
}
