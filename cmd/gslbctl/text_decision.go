package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/steer"
)

// printDecision writes the candidates of one family and what followed.
func printDecision(w io.Writer, d *steer.Trace) {
	if d.Outcome == steer.OutcomeNoFamily.String() {
		return
	}
	fmt.Fprintf(w, "  %s\n", record(d))
	width := 0
	for _, c := range d.Candidates {
		width = max(width, len(c.Region))
	}
	for _, c := range d.Candidates {
		fmt.Fprintf(w, "    %-*s  %s\n", width, c.Region, candidateText(&c))
		for _, l := range c.Levers {
			fmt.Fprintf(w, "    %-*s    %s\n", width, "", leverText(&l))
		}
		for _, e := range c.Endpoints {
			fmt.Fprintf(w, "    %-*s    %s\n", width, "", endpointText(&e))
		}
	}
	if text := byTexts[d.By]; text != "" {
		row(w, "  decided by", "%s", text)
	}
	if d.FamilyMoved {
		row(w, "  family", "this family alone goes elsewhere: a candidate before is usable for the other")
	}
	for _, s := range d.Shares {
		what := joined(s.Answer)
		if s.Name != "" {
			what = "CNAME " + s.Name
		}
		row(w, "  share", "%d of %d: %s %s", s.Part, s.Of, s.Region, what)
	}
	if d.LastResort != "" {
		row(w, "  last resort", "%s: no candidate is usable", d.LastResort)
	}
	if len(d.Candidates) > 0 {
		row(w, "  spread", "%s", spreadText(d))
	}
	if d.Outcome == steer.OutcomeRefused.String() {
		row(w, "  scope", "0: resolvers share negative answers between clients")
	} else {
		row(w, "  scope", "%d: %s", d.Scope, scopeTexts[d.ScopeWhy])
	}
	if d.TTLClass != "" {
		row(w, "  ttl", "%d: %s", d.TTL, ttlTexts[d.TTLClass])
	}
}

// candidateText says what became of a candidate.
func candidateText(c *steer.TraceCandidate) string {
	text := map[string]string{
		"chosen": "CHOSEN", "shared": "takes turns with the chosen", "next": "next in line", "passed": "passed over",
	}[c.Status]
	if c.Why != "" {
		text += ": " + whyTexts[c.Why]
	}
	switch c.Tier {
	case "split":
		text += fmt.Sprintf(", weight %d", c.Weight)
	case "standby":
		text += ", standby"
	case "last_resort":
		text += ", named by the last resort"
	}
	if c.Availability > 0 {
		text += fmt.Sprintf(", takes %s of its clients for its health", partText(c.Availability))
	}
	if c.Written {
		text += ", all live weights are 0, so the written ones hold"
	}
	if c.OtherFamily {
		text += ", usable for the other family"
	}
	return text
}

var whyTexts = map[string]string{
	"no_pool": "no pool", "no_family": "no endpoint of this family", "drained": "drained", "down": "down",
	"min_healthy": "fewer are up than min_healthy", "fenced": "outside the fence",
	"unresolved": "its target has no address, or none that is known",
	"spilled":    "it gives some or all of its clients away, this one among them",
	"held_up":    "failed, but max_down keeps it in service",
	"soak":       "a share of all clients is for it, this one is not in that",
	"alone":      "it should get no more than its share, but no other candidate is usable",
	"trickled":   "it gave this client on to keep a standby proven",
}

// byTexts say what decided on the region, where that is not the order.
var byTexts = map[string]string{
	"spill":   "spill: a candidate before it gave this client away",
	"share":   "share: this client is in the part of all that the region gets",
	"trickle": "trickle: a small part of what a candidate before it takes goes here",
	"shed":    "shed: the region is full, so the client is sent to another name",
	"forced":  "force: every usable candidate gave this client away, and somebody must serve it",
}

// leverText says where a lever is, and who moved it.
func leverText(l *steer.TraceLever) string {
	what := map[string]string{
		"dial": "dial: takes %s of what would come", "ramp": "coming back from an outage: takes %s of what would come",
		"admission": "nearly full: the law of capacity admits %s", "share": "share: gets %s of all clients, and no others",
		"trickle": "trickle: gives %s of what it takes to the next",
	}[l.Lever]
	if l.Lever == "share" && l.Part == 0 {
		what = "share: gets %s, as these clients take no part in it"
	}
	text := fmt.Sprintf(what, partText(l.Part))
	if l.Why != "" && l.Lever != "ramp" && l.Lever != "admission" {
		text += " (" + l.Why + ")"
	}
	return text
}

// partText is a part as a percentage, with a hundredth at most.
func partText(part float64) string {
	return strconv.FormatFloat(math.Round(part*1e4)/100, 'f', -1, 64) + "%"
}

func endpointText(e *steer.TraceEndpoint) string {
	text := fmt.Sprintf("%s  %s", e.Addr, e.Verdict)
	if e.Reason != "" && e.Reason != "written "+e.Verdict {
		text += " (" + e.Reason + ")"
	}
	if e.Streak {
		text += ", changing"
	}
	switch {
	case e.Weighed:
		text += fmt.Sprintf(", weight %d by an override", e.Weight)
	case e.Weight != 1:
		text += fmt.Sprintf(", weight %d", e.Weight)
	}
	if e.Answered {
		text += ", answered"
	}
	return text
}

// spreadText says what choices are made by.
func spreadText(d *steer.Trace) string {
	if len(d.Key) == 0 {
		return d.Spread + ": in turn, the above is only the next"
	}
	keys := make([]string, len(d.Key))
	for i, k := range d.Key {
		keys[i] = printed(k)
	}
	return fmt.Sprintf("%s: choices by the hash of %s", d.Spread, strings.Join(keys, " and "))
}

var scopeTexts = map[string]string{
	"block":          "as long as the block",
	"grain":          "the grain of spread sticky, within the block",
	"option_ignored": "the special-purpose block whose client subnets are ignored",
	"no_option":      "no client subnet counts",
}

var ttlTexts = map[string]string{
	"steady": "steady", "streak": "shortened, an endpoint is changing", "last_resort": "the floor, for the last resort",
}
