// Package latency holds steering maps: for prefixes of clients, and apart from
// them of resolvers, the regions in the order that real users measured. It reads
// and writes map files, compares maps, and publishes them on disk.
//
// A map is the same map in every form: MaxMind DB files, which any tool for those
// can look into, and text, for people and diffs. Two foreign forms can be read, too,
// which give orders without measurements: nets files of gdnsd, and coverage zones
// of Apache Traffic Control.
package latency

import (
	"net/netip"
	"time"
)

// FormatVersion is the version of map files that this package writes.
const FormatVersion = 1

// Limits of maps.
const (
	MaxFileSize = 512 << 20 // bytes of a file that is read or written
	MaxEntries  = 16 << 20  // entries of a map, clients and resolvers together
	MaxRegions  = 254
)

// Map is a steering map. It is immutable once made.
type Map struct {
	// Built is when the map was made. Times of maps are whole seconds, UTC.
	Built time.Time
	// From and Until bound the measurements that it was made from: From is
	// in it, Until is not. Zero times: not known.
	From, Until time.Time
	// Demand is the measurements of clients and of resolvers, by weight, that it was made
	// from, most of them of prefixes without an entry. 0: not known.
	Demand [2]uint64
	// Regions are the names that the entries' indexes refer to.
	Regions []string
	// Clients is keyed by client prefix, for queries with a client subnet;
	// Resolvers by the prefix of a transport address, for those without. Both are
	// prefix-free and in address order, IPv4 first.
	Clients, Resolvers []Entry
	// Rollback says that the map was put back in the place of a later one, on
	// purpose; nil for all others.
	Rollback *Rollback
}

// Rollback is the mark of a map that was put back.
type Rollback struct {
	At  time.Time `json:"at"`  // when, later than all that was known of the map it replaced
	Why string    `json:"why"` // one line, for the log
	By  string    `json:"by"`  // the user who did it
}

// Entry is what a map says of the addresses of one prefix. An address that no
// entry holds is left to the other sources of location.
type Entry struct {
	Prefix netip.Prefix // masked
	// Order is the regions measured, best first, as indexes into Map.Regions. Regions
	// that are not in it follow in the order that they would have without the map.
	Order []uint8
	// Cells are the measurements behind Order, by the same index; nil when the
	// source of the map has none.
	Cells []Cell
}

// Cell is the measurements of one region from one prefix.
type Cell struct {
	P75 float32 // 75th percentile of the round trip, in milliseconds
	// Samples is the entry's own successful measurements. P75 may rest on more: those of
	// neighbours that were decided together with it.
	Samples uint32
	Failed  float32 // part of all measurements that failed, 0..1
}

// Newer tells whether m takes the place of another map: it was built, or put
// back on purpose, later than that one was.
func (m *Map) Newer(than *Map) bool { return m.since().After(than.since()) }

// since is the moment from which a map is the one to use.
func (m *Map) since() time.Time {
	if m.Rollback != nil && m.Rollback.At.After(m.Built) {
		return m.Rollback.At
	}
	return m.Built
}

// samples is how many measurements an entry rests on.
func (e *Entry) samples() (n uint64) {
	for _, c := range e.Cells {
		n += uint64(c.Samples)
	}
	return n
}

// Demand is the measurements of an entry, failed ones too.
func (e *Entry) Demand() (n float64) {
	for _, c := range e.Cells {
		if c.Failed < 1 {
			n += float64(c.Samples) / (1 - float64(c.Failed))
		}
	}
	return n
}

// sides are the entries of clients and those of resolvers.
type sides [2][]Entry

// sideNames are what entries of each side are called in errors and files.
var sideNames = [2]string{"client", "resolver"}

func (m *Map) sides() sides { return sides{m.Clients, m.Resolvers} }
