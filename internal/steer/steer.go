// Package steer decides which addresses a client gets.
//
// A [Host] is everything static about one steered name: its pools, its
// candidate lists, its spread and its last resort. A [Snapshot] is what is true
// of its endpoints right now, and which [Levers] are moved. [Host.Decide] is a
// function of these two and of a [Client] alone, but for spread balanced, which
// takes turns; with a [Trace] it also says why.
//
// The choice is made by hash and in integers only, so every instance makes the
// same one, after every restart and on every architecture. The prefix an answer
// holds for (its scope) depends on configuration and on location data, never on
// verdicts or levers.
//
// A Host and a Snapshot may be used by any number of goroutines at once; neither
// changes after it was made, but for the counters of spread balanced and for the
// table that keeps equal answers one object, and those guard themselves.
package steer

import "net/netip"

// Region is the index of a region in [HostConfig.Regions].
type Region uint8

// NoRegion stands where no region was chosen.
const NoRegion Region = 255

// MaxRegions is how many regions a host can have.
const MaxRegions = int(NoRegion)

// MaxWeight is the greatest weight of an endpoint or of a region in a split. It
// keeps a product of a weight and a score inside 64 bits.
const MaxWeight = 1 << 24

// Family is an address family.
type Family uint8

// The two families, and the types that carry them: A and AAAA.
const (
	V4 Family = iota
	V6
)

// families is the number of address families.
const families = 2

// String is "v4" or "v6".
func (f Family) String() string { return [...]string{"v4", "v6"}[f] }

// other is the opposite family.
func (f Family) other() Family { return 1 - f }

// familyOf is the family of an address.
func familyOf(a netip.Addr) Family {
	if a.Is4() {
		return V4
	}
	return V6
}

// Weighted is a region with its relative weight in a split. Weight 0 keeps the
// region in the split as a standby: it comes after every region with a weight.
type Weighted struct {
	Region Region
	Weight uint32
}

// List is one candidate list: the split, whose regions are ordered per client by
// weight, and after it the regions of Order. A region in both counts in the
// split. Lists may be shared between hosts and must not change afterwards.
type List struct {
	Split   []Weighted
	Order   []Region
	Refuse  bool     // these clients get no data
	Fence   []string // names of the fences that confine this list, for the trace
	Allowed []bool   // by Region: what the fences leave; nil leaves all
	// Marks has bit m set where these clients carry mark m, see Levers.Mark.
	Marks uint64
}

// allows says whether the fences of l leave region r.
func (l *List) allows(r Region) bool { return l.Allowed == nil || l.Allowed[r] }

// Spread says what a choice is made by.
type Spread uint8

// The spreads.
const (
	Sticky   Spread = iota // by the client's prefix, cut to max(block, grain)
	Resolver               // by the client's block and the resolver's prefix
	Balanced               // in turn, exact over resolutions
)

// String is the word for it in the configuration.
func (s Spread) String() string { return [...]string{"sticky", "resolver", "balanced"}[s] }

// FamilyRule says which families a host offers.
type FamilyRule uint8

// The rules. The first two differ only in what a configuration may say.
const (
	FamiliesSame  FamilyRule = iota // as the pools have them; all pools alike
	FamiliesMixed                   // as the pools have them; pools may differ
	FamiliesV4                      // IPv4 only
	FamiliesV6                      // IPv6 only
)

// allows says whether the rule lets family f be offered.
func (r FamilyRule) allows(f Family) bool {
	return r == FamiliesSame || r == FamiliesMixed || (r == FamiliesV4) == (f == V4)
}

// LastResortKind says what is answered when no candidate is usable.
type LastResortKind uint8

// The kinds of last resort.
const (
	Open      LastResortKind = iota // every endpoint that is not drained counts as up
	Closed                          // nothing: SERVFAIL
	Regions                         // the named regions
	Addresses                       // the named addresses
)

// String is the word for it in the configuration.
func (k LastResortKind) String() string {
	return [...]string{"open", "closed", "regions", "addresses"}[k]
}

// LastResort is what is answered when no candidate of a list is usable. Regions
// are tried in order, cut to what the list's fences leave. Addresses are given as
// they are: a configuration that fences a host must not name foreign ones.
type LastResort struct {
	Kind      LastResortKind
	Regions   []Region
	Addresses []netip.Addr
}

// Verdict is what is held true of an endpoint.
type Verdict uint8

// The verdicts. An endpoint that is up or full is alive. A full one keeps
// serving and gives up half of its share; when all of a pool are full, so does
// the pool. A drained endpoint is never answered, not even as a last resort, and
// counts for nothing.
const (
	Up Verdict = iota
	Full
	Down
	Drained
)

// String is "up", "full", "down" or "drained".
func (v Verdict) String() string { return [...]string{"up", "full", "down", "drained"}[v] }

