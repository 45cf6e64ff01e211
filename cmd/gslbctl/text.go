package main

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// print writes a report for people: what is answered first, then why.
func (r *report) print(w io.Writer) {
	for i, b := range r.Blocks {
		if i > 0 {
			fmt.Fprintln(w)
		}
		view := ""
		if b.View != "" {
			view = ", in view " + b.View
		}
		fmt.Fprintf(w, "%s in zone %s (%s)%s\n", r.Name, b.Zone, b.At, view)
		if b.Explanation == nil {
			b.printUnsteered(w)
			continue
		}
		switch {
		case b.StateError != "":
			row(w, "saved state", "CAN'T BE READ, so what it holds is not known here: %s", b.StateError)
		case b.StateMissing:
			row(w, "verdicts", "NOT KNOWN: the block has no state directory, so what a running server has found is not known here")
		}
		printExplanation(w, b.Explanation, r.TransportAssumed)
	}
}

func (b *blockReport) printUnsteered(w io.Writer) {
	exists := "and doesn't exist here"
	if b.Exists {
		exists = "but exists"
	}
	row(w, "host", "none: the name is not steered, %s%s", exists, b.Suggestion)
	switch {
	case b.Unsteered == "nodata":
		row(w, "answer", "no data (NODATA)")
	case b.Unsteered == "nxdomain":
		row(w, "answer", "no such name (NXDOMAIN)")
	case b.Exists:
		row(w, "answer", "from the plugins after gslb (fallthrough); their NXDOMAIN becomes NODATA")
	default:
		row(w, "answer", "from the plugins after gslb (fallthrough)")
	}
}

func printExplanation(w io.Writer, e *plan.Explanation, assumed bool) {
	row(w, "host", "%s (%s)", e.Host, e.At)
	for i := range e.Decisions {
		d := &e.Decisions[i]
		row(w, record(d), "%s", answerText(d))
	}
	printClient(w, &e.Client, assumed)
	if e.Facts.Address != e.Client.Prefix.Addr() {
		row(w, "address", "%s, more than the server sees", e.Facts.Address)
	}
	if e.Facts.Special {
		row(w, "space", "special-purpose: nothing is filled in here")
	}
	printFacts(w, e.Facts.Place)
	printFacts(w, e.Facts.ASN)
	printList(w, e)
	printLevers(w, e.Levers)
	printTargets(w, e.Targets)
	for i := range e.Decisions {
		printDecision(w, &e.Decisions[i])
	}
	row(w, "digest", "%s", e.Digest)
}

// record is the type that asks for a decision's family.
func record(d *steer.Trace) string {
	if d.Family == steer.V6.String() {
		return "AAAA"
	}
	return "A"
}

// answerText is what a decision answers.
func answerText(d *steer.Trace) string {
	switch d.Outcome {
	case steer.OutcomeNoFamily.String():
		return "no data (NODATA): the host offers no address of this family"
	case steer.OutcomeRefused.String():
		return "no data (NODATA): these clients are refused"
	case steer.OutcomeFailed.String():
		return "SERVFAIL: " + reasonTexts[d.Reason]
	}
	what := joined(d.Answer)
	if d.Name != "" {
		what = "CNAME " + d.Name
	}
	text := fmt.Sprintf("%s  ttl %d", what, d.TTL)
	switch {
	case d.By == steer.ByShed.String():
		text += fmt.Sprintf("  SHED by %s, which is full", d.Region)
	case d.Region != "":
		text += "  from " + d.Region
	}
	if d.LastResort != "" {
		text += ", LAST RESORT " + d.LastResort
	}
	return text
}

var reasonTexts = map[string]string{
	"closed":       "no candidate is usable, and the last resort is closed",
	"all_drained":  "every candidate is drained",
	"nothing_left": "no candidate is usable, and the last resort has nothing",
}

func printClient(w io.Writer, c *plan.SeenClient, assumed bool) {
	if c.Subnet.IsValid() {
		row(w, "client subnet", "%s%s", c.Subnet, ignored(c))
	} else {
		row(w, "client subnet", "none")
	}
	row(w, "transport", "%s%s", c.Transport, note(assumed, ", taken to be the client itself: name another with -resolver"))
	row(w, "client", "%s, from the %s%s", c.Prefix, map[string]string{"ecs": "client subnet", "transport": "transport"}[c.Source],
		note(c.Embedded, ": the IPv4 address embedded in it"))
}

