package steer

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
)

// EndpointConfig is one endpoint of a pool. Weight is relative to the pool's
// other endpoints, 0..MaxWeight; an endpoint of weight 0 is never answered, and
// counts for nothing, unless [EndpointState] gives it another.
type EndpointConfig struct {
	Addr   netip.Addr
	Weight uint32
}

// PoolConfig is the endpoints of a host in one region. Families don't mix: every
// number here is taken for IPv4 and IPv6 each.
type PoolConfig struct {
	Endpoints []EndpointConfig
	// Name, fully qualified and in lower case, is answered instead of addresses, as
	// a CNAME. Such a pool offers both families; its endpoints only say whether it
	// is usable, and here families do mix: any that is alive counts for both, so
	// that A and AAAA never part.
	Name string
	// Answers is how many endpoints one answer holds; 0 is all.
	Answers int
	// MinHealthy is how many endpoints must be alive for the pool to be usable; 0
	// is taken as 1. MinHealthyPct, 0..100 in hundredths, replaces it where it is
	// positive: the least healthy part, see [RegionState].
	MinHealthy    int
	MinHealthyPct float64
}

// HostConfig is everything static about a host. NewHost keeps the slices it
// is given; they must not change afterwards.
type HostConfig struct {
	Name    string
	Regions []string      // names, in the order written; indexed by Region
	Pools   []*PoolConfig // by Region; nil: the host has none there
	Lists   []List        // by list id
	Spread  Spread
	Grain   [2]int // by Family: the shortest prefix Sticky tells apart
	// Families narrows what the pools offer.
	Families   FamilyRule
	LastResort LastResort
	// SpillBelow is the healthy part of a pool, 0..100 percent in hundredths, from
	// which downwards clients spill to the next candidates: the pool keeps the
	// part healthy/SpillBelow of them. 0: health alone never spills.
	SpillBelow float64
	// MaxDown is how many of the regions with a pool health may take out of
	// service, 0..100 percent in hundredths, rounded down. Of more, those that
	// failed last stay in service. 100: no limit.
	MaxDown float64
	// Unresolved: some name that endpoints come from has never been resolved, so that
	// nobody can say which families there are. Whatever Families allows counts as
	// offered, and without a candidate a decision fails instead of denying a type.
	Unresolved bool
	// Shed is a name, fully qualified and in lower case, that those clients are
	// sent to, as a CNAME, whom a region declines because of [Levers].Admission
	// alone. Empty: they go to the next candidate.
	Shed string
	TTL  uint32 // seconds
	// Floor is the least TTL in seconds; above TTL it is taken as TTL. With
	// FloorOff every answer has the full TTL.
	Floor    uint32
	FloorOff bool
	// Prepare, if not nil, is called once for every Answer as a snapshot first
	// needs it, never on the query path. Its result becomes Answer.Prepared.
	Prepare func(*Answer) any
}

// Host is the static part of decisions for one host. See the package comment for
// concurrency.
type Host struct {
	name       string
	regions    []string
	salts      []uint64 // by Region, for the choice in a split
	admissions []uint64 // by Region, salts for who is taken
	pools      []*pool  // by Region
	lists      []List
	spread     Spread
	grain      [families]int
	offers     [families]bool
	lastResort LastResort
	spillBelow uint64    // hundredths of a percent
	maxDown    int       // regions
	shed       string    // a name; empty: none
	ttl        [3]uint32 // by TTLClass
	answers    answers
	// Counters of spread Balanced, by Family and then by list id or Region. One
	// each, so that every list and every pool is exact over its own resolutions.
	listTurns, poolTurns [families][]atomic.Uint64
	// spillTurns count the clients that a region which spills was asked to take.
	spillTurns [families][spillStages][]atomic.Uint64
	// leverSalts and leverTurns are what a client's points for levers come from.
	leverSalts [leverKinds][]uint64 // by Region
	leverTurns [families][leverKinds][]atomic.Uint64
}

// pool is the static part of a pool.
type pool struct {
	endpoints  []endpoint            // as configured
	byFamily   [families][]*endpoint // by address; all of them where the pool has a name
	offers     [families]bool        // some endpoint of the family has a weight as configured
	name       string                // answered instead of addresses; empty: none
	answers    int
	minHealthy int
	minPct     uint64 // hundredths of a percent; 0: minHealthy counts
	salt       uint64
}

// endpoint is the static part of an endpoint.
type endpoint struct {
	index  int // in the configuration
	addr   netip.Addr
	weight uint32
	salt   uint64
}

