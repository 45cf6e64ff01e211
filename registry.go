package gslb

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/target"
)

// A generation is the instances of one load of the Corefile, one per server
// block.
type generation struct {
	loaded    []*GSLB // all that setup made
	instances []*GSLB // those that have started
	prober    *prober // nil: there are no checks
	desk      *desk   // nil: nobody controls it
	leaves    bool    // the next load replaces it
}

// registry knows the generations that have started in this process, oldest
// first. CoreDNS starts the instances of a new Corefile before it ends those of
// the old one, never ends those of a load that failed later, and may fail to
// end the old ones. So what is live is worked out here.
type registry struct {
	// stepping is held by who makes a step of the law, over all that it takes, as mu is not.
	// It is taken before mu.
	stepping    sync.Mutex
	mu          sync.Mutex
	generations []*generation
	probing     probe.Options  // of every scheduler, but for what the generation says
	resolving   target.Options // of the resolver of targets, but for what it is told here
	steering    *steering      // nil: there is no generation
	keepAt      time.Time      // when what is in service is to be remembered; zero: it is
}

var running registry

// start adds a started instance. With the first one of a new generation, all
// others but the latest are over: that one is live and becomes the old one.
// After an error nothing of the instance runs.
func (r *registry) start(gen *generation, g *GSLB) error {
	defer r.lookAhead(gen, g)()
	r.mu.Lock()
	var over []*generation
	err := error(nil)
	if !slices.Contains(r.generations, gen) {
		if r.steering == nil {
			r.steering = newSteering(r)
		}
		err = r.equip(gen)
		if n := len(r.generations); n > 1 { // not before: the new one may share what they have
			over = r.generations[: n-1 : n-1]
			r.generations = r.generations[n-1:]
		}
		r.generations = append(r.generations, gen)
	}
	if err == nil {
		err = r.launch(gen, g, time.Now())
	}
	if err != nil && len(gen.instances) == 0 {
		over = append(over, gen)
		r.generations = slices.DeleteFunc(r.generations, func(o *generation) bool { return o == gen })
	}
	r.publish()
	r.promote()
	closing := r.release(over)
	r.mu.Unlock()
	closing.end(over)
	return err
}

// launch starts what an instance needs, and takes it into service if guards let it;
// r.mu is held.
func (r *registry) launch(gen *generation, g *GSLB, now time.Time) (err error) {
	g.steering = r.steering
	if gen.desk != nil {
		g.ledger = gen.desk.store
	}
	defer func() {
		if err != nil {
			r.land(g)
			g.stopHealth()
		}
	}()
	if err := r.steering.openTargets(gen, g, now); err != nil {
		return err
	}
	if gen.prober != nil {
		if err := g.startHealth(gen.prober.scheduler, now); err != nil {
			return err
		}
	}
	g.resolveAgain(now)
	if err := r.steering.law.signals.open(gen, g); err != nil {
		return err
	}
	g.refresh(now)
	if f := r.steering.foresee(gen.instances, g, g.live.Load(), now); f != nil {
		g.admitted, g.loads = f.admitted, f.loads
		g.refresh(now)
	}
	if err := r.guardLoad(gen, g, now); err != nil {
		return err
	}
	gen.instances = append(gen.instances, g)
	r.steering.law.next = now // soon, with all that has started
	r.keepAt = now.Add(settling)
	g.startWatch()
	return nil
}

// land ends what moves the clients of an instance; r.mu is held.
func (r *registry) land(g *GSLB) {
	if g.steering != nil {
		g.steering.law.signals.drop(g)
		g.closeTargets()
	}
}

// equip gives a generation its prober: the one of the generation before, if
// that was made with the same settings; r.mu is held.
func (r *registry) equip(gen *generation) error {
	if err := config.Contradictions(blocksOf(gen.loaded)); err != nil {
		return err
	}
	settings, beacons, checks, err := settingsOf(gen.loaded)
	if err != nil {
		return err
	}
	r.steering.law.open(settings.dir, time.Now())
	if err := r.openDesk(gen); err != nil || !checks {
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
		r.promote()
	}
	closing := r.release(ended)
	r.mu.Unlock()
	closing.end(ended)
}

// closing is what nobody uses any more.
type closing struct {
	probers  []*prober
	doors    []*door
	ledgers  []*ledger
	steering *steering
}

// release gives back what generations that are over shared with others; r.mu is
// held.
func (r *registry) release(over []*generation) (c closing) {
	if len(r.generations) == 0 && r.steering != nil {
		r.steering.targets.remember()
	}
	for _, gen := range over {
		for _, g := range gen.instances {
			r.land(g)
		}
		if p := gen.prober; p != nil {
			p.users--
			if p.users == 0 {
				c.probers = append(c.probers, p)
			}
		}
		if gen.desk != nil {
			c.releaseDesk(gen.desk)
		}
	}
	if len(r.generations) == 0 {
		c.steering, r.steering = r.steering, nil
	}
	return c
}

// end stops what generations ran. It waits for goroutines that may want the
// registry, so its lock must not be held. A prober saves what it knows of its
// endpoints before they are given back.
func (c closing) end(over []*generation) {
	for _, d := range c.doors {
		d.close()
	}
	for _, l := range c.ledgers {
		l.close()
	}
	for _, p := range c.probers {
		p.close()
	}
	for _, gen := range over {
		for _, g := range gen.instances {
			g.stopWatch()
			g.stopHealth()
		}
	}
	if c.steering != nil {
		c.steering.close()
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

// latest are the instances of the latest generation that has started as a whole; while
// there is none, those that have started of the first. r.mu is held.
func (r *registry) latest() []*GSLB {
	for _, gen := range slices.Backward(r.generations) {
		if gen.whole() {
			return gen.instances
		}
	}
	if len(r.generations) > 0 {
		return r.generations[0].instances
	}
	return nil
}

// whole tells whether every instance of a load has started.
func (gen *generation) whole() bool { return len(gen.instances) == len(gen.loaded) }

func blocksOf(instances []*GSLB) (blocks []*config.Block) {
	for _, g := range instances {
		blocks = append(blocks, g.block)
	}
	return blocks
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
