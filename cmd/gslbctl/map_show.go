package main

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

const mapShowHelp = `Usage: gslbctl map show [-resolver] FILE [PREFIX|ADDR]

Tells what a map says of an address, or of the addresses of a prefix: the entry, its
regions in order with what was measured, and its neighbours. Without an address, it
tells what the map holds. It exits with 1 when no entry holds the address: then the
other sources of location decide.

`

// maxShown bounds the entries that are shown in full.
const maxShown = 20

func mapShow(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map show", mapShowHelp, stdout, stderr)
	resolver := flags.Bool("resolver", false, "look where queries without a client subnet are looked up, by the resolver's address")
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	if len(rest) == 0 || len(rest) > 2 {
		return misuse(flags, "expected FILE and at most one PREFIX or ADDR")
	}
	var prefix netip.Prefix
	if len(rest) == 2 {
		var err error
		if prefix, err = latency.ParsePrefix(rest[1]); err != nil {
			return misuse(flags, "%v", err)
		}
	}
	m, format, err := latency.Read(rest[0])
	if err != nil {
		return fail(stderr, err)
	}
	describeMap(stdout, rest[0], m, format)
	if !prefix.IsValid() {
		return exitOK
	}
	entries, side := m.Clients, "client"
	if *resolver {
		entries, side = m.Resolvers, "resolver"
	}
	return showPrefix(stdout, m, entries, side, prefix)
}

// describeMap tells what a map holds.
func describeMap(w io.Writer, file string, m *latency.Map, format latency.Format) {
	s := m.Stats()
	fmt.Fprintf(w, "%s (%s)\n", file, format)
	row(w, "built", "%s", when(m.Built))
	if !m.From.IsZero() || !m.Until.IsZero() {
		row(w, "measured", "from %s until %s", when(m.From), when(m.Until))
	}
	if m.Demand != [2]uint64{} {
		row(w, "made of", "%d measurements of clients, %d of resolvers", m.Demand[0], m.Demand[1])
	}
	if r := m.Rollback; r != nil {
		row(w, "rolled back", "%s by %s: %s", when(r.At), r.By, r.Why)
	}
	row(w, "regions", "%d: %s", len(m.Regions), strings.Join(m.Regions, " "))
	row(w, "clients", "%d IPv4, %d IPv6", s.Clients4, s.Clients6)
	row(w, "resolvers", "%d IPv4, %d IPv6", s.Resolvers4, s.Resolvers6)
	row(w, "measurements", "%d samples behind %d entries", s.Samples, s.Measured)
	row(w, "digest", "%016x", m.Digest())
}

func when(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(time.RFC3339)
}

// showPrefix shows the entries that hold addresses of a prefix.
func showPrefix(w io.Writer, m *latency.Map, entries []latency.Entry, side string, p netip.Prefix) int {
	at, before, next := latency.Around(entries, p.Addr())
	first := at
	if at < 0 {
		first = next
	}
	end := first
	for end < len(entries) && entries[end].Prefix.Overlaps(p) {
		end++
	}
	if first == end {
		fmt.Fprintf(w, "no %s entry holds %s: the other sources of location decide\n", side, printed(p))
	}
	for i := first; i < min(end, first+maxShown); i++ {
		showEntry(w, m, &entries[i], side)
	}
	if n := end - first - maxShown; n > 0 {
		fmt.Fprintf(w, "and %d more entries in %s\n", n, p)
	}
	showNeighbour(w, "before", m, entries, before)
	showNeighbour(w, "after", m, entries, end)
	if first == end {
		return exitError
	}
	return exitOK
}

func showEntry(w io.Writer, m *latency.Map, e *latency.Entry, side string) {
	fmt.Fprintf(w, "%s %s\n", side, e.Prefix)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, r := range e.Order {
		fmt.Fprintf(t, "  %d\t%s\t", i+1, m.Regions[r])
		if e.Cells != nil {
			c := e.Cells[i]
			fmt.Fprintf(t, "p75 %.1f ms\t%d samples\t%.1f %% failed\t", c.P75, c.Samples, 100*c.Failed)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

func showNeighbour(w io.Writer, label string, m *latency.Map, entries []latency.Entry, i int) {
	if i < 0 || i >= len(entries) {
		row(w, label, "nothing")
		return
	}
	row(w, label, "%s", entries[i].AppendText(nil, m.Regions))
}
