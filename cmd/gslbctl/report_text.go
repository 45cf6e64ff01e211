package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// bare is a host's name without the final dot.
func bare(host string) string { return strings.TrimSuffix(host, ".") }

// ofView is a host's name with its view, if it has one.
func ofView(host, view string) string { return bare(host) + note(view != "", " in view "+view) }

// printReport tells what moves, from where to where.
func printReport(w io.Writer, result *control.Result) {
	r := &result.Report
	if r.MovedBlocks == 0 && len(r.Flows) == 0 {
		row(w, "moves", "nothing")
	} else {
		text := fmt.Sprintf("%.1f %% of blocks", r.MovedBlocks)
		if r.MovedDemand != nil {
			text += fmt.Sprintf(", %.1f %% of the demand observed", *r.MovedDemand)
		} else {
			text += "; of the demand is not known"
		}
		row(w, "moves", "%s", text)
		if r.MovedSpace != nil && math.Abs(*r.MovedSpace-r.MovedBlocks) >= alike {
			row(w, "", "%.1f %% of the address space of %s", *r.MovedSpace, r.SpaceKind)
		}
	}
	for _, f := range r.Flows {
		row(w, "", "%s -> %s  %s", named(f.From), named(f.To), parts(f.Blocks, f.Demand, "blocks", "demand"))
	}
	if slices.ContainsFunc(r.Flows, func(f control.Flow) bool { return f.From == "" }) {
		row(w, "", "those of %s had no region before, which doesn't count as a move", named(""))
	}
	printKinds(w, r)
	printHosts(w, result)
	rows := [][]string{{"region", "blocks", "demand", "utilisation"}}
	for _, g := range r.Regions {
		rows = append(rows, []string{named(g.Name), change(&g.BlocksBefore, &g.BlocksAfter), change(g.DemandBefore, g.DemandAfter), change(g.UtilisationBefore, g.UtilisationAfter)})
	}
	columns(w, rows)
	if r.DeficitAfter > 0 || r.DeficitBefore > 0 {
		row(w, "DEFICIT", "%s, was %s: demand that no region can take", number(&r.DeficitAfter), number(&r.DeficitBefore))
	}
	for _, s := range r.Stranded {
		row(w, "NO REGION LEFT", "%s, %.1f %% of blocks, candidates %s: %s%s", ofView(s.Host, s.View), s.Blocks, strings.Join(s.List, " "), s.Why,
			note(s.Before, " (they have none now, either)"))
	}
}

// parts are percentages of blocks and, if it is known, of demand.
func parts(blocks float64, demand *float64, ofBlocks, ofDemand string) string {
	text := fmt.Sprintf("%.1f %% of %s", blocks, ofBlocks)
	if demand != nil {
		text += fmt.Sprintf(", %.1f %% of %s", *demand, ofDemand)
	}
	return text
}

// alike is how far apart, in points of a percentage, what moves of two kinds of blocks
// is still alike.
const alike = 1

// printKinds tells which kind of blocks all figures are of, and what moves of the kinds
// of which another part does.
func printKinds(w io.Writer, r *control.Report) {
	if r.Kind == "" {
		return
	}
	others := slices.Clone(r.Kinds)
	others = slices.DeleteFunc(others, func(k control.KindReport) bool {
		return k.Kind == r.Kind || math.Abs(k.MovedBlocks-r.MovedBlocks) < alike
	})
	rest := ""
	switch {
	case len(others) > 0:
		rest = "; of others move"
	case len(r.Kinds) > 1:
		rest = "; others move alike"
	}
	row(w, "blocks", "are those of %s, of all hosts%s", r.Kind, rest)
	for _, k := range others {
		row(w, "", "%.1f %%  %s (%.1f %% of all blocks)", k.MovedBlocks, k.Kind, k.Blocks)
	}
}

// shownHosts is how many hosts are told of, if none is named.
const shownHosts = 5

// printHosts tells what moves of the hosts that a change names, or else of those of
// which most does, unless it is all there is.
func printHosts(w io.Writer, result *control.Result) {
	r := &result.Report
	if names := hostsOf(result.Applied); len(names) > 0 {
		for _, name := range names {
			moves := slices.ContainsFunc(r.Hosts, func(h control.HostReport) bool { return h.Host == name })
			if !moves {
				row(w, "of host", "%s  nothing", bare(name))
			}
		}
		for _, h := range r.Hosts {
			if slices.Contains(names, h.Host) {
				printHost(w, &h)
			}
		}
		return
	}
	if len(r.Hosts) == 1 && percent(&r.Hosts[0].MovedBlocks) == percent(&r.MovedBlocks) {
		return
	}
	for i, h := range r.Hosts {
		if i == shownHosts {
			row(w, "", "and of %d more hosts", len(r.Hosts)-i)
			return
		}
		printHost(w, &h)
	}
}

func printHost(w io.Writer, h *control.HostReport) {
	row(w, "of host", "%s  %s", ofView(h.Host, h.View), parts(h.MovedBlocks, h.MovedDemand, "its blocks", "its demand"))
}

// hostsOf are the hosts that changes name.
func hostsOf(applied []control.Applied) (names []string) {
	for _, a := range applied {
		for _, o := range []*control.Override{a.Override, a.Cancelled} {
			if o != nil && o.Host != "" && !slices.Contains(names, o.Host) {
				names = append(names, o.Host)
			}
		}
	}
	return names
}

// named is a region of a report; none is the last resort.
func named(region string) string {
	if region == "" {
		return "(last resort)"
	}
	return region
}

// change is a percentage before and after.
func change(before, after *float64) string {
	switch {
	case after == nil:
		return percent(before)
	case before == nil:
		return percent(after)
	case percent(before) == percent(after):
		return percent(after)
	}
	return fmt.Sprintf("%.1f -> %.1f %%", *before, *after)
}
