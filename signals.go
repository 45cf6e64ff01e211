package gslb

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
	loads "github.com/seed-945f90c5/gslb/internal/load"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
)

// signals are the loads that are read. The registry's lock guards all but what is
// pushed.
type signals struct {
	poller *loads.Poller // nil: nothing was read so far
	users  []*listener   // in the order of their start
}

// listener is an instance and the loads that it has read.
type listener struct {
	gen  *generation
	g    *GSLB
	list []*signal
}

// signal is the load of one sink for one instance.
type signal struct {
	sink   sinkKey
	period time.Duration
	polled *loads.Signal // nil: pushed by probes
	header string
	check  string

	plan    *plan.Plan // that bearers are of
	bearers []bearer
}

// bearer is an endpoint whose load is pushed, and one probe that may push it.
type bearer struct {
	addr     netip.Addr
	endpoint *config.Endpoint
	key      probe.Key
}

// open has the loads of an instance read. After an error nothing is.
func (s *signals) open(gen *generation, g *GSLB) error {
	to := &listener{gen: gen, g: g}
	add := func(sink sinkKey, levers *config.Levers) error {
		if levers.Load == nil || levers.Capacity == nil {
			return nil
		}
		one, err := s.one(g, sink, levers)
		if err != nil {
			return fmt.Errorf("%s: load: %w", levers.Load.Pos, err)
		}
		to.list = append(to.list, one)
		return nil
	}
	err := error(nil)
	for i := range g.block.Regions {
		if err == nil {
			err = add(sinkKey{region: g.block.Regions[i].Name}, &g.block.Regions[i].Levers)
		}
	}
	for _, h := range g.live.Load().plan.Hosts {
		for i := range h.Config.Pools {
			if pool := &h.Config.Pools[i]; err == nil && pool.Levers.Capacity != nil {
				err = add(sinkOf(h, pool), &pool.Levers)
			}
		}
	}
	if err != nil {
		to.release()
		return err
	}
	s.users = append(s.users, to)
	return nil
}

