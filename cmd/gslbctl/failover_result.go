package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/failover"
)

// failoverResult is what failover prints; its JSON form is stable.
type failoverResult struct {
	From        string                `json:"from,omitempty"` // the host statement, as file:line
	NoChecks    bool                  `json:"no_checks,omitempty"`
	Interval    float64               `json:"interval_seconds"`
	Fall        int                   `json:"fall"`
	Timeout     float64               `json:"timeout_seconds"` // that a probe takes to fail
	Retry       bool                  `json:"retry,omitempty"`
	Detection   float64               `json:"detection_seconds,omitempty"` // where fall is 0: the whole time to the verdict
	TTL         float64               `json:"ttl_seconds"`
	Publish     float64               `json:"publish_seconds"`
	Horizon     float64               `json:"horizon_seconds,omitempty"`
	Rate        float64               `json:"rate,omitempty"`
	Populations []failover.Population `json:"populations"`

	FirstNew    float64            `json:"first_new_answer_seconds"`
	Refused     float64            `json:"first_new_answer_if_refused_seconds"` // if probes are refused at once
	Curve       []curvePoint       `json:"curve"`
	Percentiles []percentile       `json:"percentiles"` // of those who honour the TTL, and stragglers
	Mean        float64            `json:"mean_seconds"`
	Compared    []failoverCompared `json:"compared"` // the first is what was asked
	Queries     float64            `json:"queries_per_second,omitempty"`
	Cost        float64            `json:"cost_per_month,omitempty"`
	Headroom    float64            `json:"headroom,omitempty"`
	planResult
	alternatives []failoverAlternative
}

type curvePoint struct {
	At   float64 `json:"seconds"`
	Left float64 `json:"left"`
}

type percentile struct {
	P         float64 `json:"p"`
	Exact     float64 `json:"seconds"`
	Simulated float64 `json:"simulated_seconds,omitempty"`
}

type failoverCompared struct {
	Name   string  `json:"name"`
	Lost   float64 `json:"lost_seconds"`
	Failed float64 `json:"failed_requests,omitempty"`
	Moved  float64 `json:"all_moved_seconds"`
	Budget float64 `json:"budget_used,omitempty"` // as a part of it
	// Queries is how many times the queries of what was asked it takes; 0: it is no
	// matter of DNS.
	Queries float64 `json:"query_factor,omitempty"`
}

type failoverAlternative struct {
	name    string
	model   failover.Model
	queries float64
}

// alternativesOf are what was asked, and what would make it shorter.
func (r *failoverRequest) alternativesOf() []failoverAlternative {
	list := []failoverAlternative{{"as given", r.model, 1}}
	if half := max((r.ttl / 2).Truncate(time.Second), time.Second, r.floor); half < r.ttl {
		m := r.model
		m.Populations, _ = r.populations(half) // it was read for the TTL before
		list = append(list, failoverAlternative{fmt.Sprintf("TTL %g", half.Seconds()), m, float64(r.ttl) / float64(half)})
	}
	if m, name := r.faster(); name != "" {
		list = append(list, failoverAlternative{name, m, 1})
	}
	return append(list, failoverAlternative{"anycast", failover.Model{
		Detection: 3 * time.Second, Rate: r.model.Rate, Horizon: r.model.Horizon,
		Populations: []failover.Population{
			{Name: "routed", Share: 0.9, Keep: 15 * time.Second}, {Name: "slow", Share: 0.1, Keep: 90 * time.Second},
		},
	}, 0})
}

// What a Corefile can have of a check.
const (
	leastInterval = time.Second
	mostInterval  = time.Hour
	leastTimeout  = 100 * time.Millisecond
)

// faster is what was asked with a detection that takes half the time, or checks twice as
// fast, as far as a Corefile can have that; without a name there is none.
func (r *failoverRequest) faster() (m failover.Model, name string) {
	m = r.model
	if m.Fall == 0 {
		if m.Detection /= 2; m.Detection > 0 {
			name = fmt.Sprintf("detection %s", m.Detection)
		}
		return m, name
	}
	m.Interval = min(max(m.Interval/2, leastInterval), mostInterval)
	if m.Interval >= r.model.Interval || failover.Timeout(leastTimeout, m.Interval, m.Retry) < leastTimeout {
		return m, ""
	}
	m.Timeout = failover.Timeout(m.Timeout, m.Interval, m.Retry)
	name = fmt.Sprintf("interval %s", m.Interval)
	if m.Timeout < r.model.Timeout && !r.assumed {
		name += fmt.Sprintf(", timeout %s", m.Timeout)
	}
	return m, name
}

// times are those that the curve is told at: what was asked for, else ten even steps
// and where it bends.
func (r *failoverRequest) times(until float64) []float64 {
	if len(r.at) > 0 {
		return r.at
	}
	var times []float64
	for i := range 11 {
		times = append(times, math.Round(until*float64(i)/10))
	}
	start := r.model.Start()
	times = append(times, start)
	for _, p := range r.model.Populations {
		end := start + p.Keep.Seconds()
		if p.Fixed {
			end = p.Keep.Seconds()
		}
		times = append(times, end)
	}
	times = slices.DeleteFunc(times, func(t float64) bool { return t > until })
	slices.Sort(times)
	return slices.Compact(times)
}

