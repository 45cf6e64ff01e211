package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	health "github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/failover"
)

// planRequest is what is asked around an outage: the way back, a budget of
// availability, a planned move, and what the other regions bear.
type planRequest struct {
	within time.Duration // of the failures that make the verdict; 0: in a row

	recovers   bool // the way back is asked for, or known
	rise       int
	over, ramp time.Duration
	ramped     bool          // ramp is given, or known
	back       time.Duration // interval of the check that is the last to say up; 0: the model's
	manual     bool          // a check waits for an operator's word

	target string
	kept   float64 // target as a number, 0..1; 0: none
	days   float64

	lowers  bool    // a planned move is asked for
	lowered float64 // TTL in seconds
	before  time.Duration

	loads      words // as written
	regions    []failover.Region
	known      bool              // the regions are those of a Corefile
	capacities []failover.Region // of the Corefile, in the order of pools; 0: not written as a number
}

// words are the values of a flag that may be repeated.
type words []string

func (w *words) String() string { return strings.Join(*w, " ") }

// Set implements flag.Value.
func (w *words) Set(word string) error { *w = append(*w, word); return nil }

// flags adds the flags of it.
func (p *planRequest) flags(flags *flag.FlagSet) {
	flags.DurationVar(&p.within, "within", 0, "`time` that the failed probes must come together in; 0: in a row")
	flags.IntVar(&p.rise, "rise", 5, "good `probes` in a row that take the region back")
	flags.DurationVar(&p.over, "over", 0, "least `time` that these must span")
	flags.DurationVar(&p.ramp, "ramp", 0, "`time` in which clients come back (default 10 times the TTL, or 5m0s if that is more)")
	flags.StringVar(&p.target, "target", "", "`percent` of requests that must not fail, such as 99.95%: gives what an outage uses of the rest")
	flags.Float64Var(&p.days, "days", 90, "the `days` that -target is for")
	flags.Float64Var(&p.lowered, "lowered", 0, "TTL in `seconds` that -ttl is lowered to before a planned move")
	flags.DurationVar(&p.before, "before", 0, "how much `time` before the move it is lowered")
	flags.Var(&p.loads, "load", "`REGION:LOAD[:CAPACITY]`, repeated: the first fails, and its load goes to the next")
}

// Bounds of what is worked out.
const (
	longest   = 30 * 24 * time.Hour
	mostRises = 1000
	mostDays  = 3660
	most      = 1e15 // of loads, capacities, caches and prices
)

// read checks the flags by themselves.
func (p *planRequest) read(set map[string]bool) error {
	p.ramped = set["ramp"]
	p.recovers = set["rise"] || set["over"] || p.ramped
	p.lowers = set["lowered"]
	for _, d := range []struct {
		flag string
		time time.Duration
	}{{"within", p.within}, {"over", p.over}, {"ramp", p.ramp}, {"before", p.before}} {
		if d.time < 0 || d.time > longest {
			return fmt.Errorf("-%s %s: expected 0 to %s", d.flag, d.time, longest)
		}
	}
	switch {
	case p.rise < 1 || p.rise > mostRises:
		return fmt.Errorf("-rise %d: expected 1 to %d probes", p.rise, mostRises)
	case set["within"] && set["detection"]:
		return fmt.Errorf("-within beside -detection: expected one of them, as -detection says when the verdict is there")
	case p.lowers != set["before"]:
		return fmt.Errorf("-lowered and -before belong together: to which TTL, and how long before the move")
	case set["days"] && p.target == "":
		return fmt.Errorf("-days without -target: say which part of requests must not fail, such as -target 99.95%%")
	case !(p.days > 0 && p.days <= mostDays):
		return fmt.Errorf("-days %g: expected a number above 0, up to %d", p.days, mostDays)
	}
	if p.target != "" {
		var err error
		if p.kept, err = share(p.target); err != nil || p.kept <= 0 || p.kept >= 1 {
			return fmt.Errorf("-target %s: expected a percentage above 0%% and below 100%%, such as 99.95%%", p.target)
		}
	}
	return nil
}

