package gslb

import (
	"slices"
	"sync"
)

// A generation is the instances of one load of the Corefile, one per server
// block.
type generation struct {
	instances []*GSLB
}

// registry knows the generations that have started in this process, oldest
// first. CoreDNS starts the instances of a new Corefile before it ends those of
// the old one, never ends those of a load that failed later, and may fail to
// end the old ones. So what is live is worked out here.
type registry struct {
	mu          sync.Mutex
	generations []*generation
}

var running registry

// start adds a started instance. With the first one of a new generation, all
// others but the latest are over: that one is live and becomes the old one.
func (r *registry) start(gen *generation, g *GSLB) {
	r.mu.Lock()
	var over []*generation
	if !slices.Contains(r.generations, gen) {
		if n := len(r.generations); n > 1 {
			over = r.generations[: n-1 : n-1]
			r.generations = r.generations[n-1:]
		}
		r.generations = append(r.generations, gen)
	}
	gen.instances = append(gen.instances, g)
	g.startWatch()
	r.publish()
	r.mu.Unlock()
	end(over)
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
	r.mu.Unlock()
	end(ended)
}

// end stops what the instances of generations run. It waits for goroutines that
// may want the registry, so its lock must not be held.
func end(over []*generation) {
	for _, gen := range over {
		for _, g := range gen.instances {
			g.stopWatch()
		}
	}
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
	for _, g := range r.instances() {
		if g.live.Load() == nil {
			return false
		}
	}
	return len(r.generations) > 0
}
