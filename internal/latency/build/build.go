// Package build makes steering maps from measurements of real users.
//
// It works in stages, each in a file of its own:
//
//	input.go, csv.go, ndjson.go   bytes to rows
//	row.go, aggregate.go          rows to records (one measurement each) and cells (many at once)
//	sort.go, merge.go, spill.go   both in the order of their keys, beyond memory on disk
//	sketches.go                   cells of days to a file, and back
//	group.go, tally.go            records and cells to one cell for each prefix, region and day
//	pool.go                       up the tree, until there are enough samples to tell by
//	choose.go                     a region for each prefix, held to yesterday's
//	emergency.go                  and what a day alone shows, by it and what is around it
//	expire.go                     entries of yesterday that nothing was measured of
//	budget.go                     no more change at once than allowed
//	blocks.go                     equal choices of neighbours to one entry
//	result.go                     the map, and a report on it
//
// All counts are integers and every stage works in the order of keys, so the
// result is the same for the same measurements, in whatever order they come and
// however much memory and however many processors there are.
package build

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// MaxRegions is how many regions a map can be built for.
const MaxRegions = 63

// Kind tells what a prefix is a prefix of.
type Kind uint8

const (
	Clients   Kind = iota // addresses of users
	Resolvers             // addresses that queries without a client subnet come from
)

func (k Kind) String() string { return [...]string{"clients", "resolvers"}[k] }

// Geography gives the candidates that a prefix has without a map, as indexes into
// Options.Regions, best first. Regions that are not in it are never chosen. It is called
// in the order of addresses from one goroutine, and then so again for entries of Previous that
// nothing was measured of; the result is only read.
type Geography func(kind Kind, prefix netip.Prefix) []uint8

// Options are how a map is built. The zero value of a number means its usual value.
type Options struct {
	// Regions are the names that measurements may have, at most MaxRegions.
	Regions []string
	// Geography is what the map is to beat. Without it every prefix with enough
	// samples gets an entry.
	Geography Geography
	// Previous is the map in service, whose choices are kept where the
	// measurements don't speak clearly against them; nil: none.
	Previous *latency.Map

	// Now is the present time. Measurements after it are rejected. Built is what the map
	// says when it was built; zero: Now.
	Now, Built time.Time
	// Until ends the window of measurements, not in it; zero: Now. Window is its
	// length (7 days; at most MaxWindow).
	Until  time.Time
	Window time.Duration
	// HalfLife is how long a measurement takes to count half, in steps of days (2
	// days). Negative: all count the same.
	HalfLife time.Duration

	// MinSamples is what a decision on clients takes from each region that it
	// compares (200), ResolverSamples one on resolvers (1000).
	MinSamples, ResolverSamples int
	// ResolverSpread, in milliseconds, is the most that the 90th percentile of the
	// clients of a resolver may be above the 10th (100), seen from the best region. Beyond, one
	// resolver stands for many places.
	ResolverSpread float64
	// Longest and Shortest are the lengths that prefixes may have (24 and 12; 56 and 20).
	// Addresses are cut to Longest before anything else.
	Longest4, Shortest4, Longest6, Shortest6 int

	// Budget is the part of the demand that may change regions in one build
	// (0.02), Emergency the part that may on top of it where the region in use
	// fails or is slower by 30 ms or more (0.2). Negative: nothing may. Force lifts both,
	// and has a map made that has lost most entries, or of inputs that count twice.
	Budget, Emergency float64
	Force             bool
	// SourceShare is the part of MinSamples that one source may fill over the
	// window (0.05), so that none decides alone. Negative: no limit.
	SourceShare float64
	// MaxBad is the part of lines that may be unreadable (0.01). Negative: none.
	MaxBad float64

	// Memory bounds what sorting takes, in bytes (2 GiB, at least MinMemory); the rest is
	// on disk, in a directory made below TempDir (the system's) and removed by Close. The prefixes
	// themselves take about 64 bytes and 12 for each region on top of it.
	Memory  int64
	TempDir string
	// Workers is how many goroutines read (GOMAXPROCS).
	Workers int
	// Sketches, if not nil, is written what was measured on each day, to be given
	// to a later build as an input: of the days that lie wholly in the window.
	Sketches io.Writer
	// Progress, if not nil, is told from one goroutine at a time how much of a
	// stage is done, in its own unit; of 0 is unknown.
	Progress func(stage string, done, of int64)
}

// Limits of options.
const (
	MinMemory = 1 << 16
	MaxWindow = 1000 * 24 * time.Hour
)

