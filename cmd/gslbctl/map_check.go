package main

import (
	"io"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/latency/build"
)

const mapCheckHelp = `Usage: gslbctl map check -map FILE [flags] HELDOUT…

Holds a steering map against measurements that it was not made from, such as those of
the day after its window: by how much its regions are faster than those that the same
clients would get without it, beside what the map promised. A HELDOUT is an input as
of "gslbctl map build". It exits with 1 when there is no gain: let
only emergencies through then (map build -budget 0). Nothing to compare is no reason against a map.

Example:
    gslbctl map check -map map.mmdb -conf Corefile -host api.example.com today.csv.zst

`

func mapCheck(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map check", mapCheckHelp, stdout, stderr)
	path := flags.String("map", "", "the `file` to check")
	until := flags.String("until", "", "the `time` at which the window of measurements ends; now if not given")
	asJSON := flags.Bool("json", false, "write JSON")
	g := geographyFlags(flags)
	var o build.Options
	var memory byteSize
	sizeFlags(flags, &o, &memory)
	inputs, code := parseFlags(flags, args)
	if inputs == nil {
		return code
	}
	if *path == "" || len(inputs) == 0 {
		return misuse(flags, "expected -map FILE and inputs: files, or - for standard input")
	}
	if err := settleZeros(flags, &o); err != nil {
		return misuse(flags, "%v", err)
	}
	o.Now, o.Memory = time.Now(), int64(memory)
	var err error
	if o.Until, err = readUntil(*until, o.Now); err != nil {
		return misuse(flags, "-until: %v", err)
	}
	if o.Regions, o.Geography, err = g.read(); err != nil {
		return fail(stderr, err)
	}
	if o.Geography == nil {
		return misuse(flags, "expected -conf with -host, or -default-order: a map is held against the answers without it")
	}
	m, _, err := latency.Read(*path)
	if err != nil {
		return fail(stderr, err)
	}
	b, closeBuilder, err := readInputs(&o, inputs, stderr)
	if err != nil {
		return fail(stderr, err)
	}
	defer closeBuilder()
	check, err := b.Check(m)
	if err != nil {
		return fail(stderr, err)
	}
	if code := writeReport(stdout, stderr, check, *asJSON); code != exitOK || check.Compared == 0 || check.Good() {
		return code
	}
	return exitError
}
