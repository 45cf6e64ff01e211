package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/latency/build"
)

const mapBuildHelp = `Usage: gslbctl map build -o FILE [flags] INPUT…

Makes a steering map of measurements of real users. An INPUT is a file, or - for
standard input: CSV whose first line names the columns, JSON objects one to a line,
or sketches of days; each may be compressed by gzip or zstd. docs/latency.md has
the columns and the rules.

What the map is to beat is what the host of a Corefile would answer without it, or one
order for all. Only regions that are clearly better get an entry; what is in service
already, in -previous, is kept where nothing speaks clearly against it.

Examples:
    gslbctl map build -conf Corefile -host api.example.com -previous map.mmdb -o map.mmdb beacons.csv.zst
    gslbctl map build -default-order eu,us,ap -write-sketches day.gslbs -o map.txt -

`

// mapBuildFlags are what map build and map merge have in common.
type mapBuildFlags struct {
	out, previous, until, built, sketches *string
	asJSON                                *bool
	geography                             *geography
	options                               build.Options
	memory                                byteSize
}

func newMapBuildFlags(flags *flag.FlagSet) *mapBuildFlags {
	f := &mapBuildFlags{
		out:       flags.String("o", "", "the `file` to write, .mmdb or .txt"),
		previous:  flags.String("previous", "", "the map in service, a `file`; may be that of -o, and missing the first time"),
		until:     flags.String("until", "", "the `time` at which the window ends, RFC 3339 or a date; now if not given"),
		built:     flags.String("built", "", "the `time` that the map says it was built at, RFC 3339, so that equal inputs make equal files; now if not given"),
		sketches:  flags.String("write-sketches", "", "a `file` for sketches of the days that are wholly in the window, to be given to a later build"),
		asJSON:    flags.Bool("json", false, "write the report as JSON"),
		geography: geographyFlags(flags),
	}
	sizeFlags(flags, &f.options, &f.memory)
	o := &f.options
	flags.DurationVar(&o.HalfLife, "half-life", 48*time.Hour, "how long it takes a measurement to count half; negative: all count the same")
	flags.Float64Var(&o.Budget, "budget", 0.02, "the part of the demand that may change regions; 0: only emergencies")
	flags.Float64Var(&o.Emergency, "emergency-budget", 0.2, "the part that may on top of it where the region in use fails or is slower by 30 ms; 0: none")
	flags.BoolVar(&o.Force, "force", false, "change as much as there is to change, lose as many entries, and take inputs that are there twice")
	flags.Float64Var(&o.ResolverSpread, "resolver-spread", 100, "milliseconds between the 10th and 90th percentile beyond which a resolver gets no entry")
	flags.IntVar(&o.Shortest4, "shortest4", 12, "the shortest IPv4 prefix of an entry")
	flags.IntVar(&o.Shortest6, "shortest6", 20, "the shortest IPv6 prefix of an entry")
	return f
}

// sizeFlags are those of reading measurements.
func sizeFlags(flags *flag.FlagSet, o *build.Options, memory *byteSize) {
	*memory = 2 << 30
	flags.DurationVar(&o.Window, "window", 7*24*time.Hour, "how long before its end the window begins")
	flags.IntVar(&o.MinSamples, "min-samples", 200, "the samples of each region that a decision takes")
	flags.IntVar(&o.ResolverSamples, "resolver-samples", 1000, "the same for resolvers")
	flags.Float64Var(&o.SourceShare, "source-share", 0.05, "the part of min-samples that one source may fill; negative: no limit")
	flags.IntVar(&o.Longest4, "longest4", 24, "the length that IPv4 addresses are cut to")
	flags.IntVar(&o.Longest6, "longest6", 56, "the length that IPv6 addresses are cut to")
	flags.Float64Var(&o.MaxBad, "max-bad", 0.01, "the part of lines that may be unreadable; 0: none")
	flags.Var(memory, "memory", "the `bytes` that sorting may take, with K, M or G; the rest is on disk")
	flags.StringVar(&o.TempDir, "temp", "", "the `directory` for that; the system's if not given")
}

func mapBuild(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map build", mapBuildHelp, stdout, stderr)
	f := newMapBuildFlags(flags)
	inputs, code := parseFlags(flags, args)
	if inputs == nil {
		return code
	}
	return f.run(flags, inputs, stdout, stderr)
}