// ignored says why a client subnet doesn't count.
func ignored(c *plan.SeenClient) string {
	switch c.Ignored {
	case "ecs_off":
		return ", not believed: the block says `ecs off`"
	case "not_believed":
		return ", not believed: the transport is not in `ecs from`"
	case "source_zero":
		return ", which says nothing"
	case "special_purpose":
		return fmt.Sprintf(", ignored: it lies in the special-purpose block %s", c.Special)
	}
	return ""
}

func printFacts(w io.Writer, f *plan.DatabaseFacts) {
	switch {
	case f == nil:
		return
	case f.Missing:
		row(w, f.Kind, "unknown: the optional %s is not there", f.File)
		return
	case !f.Network.IsValid():
		row(w, f.Kind, "unknown to %s (built %s)", f.File, f.Built.Format("2006-01-02"))
		return
	}
	var known []string
	for _, code := range append([]string{f.Continent, f.Country}, f.Subdivisions...) {
		if code != "" {
			known = append(known, code)
		}
	}
	if f.Number > 0 {
		known = append(known, fmt.Sprintf("AS%d", f.Number))
	}
	if c := f.Coordinates; c != nil {
		known = append(known, fmt.Sprintf("%.4f %.4f", c.Lat, c.Lon))
	}
	row(w, f.Kind, "%s  (%s in %s, built %s)", strings.Join(known, " "), f.Network, f.File, f.Built.Format("2006-01-02"))
}

func printList(w io.Writer, e *plan.Explanation) {
	l := &e.List
	row(w, "candidates", "%s", listText(&l.CandidateList))
	if l.Exact != nil {
		row(w, "because", "most addresses of %s have these; client subnets are told apart no further (ecs max)", e.Client.Block)
		row(w, "not used", "%s, which %s alone would have", listText(l.Exact), e.Facts.Address)
	}
	printReason(w, l)
	printCosts(w, l.Latency)
	for _, d := range l.Distances {
		row(w, "", "%6d km  %s", d.Kilometres, d.Region)
	}
	for _, f := range l.Fences {
		row(w, "fence", "%s (%s) leaves %s%s", f.Area, f.At, strings.Join(f.Regions, " "),
			note(f.Broken, ", but is NOT HELD for client subnets here, as most addresses are outside it"))
	}
	for _, r := range l.LeftOut {
		row(w, "no candidate", "%s: %s", r.Region, map[string]string{
			"no_pool": "the host has no pool there", "fenced": "outside the fence", "not_listed": "not in the list written",
		}[r.Why])
	}
	row(w, "block", "%s: all of it has these candidates", e.Client.Block)
}

// reasonText says what gave a list, by the word for that.
func reasonText(l *plan.ListWhy, by string) string {
	switch by {
	case "rule":
		text := fmt.Sprintf("rule %s: %s", l.Rule.At, l.Rule.Match)
		if l.Rule.Line != "" {
			text += " (" + l.Rule.Line + ")"
		}
		if l.Distances != nil {
			text += ", the others by distance from its region"
		}
		return text
	case "rest":
		return fmt.Sprintf("no rule matches, so clients rest (%s)", l.Rule.At)
	case "fill":
		return fmt.Sprintf("no database knows it; filled from its neighbour %s", l.FilledFrom)
	case "distance":
		return "no rule matches, so by distance"
	}
	return "no rule matches and no distance is known, so in the order written"
}

// listText is a candidate list in one line.
func listText(l *plan.CandidateList) string {
	if l.Refuse {
		return "none: refused"
	}
	var parts []string
	for _, s := range l.Split {
		parts = append(parts, fmt.Sprintf("%s (weight %d)", s.Region, s.Weight))
	}
	text := strings.Join(parts, " or ")
	if len(parts) > 0 && len(l.Order) > 0 {
		text += ", then "
	}
	return text + strings.Join(l.Order, " ")
}

// note is a remark that is made when it is true.
func note(when bool, text string) string {
	if when {
		return text
	}
	return ""
}

func joined[T fmt.Stringer](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
	}
	return strings.Join(words, " ")
}

// printed cuts a prefix that is one address to the address.
func printed(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
