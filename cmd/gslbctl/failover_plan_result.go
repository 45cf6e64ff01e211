package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/failover"
)

// planResult is what is printed of a planRequest; its JSON form is stable.
type planResult struct {
	Within   float64         `json:"within_seconds,omitempty"`
	Recovery *recoveryResult `json:"recovery,omitempty"`
	Budget   *budgetResult   `json:"budget,omitempty"`
	Move     *moveResult     `json:"planned_move,omitempty"`
	Cascade  *cascadeResult  `json:"cascade,omitempty"`
	Bearable []bearable      `json:"bearable,omitempty"`
}

// recoveryResult is the way back of a region.
type recoveryResult struct {
	Rise     int     `json:"rise"`
	Over     float64 `json:"over_seconds,omitempty"`
	Interval float64 `json:"interval_seconds"`
	First    float64 `json:"first_probe_seconds,omitempty"` // after the recovery at most; not with -phase=false
	Probes   int     `json:"probes"`                        // that it takes
	After    float64 `json:"seconds"`                       // from the first good probe
	Ramp     float64 `json:"ramp_seconds"`
	Manual   bool    `json:"manual,omitempty"` // an operator has to say so besides
}

// budgetResult is what a target of availability leaves.
type budgetResult struct {
	Target  float64 `json:"target"` // 0..1
	Days    float64 `json:"days"`
	Seconds float64 `json:"seconds"` // in which all requests may fail
}

// moveResult is how long old answers outlive a planned move.
type moveResult struct {
	Lowered float64 `json:"lowered_ttl_seconds"`
	Before  float64 `json:"lowered_before_seconds"`
	Old     float64 `json:"old_answers_seconds"` // after the move
}

// cascadeResult is what an outage of the first region does to the others.
type cascadeResult struct {
	Regions []failover.Region `json:"regions"`
	// Steps are the regions that go down if the whole load of each goes to the next, and
	// Stands the one that bears what is left, Left; empty: none.
	Steps  []failover.Step `json:"steps"`
	Stands string          `json:"stands,omitempty"`
	Left   float64         `json:"left"`
	// Free is the room that the others have, Short the load that finds none, and Utilisation
	// what they come to (a part of their capacity) if they share what moves by room.
	Free        float64 `json:"free"`
	Short       float64 `json:"short"`
	Utilisation float64 `json:"utilisation"`
}

// bearable is up to which utilisation of all regions the loss of one fits.
type bearable struct {
	Region      string  `json:"region"`
	Capacity    float64 `json:"capacity"`
	Utilisation float64 `json:"utilisation"` // 0..1
}

func (p *planRequest) result(r *failoverRequest) (out planResult) {
	if r.model.Fall > 0 {
		out.Within = p.within.Seconds()
	}
	if p.recovers {
		probes, after := failover.Recovery(p.rise, p.back, p.over)
		out.Recovery = &recoveryResult{p.rise, p.over.Seconds(), p.back.Seconds(), 0, probes, after.Seconds(), p.ramp.Seconds(), p.manual}
		if r.model.Phase {
			out.Recovery.First = p.back.Seconds()
		}
	}
	if p.kept > 0 {
		left := failover.Budget(p.kept, time.Duration(p.days*24*float64(time.Hour)))
		out.Budget = &budgetResult{p.kept, p.days, left.Round(time.Millisecond).Seconds()}
	}
	if p.lowers {
		lowered := time.Duration(p.lowered * float64(time.Second))
		out.Move = &moveResult{p.lowered, p.before.Seconds(), failover.OldAnswers(r.ttl, lowered, p.before).Seconds()}
	}
	regions := p.regions
	if len(regions) > 0 {
		out.Cascade = cascade(regions)
	} else {
		regions = p.capacities
	}
	if len(regions) > 1 && !slices.ContainsFunc(regions, func(r failover.Region) bool { return r.Capacity == 0 }) {
		for i, one := range regions {
			out.Bearable = append(out.Bearable, bearable{one.Name, one.Capacity, failover.Bearable(regions, i)})
		}
	}
	return out
}