// EndpointState is the state of one endpoint. The zero value is up and steady.
type EndpointState struct {
	Verdict Verdict
	Streak  bool   // a streak towards another verdict has begun
	Reason  string // why the verdict is what it is, for the trace
	Since   int64  // when the verdict last changed, in Unix nanoseconds; 0: unknown
	// Weight replaces the configured weight if Weighed is set; above MaxWeight it
	// counts as MaxWeight. An endpoint of weight 0 is never answered and counts for
	// nothing, health included. If that leaves no weight in a pool and family, the
	// configured weights hold there.
	Weight  uint32
	Weighed bool
}

// Source says where the address a decision is made for came from.
type Source uint8

// The sources.
const (
	Transport Source = iota // the address the query came from
	ECS                     // an EDNS Client Subnet option (RFC 7871)
)

// String is "transport" or "ecs".
func (s Source) String() string { return [...]string{"transport", "ecs"}[s] }

// Client is whom a decision is made for, and where the topology put them.
type Client struct {
	// Addr is the client's address, masked to Bits; for Transport it is the
	// transport address in full. An IPv4 address embedded in IPv6 is given as the
	// IPv4 address, with ScopeBase.
	Addr      netip.Addr
	Bits      int
	Source    Source
	Transport netip.Addr // the transport address, always
	// List is the id of the candidate list, an index of HostConfig.Lists. Block is
	// the length of the block that list was found in, in bits of Addr's family.
	List  int
	Block int
	// ScopeBase is added to the scope: 96 or 16 for embedded IPv4, else 0.
	ScopeBase int
	// Fixed: an option lay in special-purpose space and was ignored. Source is
	// Transport, as is List; Block is the special-purpose block and the scope.
	Fixed bool
}

// Outcome is how a decision ended.
type Outcome uint8

// The outcomes. Refused and NoFamily mean no data; Failed means SERVFAIL.
const (
	OutcomeAnswer     Outcome = iota // a usable candidate was found
	OutcomeLastResort                // none was; the last resort answers
	OutcomeRefused                   // the list says refuse
	OutcomeNoFamily                  // the host doesn't offer this family to anybody
	OutcomeFailed                    // nothing may be answered; see Reason
)

// String is the outcome in one word.
func (o Outcome) String() string {
	return [...]string{"answer", "last_resort", "refused", "no_family", "failed"}[o]
}

// Reason says why a decision failed.
type Reason uint8

// The reasons.
const (
	ReasonNone        Reason = iota // it did not fail
	ReasonClosed                    // the last resort is closed
	ReasonAllDrained                // every endpoint of every candidate is drained
	ReasonNothingLeft               // the last resort has nothing to give
)

// String is empty for ReasonNone, else the reason in one word.
func (r Reason) String() string { return [...]string{"", "closed", "all_drained", "nothing_left"}[r] }

// TTLClass is the class of state that sets the TTL. There are three, so that the
// number of distinct RRsets stays small.
type TTLClass uint8

// The classes.
const (
	ClassSteady     TTLClass = iota // the full TTL
	ClassStreak                     // a streak has begun: max(floor, ttl/2)
	ClassLastResort                 // the floor
)

// String is the class in one word.
func (c TTLClass) String() string { return [...]string{"steady", "streak", "last_resort"}[c] }

// By says what decided on the region of an answer. A choice is one by the order or
// the split of the candidate list.
type By uint8

// The ways to a region.
const (
	ByNone    By = iota // no region was chosen, or the last resort did it
	ByChoice            // the first in the client's order
	BySpill             // a later one: a usable candidate before it declined
	ByShare             // a soak, by its share
	ByTrickle           // the next candidate after the one that would have it
	ByShed              // the region sheds the client to a name
	ByForced            // nobody takes the client: the first that is usable must
	Bys                 // how many ways there are
)

// String is empty for ByNone, else the way in one word.
func (b By) String() string {
	return [...]string{"", "choice", "spill", "share", "trickle", "shed", "forced"}[b]
}

// Decision is what [Host.Decide] found.
type Decision struct {
	Outcome Outcome
	// By is what decided on Region.
	By By
	// Shed: Answer is the host's shed name. Region is the one that shed the client.
	Shed bool
	// Region is where the answer's endpoints are; NoRegion without an answer and
	// for a last resort of addresses.
	Region Region
	// Answer is never nil or empty for OutcomeAnswer and OutcomeLastResort, and
	// nil for every other outcome.
	Answer *Answer
	TTL    uint32 // seconds
	Class  TTLClass
	// Scope is the length of the prefix the decision holds for, 0 without ECS.
	Scope  int
	Reason Reason
	// FamilyMoved: a candidate before the chosen one, or before the last resort,
	// was passed over for this family alone; the other family stays there.
	FamilyMoved bool
}
