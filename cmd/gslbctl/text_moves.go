package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
)

// printReason says what gave a list, and what users measured.
func printReason(w io.Writer, l *plan.ListWhy) {
	m := l.Latency
	if m == nil {
		row(w, "because", "%s", reasonText(l, l.By))
		return
	}
	file := fmt.Sprintf("%s (built %s)", m.File, when(m.Built))
	if r := m.RolledBack; r != nil {
		file = fmt.Sprintf("%s (built %s, put back %s by %s: %s)", m.File, when(m.Built), when(r.At), r.By, r.Why)
	}
	if l.By == "latency" {
		row(w, "because", "the %s entry %s of the latency map %s", m.Side, m.Entry, file)
		printMeasured(w, m)
		row(w, "without map", "%s: %s", listText(m.Without), reasonText(l, m.By))
		return
	}
	row(w, "because", "%s", reasonText(l, l.By))
	switch {
	case m.Ignored == "too_old":
		row(w, "latency map", "LEFT OUT: %s is older than max_age %s", file, shortly(time.Duration(m.MaxAge)*time.Second))
	case !m.Entry.IsValid():
		row(w, "latency map", "no %s entry of %s holds it", m.Side, file)
		return
	case m.Ignored != "":
		row(w, "latency map", "says nothing: %s", ignoredTexts[m.Ignored])
	}
	if m.Entry.IsValid() {
		row(w, "", "its %s entry is %s of %s", m.Side, m.Entry, file)
		printMeasured(w, m)
	}
}

var ignoredTexts = map[string]string{
	"prefix_rule":   "a prefix rule decides, which outranks it",
	"refused":       "these clients are refused",
	"special_space": "special-purpose space is left to the rules",
	"split":         "the candidates are split by weight, which holds",
	"not_listed":    "the candidates have none of its regions",
}

// printMeasured shows what users measured, best first.
func printMeasured(w io.Writer, m *plan.LatencyWhy) {
	if m.Changed {
		row(w, "", "  its measurements are not known: the file is not the one in use any more")
		return
	}
	for _, r := range m.Measured {
		text := r.Region
		if r.Samples > 0 || r.P75 > 0 || r.Failed > 0 {
			text += fmt.Sprintf("  p75 %.1f ms, %d samples", r.P75, r.Samples)
		}
		if r.Failed > 0 {
			text += fmt.Sprintf(", %s failed", partText(float64(r.Failed)))
		}
		row(w, "", "  %s", text)
	}
}

// printCosts shows what the law of capacity weighs the candidates by, where that is measured.
func printCosts(w io.Writer, m *plan.LatencyWhy) {
	if m == nil || m.Costs == nil {
		return
	}
	var words []string
	for _, c := range m.Costs {
		words = append(words, fmt.Sprintf("%s %.1f ms", c.Region, c.Milliseconds))
	}
	row(w, "costs", "%s: the mean of all who have these candidates, for the law of capacity", strings.Join(words, ", "))
}

// printLevers shows the levers that are moved, or will be.
func printLevers(w io.Writer, levers []plan.LeverWhy) {
	for _, l := range levers {
		text := fmt.Sprintf("%s %s %s", l.Region, l.Lever, l.Value)
		switch {
		case l.By != "":
			text += fmt.Sprintf(": %s by %s: %s", l.From, l.By, l.Why)
		case l.From != "":
			text += ": " + l.From
			if l.When != "" {
				text += ", " + l.When
			}
		default:
			text += ": nothing written holds now"
		}
		if !l.Next.IsZero() {
			text += fmt.Sprintf("; %s from %s", l.Then, when(l.Next))
		}
		row(w, "lever", "%s", text)
	}
}

// printTargets shows the names that pools are resolved from.
func printTargets(w io.Writer, targets []plan.TargetWhy) {
	for _, t := range targets {
		text := fmt.Sprintf("%s %s (%s): ", t.Region, t.Target, t.At)
		if t.Endpoints == 0 {
			text += "NO ADDRESS of it is known"
		} else {
			text += fmt.Sprintf("%d addresses", t.Endpoints)
		}
		row(w, "target", "%s%s", text, note(t.CName, ", but the name itself is answered"))
	}
}

// shortly writes a duration without parts that are zero.
func shortly(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(text) - len(zero); n > 0 && text[n:] == zero {
			text = text[:n+1]
		}
	}
	return text
}
