package gslb

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/config"
	loads "github.com/seed-945f90c5/gslb/internal/load"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
)

// signals are the loads that are read, by the name of the sink. The registry's lock
// guards all but what is pushed.
type signals struct {
	poller *loads.Poller // nil: nothing was read so far
	users  map[*GSLB][]*signal
}

// signal is the load of one sink for one instance.
type signal struct {
	sink   string
	period time.Duration
	polled *loads.Signal // nil: pushed by probes
	header string
	probes []*probe.Probe // whose answers have it, each once
}

// open has the loads of an instance read. After an error nothing is.
func (s *signals) open(g *GSLB) error {
	if s.users == nil {
		s.users = make(map[*GSLB][]*signal)
	}
	var list []*signal
	add := func(sink string, levers *config.Levers) error {
		if levers.Load == nil || levers.Capacity == nil {
			return nil
		}
		one, err := s.one(g, sink, levers)
		if err != nil {
			return fmt.Errorf("%s: load: %w", levers.Load.Pos, err)
		}
		list = append(list, one)
		return nil
	}
	p := g.live.Load().plan
	var err error
	for i := range g.block.Regions {
		if err == nil {
			err = add(g.block.Regions[i].Name, &g.block.Regions[i].Levers)
		}
	}
	for _, h := range p.Hosts {
		for i := range h.Config.Pools {
			if pool := &h.Config.Pools[i]; err == nil && pool.Levers.Capacity != nil {
				err = add(sinkName(h, pool), &pool.Levers)
			}
		}
	}
	if err != nil {
		release(list)
		return err
	}
	s.users[g] = list
	return nil
}

// one has one load read.
func (s *signals) one(g *GSLB, sink string, levers *config.Levers) (*signal, error) {
	l := levers.Load
	one := &signal{sink: sink, period: l.Every}
	if l.Kind == config.LoadHeader {
		one.header = l.Header
		one.period = g.probesOf(one, l.Check)
		return one, nil
	}
	if s.poller == nil {
		s.poller = loads.NewPoller(loads.Options{})
	}
	source := loads.Source{
		URL: l.URL, Path: l.Path, Metric: l.Metric, Query: l.Query,
		Score: levers.Capacity.Score, Every: l.Every,
	}
	switch {
	case l.Kind == config.LoadPrometheus:
		source.Kind = loads.Prometheus
	case l.Kind == config.LoadFile:
		source.Kind, source.File = loads.File, plan.Join(g.options.Root, l.File)
	case l.Metric != "":
		source.Kind = loads.Metric
	default:
		source.Kind = loads.JSON
	}
	var err error
	one.polled, err = s.poller.Acquire(source)
	return one, err
}

// probesOf finds the probes whose answers have a sink's header, and gives the time
// between two of them.
func (g *GSLB) probesOf(one *signal, check string) (period time.Duration) {
	known := make(map[*probe.Probe]bool)
	for _, h := range g.live.Load().plan.Hosts {
		for i := range h.Config.Pools {
			pool := &h.Config.Pools[i]
			if sinkName(h, pool) != one.sink {
				continue
			}
			for k := range pool.Endpoints {
				for _, p := range g.health.endpoints[&pool.Endpoints[k]] {
					if p.Check().Name == check && !known[p] {
						known[p] = true
						one.probes = append(one.probes, p)
						period = p.Check().Interval
					}
				}
			}
		}
	}
	return period
}

// drop ends what open began.
func (s *signals) drop(g *GSLB) {
	release(s.users[g])
	delete(s.users, g)
}

func release(list []*signal) {
	for _, one := range list {
		if one.polled != nil {
			one.polled.Release()
		}
	}
}

func (s *signals) close() {
	if s.poller != nil {
		s.poller.Close()
	}
}

// find is the signal of a sink; nil: it has none.
func (s *signals) find(sink string) *signal {
	for _, list := range s.users {
		for _, one := range list {
			if one.sink == sink {
				return one
			}
		}
	}
	return nil
}

// read gives the load of a sink. A score is the part that is free, so the load is
// the rest.
func (s *signals) read(sink string, score bool, now time.Time) capacity.Signal {
	one := s.find(sink)
	if one == nil {
		return capacity.Signal{}
	}
	r := one.reading(score, now)
	age, ok := r.Age(now)
	c := capacity.Signal{Value: r.Value, Age: age, Period: one.period, Valid: ok}
	if score {
		c.Value = 1 - r.Value
	}
	return c
}

func (one *signal) reading(score bool, now time.Time) loads.Reading {
	if one.polled != nil {
		return one.polled.Reading()
	}
	all := make([]loads.Reading, len(one.probes))
	for i, p := range one.probes {
		all[i] = heard.reading(p, one.header)
	}
	if score {
		return loads.Mean(all, one.period, now).Reading
	}
	return loads.Sum(all, one.period, now).Reading
}

// heard is what probes' answers have said in headers.
var heard headers

// headers keeps the headers that checks pass on, by probe and name.
type headers struct {
	mu     sync.Mutex
	pushed map[*probe.Probe]map[string]*loads.Pushed
}

// note takes in the headers of a probe's answer.
func (h *headers) note(p *probe.Probe, r *probe.Result, at time.Time) {
	if len(r.Reported) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pushed == nil {
		h.pushed = make(map[*probe.Probe]map[string]*loads.Pushed)
	}
	if h.pushed[p] == nil {
		h.pushed[p] = make(map[string]*loads.Pushed)
	}
	for _, field := range r.Reported {
		pushed := h.pushed[p][field.Name]
		if pushed == nil {
			pushed = &loads.Pushed{}
			h.pushed[p][field.Name] = pushed
		}
		pushed.Offer(field.Value, at)
	}
}

func (h *headers) reading(p *probe.Probe, name string) loads.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	if pushed := h.pushed[p][name]; pushed != nil {
		return pushed.Reading()
	}
	return loads.Reading{}
}

// forget drops what probes said that are no longer in use.
func (h *headers) forget(used map[*probe.Probe]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.pushed {
		if !used[p] {
			delete(h.pushed, p)
		}
	}
}
