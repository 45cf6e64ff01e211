package gslb

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/target"
)

// targets are the names that pools are resolved from, for all instances of the
// process; the registry's lock guards it.
type targets struct {
	resolver *target.Resolver // nil: no pool has a target
	dir      string           // state directory that the addresses are kept in; empty: none
	changed  bool             // there is news to save
	saved    time.Time
}

// targetsFile is where addresses are kept, in the state directory.
const targetsFile = "targets"

// openTargets has the targets of an instance resolved. After an error nothing is.
func (s *steering) openTargets(g *GSLB) error {
	p := g.live.Load().plan
	names := p.Targets()
	if len(names) == 0 {
		return nil
	}
	t := &s.targets
	if t.resolver == nil {
		t.dir = g.stateDir()
		t.resolver = target.New(target.Options{Rand: rand.Reader, Saved: t.load(), Changed: func([]target.Change) { s.resolved() }})
	}
	g.targets = make(map[string]*target.Target)
	for _, name := range names {
		one, err := t.resolver.Acquire(g.block.Resolvers.Servers, name, g.memoryName())
		if err != nil {
			s.closeTargets(g)
			return fmt.Errorf("%s: target %s: %w", g.block.Resolvers.Pos, name, err)
		}
		g.targets[name] = one
	}
	return nil
}

// closeTargets ends what openTargets began.
func (s *steering) closeTargets(g *GSLB) {
	for _, one := range g.targets {
		one.Release(g.memoryName())
	}
	g.targets = nil
}

// resolve gives the addresses of a target, see plan.Resolve.
func (g *GSLB) resolve(name string, keep time.Duration) ([]netip.Addr, bool) {
	one := g.targets[name]
	if one == nil {
		return nil, false
	}
	st := one.State()
	addrs := st.Addresses(time.Now(), keep)
	return addrs, len(addrs) > 0 || !st.Asked.IsZero()
}

// resolved takes changed addresses into service.
func (s *steering) resolved() {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.targets.changed = true
	for _, g := range s.registry.instances() {
		g.resolveAgain(time.Now())
	}
}

// resolveAgain makes the hosts with targets anew; the registry's lock is held.
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
	g.take(p, now)
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
	data, err := os.ReadFile(filepath.Join(t.dir, targetsFile))
	if os.IsNotExist(err) {
		return nil
	}
	saved := map[string]target.Saved(nil)
	if err == nil {
		saved, err = target.Decode(data, time.Now(), savedAge)
	}
	if err != nil {
		log.Errorf("Saved addresses of targets can't be read: %v", err)
	}
	return saved
}

// save keeps the addresses, if there is news, or now and then for their age.
func (t *targets) save(now time.Time) {
	if t.resolver == nil || t.dir == "" || !t.changed && now.Sub(t.saved) < saveAtAll {
		return
	}
	t.changed, t.saved = false, now
	writingState.Lock()
	defer writingState.Unlock()
	data, err := target.Encode(t.resolver.Saved())
	if err == nil {
		err = os.MkdirAll(t.dir, 0o750)
	}
	if err == nil {
		err = probe.WriteAtomic(filepath.Join(t.dir, targetsFile), data)
	}
	if err != nil {
		log.Errorf("Addresses of targets can't be saved: %v", err)
	}
}

// close ends the resolver. The registry's lock must not be held: it may be telling.
func (t *targets) close() {
	if t.resolver == nil {
		return
	}
	t.changed = true
	t.save(time.Now())
	t.resolver.Close()
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
