package gslb

import (
	"fmt"
	"strings"
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
	leases    []lease
	endpoints map[*config.Endpoint][]*probe.Probe
	hosts     map[*probe.Probe][]int // those a probe bears on, by plan.Host.Index
	deadline  time.Time              // when the instance is ready even without all first results
	settled   atomic.Bool            // every probe had a result, or the deadline has passed
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
	h.endpoints = make(map[*config.Endpoint][]*probe.Probe)
	h.hosts = make(map[*probe.Probe][]int)
	checks := make(map[string]*check.Check)
	for i := range g.block.Checks {
		c := &g.block.Checks[i].Check
		checks[c.Name] = c
	}
	longest := time.Duration(0)
	for i := range g.block.Hosts {
		host := &g.block.Hosts[i]
		for j := range host.Pools {
			pool := &host.Pools[j]
			for _, name := range pool.Checks {
				longest = max(longest, checks[name].Timeout)
				if err := g.acquire(s, i, pool, checks[name]); err != nil {
					g.stopHealth()
					return err
				}
			}
		}
	}
	h.deadline = now.Add(firstRound + longest)
	return nil
}

// acquire has the endpoints of a pool probed by one check.
func (g *GSLB) acquire(s *probe.Scheduler, host int, pool *config.Pool, c *check.Check) error {
	h := &g.health
	name := g.block.Hosts[host].Names[0]
	for k := range pool.Endpoints {
		e := &pool.Endpoints[k]
		if e.State != config.StateAuto {
			continue
		}
		target := probe.Target{Addr: e.Addr, Name: strings.TrimSuffix(name, ".")}
		if e.Probe.IsValid() {
			target.Addr, target.Port = e.Probe.Addr(), e.Probe.Port()
		}
		user := fmt.Sprintf("%s %s %s", name, pool.Region, e.Addr)
		p, err := s.Acquire(c, target, user)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Pos, err)
		}
		h.leases = append(h.leases, lease{p, user})
		h.endpoints[e] = append(h.endpoints[e], p)
		h.hosts[p] = append(h.hosts[p], host)
	}
	return nil
}

// stopHealth gives the probes back. What they last said stays true for queries
// that still come.
func (g *GSLB) stopHealth() {
	for _, l := range g.health.leases {
		l.probe.Release(l.user)
	}
	g.health.leases = nil
}

// verdict is the state of an endpoint: what is written, else what its probes
// say. All checks must pass.
func (g *GSLB) verdict(e *config.Endpoint) steer.EndpointState {
	probes := g.health.endpoints[e]
	if e.State != config.StateAuto || len(probes) == 0 {
		return plan.Written(e)
	}
	var worst steer.EndpointState
	for i, p := range probes {
		s := p.State()
		one := steer.EndpointState{Verdict: verdicts[s.Assumed], Streak: s.Streak, Reason: p.Check().Name + ": " + s.Verdict.String()}
		if !s.Since.IsZero() {
			one.Since = s.Since.UnixNano()
		}
		if len(s.Notes) > 0 && s.Assumed != probe.VerdictUp {
			one.Reason += ": " + s.Notes[0].Reason
		}
		streak := worst.Streak || one.Streak
		if i == 0 || one.Verdict > worst.Verdict {
			worst = one
		}
		worst.Streak = streak
	}
	return worst
}

// verdicts are what the verdicts of probes are to a decision. An unknown
// endpoint is taken for something else, see probe.State.Assumed.
var verdicts = map[probe.Verdict]steer.Verdict{
	probe.VerdictUp: steer.Up, probe.VerdictFull: steer.Full, probe.VerdictDown: steer.Down,
}

// healthChanged takes changed verdicts into service: it makes new snapshots of
// the hosts that they bear on.
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
	g.writing.Lock()
	defer g.writing.Unlock()
	old := g.live.Load()
	next := &state{plan: old.plan, snapshots: append([]*steer.Snapshot(nil), old.snapshots...)}
	for i := range touched {
		next.snapshots[i] = old.plan.Snapshot(i, g.verdict)
	}
	g.live.Store(next)
}

// refresh makes the snapshots of all hosts anew.
func (g *GSLB) refresh() {
	g.writing.Lock()
	defer g.writing.Unlock()
	p := g.live.Load().plan
	g.live.Store(&state{plan: p, snapshots: p.Snapshots(g.verdict)})
}

// healthReady tells whether every endpoint has been probed, or has had the time
// to be.
func (g *GSLB) healthReady(now time.Time) bool {
	h := &g.health
	if h.settled.Load() {
		return true
	}
	if now.Before(h.deadline) {
		for _, l := range h.leases {
			if s := l.probe.State(); !s.Probed && s.LastAt.IsZero() {
				return false
			}
		}
	}
	h.settled.Store(true)
	return true
}
