// Package beacon collects round trips that real users' browsers measure: the
// script for their pages, what it fetches, and where it reports to.
//
//	beacon.js     the script; demo.html is a page that has it
//	script.go     its configuration
//	http.go       the requests that are answered
//	report.go     what a report may say
//	client.go     whose it is, cut to a prefix before anything else sees it
//	limit.go      how many reports a prefix may send
//	spool.go      files that "gslbctl map build" reads
//	metrics.go    counters
//
// No address of a client leaves client.go: neither files nor logs nor replies
// have one.
package beacon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"sync"
	"time"
)

// Limits of a collector.
const (
	MaxCandidates = 63       // as many as a steering map can have
	MaxBody       = 16 << 10 // bytes of a report
	MinFile       = 64 << 10 // bytes; a file has room for any report
	queueLength   = 4096     // reports that wait for the disk
)

// Candidate is a region that clients may measure.
type Candidate struct {
	// Region is its name in the Corefile: a lower case letter, then at most 62 of
	// a-z, 0-9 and -.
	Region string
	// URL is where it answers /probe and /report: http or https, with or without a
	// path. Empty: reports may name the region, but the script doesn't measure it.
	URL string
}

// Options are what a Collector is made of. The zero value of a number means its
// usual value.
type Options struct {
	Dir        string // of the files; it must exist, and no other collector may use it
	Candidates []Candidate
	// Reports are the addresses that the script reports to, in the order in which it
	// tries them. Empty: /report of all candidates.
	Reports []string
	Sample  float64 // the part of page loads that measure, over 0 to 1 (0.01)
	Pick    int     // how many candidates a page load measures, drawn at random (4)

	Rotate   time.Duration // the age at which a file is finished (1 h; at least a second)
	MaxFile  int64         // the size in bytes at which one is (64 MiB; at least MinFile)
	MaxTotal int64         // of all files in bytes; beyond, reports are refused (1 GiB; at least MaxFile)
	Gzip     bool          // compress files when they are finished

	// Trusted are the proxies whose X-Forwarded-For is believed.
	Trusted []netip.Prefix
	// PerMinute is how many reports a minute are taken of a /24 or /56 (120).
	PerMinute int
	// NoSources leaves out of files what tells the users of one prefix apart for a day.
	NoSources bool

	// All of these are needed.
	Now    func() time.Time
	Random io.Reader // of cryptographic quality
	Logf   func(format string, args ...any)
}

// complete fills in what is not set and checks the rest.
func (o *Options) complete() error {
	o.Sample = cmp.Or(o.Sample, 0.01)
	o.Pick = cmp.Or(o.Pick, 4)
	o.Rotate = cmp.Or(o.Rotate, time.Hour)
	o.MaxFile = cmp.Or(o.MaxFile, 64<<20)
	o.MaxTotal = cmp.Or(o.MaxTotal, max(1<<30, o.MaxFile))
	o.PerMinute = cmp.Or(o.PerMinute, 120)
	between := func(what string, v, low, high float64) error {
		if !(v >= low && v <= high) { // also for what is not a number
			return fmt.Errorf("%s is %v: expected %v to %v", what, v, low, high)
		}
		return nil
	}
	var sample error
	if !(o.Sample > 0 && o.Sample <= 1) {
		sample = fmt.Errorf("the part of page loads that measure is %v: expected more than 0, at most 1, such as 0.01", o.Sample)
	}
	return errors.Join(
		checkCandidates(o.Candidates), checkReports(o.Reports), sample,
		between("the number of candidates that a page load measures", float64(o.Pick), 1, MaxCandidates),
		between("the age of a file in seconds", o.Rotate.Seconds(), 1, 7*24*3600),
		between("the size of a file in bytes", float64(o.MaxFile), MinFile, 1<<40),
		between("the size of all files in bytes", float64(o.MaxTotal), float64(o.MaxFile), 1<<50),
		between("the reports of a prefix in a minute", float64(o.PerMinute), 1, math.MaxUint16))
}

// Collector answers browsers and writes what they measured. It is safe for
// concurrent use.
type Collector struct {
	Options
	metrics metrics
	regions map[string]int // indexes into Candidates
	script  []byte         // nil: nothing to measure
	limit   *limiter
	sources *sources // nil: not wanted
	spool   *spool

	mu       sync.RWMutex // held by Close to set closed
	closed   bool
	queue    chan []byte // lines of one report each
	finished chan error  // of the writer
}

// New makes a collector and starts its writer. Files that an earlier one left
// unfinished are finished first. Close must be called in the end.
func New(o Options) (*Collector, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &Collector{
		Options:  o,
		regions:  make(map[string]int),
		queue:    make(chan []byte, queueLength),
		finished: make(chan error, 1),
	}
	c.metrics.measured = make([]measured, len(o.Candidates))
	for i, candidate := range o.Candidates {
		c.regions[candidate.Region] = i
	}
	var err error
	if c.script, err = o.script(); err != nil {
		return nil, err
	}
	if c.limit, err = newLimiter(o.PerMinute, o.Random); err != nil {
		return nil, err
	}
	if !o.NoSources {
		c.sources = &sources{random: o.Random}
	}
	if c.spool, err = openSpool(&c.Options, &c.metrics); err != nil {
		return nil, err
	}
	go c.write()
	return c, nil
}

// write is the writer: the only one that touches files. Once a second it
// brings to the disk what there is, so that a crash loses no more.
func (c *Collector) write() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case lines, open := <-c.queue:
			if !open {
				c.finished <- c.spool.close()
				return
			}
			c.spool.write(lines, c.Now())
		case <-tick.C:
			c.spool.tick(c.Now())
		}
	}
}

// put hands lines to the writer. It never waits: false means that they are
// dropped.
func (c *Collector) put(lines []byte) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return false
	}
	select {
	case c.queue <- lines:
		return true
	default:
		return false
	}
}

// Close writes what waits, finishes the file and stops the writer. Requests
// that come later are refused.
func (c *Collector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	close(c.queue)
	return <-c.finished
}
