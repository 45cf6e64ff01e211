package config

import "time"

// Levers are what an operator has written to move traffic to or from a region,
// or from the pool of one host in it. A lever with a schedule may be written
// several times: At says which line counts.
type Levers struct {
	Drain    []Drain
	Dial     []Dial
	Share    []Share
	Trickle  *Percent  // part of what the region takes that the next candidate gets instead, 0..50
	Ramp     *Duration // see RampTime; 0: at once
	Capacity *Capacity
	Load     *Load
}

// Percent is a percentage as written, 0..100.
type Percent struct {
	Pos
	Value float64
}

// Duration is a duration as written.
type Duration struct {
	Pos
	Value time.Duration
}

// RampTime is how long a return after an outage takes: what is written, else ten times the TTL,
// or ten times 30 s where that is longer.
func RampTime(ramp *Duration, ttl time.Duration) time.Duration {
	if ramp != nil {
		return ramp.Value
	}
	return 10 * max(ttl, 30*time.Second)
}

// Drain takes a region or a pool out of service.
type Drain struct {
	Pos
	When When
}

// Dial is the part of what would come that a region or a pool takes.
type Dial struct {
	Pos
	Percent float64 // 0..100
	When    When
}

// Share is the absolute part of a host's resolutions that a region or a pool
// gets; it is then no candidate for any other. A region has one share at a time,
// whatever its area.
type Share struct {
	Pos
	Off     bool    // no share: an ordinary candidate
	Percent float64 // 0..100
	Area    string  // of these clients only; empty: of all
	When    When
}

// When is the time in which a lever holds. The zero value is always.
type When struct {
	From, Until time.Time // zero: open
	Daily       *Daily
}

// Daily is a window that comes back every day, in a fixed offset from UTC. It
// may cross midnight; it belongs to the day it starts on.
type Daily struct {
	Start, End time.Duration // since midnight
	Offset     time.Duration // of local time from UTC
	Days       [7]bool       // by time.Weekday; none set: every day
}

// Capacity is what a region or pool can take, in the unit of its load.
type Capacity struct {
	Pos
	Value float64 // positive; 0 with Score
	// Score: the load signal gives a capacity score instead, the free part 0..1.
	Score bool
	// Target is the part of the capacity that spill aims at, in percent; 0: 90.
	Target float64
	// Growth is by how much, in percent of its own long-term demand, what others
	// spill may raise a region's load; 0: as far as capacity goes.
	Growth float64
}

// LoadKind is where a load signal is read.
type LoadKind string

// The kinds of load signals.
const (
	LoadHTTP       LoadKind = "http"       // a page: JSON or the Prometheus text format
	LoadPrometheus LoadKind = "prometheus" // an instant query of a Prometheus server
	LoadHeader     LoadKind = "header"     // a header of the answers to a health check
	LoadFile       LoadKind = "file"       // a file that holds a number
)

// Load is where the load of a region or pool is read.
type Load struct {
	Pos
	Kind   LoadKind
	URL    string        // http, prometheus
	Path   string        // http: JSON path; empty: Metric
	Metric string        // http: name of a metric in the text format, with or without {labels}
	Query  string        // prometheus
	Check  string        // header: name of the check
	Header string        // header: canonical name
	File   string        // file: as written
	Every  time.Duration // 15s, 1s..5m; header: the interval of the check unless written
}

// Guard is what no change may bring about.
type Guard struct {
	Hosts    int       // least number of hosts; 1
	Require  []Require // regions that must stay in use
	MaxMove  float64   // percent of blocks, address space or demand that one change may move; 50
	MaxUse   float64   // percent of a region's capacity that a change may be expected to fill; 0: off
	Accepted []Accept
}

// Require holds that at least Count of the named regions take traffic.
type Require struct {
	Pos
	Count   int
	Regions []string
}

// Accept lets a plan through that guards refuse.
type Accept struct {
	Pos
	Reason string
	Until  time.Time
}

// Control is where the control API listens.
type Control struct {
	Pos
	Network  string // unix, tcp
	Address  string // path, as written, or loopback ADDRESS:PORT
	Token    string // file of tokens, as written
	Cert     string // TLS certificate and key files; empty: no TLS
	Key      string
	ClientCA string // clients must show a certificate of this authority; empty: none
}

// Resolvers are the servers that targets are looked up at.
type Resolvers struct {
	Pos
	Servers []string // ADDR:PORT
}

// Target is a host name in a pool, resolved to endpoints.
type Target struct {
	Pos
	Name   string // lower case, fully qualified
	Weight int    // 0..10000, of each of its endpoints
	State  EndpointState
	Probe  int // port that its probes go to instead of the check's; 0: the check's
}

// Latency is a latency map that a host or the block uses.
type Latency struct {
	Pos
	Path   string
	MaxAge time.Duration // 48h
}

// Shed is the name that clients a full region can't take are sent to.
type Shed struct {
	Pos
	Name string // lower case, fully qualified
}
