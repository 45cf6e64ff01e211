package beacon

import (
	"fmt"
	"io"
	"sync/atomic"
)

// rejection is why a measurement doesn't count.
type rejection int

const (
	none rejection = iota
	unknownRegion
	regionTwice
	absurdRTT
	numRejections
)

var rejectionNames = [numRejections]string{"", "region", "twice", "rtt"}

// outcome is what became of a report.
type outcome int

const (
	accepted  outcome = iota
	noneLeft          // all its measurements were rejected
	malformed         // no report
	wrongType         // its content type is another
	tooLarge          // more than MaxBody
	noAddress         // whose it is isn't known
	limited           // its prefix sent too many
	queueFull         // the disk is slow, or the end is near
	diskFull          // MaxTotal is reached
	numOutcomes
)

var outcomeNames = [numOutcomes]string{"accepted", "none_left", "malformed", "wrong_type", "too_large", "no_address", "limited", "queue_full", "disk_full"}

// measured counts the measurements of a region.
type measured struct {
	exact, clock, failed atomic.Uint64
}

// metrics are counters since the start. Labels are names of the configuration.
type metrics struct {
	reports     [numOutcomes]atomic.Uint64
	rejected    [numRejections]atomic.Uint64
	measured    []measured // by candidate
	probes      atomic.Uint64
	httpErrors  atomic.Uint64
	dropped     atomic.Uint64 // lines
	files       atomic.Uint64
	writeErrors atomic.Uint64
	diskBytes   atomic.Int64
	full        atomic.Bool // MaxTotal is reached
	broken      atomic.Bool // the last thing done with a file went wrong
}

// count counts a measurement of a candidate.
func (m *metrics) count(candidate int, e *entry) {
	c := &m.measured[candidate]
	switch {
	case !e.ok:
		c.failed.Add(1)
	case e.clock:
		c.clock.Add(1)
	default:
		c.exact.Add(1)
	}
}

// writeMetrics writes the text format of Prometheus, version 0.0.4.
func (c *Collector) writeMetrics(w io.Writer) {
	m := &c.metrics
	head := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP gslb_beacon_%s %s\n# TYPE gslb_beacon_%[1]s %[3]s\n", name, help, kind)
	}
	single := func(name, kind, help string, v any) {
		head(name, kind, help)
		fmt.Fprintf(w, "gslb_beacon_%s %d\n", name, v)
	}
	head("reports_total", "counter", "Reports of browsers, by what became of them.")
	for i := range m.reports {
		fmt.Fprintf(w, "gslb_beacon_reports_total{outcome=%q} %d\n", outcomeNames[i], m.reports[i].Load())
	}
	head("measurements_total", "counter", "Measurements taken, by region and timing: resource, clock (of lesser worth: Timing-Allow-Origin is missing), or failed.")
	for i := range m.measured {
		line := func(timing string, n *atomic.Uint64) {
			fmt.Fprintf(w, "gslb_beacon_measurements_total{region=%q,timing=%q} %d\n", c.Candidates[i].Region, timing, n.Load())
		}
		line("resource", &m.measured[i].exact)
		line("clock", &m.measured[i].clock)
		line("failed", &m.measured[i].failed)
	}
	head("rejected_total", "counter", "Measurements rejected: of an unknown region, of one twice in a report, or with an absurd round trip.")
	for i := none + 1; i < numRejections; i++ {
		fmt.Fprintf(w, "gslb_beacon_rejected_total{reason=%q} %d\n", rejectionNames[i], m.rejected[i].Load())
	}
	single("probes_total", "counter", "Requests for /probe.", m.probes.Load())
	single("http_errors_total", "counter", "Connections and requests that the HTTP server gave up.", m.httpErrors.Load())
	single("dropped_total", "counter", "Measurements taken but not written.", m.dropped.Load())
	single("files_total", "counter", "Files finished.", m.files.Load())
	single("write_errors_total", "counter", "Failures of the disk.", m.writeErrors.Load())
	single("disk_bytes", "gauge", "Size of all files.", m.diskBytes.Load())
	single("disk_limit_bytes", "gauge", "The size at which reports are refused.", c.MaxTotal)
	single("queue_reports", "gauge", "Reports that wait for the disk.", len(c.queue))
}
