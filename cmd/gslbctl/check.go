package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/plan"
)

const checkHelp = `Usage: gslbctl check [-conf Corefile]

Checks every gslb block of a Corefile as the server does when it starts: the
words, the data files, the candidate lists of every host, and the plugins beside
gslb. It prints what was found and every warning; errors are the server's own.
Whether the state directory can be made and written to is looked at for the user
that runs this, and nothing is changed.

Only a start of the server can see the rest: whether a plugin below gslb serves
the zone's SOA (then soa and ns must not be written), the other plugins' own
blocks, and whether plugins are built in and in the right order.

`

func check(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("check", checkHelp, stdout, stderr)
	conf := flags.String("conf", "Corefile", "the `file` to check")
	rest, code := parseFlags(flags, args)
	if rest == nil {
		return code
	}
	if len(rest) > 0 {
		return misuse(flags, "unexpected %q: the file is named with -conf", rest[0])
	}
	blocks, err := readCorefile(*conf)
	if err != nil {
		return fail(stderr, err)
	}
	for i := range blocks {
		s := &blocks[i]
		if len(s.tokens) == 0 {
			continue
		}
		p, err := s.build()
		if err == nil {
			err = s.checkControl(p.Block)
		}
		if err != nil {
			code = fail(stderr, err)
			continue
		}
		p.Warnings = append(p.Warnings, s.stateWarnings(p.Block)...)
		describe(stdout, s, p)
	}
	return code
}

// describe tells the size of a plan and its warnings.
func describe(w io.Writer, s *serverBlock, p *plan.Plan) {
	names, regions := 0, make([]string, len(p.Block.Regions))
	for _, h := range p.Hosts {
		names += len(h.Config.Names)
	}
	for i, r := range p.Block.Regions {
		regions[i] = r.Name
	}
	v4, v6, lists := 0, 0, 0
	for _, n := range p.Needs {
		stats := n.Topology.Stats()
		v4, v6, lists = v4+stats.ECS4, v6+stats.ECS6, lists+stats.Lists
	}
	fmt.Fprintf(w, "%s: gslb %s%s\n", p.Block.Pos, strings.Join(p.Block.Zones, " "), s.name())
	row(w, "hosts", "%d with %d names", len(p.Hosts), names)
	row(w, "regions", "%d: %s", len(regions), strings.Join(regions, " "))
	row(w, "blocks", "%d IPv4, %d IPv6", v4, v6)
	row(w, "candidate lists", "%d in %d topologies", lists, len(p.Needs))
	row(w, "answers", "at most %d sets of addresses", p.MaxSets())
	for _, m := range p.Maps() {
		row(w, "latency map", "%s", mapText(&m))
	}
	row(w, "digest", "%016x", p.Digest)
	var without []string
	for _, h := range p.Hosts {
		without = append(without, h.Unresolved()...)
	}
	slices.Sort(without)
	if text := s.unresolved(p, slices.Compact(without)); text != "" {
		row(w, "targets", "%s", text)
	}
	for _, warning := range p.Warnings {
		row(w, "warning", "%s: %s", warning.Pos, warning.Text)
	}
}

// mapText tells what a latency map is.
func mapText(m *plan.MapInfo) string {
	text := fmt.Sprintf("%s, built %s, %d entries for clients and %d for resolvers", m.Path, when(m.Built), m.Clients, m.Resolvers)
	if r := m.RolledBack; r != nil {
		text += fmt.Sprintf("; put back %s by %s: %s", when(r.At), r.By, r.Why)
	}
	return text + note(m.TooOld, "; TOO OLD, so left out")
}

// row prints a labelled line.
func row(w io.Writer, label, format string, args ...any) {
	fmt.Fprintf(w, "  %-16s%s\n", label, fmt.Sprintf(format, args...))
}
