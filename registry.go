package gslb

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
)

// A generation is the instances of one load of the Corefile, one per server
// block.
type generation struct {
	loaded    []*GSLB // all that setup made
	instances []*GSLB // those that have started
	prober    *prober // nil: there are no checks
}

// registry knows the generations that have started in this process, oldest
// first. CoreDNS starts the instances of a new Corefile before it ends those of
// the old one, never ends those of a load that failed later, and may fail to
// end the old ones. So what is live is worked out here.
type registry struct {
	mu          sync.Mutex
	generations []*generation
	probing     probe.Options // of every scheduler, but for what the generation says
}

var running registry

// start adds a started instance. With the first one of a new generation, all
// others but the latest are over: that one is live and becomes the old one.
// After an error nothing of the instance runs.
func (r *registry) start(gen *generation, g *GSLB) error {
	r.mu.Lock()
	var over []*generation
	err := error(nil)
	if !slices.Contains(r.generations, gen) {
		if n := len(r.generations); n > 1 {
			over = r.generations[: n-1 : n-1]
			r.generations = r.generations[n-1:]
		}
		err = r.equip(gen)
		r.generations = append(r.generations, gen)
	}
	if err == nil && gen.prober != nil {
		err = g.startHealth(gen.prober.scheduler, time.Now())
	}
	if err == nil {
		gen.instances = append(gen.instances, g)
		g.refresh()
		g.startWatch()
	}
	r.publish()
	closing := r.release(over)
	r.mu.Unlock()
	end(over, closing)
	return err
}

// equip gives a generation its prober: the one of the generation before, if
// that was made with the same settings; r.mu is held.
func (r *registry) equip(gen *generation) error {
	settings, beacons, checks, err := settingsOf(gen.loaded)
	if err != nil || !checks {
		return err
	}
	var known map[string]probe.Saved
	if n := len(r.generations); n > 0 && r.generations[n-1].prober != nil {
		old := r.generations[n-1].prober
		if old.settings == settings {
			gen.prober = old
			old.users++
			return nil
		}
		known = old.scheduler.Saved()
	}
	gen.prober, err = newProber(r, settings, beacons, known)
	if err == nil {
		gen.prober.users = 1
	}
	return err
}

// onlyLive drops every generation that is not live: a load has failed.
func (r *registry) onlyLive(live func(*generation) bool) {
	r.drop(func(o *generation) bool { return !live(o) })
}

// stop drops a generation that is over.
func (r *registry) stop(gen *generation) {
	r.drop(func(o *generation) bool { return o == gen })
}

func (r *registry) drop(over func(*generation) bool) {
	r.mu.Lock()
	var ended, left []*generation
	for _, o := range r.generations {
		if over(o) {
			ended = append(ended, o)
		} else {
			left = append(left, o)
		}
	}
	r.generations = left
	if len(ended) > 0 {
		r.publish()
	}
	closing := r.release(ended)
	r.mu.Unlock()
	end(ended, closing)
}

// release gives back the probers of generations that are over, and returns
// those nobody uses any more; r.mu is held.
func (r *registry) release(over []*generation) (closing []*prober) {
	for _, gen := range over {
		if p := gen.prober; p != nil {
			p.users--
			if p.users == 0 {
				closing = append(closing, p)
			}
		}
	}
	return closing
}

// end stops what generations ran. It waits for goroutines that may want the
// registry, so its lock must not be held. A prober saves what it knows of its
// endpoints before they are given back.
func end(over []*generation, closing []*prober) {
	for _, p := range closing {
		p.close()
	}
	for _, gen := range over {
		for _, g := range gen.instances {
			g.stopWatch()
			g.stopHealth()
		}
	}
}

// data is what is in service of data files.
func (r *registry) data() (all []*plan.Data) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.instances() {
		all = append(all, g.live.Load().plan.Data)
	}
	return all
}

// instances are all that run; r.mu is held.
func (r *registry) instances() []*GSLB {
	var all []*GSLB
	for _, gen := range r.generations {
		all = append(all, gen.instances...)
	}
	return all
}

// ready tells whether every instance can answer.
func (r *registry) ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, g := range r.instances() {
		if g.live.Load() == nil || !g.healthReady(now) {
			return false
		}
	}
	return len(r.generations) > 0
}
