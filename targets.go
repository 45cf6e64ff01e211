package gslb

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/target"
)

// targets are the names that pools are resolved from, for all instances of the
// process; the registry's lock guards it.
type targets struct {
	resolver *target.Resolver // nil: no pool has a target
	dir      string           // state directory that the addresses are kept in; empty: none
	changed  bool             // there is news to save
	saved    time.Time
	last     map[string]target.Saved // what was known when the last generation ended
}

// aheadTime is how long a new load waits for names that nobody has asked for yet,
// while the one before serves.
const aheadTime = 3 * time.Second

// openTargets has the targets of an instance resolved. After an error nothing is.
func (s *steering) openTargets(gen *generation, g *GSLB, now time.Time) (err error) {
	if !hasTargets(g.block) {
		return nil
	}
	g.targets, err = s.acquire(gen, g)
	g.health.deadline = now.Add(firstRound)
	return err
}

// acquire has the targets of a block resolved for an instance.
func (s *steering) acquire(gen *generation, g *GSLB) (map[string]*target.Target, error) {
	t := &s.targets
	if t.resolver == nil {
		t.dir = gen.stateDir()
		options := s.registry.resolving
		options.Rand, options.Saved, options.Changed = rand.Reader, t.load(), s.resolved
		t.resolver = target.New(options)
	}
	all := make(map[string]*target.Target)
	for _, name := range g.live.Load().plan.Targets() {
		one, err := t.resolver.Acquire(g.block.Resolvers.Servers, name, g.memoryName())
		if err != nil {
			g.giveBack(all)
			return nil, fmt.Errorf("%s: target %s: %w", g.block.Resolvers.Pos, name, err)
		}
		all[name] = one
	}
	return all, nil
}

// giveBack ends what acquire began.
func (g *GSLB) giveBack(all map[string]*target.Target) {
	for _, one := range all {
		one.Release(g.memoryName())
	}
}

// closeTargets ends what openTargets began.
func (g *GSLB) closeTargets() {
	g.giveBack(g.targets)
	g.targets = nil
}

// lookAhead asks for the targets of a load that is to replace another one before it
// does, so that nobody is told that they are unknown, nor a guard. The registry's
// lock must not be held. done is to be called once the instance has its own leases.
func (r *registry) lookAhead(gen *generation, g *GSLB) (done func()) {
	done = func() {}
	r.mu.Lock()
	serves := slices.ContainsFunc(r.generations, func(o *generation) bool { return o != gen && len(o.instances) > 0 })
	if !serves || !hasTargets(g.block) {
		r.mu.Unlock()
		return done
	}
	all, err := r.steering.acquire(gen, g)
	r.mu.Unlock()
	if err != nil { // it will be found again, by those who tell
		return done
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(aheadTime); time.Now().Before(end); <-tick.C {
		waiting := func(one *target.Target) bool {
			st := one.State()
			return st.Asked.IsZero() && len(st.V4.Addrs)+len(st.V6.Addrs) == 0
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(all)), waiting) {
			break
		}
	}
	return func() { g.giveBack(all) }
}

// resolve gives the addresses of a target, see plan.Resolve.
func (g *GSLB) resolve(name string, keep time.Duration) (addrs []netip.Addr, pending bool) {
	one := g.targets[name]
	if one == nil {
		return nil, true
	}
	st := one.State()
	return st.Addresses(time.Now(), keep), st.Asked.IsZero()
}

// resolved takes changed addresses into service.
func (s *steering) resolved(changes []target.Change) {
	for i := range changes {
		logTarget(&changes[i])
	}
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.targets.changed = true
	for _, g := range s.registry.instances() {
		g.resolveAgain(time.Now())
	}
}

// logTarget tells of a target that can't be resolved any more, or again, and of other
// addresses.
func logTarget(c *target.Change) {
	was, is := c.Old, c.New
	old, now := slices.Concat(was.V4.Addrs, was.V6.Addrs), slices.Concat(is.V4.Addrs, is.V6.Addrs)
	failed, fails := !was.Asked.IsZero() && was.Failures > 0, is.Failures > 0
	switch {
	case fails && !failed && len(now) == 0:
		log.Warningf("Target %s can't be resolved: %v", c.Target.Name(), is.Err)
	case fails && !failed:
		log.Warningf("Target %s can't be resolved (%v): what it had last serves on, for as long as its pools keep it: %v", c.Target.Name(), is.Err, now)
	case failed && !fails:
		log.Infof("Target %s can be resolved again: %v", c.Target.Name(), now)
	case len(old) > 0 && !slices.Equal(old, now):
		log.Infof("Target %s has other addresses: %v, before %v", c.Target.Name(), now, old)
	}
}