// one has one load read.
func (s *signals) one(g *GSLB, sink sinkKey, levers *config.Levers) (*signal, error) {
	l := levers.Load
	one := &signal{sink: sink, period: l.Every}
	if l.Kind == config.LoadHeader {
		one.header, one.check = l.Header, l.Check
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

// drop ends what open began.
func (s *signals) drop(g *GSLB) {
	s.users = slices.DeleteFunc(s.users, func(l *listener) bool {
		if l.g == g {
			l.release()
		}
		return l.g == g
	})
}

func (l *listener) release() {
	for _, one := range l.list {
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

// shortest is the shortest time between two readings of a load.
func (s *signals) shortest() time.Duration {
	least := lawEvery
	for _, l := range s.users {
		for _, one := range l.list {
			least = min(least, one.period)
		}
	}
	return least
}

// of are the signals of a sink, for each instance of the latest generation that has
// one.
func (s *signals) of(sink sinkKey) (from []*listener, list []*signal) {
	for _, l := range slices.Backward(s.users) {
		if len(from) > 0 && from[0].gen != l.gen {
			break
		}
		if i := slices.IndexFunc(l.list, func(one *signal) bool { return one.sink == sink }); i >= 0 {
			from, list = append(from, l), append(list, l.list[i])
		}
	}
	return from, list
}

// read gives the load of a sink. A score is the part that is free, so the load is
// the rest.
func (s *signals) read(sink sinkKey, score bool, now time.Time) capacity.Signal {
	t, period := s.total(sink, score, now)
	age, ok := t.Age(now)
	c := capacity.Signal{Value: t.Value, Age: age, Period: period, Valid: ok}
	if score {
		c.Value = 1 - t.Value
	}
	return c
}

// total is the reading of a sink. Only what is pushed is made of several, and may be
// silent in part.
func (s *signals) total(sink sinkKey, score bool, now time.Time) (t loads.Total, period time.Duration) {
	from, list := s.of(sink)
	if len(list) == 0 {
		return t, 0
	}
	period = list[0].period
	if list[0].polled != nil {
		t.Reading = list[0].polled.Reading()
		return t, period
	}
	return pushed(from, list, period, score, now), period
}

// bears is what is known of one endpoint's load.
type bears struct {
	addr  netip.Addr
	last  loads.Reading
	alive bool
}

// pushed is the load of a sink made of those of its endpoints: one reading for each
// address, the latest, however many probes it has. One that is alive and silent bears
// what the others do in the mean, for silence is not idleness; one that is dead
// counts as long as its last word is fresh.
func pushed(from []*listener, list []*signal, period time.Duration, score bool, now time.Time) loads.Total {
	known := make(map[netip.Addr]*bears)
	var order []*bears
	for i, one := range list {
		for _, b := range one.find(from[i].g) {
			e := known[b.addr]
			if e == nil {
				e = &bears{addr: b.addr}
				known[b.addr], order = e, append(order, e)
			}
			if r := heard.reading(b.key, one.header); r.At.After(e.last.At) || e.last.At.IsZero() && r.Err != nil {
				e.last = r
			}
			e.alive = e.alive || from[i].g.alive(b)
		}
	}
	slices.SortFunc(order, func(a, b *bears) int { return a.addr.Compare(b.addr) })
	var all []loads.Reading
	silent := 0
	for _, e := range order {
		switch age, ok := e.last.Age(now); {
		case !ok || age > loads.SilentPeriods*period:
			if e.alive {
				silent++
			}
		case e.alive || age <= capacity.FreshPeriods*period:
			all = append(all, e.last)
		}
	}
	if score {
		t := loads.Mean(all, period, now)
		t.Silent = silent
		return t
	}
	t := loads.Sum(all, period, now)
	if t.Silent = silent; t.Counted > 0 {
		t.Value *= float64(t.Counted+silent) / float64(t.Counted)
	}
	return t
}

// find gives the endpoints of the sink in the plan that an instance has in service.
func (one *signal) find(g *GSLB) []bearer {
	p := g.live.Load().plan
	if one.plan == p {
		return one.bearers
	}
	one.plan, one.bearers = p, nil
	for _, h := range p.Hosts {
		for i := range h.Config.Pools {
			pool := &h.Config.Pools[i]
			if sinkOf(h, pool) != one.sink {
				continue
			}
			for _, c := range p.Checks(pool) {
				for k := range pool.Endpoints {
					e := &pool.Endpoints[k]
					if c.Name == one.check && e.State != config.StateDown && e.State != config.StateDrain {
						one.bearers = append(one.bearers, bearer{e.Addr, e, probe.KeyOf(c, plan.Target(h.Config, e))})
					}
				}
			}
		}
	}
	return one.bearers
}

// alive tells whether an endpoint is to bear load: it is written up, or its probe doesn't
// say that it is down.
func (g *GSLB) alive(b bearer) bool {
	for _, p := range g.health.endpoints[b.endpoint] {
		if p.Key() == b.key {
			return p.State().Assumed != probe.VerdictDown
		}
	}
	return b.endpoint.State == config.StateUp
}

// heard is what probes' answers have said in headers.
var heard headers

// headers keeps the headers that checks pass on, by probe and name. They outlive the
// scheduler of the probes, as verdicts do.
type headers struct {
	mu     sync.Mutex
	pushed map[probe.Key]map[string]*loads.Pushed
}

// note takes in the headers of a probe's answer.
func (h *headers) note(key probe.Key, reported []check.Header, at time.Time) {
	if len(reported) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pushed == nil {
		h.pushed = make(map[probe.Key]map[string]*loads.Pushed)
	}
	if h.pushed[key] == nil {
		h.pushed[key] = make(map[string]*loads.Pushed)
	}
	for _, field := range reported {
		pushed := h.pushed[key][field.Name]
		if pushed == nil {
			pushed = &loads.Pushed{}
			h.pushed[key][field.Name] = pushed
		}
		pushed.Offer(field.Value, at)
	}
}

func (h *headers) reading(key probe.Key, name string) loads.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	if pushed := h.pushed[key][name]; pushed != nil {
		return pushed.Reading()
	}
	return loads.Reading{}
}

// forget drops what probes said that none of the instances has any more. The registry's
// lock is held.
func (h *headers) forget(instances []*GSLB) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pushed) == 0 {
		return
	}
	used := make(map[probe.Key]bool)
	for _, g := range instances {
		for _, l := range g.health.leases {
			used[l.probe.Key()] = true
		}
	}
	for key := range h.pushed {
		if !used[key] {
			delete(h.pushed, key)
		}
	}
}
