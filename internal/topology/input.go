package topology

import (
	"iter"
	"net/netip"
)

// Input is all that decides where clients belong for one distinct need: the
// rules, the databases, and the regions in which a host has pools.
type Input struct {
	Regions []RegionInfo // in the order written; at most 255
	Rules   []Rule
	Rest    *Spec // the list of every client no rule matches; nil: by distance, else the order written
	Fences  []Fence
	Geo     *Database // country or city; nil: none
	ASN     *Database // nil: none
	Depth   int       // regions kept of an order computed by distance
	Fill    bool      // unlocated networks take their sibling's list
	Max4    int       // longest client subnets told apart
	Max6    int
}

// RegionInfo is what the topology knows of a region.
type RegionInfo struct {
	Name     string
	Lat, Lon float64 // degrees
	Located  bool    // Lat and Lon are known
	Pooled   bool    // the host has a pool there; other regions are left out of every list
}

// Database is a location database: networks in address order, disjoint, IPv4
// first, each with the index of its facts.
type Database struct {
	Networks iter.Seq2[netip.Prefix, int]
	Facts    []Facts
}

// Facts are what a database knows of a network. Codes are in upper case.
type Facts struct {
	Continent    string
	Country      string
	Subdivisions []string // "US-CA", outermost first
	Lat, Lon     float64
	Coordinates  bool // Lat and Lon are known
	ASN          uint32
}

// Kind is the kind of fact that an alternative looks at, by its precedence: a
// rule with a greater kind beats one with a lesser.
type Kind uint8

// The kinds, lowest precedence first.
const (
	Continent Kind = iota + 1
	Country
	Subdivision
	ASN
	Prefix
)

// Alt matches when any of its values does.
type Alt struct {
	Kind     Kind
	Codes    []string       // Continent, Country, Subdivision
	ASNs     []uint32       // ASN
	Prefixes []netip.Prefix // Prefix; masked
}

// Rule gives the clients that match all of Alts a candidate list. It ranks by
// its first alternative; of rules that rank equally by that, the one with more
// alternatives wins. Of prefixes, the longest that holds the client ranks.
type Rule struct {
	Alts []Alt
	Spec Spec
}

// Spec is a candidate list as the operator wrote it.
type Spec struct {
	Split  []Weighted
	Order  []Region
	Rest   bool // the regions not named follow in the order written
	Refuse bool
	// Near, with nothing else set, is the list of one region and then the
	// others by their distance from it, else in the order written.
	Near *Region
}

// Fence confines the clients that match any of Match to the regions.
type Fence struct {
	Name    string
	Match   [][]Alt
	Regions []Region
}
