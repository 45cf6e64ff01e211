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
// it. olds are the instances that answered for its clients before. The registry's lock
// is held.
func (g *GSLB) allowed(olds []*GSLB, next *state, now time.Time) error {
	after := &guard.Side{Plan: next.plan, Snapshots: next.snapshots}
	pairs := []guard.Pair{{New: after}} // a block that is new
	if len(olds) > 0 {
		pairs = nil
	}
	for _, old := range olds {
		pairs = append(pairs, guard.Pair{Old: old.side(old.live.Load()), New: after})
	}
	report := guard.Compare(pairs)
	if g.block.Guard.MaxUse > 0 { // what other blocks send counts as well
		for _, other := range g.steering.registry.latest() {
			if !slices.Contains(olds, other) {
				same := other.side(other.live.Load())
				pairs = append(pairs, guard.Pair{Old: same, New: same})
			}
		}
		report.Use = guard.Uses(pairs)
	}
	return g.accept(guard.Refusals(&g.block.Guard, report, after), now)
}

// accept turns refusals into an error, unless the Corefile has them accepted.
func (g *GSLB) accept(refusals []guard.Refusal, now time.Time) error {
	if len(refusals) == 0 {
		return nil
	}
	if why, ok := guard.Accepted(&g.block.Guard, now); ok {
		for _, r := range refusals {
			log.Warningf("%s: let through by `guard accept` (%s): %s", g.block.GuardPos("accept"), why, r)
		}
		return nil
	}
	for _, r := range refusals {
		guardRefusals.WithLabelValues(r.Guard).Inc()
	}
	return guard.Error(g.block, refusals, now)
}

// guardLast holds a load of the Corefile without any gslb block against what it would
// end.
func (r *registry) guardLast(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	leaving := r.leaving(nil)
	if leaving == nil {
		return nil
	}
	for _, g := range leaving.instances {
		names := g.place().names
		if err := g.accept(guard.Gone(&g.block.Guard, names, names), now); err != nil {
			return fmt.Errorf("%w, reload, and then remove the block. The Corefile before stays in service", err)
		}
	}
	return nil
}