func (r *failoverRequest) result() *failoverResult {
	m := &r.model
	out := &failoverResult{
		From: r.from, NoChecks: r.from != "" && !r.checksFound, Interval: m.Interval.Seconds(), Fall: m.Fall,
		Timeout: m.Timeout.Seconds(), Retry: m.Retry, Detection: m.Detection.Seconds(), TTL: r.ttl.Seconds(),
		Publish: m.Publish.Seconds(), Horizon: m.Horizon.Seconds(), Rate: m.Rate, Populations: m.Populations, FirstNew: m.Start(), Refused: m.Refused(),
	}
	until := m.Moved()
	if m.Horizon > 0 {
		until = m.Horizon.Seconds()
	}
	for _, t := range r.times(until) {
		out.Curve = append(out.Curve, curvePoint{t, m.Left(t)})
	}
	spread := m.Spread(r.ttl, r.stragglers, r.straggler)
	draws := spread.Draws(r.draws, r.seed)
	for _, p := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		q := percentile{P: p, Exact: spread.Percentile(p)}
		if len(draws) > 0 {
			q.Simulated = failover.Drawn(draws, p)
		}
		out.Percentiles = append(out.Percentiles, q)
	}
	out.Mean = spread.Mean()
	out.alternatives = r.alternativesOf()
	out.planResult = r.plan.result(r)
	for _, a := range out.alternatives {
		c := failoverCompared{Name: a.name, Lost: a.model.Lost(), Failed: a.model.Failed(), Moved: a.model.Moved(), Queries: a.queries}
		if out.Budget != nil {
			c.Budget = c.Lost / out.Budget.Seconds
		}
		out.Compared = append(out.Compared, c)
	}
	if r.caches > 0 && r.ttl > 0 {
		out.Queries = failover.Queries(r.caches, r.ttl)
		out.Cost = failover.Cost(out.Queries, r.price)
	}
	if r.regions > 1 {
		out.Headroom = failover.Headroom(r.regions)
	}
	return out
}

// print writes the result for a person.
func (f *failoverResult) print(w io.Writer) {
	f.printDetection(w)
	fmt.Fprintln(w, "Clients that still go to the failed region:")
	for _, p := range f.Curve {
		fmt.Fprintf(w, "  %6gs  %5.1f%%  %s\n", math.Round(10*p.At)/10, 100*p.Left, bar(p.Left))
	}
	fmt.Fprintln(w, "\nTime until a client has moved, if it honours the TTL, with stragglers:")
	for _, p := range f.Percentiles {
		fmt.Fprintf(w, "  p%-5g %6.1fs", 100*p.P, p.Exact)
		if p.Simulated > 0 {
			fmt.Fprintf(w, "  (simulated %.1fs)", p.Simulated)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  mean   %6.1fs\n\n", f.Mean)
	f.printLost(w)
	if f.Queries > 0 {
		fmt.Fprintf(w, "\nThe TTL implies %.0f queries per second", f.Queries)
		if f.Cost > 0 {
			fmt.Fprintf(w, ", %.2f a month", f.Cost)
		}
		fmt.Fprintln(w, ".")
	}
	if f.Headroom > 0 {
		fmt.Fprintf(w, "\nThe loss of one region raises the load of the others by %.0f%%: they need that headroom.\n", 100*f.Headroom)
	}
	f.planResult.print(w, f.TTL)
}

// printDetection tells what finds the outage, and when the first new answer is out.
func (f *failoverResult) printDetection(w io.Writer) {
	detected := fmt.Sprintf("interval %gs, fall %d", f.Interval, f.Fall)
	if f.Within > 0 {
		detected += fmt.Sprintf(" within %gs", f.Within)
	}
	detected += fmt.Sprintf(", timeout %gs", f.Timeout)
	if f.Retry {
		detected += ", retry"
	}
	if f.Fall == 0 {
		detected = fmt.Sprintf("detection %gs", f.Detection)
	}
	if f.From != "" {
		fmt.Fprintf(w, "Host at %s: %s, TTL %gs\n", f.From, detected, f.TTL)
	} else {
		fmt.Fprintf(w, "%s%s, TTL %gs\n", strings.ToUpper(detected[:1]), detected[1:], f.TTL)
	}
	if f.NoChecks {
		fmt.Fprintln(w, "This host has no health check: nothing detects an outage. Interval and fall are those of the flags.")
	}
	fmt.Fprintf(w, "The first new answer is out after %gs", math.Round(10*f.FirstNew)/10)
	if f.Refused < f.FirstNew {
		fmt.Fprintf(w, "; after %gs if the region refuses probes at once", math.Round(10*f.Refused)/10)
	}
	fmt.Fprint(w, ".\n\n")
}

// printLost compares what is lost with the alternatives.
func (f *failoverResult) printLost(w io.Writer) {
	until := "until everybody has moved"
	if f.Horizon > 0 {
		until = fmt.Sprintf("up to %gs", f.Horizon)
	}
	fmt.Fprintf(w, "Lost %s, in seconds of all requests:\n", until)
	wide := 16
	for _, c := range f.Compared {
		wide = max(wide, len(c.Name))
	}
	for _, c := range f.Compared {
		fmt.Fprintf(w, "  %-*s %7.2fs", wide, c.Name, c.Lost)
		if f.Rate > 0 {
			fmt.Fprintf(w, "  %12.0f requests", c.Failed)
		}
		if c.Budget > 0 {
			fmt.Fprintf(w, "  %6.2f%% of the budget", 100*c.Budget)
		}
		if c.Queries > 1 {
			fmt.Fprintf(w, "  at %.3g times the queries", c.Queries)
		}
		fmt.Fprintln(w)
	}
}

// bar is a part as a bar of up to 40 characters.
func bar(part float64) string {
	return "########################################"[:int(math.Round(40*min(1, max(0, part))))]
}
