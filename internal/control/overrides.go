package control

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Override is a lever that an operator has moved. It is immutable.
type Override struct {
	ID    string `json:"id"` // a number, higher than that of every earlier one
	Lever Lever  `json:"lever"`
	Object
	Value    Value     `json:"value"`
	Area     string    `json:"area,omitempty"` // of a share: for these clients only
	By       string    `json:"by"`             // name of the token
	Why      string    `json:"why"`
	Made     time.Time `json:"made"`
	Until    time.Time `json:"until,omitzero"`
	Never    bool      `json:"never,omitempty"` // it holds until it is cancelled
	Previous string    `json:"previous"`        // what held before, and what gave it
	Version  string    `json:"version"`         // that the change was made on
}

// over tells whether an override has expired.
func (o *Override) over(now time.Time) bool { return !o.Never && !now.Before(o.Until) }

// key is what there is one override of.
type key struct {
	lever  Lever
	object Object
}

// Overrides is a set of overrides, at most one for each lever and object. It is
// immutable, and nil is the empty set.
type Overrides struct {
	all      map[key]*Override
	revision uint64 // counts the sets
	next     uint64 // the ID of the next override
	// epoch tells the revisions of a directory apart from those that it had
	// before its file was lost: when the first was made.
	epoch int64
}

// Region is what overrides say of a region, for one host; nil is nothing.
type Region struct{ Drain, Dial, Share, Trickle *Override }

// Endpoint is what overrides say of an endpoint, for one host and region; nil is
// nothing.
type Endpoint struct{ Drain, Weight, Force *Override }

// Region gives what holds of a region for a host: what is said of the host's
// pool there, else of the region. host is as the plan calls it; empty is none.
func (s *Overrides) Region(host, region string) Region {
	o := Object{Region: region, Host: host}
	return Region{s.find(Drain, o), s.find(Dial, o), s.find(Share, o), s.find(Trickle, o)}
}

// Endpoint gives what holds of an endpoint in a pool: what is said of it in this
// pool, else for this host, else in this region, else anywhere. A region's drain
// is no part of it.
func (s *Overrides) Endpoint(host, region string, addr netip.Addr) Endpoint {
	o := Object{Region: region, Host: host, Endpoint: addr.Unmap()}
	return Endpoint{s.find(Drain, o), s.find(Weight, o), s.find(Force, o)}
}

// find gives the most specific override of a lever that holds for an object.
func (s *Overrides) find(l Lever, o Object) *Override {
	if s.Len() == 0 {
		return nil
	}
	wider := [...]Object{o, {Host: o.Host, Endpoint: o.Endpoint}, {Region: o.Region, Endpoint: o.Endpoint}, {Endpoint: o.Endpoint}}
	for _, w := range wider {
		if found := s.all[key{l, w}]; found != nil {
			return found
		}
	}
	return nil
}

// Len is how many there are.
func (s *Overrides) Len() int {
	if s == nil {
		return 0
	}
	return len(s.all)
}

// All are the overrides, the oldest first. The slice is the caller's.
func (s *Overrides) All() []*Override {
	if s == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(s.all), func(a, b *Override) int { return a.number() - b.number() })
}

// Find gives an override by its ID; nil: there is none.
func (s *Overrides) Find(id string) *Override {
	for _, o := range s.All() {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// Revision grows with every change.
func (s *Overrides) Revision() uint64 {
	if s == nil {
		return 0
	}
	return s.revision
}

// version makes one word of a plan's digest and the set.
func (s *Overrides) version(digest string) string {
	return digest + "." + strconv.FormatInt(s.epoch, 36) + "." + strconv.FormatUint(s.revision, 10)
}

// clone is a copy to change, of the next revision.
func (s *Overrides) clone() *Overrides {
	c := &Overrides{all: maps.Clone(s.all), revision: s.revision + 1, next: s.next, epoch: s.epoch}
	if c.all == nil {
		c.all = map[key]*Override{}
	}
	return c
}

// put adds an override, in place of that of the same lever and object, and
// gives it its ID. For the set's maker alone.
func (s *Overrides) put(o Override) *Override {
	o.ID = strconv.FormatUint(s.next, 10)
	s.next++
	s.all[key{o.Lever, o.Object}] = &o
	return &o
}

// drop takes an override away. For the set's maker alone.
func (s *Overrides) drop(o *Override) { delete(s.all, key{o.Lever, o.Object}) }

// prune gives the set without what has expired, and that. With nothing expired
// it is the same set.
func (s *Overrides) prune(now time.Time) (left *Overrides, expired []*Override) {
	left = s
	for _, o := range s.All() {
		if !o.over(now) {
			continue
		}
		if expired == nil {
			left = s.clone()
		}
		left.drop(o)
		expired = append(expired, o)
	}
	return left, expired
}

// number is the ID as a number; 0 if it is none.
func (o *Override) number() int {
	n, err := strconv.ParseUint(o.ID, 10, 53)
	if err != nil || o.ID != strconv.FormatUint(n, 10) {
		return 0
	}
	return int(n)
}
