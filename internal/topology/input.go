package topology

import (
	"iter"
	"net/netip"
)

// Input is all that decides where clients belong for one distinct need: the
// rules, the databases, the measurements, and the regions in which a host has
// pools.
type Input struct {
	Regions []RegionInfo // in the order written; at most 255
	Rules   []Rule
	Rest    *Spec // the list of every client no rule matches; nil: by distance, else the order written
	Fences  []Fence
	Marks   []Mark    // at most 64
	Geo     *Database // country or city; nil: none
	ASN     *Database // nil: none
	// Clients is what users of a prefix measured, for client subnets; Resolvers
	// what users of the resolvers of a prefix did, for transport addresses. Nil:
	// nothing. The same pointer in both is one map for either.
	Clients, Resolvers *Measured
	Depth              int  // regions kept of an order computed by distance
	Fill               bool // unlocated networks take their sibling's list
	Max4               int  // longest client subnets told apart
	Max6               int
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

// Alt matches when any of its values does.
type Alt struct {
	Kind     Kind           // Continent, Country, Subdivision, ASN or Prefix
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

// Mark is an area whose clients must be told from all others, for a lever that
// bears on them alone. It never changes a list's regions or their order.
type Mark struct {
	Name  string
	Match [][]Alt // any of these, as in a Fence
}

// maxMarks is how many marks List.Marks has room for.
const maxMarks = 64

// Measured is a latency map: the regions in the order that users measured. The
// list of a client that an entry holds, cut to its fences, becomes: those of its
// regions that the entry orders, best first; then its others in the order that
// they had, those of a split by weight. So an entry never adds a region to a
// list, and one that orders none of a list's regions says nothing. It
// beats every rule but those of prefixes, the split and the order that they
// wrote included; clients that a rule refuses stay refused, and in
// special-purpose space it says nothing.
type Measured struct {
	// Networks are the entries, each with an index into Orders: disjoint, masked, in
	// address order, IPv4 first.
	Networks iter.Seq2[netip.Prefix, int]
	// Orders are regions, best first; indexes into Input.Regions. Equal ones may
	// repeat.
	Orders [][]Region
	// Depth is how many of a list's regions an entry puts in order, the best
	// ones; 0: all. It bounds the number of distinct lists.
	Depth int
}