// guardLoad holds an instance of a new load of the Corefile against what is in service
// before a reload, or was before a start; the registry's lock is held.
func (r *registry) guardLoad(gen *generation, g *GSLB, now time.Time) error {
	i := slices.Index(gen.loaded, g)
	leaving := r.leaving(gen)
	if leaving == nil {
		return r.guardStart(gen, i, now)
	}
	var olds, news []place
	for _, old := range leaving.instances {
		olds = append(olds, old.place())
	}
	for _, one := range gen.loaded {
		news = append(news, one.place())
	}
	before := make([]*GSLB, 0, 1)
	for _, j := range follows(olds, news, i) {
		before = append(before, leaving.instances[j])
	}
	for _, old := range before {
		g.inherit(old, now)
	}
	err := gen.guardNames(olds, news, i, now)
	if err == nil {
		err = g.allowed(before, g.live.Load(), now)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w, and reload. The Corefile before stays in service", err)
	if failing := failingFiles(before); len(failing) > 0 {
		err = fmt.Errorf("%w. Of data files that were refused since, a reload takes the new content: %s", err, strings.Join(failing, ", "))
	}
	return err
}

// leaving is the generation that a new one replaces; nil: the process starts.
func (r *registry) leaving(gen *generation) *generation {
	for _, o := range slices.Backward(r.generations) {
		if o != gen && o.leaves {
			return o
		}
	}
	return nil
}

// leave notes that a generation is to be replaced by the next load, or is not.
func (r *registry) leave(gen *generation, leaves bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gen.leaves = leaves
}

// failingFiles are the data files whose newest content isn't in use.
func failingFiles(instances []*GSLB) (paths []string) {
	for _, g := range instances {
		g.files.mu.Lock()
		for path, failing := range g.files.failing {
			if failing && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
		g.files.mu.Unlock()
	}
	slices.Sort(paths)
	return paths
}

// place is what tells blocks apart, in one load and over the next: where a block
// serves, and the names of its hosts.
type place struct {
	server, view string
	zones        []string
	names        []string
	knows        func(name string) bool
}

func (g *GSLB) place() place {
	p := g.live.Load().plan
	one := place{server: g.files.server, view: g.files.view, zones: g.zones, knows: func(name string) bool {
		return slices.ContainsFunc(g.zones, func(zone string) bool { h, _ := p.Find(zone, name); return h != nil })
	}}
	for _, h := range p.Hosts {
		one.names = append(one.names, h.Config.Names...)
	}
	return one
}

// same tells whether two blocks serve a zone at the same server and view.
func (a place) same(b place) bool {
	return a.server == b.server && a.view == b.view && slices.ContainsFunc(a.zones, func(zone string) bool { return slices.Contains(b.zones, zone) })
}

// follows gives the old blocks that the i-th of the new ones comes after: those with the
// same server and view and a common zone. A block that has none comes after the one
// that nothing else does with the most of its hosts: to write another address, port, view or
// zone evades no guard.
func follows(olds, news []place, i int) (list []int) {
	best, most := -1, 0
	for j, old := range olds {
		if old.same(news[i]) {
			list = append(list, j)
		}
		if slices.ContainsFunc(news, old.same) {
			continue
		}
		known := 0
		for _, name := range news[i].names {
			if old.knows(name) {
				known++
			}
		}
		if known > most {
			best, most = j, known
		}
	}
	if len(list) == 0 && best >= 0 {
		list = append(list, best)
	}
	return list
}

// guardNames holds a load against leaving hosts out. Each old block is looked at with the
// first one that comes after it; what nothing does with the first block.
func (gen *generation) guardNames(olds, news []place, i int, now time.Time) error {
	g := gen.loaded[i]
	for j, old := range olds {
		heir := 0
		for k := range news {
			if slices.Contains(follows(olds, news, k), j) {
				heir = k
				break
			}
		}
		if heir != i {
			continue
		}
		var gone []string
		for _, name := range old.names {
			if !slices.ContainsFunc(news, func(n place) bool { return n.knows(name) }) {
				gone = append(gone, name)
			}
		}
		if err := g.accept(guard.Gone(&g.block.Guard, old.names, gone), now); err != nil {
			return err
		}
	}
	return nil
}

// recompile makes the plan anew from the data in service: a latency map has got too
// old. Guards have no say in that, nothing newer is there. The registry's lock is held.
func (g *GSLB) recompile(now time.Time) {
	old := g.live.Load()
	o := g.options
	o.Now = now
	p, err := plan.Compile(g.block, old.plan.Data, o)
	if err != nil { // not again in a second
		log.Errorf("%s: the plan can't be made without what has got too old, which stays in use: %v", g.block.Pos, err)
		same := *old.plan
		same.Expires = time.Time{}
		p = &same
	}
	logWarnings(old.plan, p)
	g.take(p, nil, now)
	g.steering.registry.keepSoon(now)
	g.steering.registry.publish()
}

// take puts a plan into service, with the endpoints that it has: in the state that guards
// have judged, if there is one; the registry's lock is held.
func (g *GSLB) take(p *plan.Plan, judged *state, now time.Time) {
	if g.health.scheduler != nil && hasTargets(g.block) {
		if err := g.health.follow(p); err != nil {
			log.Errorf("%s: %v", g.block.Pos, err)
			return
		}
	}
	next := judged
	if next == nil {
		next = g.next(p, now)
	}
	g.writing.Lock()
	before := g.live.Load()
	if sameNeeds(before.plan, p) { // lists are the same: what was counted stays
		next.demand = before.demand
	}
	if next.foreseen != nil {
		g.admitted, g.loads = next.foreseen.admitted, next.foreseen.loads
	}
	g.live.Store(next)
	g.writing.Unlock()
	for i, h := range p.Hosts {
		logLastResort(before.plan.Hosts[i], h, before.snapshots[i], next.snapshots[i])
	}
	if g.steering != nil {
		g.schedule(now)
		if g.lawful() {
			g.steering.hurry(now)
		}
	}
}

// sameNeeds tells whether the hosts of two plans have the same topologies.
func sameNeeds(a, b *plan.Plan) bool {
	return slices.EqualFunc(a.Hosts, b.Hosts, func(x, y *plan.Host) bool { return x.Need == y.Need })
}

// foretell is the state that a plan would be served in for guards to judge: where targets
// give it endpoints of its own, with the verdicts of these.
func (g *GSLB) foretell(p *plan.Plan, now time.Time) (*state, error) {
	if g.health.scheduler == nil || !hasTargets(g.block) {
		return g.next(p, now), nil
	}
	probes, err := g.health.probes(p)
	if err != nil {
		return nil, err
	}
	inService := g.health.probeSet
	g.health.probeSet = probes
	next := g.next(p, now)
	g.health.probeSet = inService
	probes.release()
	return next, nil
}

// next is the state that a plan would be served in.
func (g *GSLB) next(p *plan.Plan, now time.Time) *state {
	s := &state{plan: p, demand: newDemand(p), snapshots: p.Snapshots(g.verdict, g.moves(now))}
	if old := g.live.Load(); g.steering != nil && !sameNeeds(old.plan, p) {
		s.foreseen = g.steering.foresee(g.steering.registry.latest(), g, s, now)
	}
	if s.foreseen != nil {
		m := g.moves(now)
		s.foreseen.admitted.move(m)
		s.snapshots = p.Snapshots(g.verdict, m)
	}
	return s
}
