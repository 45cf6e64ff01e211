package topology

import (
	"net/netip"
	"sort"
)

// By says what gave a client its list.
type By string

// What can give a list: a rule, the sibling's list by fill, the rest, the
// distance, or the order in which the regions are written.
const (
	ByRule     By = "rule"
	ByFill     By = "fill"
	ByRest     By = "rest"
	ByDistance By = "distance"
	ByOrder    By = "order written"
)

// Reasons are why an address has its list.
type Reasons struct {
	Geo, ASN     *Facts       // nil: the database says nothing of it
	GeoNet       netip.Prefix // the database's network
	ASNNet       netip.Prefix
	By           By
	Rule         int          // number of the rule, for ByRule
	Prefix       netip.Prefix // the longest prefix of the rules that holds the address, if any
	From         netip.Prefix // for ByFill: the prefix whose list it took
	Fences       []string     // names of the fences that confine it
	List         List
	SpecialSpace bool // it lies in special-purpose or embedding space
}

// Why works out the reasons for an address the way Compile does. It costs as
// much as a compilation: it is for explanations, not for queries.
func Why(in *Input, addr netip.Addr) Reasons {
	c := newCompiler(in)
	c.sources = make(map[key]block)
	f, k := familyOf(addr), keyOf(addr)
	var w Reasons
	w.Geo, w.GeoNet = in.Geo.find(c.geo, addr)
	w.ASN, w.ASNNet = in.ASN.find(c.asn, addr)

	blocks := c.located(f)
	b := holding(blocks, k)
	place := c.places.values[b.val]
	holds := c.holds[holding(c.prefixes[f], k).val]
	for _, h := range holds {
		if int(h.bits) >= w.Prefix.Bits() {
			w.Prefix = netip.PrefixFrom(addr, int(h.bits)).Masked()
		}
	}
	list, rule, fences := c.rank(place, holds)
	switch {
	case rule != noRule:
		w.By, w.Rule = ByRule, int(rule)
	case place.state == filled:
		from := c.sources[b.start]
		w.By, w.From = ByFill, netip.PrefixFrom(from.start.addr(f == v4), int(from.bits))
	case in.Rest != nil:
		w.By = ByRest
	case place.list != c.deflt || w.Geo != nil && w.Geo.Coordinates && c.anyLocated():
		w.By = ByDistance
	default:
		w.By = ByOrder
	}
	w.List = c.orders.lists[list]
	for _, fence := range c.fences(fences) {
		w.Fences = append(w.Fences, fence.Name)
	}
	if len(fences) > 0 {
		w.List, _ = c.orders.fenced(w.List, c.fences(fences))
	}
	w.SpecialSpace = place.barrier > 0
	return w
}

// holding finds the block of a gapless partition that holds an address.
func holding(blocks []block, k key) block {
	return blocks[sort.Search(len(blocks), func(i int) bool { return k.less(blocks[i].start) })-1]
}

// find gives a database's facts of an address and the network they are of.
func (d *Database) find(l *layer, addr netip.Addr) (*Facts, netip.Prefix) {
	blocks, k := l[familyOf(addr)], keyOf(addr)
	i := sort.Search(len(blocks), func(i int) bool { return k.less(blocks[i].start) }) - 1
	if i < 0 || !blocks[i].start.covers(int(blocks[i].bits), k) {
		return nil, netip.Prefix{}
	}
	return &d.Facts[blocks[i].val-1], netip.PrefixFrom(addr, int(blocks[i].bits)).Masked()
}
