package control

import (
	"encoding/json"
	"net/netip"
	"time"
)

// All percentages are 0..100 (utilisation may be higher); loads, capacities,
// demand and deficits are in the unit that the operator states capacity in. What
// is not known is left out.

// Status is the state of a server.
type Status struct {
	Version   string         `json:"version"` // of plan and overrides
	Digest    string         `json:"digest"`  // of the plan, equal on every instance
	Time      time.Time      `json:"time"`
	Warnings  []string       `json:"warnings,omitempty"` // what somebody should look at
	Regions   []RegionStatus `json:"regions"`
	Hosts     []HostStatus   `json:"hosts"`
	Overrides []*Override    `json:"overrides"`
	Deficit   float64        `json:"deficit"` // demand that no region can take
}

// Setting is where a lever is and what put it there.
type Setting struct {
	Value Value `json:"value"`
	// From is file:line of the Corefile, or "override 17"; empty: nobody has moved it.
	From string `json:"from,omitempty"`
	Area string `json:"area,omitempty"` // of a share
}

// RegionStatus is the state of a region over all hosts.
type RegionStatus struct {
	Name        string   `json:"name"`
	Drain       Setting  `json:"drain"`
	Dial        Setting  `json:"dial"`
	Share       Setting  `json:"share"`
	Trickle     Setting  `json:"trickle"`
	Capacity    *float64 `json:"capacity,omitempty"`
	Load        *float64 `json:"load,omitempty"`
	LoadAge     *float64 `json:"load_age,omitempty"`    // seconds
	Utilisation *float64 `json:"utilisation,omitempty"` // percent of capacity
	Admission   *float64 `json:"admission,omitempty"`   // percent of what would come that it takes
	Demand      *float64 `json:"demand,omitempty"`      // that would come if it took all
	Deficit     float64  `json:"deficit,omitempty"`
}

// HostStatus is the state of a host. Hosts of one name are told apart by the view.
type HostStatus struct {
	Name    string       `json:"name"`           // the first of its names
	View    string       `json:"view,omitempty"` // whose queries it answers; none: any
	Regions []HostRegion `json:"regions"`
}

// HostRegion is the pool of a host in a region.
type HostRegion struct {
	Name         string   `json:"name"`
	Usable       bool     `json:"usable"`
	Why          string   `json:"why,omitempty"` // it is not usable
	Availability float64  `json:"availability"`  // percent of its clients that its health lets it take
	Wanted       *float64 `json:"wanted,omitempty"`
	Served       *float64 `json:"served,omitempty"` // percent of the host's resolutions, as wanted
	// Drain and the others are left out where they are the region's.
	Drain     *Setting         `json:"drain,omitempty"`
	Dial      *Setting         `json:"dial,omitempty"`
	Share     *Setting         `json:"share,omitempty"`
	Trickle   *Setting         `json:"trickle,omitempty"`
	Endpoints []EndpointStatus `json:"endpoints,omitempty"`
}

// EndpointStatus is the state of an endpoint in a pool.
type EndpointStatus struct {
	Endpoint netip.Addr `json:"endpoint"`
	State    string     `json:"state"` // up, full, down or drained
	From     string     `json:"from,omitempty"`
	Weight   Setting    `json:"weight"`
	// Returnable are its checks that wait to be told: `return manual`.
	Returnable []string `json:"returnable,omitempty"`
}

// Report foretells what a change moves.
type Report struct {
	MovedBlocks float64  `json:"moved_blocks"`           // percent of blocks, of Kind, whose region changes
	MovedDemand *float64 `json:"moved_demand,omitempty"` // percent of the demand observed
	Demand      *float64 `json:"demand,omitempty"`       // that was observed, in all
	// Kind is the kind of blocks of which the greatest part moves. All figures of
	// blocks are of it, over all hosts. Kinds are those that there are.
	Kind  string       `json:"kind,omitempty"`
	Kinds []KindReport `json:"kinds,omitempty"`
	Hosts []HostReport `json:"hosts,omitempty"` // that something moves for, most first
	// MovedSpace is the percentage of the address space whose region changes, of that kind of
	// which it is greatest, which SpaceKind names: IPv4 addresses, or IPv6 networks that
	// are located. Nil: there is none.
	MovedSpace *float64 `json:"moved_space,omitempty"`
	SpaceKind  string   `json:"space_kind,omitempty"`
	// Deficit is the demand that no region can take, before and after.
	DeficitBefore float64        `json:"deficit_before"`
	DeficitAfter  float64        `json:"deficit_after"`
	Regions       []RegionReport `json:"regions"`
	Flows         []Flow         `json:"flows"`
	Stranded      []Stranded     `json:"stranded,omitempty"`
	// Refusals are what guards say against it; none: it may be done.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Basis is what it rests on, for the Backend that made it alone.
	Basis any `json:"-"`
}