// run builds a map and publishes it.
func (f *mapBuildFlags) run(flags *flag.FlagSet, inputs []string, stdout, stderr io.Writer) int {
	if len(inputs) == 0 {
		return misuse(flags, "expected inputs: files, or - for standard input")
	}
	if *f.out == "" {
		return misuse(flags, "expected -o FILE")
	}
	if err := settleZeros(flags, &f.options); err != nil {
		return misuse(flags, "%v", err)
	}
	if _, err := latency.FormatOf(*f.out); err != nil {
		return misuse(flags, "-o: %v", err)
	}
	o := &f.options
	o.Now, o.Memory = time.Now(), int64(f.memory)
	var err error
	if o.Until, err = readUntil(*f.until, o.Now); err != nil {
		return misuse(flags, "-until: %v", err)
	}
	if o.Built, err = readUntil(*f.built, o.Now); err != nil {
		return misuse(flags, "-built: %v", err)
	}
	if o.Regions, o.Geography, err = f.geography.read(); err != nil {
		return fail(stderr, err)
	}
	if o.Previous, err = readPrevious(*f.previous, stderr); err != nil {
		return fail(stderr, err)
	}
	if p := o.Previous; p != nil && o.Until.Before(p.Until.Add(-24*time.Hour)) {
		fmt.Fprintf(stderr, "note: -until %s is before the end of what %s was made from, %s: what that map knows of since is forgotten\n", when(o.Until), *f.previous, when(p.Until))
	}
	sketches, err := newFile(*f.sketches)
	if err != nil {
		return fail(stderr, err)
	}
	defer sketches.discard()
	if sketches != nil {
		o.Sketches = sketches
	}
	b, closeBuilder, err := readInputs(o, inputs, stderr)
	if err != nil {
		return fail(stderr, err)
	}
	defer closeBuilder()
	result, err := b.Build()
	if err == nil {
		err = sketches.commit()
	}
	if err == nil {
		if *f.built == "" {
			afterPlace(result.Map, *f.out)
		}
		err = latency.Publish(*f.out, result.Map, o.Now, latency.PublishOptions{By: whoami(), Why: "gslbctl map build", Force: o.Force})
	}
	if err != nil {
		return fail(stderr, err)
	}
	return writeReport(stdout, stderr, result.Report, *f.asJSON)
}

// readUntil reads when a window ends.
func readUntil(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return now, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t, err = time.Parse(time.DateOnly, s)
	}
	if err != nil {
		return t, fmt.Errorf("%q: expected RFC 3339, or a date, which ends with its first moment", s)
	}
	if t.After(now) {
		return t, fmt.Errorf("%s is in the future", s)
	}
	return t, nil
}

// afterPlace dates a map a second later than the one in place if both are of about the
// same time: builds may be quick.
func afterPlace(m *latency.Map, out string) {
	if old, _, err := latency.Read(out); err == nil && !m.Newer(old) {
		since := old.Built
		if r := old.Rollback; r != nil && r.At.After(since) {
			since = r.At
		}
		if since.Sub(m.Built) < time.Minute {
			m.Built = since.Add(time.Second)
		}
	}
}

// readPrevious reads the map in service. It may be missing: there is a first time.
func readPrevious(path string, stderr io.Writer) (*latency.Map, error) {
	if path == "" {
		return nil, nil
	}
	m, _, err := latency.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "note: -previous %s: there is no such file, so this is a first map\n", path)
		return nil, nil
	}
	return m, err
}

// readInputs makes a builder and has it read all inputs.
func readInputs(o *build.Options, inputs []string, stderr io.Writer) (b *build.Builder, closeBuilder func(), err error) {
	bar := newProgressBar(stderr)
	if bar != nil {
		o.Progress = bar.show
	}
	if b, err = build.New(*o); err != nil {
		return nil, nil, err
	}
	closeBuilder = func() {
		bar.clear()
		if err := b.Close(); err != nil {
			fmt.Fprintln(stderr, err)
		}
	}
	b.Expect(sizeOf(inputs))
	for _, name := range inputs {
		if err := addInput(b, name); err != nil {
			closeBuilder()
			return nil, nil, err
		}
	}
	return b, closeBuilder, nil
}

func addInput(b *build.Builder, name string) error {
	if name == "-" {
		return b.Add("stdin", os.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.Add(name, f)
}

// sizeOf is the size of all files; 0 if not all have one.
func sizeOf(names []string) (bytes int64) {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return 0
		}
		bytes += info.Size()
	}
	return bytes
}

// writeReport writes a report for people or as JSON.
func writeReport(stdout, stderr io.Writer, report interface{ WriteText(io.Writer) error }, asJSON bool) int {
	var err error
	if asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		err = out.Encode(report)
	} else {
		err = report.WriteText(stdout)
	}
	if err != nil {
		return fail(stderr, err)
	}
	return exitOK
}
