// Package sim is a discrete simulator of DNS traffic steering: resolvers with caches,
// late and noisy load signals, and one or more name servers that run a law. The
// law is the very one that servers run (package capacity), or a rival.
//
// Time goes in steps of one second. A resolver asks when its cached answer ends, walks
// its candidate list by hash thresholds as a server does, and sends all its demand to
// the region it got until then. Everything follows from the scenario's seed.
package sim

import (
	"math"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
)

// Region is one region of a scenario.
type Region struct {
	Name     string
	Capacity float64
	Target   float64 // 0: the law's default
}

// Population is what resolvers are like.
type Population struct {
	Resolvers int     // for each candidate list
	Zipf      float64 // exponent of their demands by rank; 0: all equal
	// Clamp and Sticky are the parts of the demand behind resolvers that keep
	// answers for ClampFor and StickyFor seconds, whatever the TTL.
	Clamp, Sticky       float64
	ClampFor, StickyFor int
	// Big is the part of the first list's demand that one resolver, which honours
	// the TTL, has for itself.
	Big float64
}

// Real is the population of the scenarios: 80 % honour the TTL, 15 % keep answers
// for 5 minutes, 5 % for half an hour.
func Real() Population {
	return Population{Resolvers: 2000, Zipf: 0.5, Clamp: 0.15, Sticky: 0.05, ClampFor: 300, StickyFor: 1800}
}

// Controls are what events change.
type Controls struct {
	Demand []float64 // by list
	Health []float64 // by region, as the servers know it
	Dial   []float64
	Dead   []bool // by region: serves nobody, whether or not the servers know
	Frozen []bool // its load signal stopped
	Stuck  []bool // its load signal goes on, with the last value
}

// Event changes the controls at a time.
type Event struct {
	At     int
	Change func(*Controls)
}

// Instance is a name server.
type Instance struct {
	Start int     // until then another instance serves its resolvers
	Part  float64 // of the resolvers
}

// Scenario is a run.
type Scenario struct {
	Name    string
	Regions []Region
	// Lists are the candidate lists, by index of regions; resolvers are in one each.
	Lists  [][]int
	Demand []float64 // by list
	Events []Event
	Population
	TTL    int // seconds
	Step   int // seconds between the law's steps
	Period int // seconds between load signals, each the mean since the last one
	Delay  int // seconds from a measurement until servers have it, which its age shows
	Hidden int // seconds of delay that its age does not show
	Noise  float64
	// Instances: none is one of all resolvers, from the start.
	Instances []Instance
	Length    int
	Seed      uint64
}

// Base is a scenario's usual settings.
func Base(name string) Scenario {
	return Scenario{
		Name: name, Population: Real(), TTL: 60, Step: 15, Period: 15, Delay: 10,
		Noise: 0.01, Length: 3600, Seed: 1,
	}
}

// Result is what happened, second by second.
type Result struct {
	Scenario *Scenario
	// Load is by region and second; a dead region's is what fails there.
	Load [][]float64
	// Dead is by region and second.
	Dead [][]bool
	// Shares is by instance, region and second: which part of the demand its
	// admission sends there once resolvers follow.
	Shares [][][]float64
	// Steps are the first instance's outputs by second, if the law gives any.
	Steps map[int]*capacity.Output
}

type resolver struct {
	list, instance int
	demand         float64 // part of the list's
	key            uint64
	ttl            int // 0: the answer's
	region         int
}

type world struct {
	*Scenario
	Controls
	now       int
	resolvers []resolver
	due       map[int][]int // resolvers by second
	servers   []*server
	sensors   []sensor
	load      []float64
	result    *Result
}

type server struct {
	law       Law
	start     int
	admission [][]float64
}

// Run runs the scenario with a law of its own for each instance.
func (sc *Scenario) Run(newLaw func() Law) *Result {
	w := &world{Scenario: sc, due: make(map[int][]int)}
	n := len(sc.Regions)
	w.Controls.Demand = append([]float64(nil), sc.Demand...)
	w.Health, w.Dial = ones(n), ones(n)
	w.Dead, w.Frozen, w.Stuck = make([]bool, n), make([]bool, n), make([]bool, n)
	w.load = make([]float64, n)
	w.sensors = make([]sensor, n)
	w.result = &Result{Scenario: sc, Load: make([][]float64, n), Dead: make([][]bool, n), Steps: make(map[int]*capacity.Output)}
	instances := sc.Instances
	if len(instances) == 0 {
		instances = []Instance{{0, 1}}
	}
	for _, in := range instances {
		s := &server{law: newLaw(), start: in.Start}
		for _, l := range sc.Lists {
			s.admission = append(s.admission, ones(len(l)))
		}
		w.servers = append(w.servers, s)
		w.result.Shares = append(w.result.Shares, make([][]float64, n))
	}
	w.populate(instances)
	for w.now = 0; w.now < sc.Length; w.now++ {
		w.tick()
	}
	return w.result
}

func (w *world) tick() {
	changed := false
	for _, e := range w.Events {
		if e.At == w.now {
			before := w.opens()
			e.Change(&w.Controls)
			changed = changed || !equal(before, w.opens())
		}
	}
	// A server steps in its own phase, and at once when availability changes.
	for i, s := range w.servers {
		if w.now >= s.start && (changed || (w.now-s.start)%w.Step == 0) {
			w.step(i, s)
		}
	}
	for _, i := range w.due[w.now] {
		w.resolve(i)
	}
	delete(w.due, w.now)
	w.measure()
}

func (w *world) step(i int, s *server) {
	in := w.input()
	admission, out := s.law.Step(in)
	s.admission = admission
	if i == 0 && out != nil {
		w.result.Steps[w.now] = out
	}
}

// resolve gives resolver i an answer, and has it come back when that ends.
func (w *world) resolve(i int) {
	r := &w.resolvers[i]
	s := w.servers[r.instance]
	if w.now < s.start {
		s = w.servers[0]
	}
	r.region = w.choose(r, s.admission[r.list])
	ttl := r.ttl
	if ttl == 0 {
		ttl = w.TTL
	}
	w.due[w.now+ttl] = append(w.due[w.now+ttl], i)
}

// choose walks the candidates.
func (w *world) choose(r *resolver, admission []float64) int {
	first := w.Lists[r.list][0]
	found := false
	for k, region := range w.Lists[r.list] {
		open := w.Health[region] * w.Dial[region]
		if open == 0 {
			continue
		}
		if !found {
			first, found = region, true
		}
		if unit(mix(r.key, uint64(region))) < open*admission[k] {
			return region
		}
	}
	return first
}

// opens is the availability of every region.
func (w *world) opens() []float64 {
	out := make([]float64, len(w.Health))
	for r := range out {
		out[r] = w.Health[r] * w.Dial[r]
	}
	return out
}

// input is what servers see now.
func (w *world) input() *capacity.Input {
	in := &capacity.Input{
		Now: start.Add(time.Duration(w.now) * time.Second), TTL: time.Duration(w.TTL) * time.Second,
		Delay: time.Duration(w.Period) * time.Second / 2,
	}
	for r, region := range w.Regions {
		in.Sinks = append(in.Sinks, capacity.Sink{
			Name: region.Name, Capacity: region.Capacity, Target: region.Target,
			Health: w.Health[r], Dial: w.Dial[r], Signal: w.sensors[r].signal(w, r),
		})
	}
	for i, l := range w.Lists {
		in.Groups = append(in.Groups, capacity.Group{Weight: w.Controls.Demand[i], Sinks: l})
	}
	return in
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ones(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

func equal(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-12 {
			return false
		}
	}
	return true
}