// use takes from a host what no flag says: the window, the way back, and capacities.
// failing is the check that makes the verdict; nil: there is none.
func (p *planRequest) use(b *config.Block, h *config.Host, failing *health.Check, ttl time.Duration, set map[string]bool) {
	p.known = true
	if failing != nil && !set["within"] && !set["detection"] {
		p.within = failing.FallWithin
	}
	var last *health.Check
	ramp := time.Duration(0)
	for i := range h.Pools {
		levers := b.LeversOf(&h.Pools[i])
		region := failover.Region{Name: h.Pools[i].Region}
		if levers.Capacity != nil {
			region.Capacity = levers.Capacity.Value
		}
		p.capacities = append(p.capacities, region)
		checks := checksOf(b, &h.Pools[i])
		for _, c := range checks {
			if last == nil || recovery(c) > recovery(last) {
				last = c
			}
			p.manual = p.manual || c.Manual
		}
		if len(checks) > 0 {
			ramp = max(ramp, config.RampTime(levers.Ramp, ttl))
		}
	}
	if last == nil {
		return
	}
	p.recovers = true
	if !set["rise"] {
		p.rise = last.Rise
	}
	if !set["over"] {
		p.over = last.RiseOver
	}
	if !set["interval"] {
		p.back = last.Interval
	}
	if !set["ramp"] {
		p.ramp, p.ramped = ramp, true
	}
}

// checksOf are the checks of a pool.
func checksOf(b *config.Block, pool *config.Pool) (list []*health.Check) {
	for i := range b.Checks {
		if c := &b.Checks[i].Check; slices.Contains(pool.Checks, c.Name) {
			list = append(list, c)
		}
	}
	return list
}

func recovery(c *health.Check) time.Duration {
	_, after := failover.Recovery(c.Rise, c.Interval, c.RiseOver)
	return after
}

// complete checks flags and Corefile together, and reads the loads.
func (p *planRequest) complete(r *failoverRequest) error {
	m := &r.model
	if m.Fall > 0 {
		if err := failover.Window(m.Fall, m.Interval, p.within); err != nil {
			return fmt.Errorf("-within: %w", err)
		}
	}
	if p.back == 0 {
		p.back = m.Interval
	}
	if p.recovers && p.back <= 0 {
		return fmt.Errorf("-interval %s: expected a time above 0, as good probes are that far apart", p.back)
	}
	if !p.ramped {
		p.ramp = config.RampTime(nil, r.ttl)
	}
	if p.lowers && !(p.lowered >= 0 && p.lowered <= r.ttl.Seconds()) {
		return fmt.Errorf("-lowered %g: expected 0 to the TTL, which is %g", p.lowered, r.ttl.Seconds())
	}
	for _, word := range p.loads {
		if err := p.load(word); err != nil {
			return fmt.Errorf("-load %s: %w", word, err)
		}
	}
	if len(p.regions) == 1 {
		return fmt.Errorf("-load %s: expected at least two regions: the one that fails, and one that its load goes to", p.loads[0])
	}
	return nil
}

// load reads the load of a region.
func (p *planRequest) load(word string) (err error) {
	parts := strings.Split(word, ":")
	bad := fmt.Errorf("expected REGION:LOAD or REGION:LOAD:CAPACITY, of numbers like 40000, such as eu:40000:48000")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" {
		return bad
	}
	one := failover.Region{Name: parts[0]}
	named := func(r failover.Region) bool { return r.Name == one.Name }
	if slices.ContainsFunc(p.regions, named) {
		return fmt.Errorf("region %s is there twice", one.Name)
	}
	if i := slices.IndexFunc(p.capacities, named); i >= 0 {
		one.Capacity = p.capacities[i].Capacity
	} else if p.known {
		var names []string
		for _, c := range p.capacities {
			names = append(names, c.Name)
		}
		return fmt.Errorf("the host has no pool in %s%s", one.Name, config.DidYouMean(one.Name, names))
	}
	if one.Load, err = strconv.ParseFloat(parts[1], 64); err != nil || !(one.Load >= 0 && one.Load <= most) {
		return bad
	}
	if len(parts) == 3 {
		if one.Capacity, err = strconv.ParseFloat(parts[2], 64); err != nil || !(one.Capacity > 0 && one.Capacity <= most) {
			return bad
		}
	}
	if one.Capacity == 0 && len(p.regions) > 0 { // that of the first one fails with it
		return fmt.Errorf("its capacity is not known: write %s:CAPACITY, or `capacity NUMBER` for it in the Corefile", word)
	}
	p.regions = append(p.regions, one)
	return nil
}