// NewHost checks cfg and makes everything that state doesn't change. An error says
// which part can't be meant; it names no place in a file, for cfg has none.
func NewHost(cfg HostConfig) (*Host, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("host %s: %w", cfg.Name, err)
	}
	h := &Host{
		name:       cfg.Name,
		regions:    cfg.Regions,
		lists:      cfg.Lists,
		spread:     cfg.Spread,
		grain:      cfg.Grain,
		lastResort: cfg.LastResort,
		spillBelow: hundredths(cfg.SpillBelow),
		shed:       cfg.Shed,
		ttl:        ttls(&cfg),
		answers:    answers{prepare: cfg.Prepare},
	}
	for r, name := range cfg.Regions {
		h.salts = append(h.salts, salt(purposeRegion, name))
		h.admissions = append(h.admissions, salt(purposeAdmission, name))
		for kind, purpose := range [leverKinds]string{purposeShare, purposeTrickle, purposeShed} {
			h.leverSalts[kind] = append(h.leverSalts[kind], salt(purpose, name))
		}
		h.pools = append(h.pools, newPool(cfg.Pools[r], name))
	}
	for f := range Family(families) {
		h.offers[f] = cfg.Families.allows(f) && (cfg.Unresolved || slices.ContainsFunc(h.pools, func(p *pool) bool {
			return p != nil && p.offers[f]
		}))
		if h.spread == Balanced {
			h.makeTurns(f)
		}
	}
	h.maxDown = h.counted() * int(hundredths(cfg.MaxDown)) / 10000
	return h, nil
}

// makeTurns makes the counters of spread Balanced for one family.
func (h *Host) makeTurns(f Family) {
	h.listTurns[f] = make([]atomic.Uint64, len(h.lists))
	h.poolTurns[f] = make([]atomic.Uint64, len(h.pools))
	for stage := range h.spillTurns[f] {
		h.spillTurns[f][stage] = make([]atomic.Uint64, len(h.pools))
	}
	for kind := range h.leverTurns[f] {
		h.leverTurns[f][kind] = make([]atomic.Uint64, len(h.pools))
	}
	h.leverTurns[f][leverShare] = make([]atomic.Uint64, len(h.lists)*spillStages)
}

// hundredths is a percentage in hundredths of a percent.
func hundredths(percent float64) uint64 { return uint64(math.Round(percent * 100)) }

// counted is the number of regions that have something to offer.
func (h *Host) counted() (n int) {
	for _, p := range h.pools {
		if p != nil && (h.offers[V4] && p.offers[V4] || h.offers[V6] && p.offers[V6]) {
			n++
		}
	}
	return n
}

// ttls are the TTLs by class.
func ttls(cfg *HostConfig) [3]uint32 {
	if cfg.FloorOff {
		return [3]uint32{cfg.TTL, cfg.TTL, cfg.TTL}
	}
	floor := min(cfg.Floor, cfg.TTL)
	return [3]uint32{ClassSteady: cfg.TTL, ClassStreak: max(floor, cfg.TTL/2), ClassLastResort: floor}
}

// newPool makes the static part of a pool; nil for none.
func newPool(cfg *PoolConfig, region string) *pool {
	if cfg == nil {
		return nil
	}
	p := &pool{
		endpoints:  make([]endpoint, len(cfg.Endpoints)),
		name:       cfg.Name,
		answers:    cfg.Answers,
		minHealthy: max(1, cfg.MinHealthy),
		minPct:     hundredths(cfg.MinHealthyPct),
		salt:       salt(purposeAnswers, region),
	}
	for i, e := range cfg.Endpoints {
		p.endpoints[i] = endpoint{i, e.Addr, e.Weight, endpointSalt(e.Addr)}
		for f := range Family(families) {
			if f == familyOf(e.Addr) || p.name != "" {
				p.byFamily[f] = append(p.byFamily[f], &p.endpoints[i])
				p.offers[f] = p.offers[f] || e.Weight > 0
			}
		}
	}
	for _, es := range p.byFamily {
		slices.SortFunc(es, func(a, b *endpoint) int { return a.addr.Compare(b.addr) })
	}
	return p
}

// Offers says whether the host has addresses of family f for anybody. It depends on
// configuration only, never on state or client: resolvers share negative answers.
func (h *Host) Offers(f Family) bool { return h.offers[f] }

// MaxSets is the greatest number of distinct answers that one snapshot can give,
// over both families and whatever weights are set live: what a cache of signatures
// must hold for each TTL class. A name counts once.
func (h *Host) MaxSets() int {
	sets := 0
	names := make(map[string]bool)
	for f := range Family(families) {
		if !h.offers[f] {
			continue
		}
		for _, p := range h.pools {
			if p != nil && p.name != "" {
				names[p.name] = true
			} else if p != nil {
				sets += p.maxSets(f)
			}
		}
		if len(h.lastResort.of(f)) > 0 {
			sets++
		}
	}
	if h.shed != "" {
		names[h.shed] = true
	}
	return sets + len(names)
}

// maxSets is MaxSets of one pool of addresses and family.
func (p *pool) maxSets(f Family) int {
	m := len(p.byFamily[f])
	if p.answers == 0 || p.answers >= m {
		return min(m, 1)
	}
	return m
}

// of is the addresses of family f that the last resort gives, nil for other kinds.
func (l *LastResort) of(f Family) (addrs []netip.Addr) {
	if l.Kind != Addresses {
		return nil
	}
	for _, a := range l.Addresses {
		if familyOf(a) == f {
			addrs = append(addrs, a)
		}
	}
	return addrs
}