func cascade(regions []failover.Region) *cascadeResult {
	c := &cascadeResult{Regions: regions}
	c.Steps, c.Left = failover.Cascade(regions)
	if n := len(c.Steps); n < len(regions) {
		c.Stands = regions[n].Name
	}
	c.Free, c.Short, c.Utilisation = failover.Placed(regions)
	return c
}

// print writes it for a person.
func (p *planResult) print(w io.Writer, ttl float64) {
	if b := p.Budget; b != nil {
		fmt.Fprintf(w, "\n%.6g%% of %g days leave %.1f minutes in which all requests to the region may fail.\n", 100*b.Target, b.Days, b.Seconds/60)
	}
	if r := p.Recovery; r != nil {
		over := ""
		if r.Over > 0 {
			over = fmt.Sprintf(" over %gs", r.Over)
		}
		fmt.Fprintf(w, "\nThe way back: rise %d%s takes %d good probes, the last %gs after the first", r.Rise, over, r.Probes, r.After)
		if r.First > 0 {
			fmt.Fprintf(w, ",\nwhich begins up to %gs after the region is back", r.First)
		}
		if r.Manual {
			fmt.Fprint(w, ", and an operator's word (return manual)")
		}
		fmt.Fprintf(w, ";\nthen the region's clients come back over %gs.\n", r.Ramp)
	}
	if m := p.Move; m != nil {
		fmt.Fprintf(w, "\nA planned move, with the TTL lowered to %gs %s before: old answers live for up to %s after it", m.Lowered, span(m.Before), span(m.Old))
		if m.Old > m.Lowered {
			fmt.Fprintf(w, ",\nin caches filled just before the TTL was lowered. Lowered %s before, it would be %s", span(ttl), span(m.Lowered))
		}
		fmt.Fprintln(w, ".")
	}
	if p.Cascade != nil {
		p.Cascade.print(w)
	}
	if len(p.Bearable) > 0 {
		fmt.Fprintln(w, "\nThe others have room for the loss of a region while all together are at no more than")
		for _, b := range p.Bearable {
			fmt.Fprintf(w, "  %-16s %5.1f%% of capacity  (its own is %s)\n", b.Region, 100*b.Utilisation, amount(b.Capacity))
		}
	}
}

func (c *cascadeResult) print(w io.Writer) {
	first := c.Regions[0]
	fmt.Fprintf(w, "\nThe loss of %s, if the whole load of each region goes to the next one in the order of -load:\n", first.Name)
	for i, s := range c.Steps {
		fmt.Fprintf(w, "  %-16s goes down with %s%s\n", s.Region, amount(s.Load), note(i > 0, ofCapacity(s.Load, c.Regions[i].Capacity)))
	}
	if c.Stands == "" {
		fmt.Fprintln(w, "  none is left")
	} else {
		fmt.Fprintf(w, "  %-16s bears %s%s\n", c.Stands, amount(c.Left), ofCapacity(c.Left, c.Regions[len(c.Steps)].Capacity))
	}
	var others []string
	for _, r := range c.Regions[1:] {
		others = append(others, r.Name)
	}
	fmt.Fprintf(w, "and if it goes where there is room, as with `capacity` in the Corefile, but up to all of it and not to `target`:\n%s %s room for %s of %s;\n", strings.Join(others, " and "),
		map[bool]string{true: "has", false: "have"}[len(others) == 1], amount(min(c.Free, first.Load)), amount(first.Load))
	if c.Short > 0 {
		fmt.Fprintf(w, "%s find none, and the load comes to %.0f%% of the capacity left.\n", amount(c.Short), 100*c.Utilisation)
	} else {
		fmt.Fprintf(w, "the load comes to %.0f%% of the capacity left.\n", 100*c.Utilisation)
	}
}

// ofCapacity is a load as a part of a capacity.
func ofCapacity(load, capacity float64) string {
	return fmt.Sprintf(", %.0f%% of its capacity of %s", 100*load/capacity, amount(capacity))
}

// amount is a load or capacity with at most two decimals.
func amount(v float64) string {
	return strconv.FormatFloat(math.Round(100*v)/100, 'f', -1, 64)
}

// span is a number of seconds as a duration.
func span(seconds float64) string {
	return shortly(time.Duration(seconds * float64(time.Second)))
}