// complete fills in what is not set and checks the rest.
func (o *Options) complete() error {
	if o.Now.IsZero() {
		return errors.New("the time of the build is not set")
	}
	if n := len(o.Regions); n == 0 || n > MaxRegions {
		return fmt.Errorf("%d regions: expected 1 to %d", n, MaxRegions)
	}
	seen := make(map[string]bool)
	for _, name := range o.Regions {
		if name == "" || seen[name] {
			return fmt.Errorf("region %q: expected distinct names", name)
		}
		seen[name] = true
	}
	if o.Until.IsZero() {
		o.Until = o.Now
	}
	if o.Built.IsZero() {
		o.Built = o.Now
	}
	if o.Built.After(o.Now) {
		return fmt.Errorf("built %s: that is in the future", utc(o.Built).Format(time.RFC3339))
	}
	o.Window = cmp.Or(o.Window, 7*day)
	o.HalfLife = cmp.Or(o.HalfLife, 2*day)
	o.MinSamples = cmp.Or(o.MinSamples, 200)
	o.ResolverSamples = cmp.Or(o.ResolverSamples, 1000)
	o.ResolverSpread = cmp.Or(o.ResolverSpread, 100)
	o.Longest4, o.Shortest4 = cmp.Or(o.Longest4, 24), cmp.Or(o.Shortest4, 12)
	o.Longest6, o.Shortest6 = cmp.Or(o.Longest6, 56), cmp.Or(o.Shortest6, 20)
	o.Budget, o.Emergency = cmp.Or(o.Budget, 0.02), cmp.Or(o.Emergency, 0.2)
	for _, part := range []*float64{&o.Budget, &o.Emergency} {
		*part = max(*part, 0)
	}
	o.SourceShare = cmp.Or(o.SourceShare, 0.05)
	o.MaxBad = max(cmp.Or(o.MaxBad, 0.01), 0)
	o.Memory = cmp.Or(o.Memory, 2<<30)
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	return o.check()
}

func (o *Options) check() error {
	between := func(what string, v, low, high float64) error {
		if !(v >= low && v <= high) { // also for what is not a number
			return fmt.Errorf("%s is %v: expected %v to %v", what, v, low, high)
		}
		return nil
	}
	return errors.Join(
		between("the window in hours", o.Window.Hours(), 1, MaxWindow.Hours()),
		between("the number of samples", float64(o.MinSamples), 4, 1e9),
		between("the number of samples for resolvers", float64(o.ResolverSamples), 4, 1e9),
		between("the spread of resolvers", o.ResolverSpread, 0, maxRTT),
		between("the longest IPv4 prefix", float64(o.Longest4), 1, 32),
		between("the longest IPv6 prefix", float64(o.Longest6), 1, 56),
		between("the shortest IPv4 prefix", float64(o.Shortest4), 1, float64(o.Longest4)),
		between("the shortest IPv6 prefix", float64(o.Shortest6), 1, float64(o.Longest6)),
		between("the budget", o.Budget, 0, 1),
		between("the budget for emergencies", o.Emergency, 0, 1),
		between("the share of a source", o.SourceShare, math.Inf(-1), 1),
		between("the share of bad lines", o.MaxBad, 0, 1),
		between("the memory in bytes", float64(o.Memory), MinMemory, 1<<40),
		between("the number of workers", float64(o.Workers), 1, 256))
}

const day = 24 * time.Hour

// Builder takes measurements in and makes a map of them. It is for one
// goroutine.
type Builder struct {
	o        Options
	calendar calendar
	dir      string
	byName   map[string]uint8 // regions
	workers  []*worker
	runs     runs
	bad      badLines
	lines    int64  // read of all inputs, bad ones among them
	newest   uint16 // days that anything is of
	oldest   uint16
	inputs   int
	contents map[uint64]string // names of inputs, by what they hold
	sketched map[int64]string  // names of files of sketches, by the days that they have
	read     int64             // bytes of all inputs
	total    int64             // size of all inputs; 0: unknown
}

// New makes a builder. Close must be called in the end.
func New(o Options) (*Builder, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	sweep(o.TempDir, o.Now)
	dir, err := os.MkdirTemp(o.TempDir, spillName())
	if err != nil {
		return nil, fmt.Errorf("a directory for what doesn't fit into memory: %w", err)
	}
	b := &Builder{o: o, oldest: math.MaxUint16, calendar: newCalendar(o.Until), dir: dir, byName: make(map[string]uint8),
		contents: make(map[uint64]string), sketched: make(map[int64]string)}
	b.runs.dir = dir
	for i, name := range o.Regions {
		b.byName[name] = uint8(i)
	}
	for range o.Workers {
		b.workers = append(b.workers, newWorker(b))
	}
	return b, nil
}

// Close removes what the builder has on disk.
func (b *Builder) Close() error {
	b.runs.close()
	return os.RemoveAll(b.dir)
}

// progress tells of a stage.
func (b *Builder) progress(stage string, done, of int64) {
	if b.o.Progress != nil {
		b.o.Progress(stage, done, of)
	}
}

// minSamples is what a decision takes.
func (o *Options) minSamples(k Kind) int {
	if k == Resolvers {
		return o.ResolverSamples
	}
	return o.MinSamples
}

// sourceCap is how many samples of one source count, for each prefix, region and
// day, so that over the window, as days are weighed, it has no more than its share; 0: all.
func (o *Options) sourceCap(k Kind) int {
	if o.SourceShare < 0 {
		return 0
	}
	w := weights(o.HalfLife.Hours() / 24)
	sum := uint64(0)
	for age := range (o.Window + day - 1) / day {
		sum += w[age]
	}
	return max(1, int(o.SourceShare*float64(o.minSamples(k))*weightOne/float64(sum)))
}