// KindReport is what moves of one kind of blocks: those of IPv4 clients asking for A,
// and so on.
type KindReport struct {
	Kind        string  `json:"kind"`
	Blocks      float64 `json:"blocks"`       // percent of all blocks that are of it
	MovedBlocks float64 `json:"moved_blocks"` // percent of these
}

// HostReport is what moves of one host.
type HostReport struct {
	Host        string   `json:"host"` // the first of its names
	View        string   `json:"view,omitempty"`
	MovedBlocks float64  `json:"moved_blocks"`           // percent of its blocks, of those of which most moves
	MovedDemand *float64 `json:"moved_demand,omitempty"` // percent of its demand
}

// RegionReport is a region before and after a change.
type RegionReport struct {
	Name              string   `json:"name"`
	BlocksBefore      float64  `json:"blocks_before"` // percent of blocks
	BlocksAfter       float64  `json:"blocks_after"`
	DemandBefore      *float64 `json:"demand_before,omitempty"` // percent of the demand observed
	DemandAfter       *float64 `json:"demand_after,omitempty"`
	UtilisationBefore *float64 `json:"utilisation_before,omitempty"` // percent of capacity
	UtilisationAfter  *float64 `json:"utilisation_after,omitempty"`
}

// Flow is what moves from one region to another. An empty name is no region: the
// last resort.
type Flow struct {
	From   string   `json:"from"`
	To     string   `json:"to"`
	Blocks float64  `json:"blocks"`           // percent of all
	Demand *float64 `json:"demand,omitempty"` // percent of all
}

// Stranded are clients of a host that have no usable region left.
type Stranded struct {
	Host   string   `json:"host"`
	View   string   `json:"view,omitempty"`
	List   []string `json:"list"` // their candidates
	Blocks float64  `json:"blocks"`
	Why    string   `json:"why"`
	Before bool     `json:"before,omitempty"` // they had none before, either
}

// Refusal is what one guard says against a change.
type Refusal struct {
	Guard  string `json:"guard"` // usable, max_move, require, hosts, max_use
	Reason string `json:"reason"`
}

// Explained is what a query for a name gets, and why.
type Explained struct {
	Name             string           `json:"name"`
	TransportAssumed bool             `json:"transport_assumed"` // no resolver was given: it is the client
	Blocks           []ExplainedBlock `json:"blocks"`
}

// ExplainedBlock is what one gslb block makes of the query.
type ExplainedBlock struct {
	At        string `json:"at"` // file:line
	Zone      string `json:"zone"`
	View      string `json:"view,omitempty"`
	Unsteered string `json:"unsteered,omitempty"` // for no host: nodata, nxdomain, fallthrough
	Exists    bool   `json:"exists,omitempty"`
	// Explanation is that of `gslbctl explain -json`.
	Explanation json.RawMessage `json:"explanation,omitempty"`
}

// Applied is what became of one change.
type Applied struct {
	Override *Override `json:"override,omitempty"` // made; its ID holds only if it was applied
	Replaced *Override `json:"replaced,omitempty"` // by it: it held before on the same object
	// Cancelled is an override that no longer holds.
	Cancelled *Override `json:"cancelled,omitempty"`
}

// Result is what became of a request, or would.
type Result struct {
	Version string    `json:"version"` // now
	Applied []Applied `json:"applied"`
	Report  Report    `json:"report"` // as foretold before
	// Forced says that guards refused it and were overruled.
	Forced bool `json:"forced,omitempty"`
}
