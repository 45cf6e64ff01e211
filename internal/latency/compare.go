package latency

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
)

// CompareOptions say what to compare maps by.
type CompareOptions struct {
	// Demand is what the addresses of a prefix ask for, in any unit. Without it,
	// demand is the samples behind the entry, of the new map if it has one, of all that the new
	// map's build saw, if it says so; and in maps without measurements every entry counts alike. Part of an entry's addresses has
	// that part of its demand.
	Demand func(netip.Prefix) float64
	Top    int // moves that are listed, at most
	// Budget is the part of demand, 0..1, that may change its region; 0: all of it.
	Budget float64
	// Regions are those that there are; nil: they are not checked.
	Regions []string
}

// Comparison is what a new map changes. Parts are of all the demand that the new map was made
// from, or, where that isn't known, of what either map holds.
type Comparison struct {
	By        string     `json:"demand_by"` // given, samples or entries
	Clients   SideChange `json:"clients"`
	Resolvers SideChange `json:"resolvers"`
	// Refusals are the reasons not to publish the new map; none: it may be.
	Refusals []string `json:"refusals"`
}

// SideChange is what changes for clients, or for resolvers.
type SideChange struct {
	EntriesBefore int `json:"entries_before"`
	EntriesAfter  int `json:"entries_after"`
	// Moved is the part whose first region is another; Entered and Left are the
	// parts that only the new, or only the old map holds: whether these move depends
	// on where they go without a map.
	Moved   float64 `json:"moved"`
	Entered float64 `json:"entered"`
	Left    float64 `json:"left"`
	// P75 is the change of the 75th percentile that the new map's measurements predict, in
	// milliseconds, averaged over what moved and was measured in both regions: negative is
	// faster. Predicted is that part of all demand.
	P75       float64 `json:"p75_ms_change"`
	Predicted float64 `json:"predicted"`
	// Shares are by region, in order of name.
	Shares []RegionShare `json:"shares"`
	Top    []Move        `json:"top"` // largest first
}

// changed is the part that may change its region.
func (s *SideChange) changed() float64 { return s.Moved + s.Entered + s.Left }

