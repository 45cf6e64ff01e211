package gslb

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// health is the probes that run for an instance.
type health struct {
	probeSet
	scheduler *probe.Scheduler
	deadline  time.Time   // when the instance is ready even without all first results
	settled   atomic.Bool // every probe had a result, or the deadline has passed
}

// probeSet is the probes of a plan's endpoints.
type probeSet struct {
	leases    []lease
	endpoints map[*config.Endpoint][]*probe.Probe
	hosts     map[*probe.Probe][]int // those a probe bears on, by plan.Host.Index
}

// lease is a probe that is acquired for a user, to be released once.
type lease struct {
	probe *probe.Probe
	user  string
}

// firstRound is how long the scheduler takes to begin every first probe.
const firstRound = 10 * time.Second

// startHealth acquires the probes of every endpoint that has checks and no
// written state. After an error nothing is acquired.
func (g *GSLB) startHealth(s *probe.Scheduler, now time.Time) error {
	h := &g.health
	h.scheduler = s
	p := g.live.Load().plan
	longest := time.Duration(0)
	for i := range p.Block.Checks {
		longest = max(longest, p.Block.Checks[i].Timeout)
	}
	h.deadline = now.Add(firstRound + longest)
	return h.follow(p)
}

// follow has the endpoints of a plan probed, and no others any more. After an error
// those of the plan before are.
func (h *health) follow(p *plan.Plan) error {
	next, err := h.probes(p)
	if err != nil {
		return err
	}
	h.probeSet.release()
	h.probeSet = next
	return nil
}

// probes has the endpoints of a plan probed beside those that are. After an error it
// has not.
func (h *health) probes(p *plan.Plan) (probeSet, error) {
	next := probeSet{endpoints: make(map[*config.Endpoint][]*probe.Probe), hosts: make(map[*probe.Probe][]int)}
	for i, host := range p.Hosts {
		for j := range host.Config.Pools {
			pool := &host.Config.Pools[j]
			for _, c := range p.Checks(pool) {
				if err := next.acquire(h.scheduler, host.Config, i, pool, c); err != nil {
					next.release()
					return probeSet{}, err
				}
			}
		}
	}
	return next, nil
}

// acquire has the endpoints of a pool probed by one check.
func (h *probeSet) acquire(s *probe.Scheduler, owner *config.Host, host int, pool *config.Pool, c *check.Check) error {
	for k := range pool.Endpoints {
		e := &pool.Endpoints[k]
		if e.State != config.StateAuto {
			continue
		}
		user := fmt.Sprintf("%s %s %s", owner.Names[0], pool.Region, e.Addr)
		p, err := s.Acquire(c, plan.Target(owner, e), user)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Pos, err)
		}
		h.leases = append(h.leases, lease{p, user})
		h.endpoints[e] = append(h.endpoints[e], p)
		h.hosts[p] = append(h.hosts[p], host)
	}
	return nil
}

// release gives the probes back.
func (h *probeSet) release() {
	for _, l := range h.leases {
		l.probe.Release(l.user)
	}
	h.leases = nil
}

// stopHealth gives the probes back. What they last said stays true for queries
// that still come.
func (g *GSLB) stopHealth() { g.health.release() }

// verdict is the state of an endpoint.
func (g *GSLB) verdict(e *config.Endpoint) steer.EndpointState {
	probes := g.health.endpoints[e]
	seen := make([]plan.Seen, len(probes))
	for i, p := range probes {
		seen[i] = plan.Seen{Check: p.Check(), State: p.State()}
	}
	return plan.Judge(e, seen)
}

// healthChanged takes changed verdicts into service: it makes new snapshots of
// the hosts that they bear on. The registry's lock is held.
func (g *GSLB) healthChanged(changes []probe.Change) {
	touched := make(map[int]bool)
	for _, c := range changes {
		for _, host := range g.health.hosts[c.Probe] {
			touched[host] = true
		}
	}
	if len(touched) == 0 {
		return
	}
	now := time.Now()
	old := g.renew(touched, now)
	next := g.live.Load()
	back := make(map[int]bool)
	for i := range touched {
		h := next.plan.Hosts[i]
		if g.steering != nil && g.steering.returned(g, h, old.snapshots[i], next.snapshots[i], now) {
			back[i] = true
		}
	}
	if len(back) > 0 {
		g.renew(back, now)
		next = g.live.Load()
	}
	if g.steering != nil {
		g.schedule(now)
		if g.lawful() {
			g.steering.hurry(now)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(touched)) {
		logLastResort(old.plan.Hosts[i], next.plan.Hosts[i], old.snapshots[i], next.snapshots[i])
	}
}

// renew makes the snapshots of some hosts anew, and gives the state before.
func (g *GSLB) renew(hosts map[int]bool, now time.Time) (old *state) {
	g.writing.Lock()
	defer g.writing.Unlock()
	old = g.live.Load()
	next := &state{plan: old.plan, demand: old.demand, snapshots: append([]*steer.Snapshot(nil), old.snapshots...)}
	moves := g.moves(now)
	for i := range hosts {
		next.snapshots[i] = old.plan.Snapshot(i, g.verdict, moves)
	}
	g.live.Store(next)
	return old
}

// logLastResort tells when the last resort of a host begins to answer for some
// of its clients, and when it ends. The host may be made anew in between, as targets
// are; while nothing is known of it there is no last resort to tell of.
func logLastResort(old, h *plan.Host, before, after *steer.Snapshot) {
	if old.Unknown() || h.Unknown() {
		return
	}
	for f := steer.V4; f <= steer.V6; f++ {
		was, _ := old.Steer.Lists(before, f)
		is, _ := h.Steer.Lists(after, f)
		switch {
		case was == 0 && is > 0:
			log.Warningf("Host %s (%s): no region is usable for some clients, so last_resort %s decides; what is drained is never answered", h.Config.Names[0], f, h.Config.LastResort.Kind)
		case was > 0 && is == 0:
			log.Infof("Host %s (%s): every client has a usable region again", h.Config.Names[0], f)
		}
	}
}

// healthReady tells whether every endpoint has been probed, or has had the time
// to be.
func (g *GSLB) healthReady(now time.Time) bool {
	h := &g.health
	if h.settled.Load() {
		return true
	}
	if now.Before(h.deadline) {
		if !g.targetsAsked() {
			return false
		}
		for _, l := range h.leases {
			if s := l.probe.State(); !s.Probed && s.LastAt.IsZero() {
				return false
			}
		}
	}
	h.settled.Store(true)
	return true
}
