// Package config holds the gslb block of a Corefile as data: it parses the
// block's tokens, applies policies and defaults, and validates everything that
// can be judged without opening a data file.
package config

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// Pos is the place in a configuration file that a value was written at.
type Pos struct {
	File string
	Line int
}

// String gives "file:line".
func (p Pos) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Token is one word of the Corefile as its lexer delivers it.
type Token struct {
	Text string
	Pos
}

// Block is one gslb block, after policies and defaults have been applied.
type Block struct {
	Pos
	Zones       []string // lower case, fully qualified
	Inherited   bool     // Zones are the server block's: the statement names none
	GeoIP       []GeoFile
	Nets        []FileRef // files of "PREFIX REGION…" lines
	Regions     []Region  // in the order written
	Areas       []Area
	Fences      []Fence
	Rules       []Rule // clients statements of the block and of its regions
	Hosts       []Host // one per host statement
	Checks      []Check
	Beacons     []Beacon   // what should always answer, to tell that it is us who are cut off
	State       *FileRef   // directory that state is kept in; nil: none is
	Resolvers   *Resolvers // nil: not written, and there is no target
	Guard       Guard
	Control     *Control // nil: nothing listens
	ECS         ECS
	SOA         *SOA // nil: not written
	NS          []string
	Fallthrough *Fallthrough // nil: not written
	Depth       int          // regions kept of an order computed by distance, 1..8
	WhoAmI      string       // owner of the diagnostic TXT name; empty: none
	Warnings    []Warning

	guards map[string]Pos // where each guard is written first, by its word
	own    map[string]Pos // names of hosts
}

// Warning is something the operator should know that is no error.
type Warning struct {
	Pos
	Text string
}

// GeoKind says what a location database is used for.
type GeoKind string

// The kinds of location databases.
const (
	Country GeoKind = "country"
	City    GeoKind = "city"
	ASN     GeoKind = "asn"
)

// GeoFile names a location database.
type GeoFile struct {
	Pos
	Kind     GeoKind
	Path     string
	Optional bool // a missing file is no error
}

// Check is the definition of a health check.
type Check struct {
	Pos
	check.Check
}

// Beacon is an address and port that should always answer.
type Beacon struct {
	Pos
	netip.AddrPort
}

// FileRef names a data file or a directory.
type FileRef struct {
	Pos
	Path string
}

// Region is a place traffic can be sent to.
type Region struct {
	Pos
	Name     string
	Location *Location
	Next     []string // written order of what follows this region; nil: computed
	NextRest bool     // the remaining regions follow Next
	Levers   Levers
}

// Location is a point on earth in degrees.
type Location struct{ Lat, Lon float64 }

// Area is a named set of clients: any of its lines matches.
type Area struct {
	Pos
	Name  string
	Lines []Match
}

// Match is a conjunction of alternatives; the first one gives the rank.
type Match struct {
	Pos
	Alts []Alt
}

// AltKind is the kind of fact that an alternative looks at.
type AltKind string

// The kinds of alternatives.
const (
	AltContinent   AltKind = "continent"
	AltCountry     AltKind = "country"
	AltSubdivision AltKind = "subdivision"
	AltASN         AltKind = "asn"
	AltPrefix      AltKind = "prefix"
	AltFile        AltKind = "file" // a file of prefixes, one per line
	AltArea        AltKind = "area"
)

// Alt matches a client when any of its values does.
type Alt struct {
	Kind     AltKind
	Codes    []string       // continent, country, subdivision (upper case); area (names)
	ASNs     []uint32       // asn
	Prefixes []netip.Prefix // prefix; masked
	File     string         // file
}

// Rule gives a set of clients a candidate list.
type Rule struct {
	Pos
	Rest   bool // matches every client no other rule matches
	Match  Match
	Refuse bool   // NODATA for these clients
	Region string // set for a region's own clients statement: that region, then its next
	List   List
}

// List is a candidate list as written.
type List struct {
	Split []Weighted // first tier, chosen by weight
	Order []string
	Rest  bool // the remaining regions follow
}

// Weighted is a region with a relative weight of 0 to 10000.
type Weighted struct {
	Name   string
	Weight int
}

