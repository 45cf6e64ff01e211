package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// columns writes rows of cells, indented.
func columns(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		fmt.Fprintf(t, "    %s\n", strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	t.Flush()
}

// percent is a percentage with one decimal; empty if it isn't known.
func percent(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.1f %%", *v)
}

// number has four significant digits, and all that are before the point.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	if size := math.Abs(*v); size >= 1000 && size < 1e15 {
		return fmt.Sprintf("%.0f", *v)
	}
	return fmt.Sprintf("%.4g", *v)
}

// printRefusals tells what guards have against it.
func printRefusals(w io.Writer, refusals []control.Refusal) {
	for _, r := range refusals {
		row(w, "REFUSED", "by guard %s: %s", r.Guard, r.Reason)
	}
	if len(refusals) > 0 {
		row(w, "", "only -force, with a reason, would do it")
	}
}

// printDone tells what was done, and how to undo it.
func (c *controlCall) printDone(r *control.Result, now time.Time) {
	for _, a := range r.Applied {
		if o := a.Override; o != nil {
			row(c.out, "done", "override %s: %s of %s is %s, %s; it was %s", o.ID, o.Lever, o.Object, value(o), expiry(o, now), o.Previous)
			row(c.out, "undo", "%s", strings.Join(append([]string{"gslbctl cancel", o.ID, "-why REASON"}, c.given...), " "))
			if was := a.Replaced; was != nil {
				row(c.out, "", "that is to what the Corefile has; for what was before, set it to %s again", value(was))
			}
		}
		if o := a.Cancelled; o != nil {
			row(c.out, "done", "override %s is cancelled: %s of %s was %s (%s: %s)", o.ID, o.Lever, o.Object, value(o), o.By, o.Why)
		}
	}
	if r.Forced {
		for _, f := range r.Report.Refusals {
			row(c.out, "FORCED", "against guard %s: %s", f.Guard, f.Reason)
		}
	}
}

func value(o *control.Override) string {
	return string(o.Value) + note(o.Area != "", " for area "+o.Area)
}

// expiry is until when an override holds.
func expiry(o *control.Override, now time.Time) string {
	if o.Never {
		return "until it is cancelled"
	}
	return fmt.Sprintf("until %s (%s)", o.Until.Format(time.RFC3339), in(o.Until.Sub(now)))
}

// in is a time to come, in words.
func in(d time.Duration) string {
	if d <= 0 {
		return "over"
	}
	d = d.Round(time.Second)
	if d >= time.Hour {
		d = d.Round(time.Minute)
	}
	text := d.String()
	if trimmed, ok := strings.CutSuffix(text, "m0s"); ok {
		text = trimmed + "m"
	}
	return "in " + text
}

// printWarnings tells what somebody should look at.
func printWarnings(w io.Writer, warnings []string) {
	for _, warning := range warnings {
		row(w, "WARNING", "%s", warning)
	}
}

func printOverrides(w io.Writer, all []*control.Override, unmatched map[string]string, now time.Time) {
	if len(all) == 0 {
		row(w, "overrides", "none: the Corefile holds")
	}
	for _, o := range all {
		row(w, "override "+o.ID, "%s of %s is %s, %s", o.Lever, o.Object, value(o), expiry(o, now))
		row(w, "", "by %s at %s: %s; it was %s", o.By, o.Made.Format(time.RFC3339), o.Why, o.Previous)
		if why, is := unmatched[o.ID]; is {
			row(w, "", "WITHOUT EFFECT: %s", why)
		}
	}
}

func printAudit(w io.Writer, entries []control.Entry) {
	for _, e := range entries {
		what := strings.Join(strings.Fields(e.Action+" "+e.Object+" "+e.Value), " ")
		outcome := e.Outcome
		if e.Forced && e.Outcome == control.OutcomeAccepted {
			outcome = "FORCED"
		}
		fmt.Fprintf(w, "%s  %s  %s: %s%s%s\n", e.Time.Format(time.RFC3339), outcome, e.Who, what, note(e.ID != "", " (override "+e.ID+")"), note(e.Previous != "", ", was "+e.Previous))
		if e.Why != "" {
			row(w, "why", "%s", e.Why)
		}
		if e.Reason != "" {
			row(w, "but", "%s", e.Reason)
		}
	}
}

func printStatus(w io.Writer, s *control.Status, now time.Time) {
	row(w, "version", "%s", s.Version)
	printWarnings(w, s.Warnings)
	rows := [][]string{{"region", "load", "capacity", "utilisation", "load age", "demand", "levers"}}
	for _, r := range s.Regions {
		age := ""
		if r.LoadAge != nil {
			age = time.Duration(*r.LoadAge * float64(time.Second)).Round(time.Second).String()
		}
		rows = append(rows, []string{r.Name, number(r.Load), number(r.Capacity), percent(r.Utilisation), age, number(r.Demand),
			levers(&r.Drain, &r.Dial, &r.Share, &r.Trickle)})
	}
	columns(w, rows)
	if s.Deficit > 0 {
		row(w, "DEFICIT", "%s: demand that no region can take", number(&s.Deficit))
	}
	for _, h := range s.Hosts {
		row(w, "host", "%s", ofView(h.Name, h.View))
		rows := [][]string{{"region", "state", "available", "wanted", "served", "endpoints", "levers"}}
		for _, r := range h.Regions {
			state := "usable"
			if !r.Usable {
				state = "NOT USABLE: " + r.Why
			}
			rows = append(rows, []string{r.Name, state, percent(&r.Availability), percent(r.Wanted), percent(r.Served), endpoints(r.Endpoints),
				levers(r.Drain, r.Dial, r.Share, r.Trickle)})
		}
		columns(w, rows)
	}
	printOverrides(w, s.Overrides, nil, now)
}

// levers tells of those that are moved; nil is none of this place.
func levers(drain, dial, share, trickle *control.Setting) string {
	var parts []string
	add := func(s *control.Setting, text string) {
		if s != nil && s.From != "" {
			parts = append(parts, fmt.Sprintf("%s (%s)", text, s.From))
		}
	}
	if drain != nil {
		add(drain, map[bool]string{true: "DRAINED", false: "not drained"}[drain.Value.On()])
	}
	for _, l := range []struct {
		name string
		at   *control.Setting
	}{{"dial", dial}, {"share", share}, {"trickle", trickle}} {
		if l.at != nil {
			add(l.at, fmt.Sprintf("%s %s%s", l.name, l.at.Value, note(l.at.Area != "", " for area "+l.at.Area)))
		}
	}
	return strings.Join(parts, ", ")
}

// endpoints tells of those of a pool: how many are up, and which aren't.
func endpoints(all []control.EndpointStatus) string {
	up, rest := 0, ""
	for _, e := range all {
		if e.State == "up" && !strings.Contains(e.From, "override ") { // its checks say so, or the Corefile
			up++
			continue
		}
		rest += fmt.Sprintf(", %s %s%s", e.Endpoint, e.State, note(e.From != "", " ("+e.From+")"))
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d up%s", up, len(all), rest)
}