// RegionShare is the part of demand whose first region is this one. What a map
// doesn't hold is in no region's.
type RegionShare struct {
	Region string  `json:"region"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Move is a piece of the address space whose first region is another one.
type Move struct {
	Prefix netip.Prefix `json:"prefix"`
	From   string       `json:"from,omitempty"` // none: the old map doesn't hold it
	To     string       `json:"to,omitempty"`   // none: the new map doesn't hold it
	Demand float64      `json:"demand"`         // part of all
	// P75From and P75To are what the new map measured there, in milliseconds.
	P75From *float32 `json:"p75_ms_from,omitempty"`
	P75To   *float32 `json:"p75_ms_to,omitempty"`
}

// Compare tells what a new map would change, and whether it may be published.
func Compare(old, new *Map, o CompareOptions) *Comparison {
	c := &Comparison{By: "given", Refusals: []string{}}
	if o.Demand == nil {
		c.By = "entries"
		if old.Stats().Samples+new.Stats().Samples > 0 {
			c.By = "samples"
		}
	}
	before, after := old.sides(), new.sides()
	for i, into := range []*SideChange{&c.Clients, &c.Resolvers} {
		s := sideComparer{by: c.By, whole: new.Demand[i], o: o, old: old.Regions, new: new.Regions, shares: map[string]*RegionShare{}}
		*into = s.compare(before[i], after[i])
		if o.Budget > 0 && into.changed() > o.Budget {
			c.refuse("%.1f %% of the demand of %ss changes its region (%.1f %% moves, %.1f %% enters the map, %.1f %% leaves it): more than %.1f %%",
				100*into.changed(), sideNames[i], 100*into.Moved, 100*into.Entered, 100*into.Left, 100*o.Budget)
		}
		// As a server that has the old map would refuse it, see geodb.CheckShrink.
		if enough := (into.EntriesBefore + 1) / 2; into.EntriesAfter < enough && s.left < enough {
			c.refuse("has %d entries of %ss where the old map has %d, of which it holds only %d, merged or not: less than half",
				into.EntriesAfter, sideNames[i], into.EntriesBefore, s.left)
		}
	}
	if !new.Newer(old) && new.Digest() != old.Digest() {
		c.refuse("%s", notNewer(old, new))
	}
	if o.Regions != nil {
		if err := new.Check(o.Regions); err != nil {
			c.refuse("%v", err)
		}
	}
	return c
}

func (c *Comparison) refuse(format string, args ...any) {
	c.Refusals = append(c.Refusals, fmt.Sprintf(format, args...))
}

// notNewer says why a map doesn't take the place of another.
func notNewer(old, new *Map) string {
	text := fmt.Sprintf("built %s", stamp(new.Built))
	if new.Rollback != nil {
		text = fmt.Sprintf("built %s and put back %s", stamp(new.Built), stamp(new.since()))
	}
	if text += fmt.Sprintf(", which is not after the map in place, built %s", stamp(old.Built)); old.Rollback != nil {
		text += fmt.Sprintf(" and put back by a rollback %s: only a map built after that takes its place", stamp(old.since()))
	}
	return text + `: to go back to an older map, use "gslbctl map rollback"`
}

// sideComparer compares the clients or the resolvers of two maps.
type sideComparer struct {
	by       string
	whole    uint64 // demand that the new map was made from; 0: not known
	o        CompareOptions
	old, new []string // regions
	shares   map[string]*RegionShare
	change   SideChange
	total    float64
	gain     float64 // milliseconds times demand
	measured float64 // demand of that
	left     int     // old entries that the new map says something of
	last     *Entry  // the last of them
}

func (s *sideComparer) compare(before, after []Entry) SideChange {
	s.change = SideChange{EntriesBefore: len(before), EntriesAfter: len(after), Shares: []RegionShare{}, Top: []Move{}}
	overlay(before, after, s.piece)
	if s.by == "samples" { // old entries may hold more than there is now
		s.total = max(s.total, float64(s.whole))
	}
	c := &s.change
	if s.measured > 0 {
		c.P75 = s.gain / s.measured
	}
	c.Predicted = s.measured
	for _, part := range []*float64{&c.Moved, &c.Entered, &c.Left, &c.Predicted} {
		*part = s.part(*part)
	}
	for i := range c.Top {
		c.Top[i].Demand = s.part(c.Top[i].Demand)
	}
	for _, share := range s.shares {
		c.Shares = append(c.Shares, RegionShare{share.Region, s.part(share.Before), s.part(share.After)})
	}
	slices.SortFunc(c.Shares, func(a, b RegionShare) int { return cmp.Compare(a.Region, b.Region) })
	return *c
}

func (s *sideComparer) part(demand float64) float64 {
	if s.total == 0 {
		return 0
	}
	return demand / s.total
}

// piece counts a piece of the address space.
func (s *sideComparer) piece(p netip.Prefix, old, new *Entry) {
	d := s.demand(p, old, new)
	s.total += d
	if old != nil && new != nil && old != s.last { // pieces come in order
		s.left, s.last = s.left+1, old
	}
	m := Move{Prefix: p, Demand: d}
	if old != nil {
		m.From = s.old[old.Order[0]]
		s.share(m.From).Before += d
	}
	if new != nil {
		m.To = s.new[new.Order[0]]
		s.share(m.To).After += d
	}
	switch {
	case m.From == m.To:
		return
	case new == nil:
		s.change.Left += d
	case old == nil:
		s.change.Entered += d
	default:
		s.change.Moved += d
		m.P75From, m.P75To = s.p75(new, m.From), s.p75(new, m.To)
		if m.P75From != nil && m.P75To != nil {
			s.gain += d * float64(*m.P75To-*m.P75From)
			s.measured += d
		}
	}
	s.list(m)
}

// list keeps a move if it is one of the largest.
func (s *sideComparer) list(m Move) {
	top := s.change.Top
	if s.o.Top <= 0 || len(top) >= s.o.Top && m.Demand <= top[len(top)-1].Demand {
		return
	}
	at, _ := slices.BinarySearchFunc(top, m, func(a, b Move) int {
		if a.Demand >= b.Demand {
			return -1
		}
		return 1
	})
	top = slices.Insert(top, at, m)
	s.change.Top = top[:min(len(top), s.o.Top)]
}

func (s *sideComparer) share(region string) *RegionShare {
	if s.shares[region] == nil {
		s.shares[region] = &RegionShare{Region: region}
	}
	return s.shares[region]
}

// p75 is what the new map measured of a region, nil if it did not.
func (s *sideComparer) p75(e *Entry, region string) *float32 {
	for i := range e.Cells {
		if s.new[e.Order[i]] == region && e.Cells[i].Samples > 0 {
			return &e.Cells[i].P75
		}
	}
	return nil
}

func (s *sideComparer) demand(p netip.Prefix, old, new *Entry) float64 {
	if s.by == "given" {
		return s.o.Demand(p)
	}
	e := new
	if e == nil || s.by == "samples" && old != nil && e.samples() == 0 {
		e = old
	}
	part := math.Ldexp(1, e.Prefix.Bits()-p.Bits())
	if s.by == "entries" {
		return part
	}
	return part * float64(e.samples())
}
