package gslb

import (
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// law is what the law of capacity knows; the registry's lock guards it.
type law struct {
	state   *capacity.State
	out     *capacity.Output // of the last step; nil: no region has a capacity
	sinks   sinks            // of the last step
	views   []view           // of the last step
	next    time.Time
	stepped time.Time // when the last step was
	signals signals
	memory  lawMemory
	said    saidOfLoad
}

// The time between two steps of the law is that between two readings of the load
// that is read most often, within these.
const (
	lawEvery    = 15 * time.Second
	lawEveryMin = time.Second
	// lawRest is how soon after a step one is made because availability changed.
	lawRest = 200 * time.Millisecond
)

// due tells whether a step is due, and when it is, sets the time of the next.
func (l *law) due(now time.Time) bool {
	if now.Before(l.next) {
		return false
	}
	l.next = now.Add(max(lawEveryMin, min(lawEvery, l.signals.shortest())))
	return true
}

func (l *law) close(save bool) {
	if save {
		patiently(func() { l.memory.save(l) })
	}
	l.signals.close()
}

// lawful tells whether some region or pool of the block has a capacity.
func (g *GSLB) lawful() bool {
	b := g.block
	return slices.ContainsFunc(b.Regions, func(r config.Region) bool { return r.Levers.Capacity != nil }) ||
		slices.ContainsFunc(b.Hosts, func(h config.Host) bool {
			return slices.ContainsFunc(h.Pools, func(p config.Pool) bool { return p.Levers.Capacity != nil })
		})
}

// view is the state of one block that the law looks at.
type view struct {
	g         *GSLB
	plan      *plan.Plan
	snapshots []*steer.Snapshot
	demand    *demand
}

// verdicts is what a step of the law comes to.
type verdicts struct {
	state    *capacity.State
	out      *capacity.Output // nil: no region has a capacity
	sinks    sinks
	admitted []admissions  // by view
	loads    [][][]float64 // by view, host and list, in the unit of capacity
}

// stepAside runs the law once, if that is due, without the registry's lock for what takes
// long. If meanwhile something else was stepped over or put into service, what it comes to
// is dropped, and the next turn tries again; so it does if a change of overrides is on
// its way, which makes a step of its own.
func (s *steering) stepAside(now time.Time) (stepped bool) {
	if !s.registry.stepping.TryLock() {
		return false
	}
	defer s.registry.stepping.Unlock()
	s.registry.mu.Lock()
	if !s.law.due(now) {
		s.registry.mu.Unlock()
		return false
	}
	h := s.hear(now)
	s.registry.mu.Unlock()

	v := h.judge()

	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	same := func(a, b view) bool { return a.g == b.g && a.plan == b.plan && a.demand == b.demand }
	if h.state != s.law.state || !slices.EqualFunc(h.views, s.registry.views(), same) {
		s.law.next = now
		return false
	}
	s.keep(h, v)
	return true
}

// hear gathers what a step looks at.
func (s *steering) hear(now time.Time) *hearing {
	heard.forget(s.registry.instances())
	return s.law.hear(s.settled(now), now)
}

// settled are the views of the latest generation, with all that was counted.
func (s *steering) settled(now time.Time) []view {
	views := s.registry.views()
	for _, v := range views {
		v.demand.settle(now)
	}
	return views
}

// keep takes what a step comes to into service, from the next snapshots on.
func (s *steering) keep(h *hearing, v verdicts) {
	s.law.state, s.law.out, s.law.sinks, s.law.views = v.state, v.out, v.sinks, h.views
	s.law.stepped = h.in.Now
	s.law.tell(h.in.Now)
	for i, w := range h.views {
		w.g.admitted, w.g.loads = admissions{}, nil
		if v.out != nil {
			w.g.admitted, w.g.loads = v.admitted[i], v.loads[i]
		}
	}
}

// foreseen is what the law admits to an instance with a plan that is not in service
// yet.
type foreseen struct {
	admitted admissions
	loads    [][]float64
}

// foresee gives what the law admits with a plan before that is in service, so that nobody
// moves because of a reload: what was admitted to the same candidates before, and a
// placement of those that are new. others are instances that it is to be in service
// beside. The law's state stays as it is. nil: no region has a capacity.
func (s *steering) foresee(others []*GSLB, g *GSLB, next *state, now time.Time) *foreseen {
	if s == nil {
		return nil
	}
	next.demand.recall(next.plan, g, s.law.seen()) // also for guards, which go by the demand before
	if !g.lawful() {
		return nil
	}
	var views []view
	for _, other := range others {
		if other != g {
			l := other.live.Load()
			views = append(views, view{other, l.plan, l.snapshots, l.demand})
		}
	}
	v := s.law.judge(append(views, view{g, next.plan, next.snapshots, next.demand}), now)
	return &foreseen{v.admitted[len(views)], v.loads[len(views)]}
}

// settle works out where the law will end up if nothing else changes, and changes nothing.
func (h *hearing) settle() verdicts {
	last := *h
	last.in.Settled = true
	return last.judge()
}

// judge makes a step of the law, and changes nothing.
func (l *law) judge(views []view, now time.Time) verdicts { return l.hear(views, now).judge() }

// admissions are what the law admits to the pools of a block.
type admissions struct {
	parts map[admissionKey]admitted // of those that it holds back
	full  map[admissionKey]bool     // it has taken in that they are full
}

// admissionKey is a pool: the first name of its host, and its region.
type admissionKey struct {
	host   string
	region steer.Region
}

// admitted is what the law admits to a pool, by list of a topology.
type admitted struct {
	need *plan.Need
	list []float64
}

// admission is what the law admits to a host's pool, by list; nil: everybody. What
// was admitted under another topology says nothing.
func (a *admissions) admission(h *plan.Host, r steer.Region) []float64 {
	if one := a.parts[admissionKey{h.Config.Names[0], r}]; one.need == h.Need {
		return one.list
	}
	return nil
}

// isFull tells whether the law has taken in that a host's pool is full, and holds it
// back for that.
func (a *admissions) isFull(h *plan.Host, r steer.Region) bool {
	return a.full[admissionKey{h.Config.Names[0], r}]
}

// move has snapshots made with what the law admits.
func (a *admissions) move(m *plan.Moves) { m.Admission, m.Full = a.admission, a.isFull }

func sum(list []float64) (total float64) {
	for _, v := range list {
		total += v
	}
	return total
}