// resolveAgain makes the hosts anew for whose targets something has changed; the
// registry's lock is held.
func (g *GSLB) resolveAgain(now time.Time) {
	if len(g.targets) == 0 {
		return
	}
	old := g.live.Load()
	p, err := old.plan.Resolved(g.options)
	if err != nil {
		log.Errorf("%s: what targets resolve to can't be used, the addresses before stay in use: %v", g.block.Pos, err)
		return
	}
	if p == old.plan {
		g.schedule(now)
		return
	}
	g.take(p, nil, now)
	for i, h := range p.Hosts {
		logHost(old.plan.Hosts[i], h)
	}
}

// logHost tells of regions that have no address any more, and of families that come
// and go.
func logHost(was, is *plan.Host) {
	for i := range is.Config.Pools {
		if pool := &is.Config.Pools[i]; len(pool.Endpoints) == 0 && len(was.Config.Pools[i].Endpoints) > 0 {
			log.Warningf("Host %s: the targets of region %s have no address any more that is young enough, so it serves nobody", is.Config.Names[0], pool.Region)
		}
	}
	if was.Unknown() || is.Unknown() {
		return
	}
	for f := steer.V4; f <= steer.V6; f++ {
		switch had, has := was.Steer.Offers(f), is.Steer.Offers(f); {
		case has && !had:
			log.Infof("Host %s: %s addresses are answered now", is.Config.Names[0], f)
		case had && !has:
			log.Warningf("Host %s: %s addresses are answered no more, as not every region that serves has one", is.Config.Names[0], f)
		}
	}
}

// targetsDue is when addresses of an instance get too old to be kept; zero: never.
func (g *GSLB) targetsDue(now time.Time) (due time.Time) {
	for i := range g.block.Hosts {
		for j := range g.block.Hosts[i].Pools {
			pool := &g.block.Hosts[i].Pools[j]
			for _, t := range pool.Targets {
				if one := g.targets[t.Name]; one != nil {
					if at, ok := one.State().Expires(now, pool.Keep); ok && (due.IsZero() || at.Before(due)) {
						due = at
					}
				}
			}
		}
	}
	return due
}

// targetsAsked tells whether every target has been asked for.
func (g *GSLB) targetsAsked() bool {
	for _, one := range g.targets {
		if one.State().Asked.IsZero() {
			return false
		}
	}
	return true
}

// load reads the addresses that an earlier process kept.
func (t *targets) load() map[string]target.Saved {
	if t.dir == "" {
		return nil
	}
	saved, err := target.Load(t.dir, time.Now(), savedAge)
	if err != nil {
		log.Errorf("Saved addresses of targets can't be read: %v", err)
	}
	return saved
}

// targetsToSave tells how to save the addresses, if there is news, or if that was long
// ago, for their age. To do it needs no lock.
func (s *steering) targetsToSave(now time.Time) (save func()) {
	t := &s.targets
	if len(s.registry.generations) == 0 { // remember has seen to it
		return nil
	}
	for _, gen := range slices.Backward(s.registry.generations) {
		if gen.whole() {
			t.dir = gen.stateDir()
			break
		}
	}
	if t.resolver == nil || t.dir == "" || !t.changed && now.Sub(t.saved) < saveAtAll {
		return nil
	}
	t.changed, t.saved = false, now
	all, dir := t.resolver.Saved(), t.dir
	return func() { saveTargets(all, dir) }
}

// remember notes what is known before the last instance gives its targets back.
func (t *targets) remember() {
	if t.resolver != nil {
		t.last = t.resolver.Saved()
	}
}

// saveTargets writes what is known of targets into a state directory.
func saveTargets(all map[string]target.Saved, dir string) {
	writeState(dir, "Addresses of targets", func() error {
		data, err := target.Encode(all)
		if err != nil {
			return err
		}
		return probe.WriteAtomic(filepath.Join(dir, target.File), data)
	})
}

// close ends the resolver, and saves what it knew if that may be done. The registry's lock
// must not be held: it may be telling.
func (t *targets) close(save bool) {
	if t.resolver == nil {
		return
	}
	t.resolver.Close()
	if save && t.dir != "" && t.last != nil {
		patiently(func() { saveTargets(t.last, t.dir) })
	}
}

// stateDir is the state directory of a load, which its instances agree on; empty: none.
func (gen *generation) stateDir() string {
	for _, g := range gen.loaded {
		if dir := g.stateDir(); dir != "" {
			return dir
		}
	}
	return ""
}

// hasTargets tells whether a pool of the block is resolved from names.
func hasTargets(b *config.Block) bool {
	for i := range b.Hosts {
		for j := range b.Hosts[i].Pools {
			if len(b.Hosts[i].Pools[j].Targets) > 0 {
				return true
			}
		}
	}
	return false
}
