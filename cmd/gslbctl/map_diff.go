package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

const mapDiffHelp = `Usage: gslbctl map diff [flags] OLD NEW

Tells what a new map changes: the part of demand that moves to another region, what
that does to the 75th percentile as the new map measured it, each region's share
before and after, and the largest moves. Demand is the samples behind entries, of all
that the new map was made from if it says so, or their number in maps without
measurements. It exits with 1 when there are reasons not
to publish the new map: more than the budget moves, it is older, it has lost more
than half of the entries rather than merged them, or names regions that there are
not (-regions).

`

func mapDiff(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map diff", mapDiffHelp, stdout, stderr)
	top := flags.Int("top", 20, "list so many moves, at most `N`")
	budget := flags.String("budget", "2%", "the `part` of demand that may change its region; 100% for all")
	regions := flags.String("regions", "", "the `names` of the regions that there are, with commas; none: not checked")
	asJSON := flags.Bool("json", false, "write JSON")
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	if len(rest) != 2 {
		return misuse(flags, "expected OLD and NEW")
	}
	part, err := parsePart(*budget)
	if err != nil {
		return misuse(flags, "-budget %s: %v", *budget, err)
	}
	if *top < 0 || *top > 10_000 {
		return misuse(flags, "-top %d: expected 0 to 10000", *top)
	}
	var maps [2]*latency.Map
	for i, file := range rest {
		if maps[i], _, err = latency.Read(file); err != nil {
			return fail(stderr, err)
		}
	}
	o := latency.CompareOptions{Top: *top, Budget: part}
	if *regions != "" {
		o.Regions = strings.Split(*regions, ",")
	}
	c := latency.Compare(maps[0], maps[1], o)
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		err = out.Encode(c)
	} else {
		printComparison(stdout, rest, maps, c)
	}
	switch {
	case err != nil:
		return fail(stderr, err)
	case len(c.Refusals) > 0:
		return exitError
	}
	return exitOK
}

// parsePart reads a part such as 2% or 0.02.
func parsePart(s string) (float64, error) {
	number, isPercent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		f /= 100
	}
	if err != nil || !(f > 0 && f <= 1) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("expected a part above 0 and at most 100%%, such as 2%% or 0.02")
	}
	return f, nil
}

// printComparison writes a comparison for people.
func printComparison(w io.Writer, files []string, maps [2]*latency.Map, c *latency.Comparison) {
	row(w, "old", "%s, built %s", files[0], when(maps[0].Built))
	row(w, "new", "%s, built %s", files[1], when(maps[1].Built))
	if d := maps[1].Demand; c.By == "samples" && d != [2]uint64{} {
		row(w, "demand", "by samples, of the %d of clients and %d of resolvers that the new map was made from", d[0], d[1])
	} else {
		row(w, "demand", "by %s", c.By)
	}
	printSide(w, "clients", &c.Clients)
	printSide(w, "resolvers", &c.Resolvers)
	if len(c.Refusals) == 0 {
		fmt.Fprintln(w, "nothing against publishing it")
	}
	for _, reason := range c.Refusals {
		fmt.Fprintf(w, "REFUSED: %s\n", reason)
	}
}

func printSide(w io.Writer, name string, s *latency.SideChange) {
	fmt.Fprintln(w, name)
	row(w, "entries", "%d, were %d", s.EntriesAfter, s.EntriesBefore)
	if s.EntriesAfter+s.EntriesBefore == 0 {
		return
	}
	row(w, "moves", "%.2f %% of demand; %.2f %% enters the map, %.2f %% leaves it", 100*s.Moved, 100*s.Entered, 100*s.Left)
	if s.Predicted > 0 {
		row(w, "p75", "%+.1f ms where it moves and both regions were measured (%.2f %% of demand)", s.P75, 100*s.Predicted)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "  region\tbefore\tafter\t")
	for _, r := range s.Shares {
		fmt.Fprintf(t, "  %s\t%.2f %%\t%.2f %%\t\n", r.Region, 100*r.Before, 100*r.After)
	}
	t.Flush()
	if len(s.Top) == 0 {
		return
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  largest moves\tdemand\tfrom\tto\tp75 of both")
	for _, m := range s.Top {
		fmt.Fprintf(t, "  %s\t%.2f %%\t%s\t%s\t%s, %s\n", m.Prefix, 100*m.Demand, orNone(m.From), orNone(m.To), milliseconds(m.P75From), milliseconds(m.P75To))
	}
	t.Flush()
}

func orNone(region string) string {
	if region == "" {
		return "(no entry)"
	}
	return region
}

func milliseconds(p *float32) string {
	if p == nil {
		return "?"
	}
	return fmt.Sprintf("%.1f ms", *p)
}