// Fence confines the clients of an area to the named regions.
type Fence struct {
	Pos
	Area    string
	Regions []string
}

// ECS says how EDNS Client Subnet is used.
type ECS struct {
	Off        bool
	Max4, Max6 int            // longest prefix lengths told apart
	From       []netip.Prefix // whose option is believed; empty: everybody's
	NoFill     bool
}

// SOA is the written start of authority.
type SOA struct {
	Pos
	MName, RName string
	Minimum      time.Duration
}

// Fallthrough says for which names the next plugin is asked.
type Fallthrough struct {
	Pos
	Zones []string // empty: all of the block's zones
}

// Spread is how clients of one candidate list are told apart.
type Spread string

// The ways to spread.
const (
	Sticky   Spread = "sticky"
	Resolver Spread = "resolver"
	Balanced Spread = "balanced"
)

// Families says which address families a host's pools must or may offer. What a
// target resolves to isn't known at load, so a pool with targets is taken to
// offer whatever the other pools of its host do.
type Families string

// The family rules.
const (
	FamiliesSame  Families = "same"
	FamiliesMixed Families = "mixed"
	FamiliesV4    Families = "v4"
	FamiliesV6    Families = "v6"
)

// Host is a host statement: its owner names share everything.
type Host struct {
	Pos
	Names      []string // lower case, fully qualified; "*." allowed
	OwnRules   bool     // Rules replace those of the block and the regions
	Rules      []Rule
	Pools      []Pool // in the order written, at most one per region
	TTL        int    // seconds
	TTLFloor   int    // seconds; -1: off
	Spread     Spread
	Grain4     int // sticky: least length of the key and the scope
	Grain6     int
	Families   Families
	LastResort LastResort
	FencedOK   bool
	SpillBelow float64  // percent of a pool's weight: with less of it healthy, clients spill; 0: never
	MaxDown    float64  // percent of the host's regions that health may take out of service; 100: all
	Latency    *Latency // nil: no map
	Shed       *Shed    // nil: it sheds to nobody

	places map[string]Pos // where the words that this host follows were written
}

// LastResortKind says what is answered when no candidate is usable.
type LastResortKind string

// The kinds of last resort.
const (
	LastOpen      LastResortKind = "open"
	LastClosed    LastResortKind = "closed"
	LastRegions   LastResortKind = "regions"
	LastAddresses LastResortKind = "addresses"
)

// LastResort is what is answered when no candidate is usable.
type LastResort struct {
	Pos
	Kind      LastResortKind
	Regions   []string
	Addresses []netip.Addr
}

// Pool is the endpoints of one host in one region. It has an endpoint or a
// target.
type Pool struct {
	Pos
	Region     string
	Endpoints  []Endpoint
	Targets    []Target
	Keep       time.Duration // how long the last good addresses of targets serve, 0..24h; 0 without targets
	CName      bool          // the answer is the name of the only target; there is no endpoint
	Answers    int           // addresses per answer; 0: all
	MinHealthy Threshold     // least healthy part for the pool to be used
	Checks     []string      // names of checks, its own or its host's, that must all pass; nil: none
	Levers     Levers        // its own: LeversOf adds those of its region
}

// Threshold is a count, or a percentage of the weight when Percent is set.
type Threshold struct {
	Count   int
	Percent float64 // 0..100
	IsPct   bool
}

// EndpointState is the state written for an endpoint.
type EndpointState string

// The written endpoint states. No word means up until a check says otherwise. A
// written state wins over every check: such an endpoint is not probed.
const (
	StateAuto  EndpointState = ""
	StateUp    EndpointState = "up"
	StateDown  EndpointState = "down"
	StateDrain EndpointState = "drain"
)

// Endpoint is one address in a pool.
type Endpoint struct {
	Pos
	Addr   netip.Addr
	Weight int // 0..10000
	State  EndpointState
	Probe  netip.AddrPort // where its probes go; port 0: the check's; invalid: to Addr
	// Target is the name it was resolved from, fully qualified; empty: its address
	// is written. Parse gives none that have it.
	Target string
}
