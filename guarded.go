package gslb

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// side is a state of the instance as guards see it.
func (g *GSLB) side(s *state) *guard.Side {
	return &guard.Side{Plan: s.plan, Snapshots: s.snapshots, Demand: s.demand.byList(), Load: g.loads}
}

// allowed holds a change of what is in service against the guards of the block after
// it. old is nil where nothing is known of before. The registry's lock is held.
func (g *GSLB) allowed(old *guard.Side, next *state, now time.Time) error {
	if old == nil {
		return nil
	}
	after := &guard.Side{Plan: next.plan, Snapshots: next.snapshots}
	report := guard.Compare([]guard.Pair{{Old: old, New: after}})
	return g.accept(guard.Refusals(&g.block.Guard, report, after), now)
}

// accept turns refusals into an error, unless the Corefile has them accepted.
func (g *GSLB) accept(refusals []guard.Refusal, now time.Time) error {
	if len(refusals) == 0 {
		return nil
	}
	if why, ok := guard.Accepted(&g.block.Guard, now); ok {
		log.Warningf("%s: accepted (%s), though %s", g.block.Pos, why, refusals)
		return nil
	}
	for _, r := range refusals {
		guardRefusals.WithLabelValues(r.Guard).Inc()
	}
	return guard.Error(g.block.Pos, refusals)
}

// guardReload holds a new load of the Corefile against what the block of the same
// zones, server and view has in service; the registry's lock is held.
func (r *registry) guardReload(gen *generation, g *GSLB, now time.Time) error {
	var old *GSLB
	for _, before := range r.generations {
		for _, other := range before.instances {
			if before != gen && other.sameAs(g) {
				old = other // of several the latest
			}
		}
	}
	if old == nil {
		return g.guardStart(now)
	}
	return g.allowed(old.side(old.live.Load()), g.live.Load(), now)
}

// sameAs tells whether two instances serve the same clients and zones.
func (g *GSLB) sameAs(o *GSLB) bool {
	return g.files.server == o.files.server && g.files.view == o.files.view && strings.Join(g.zones, " ") == strings.Join(o.zones, " ")
}

// guardStart holds the plan of a process that starts against the last one that was
// accepted, if a state directory remembers that. Health, levers and loads are left
// out of it: they are of another time.
func (g *GSLB) guardStart(now time.Time) error {
	dir := g.stateDir()
	if dir == "" {
		return nil
	}
	old, err := guard.LoadMemory(dir, g.memoryName())
	if err != nil {
		log.Warningf("%s: what was last accepted can't be read, so this start is not held against it: %v", g.block.Pos, err)
	}
	if old == nil {
		return nil
	}
	p := g.live.Load().plan
	return g.accept(old.Refusals(&g.block.Guard, p), now)
}

// remember keeps what the plan in service decides, for the next start.
func (g *GSLB) remember() {
	dir := g.stateDir()
	if dir == "" {
		return
	}
	writingState.Lock()
	defer writingState.Unlock()
	if err := guard.Remember(g.live.Load().plan).Save(dir, g.memoryName()); err != nil {
		log.Errorf("What was accepted can't be kept in the state directory: %v", err)
	}
}

// memoryName tells the blocks of one process apart.
func (g *GSLB) memoryName() string {
	return fmt.Sprintf("%s %s %s", g.files.server, g.files.view, strings.Join(g.zones, " "))
}

// recompile makes the plan anew from the data in service: a latency map has got too
// old. The registry's lock is held.
func (g *GSLB) recompile(now time.Time) {
	old := g.live.Load()
	o := g.options
	o.Now = now
	p, err := plan.Compile(g.block, old.plan.Data, o)
	if err != nil {
		log.Errorf("%s: the plan can't be made without what has got too old: %v", g.block.Pos, err)
		return
	}
	for _, w := range p.Warnings {
		log.Warningf("%s: %s", w.Pos, w.Text)
	}
	g.take(p, now)
}

// take puts a plan into service, with the endpoints that it has; the registry's lock
// is held.
func (g *GSLB) take(p *plan.Plan, now time.Time) {
	if g.health.scheduler != nil && hasTargets(g.block) {
		if err := g.health.follow(p); err != nil {
			log.Errorf("%s: %v", g.block.Pos, err)
			return
		}
	}
	g.writing.Lock()
	before := g.live.Load()
	next := g.next(p, now)
	if sameNeeds(before.plan, p) { // lists are the same: what was counted stays
		next.demand = before.demand
	}
	g.live.Store(next)
	g.writing.Unlock()
	if g.steering != nil {
		g.schedule(now)
	}
}

// sameNeeds tells whether the hosts of two plans have the same topologies.
func sameNeeds(a, b *plan.Plan) bool {
	return slices.EqualFunc(a.Hosts, b.Hosts, func(x, y *plan.Host) bool { return x.Need == y.Need })
}

// next is the state that a plan would be served in.
func (g *GSLB) next(p *plan.Plan, now time.Time) *state {
	return &state{plan: p, demand: newDemand(p), snapshots: p.Snapshots(g.verdict, g.moves(now))}
}
