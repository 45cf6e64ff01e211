package topology

import (
	"net/netip"
	"sort"
)

// By says what gave a client its list.
type By string

// What can give a list: a rule, the sibling's list by fill, the rest, the
// distance, the order in which the regions are written, or a latency map.
const (
	ByRule     By = "rule"
	ByFill     By = "fill"
	ByRest     By = "rest"
	ByDistance By = "distance"
	ByOrder    By = "order written"
	ByLatency  By = "latency"
)

// words are the kinds that no rule is of.
var words = map[Kind]By{Fill: ByFill, Rest: ByRest, Distance: ByDistance, OrderWritten: ByOrder, Latency: ByLatency}

// Reasons are why an address has its list.
type Reasons struct {
	Geo, ASN     *Facts       // nil: the database says nothing of it
	GeoNet       netip.Prefix // the database's network
	ASNNet       netip.Prefix
	By           By
	Decided      Kind         // By, with a rule's kind; Match.Decided is that of most of a block
	Rule         int          // number of the rule, for ByRule
	Prefix       netip.Prefix // the longest prefix of the rules and fences that holds the address, if any
	From         netip.Prefix // for ByFill: the prefix whose list it took
	Fences       []string     // names of the fences that confine it
	List         List
	SpecialSpace bool // it lies in special-purpose or embedding space
	// Entry is the latency map's entry that holds the address, counted from 0 in
	// the order of Measured.Networks, and EntryNet its prefix; invalid: none does. If By is
	// not ByLatency, the entry says nothing here: a prefix rule decides, the client is refused,
	// the space is special, or the list has none of the entry's regions.
	Entry    int
	EntryNet netip.Prefix
	// Without is what would be without the latency map, for ByLatency; else nil.
	Without *Reasons
}

// Why works out the reasons for an address of a client subnet the way Compile
// does. It costs as much as a compilation: it is for explanations, not for
// queries.
func Why(in *Input, addr netip.Addr) Reasons { return why(in, in.Clients, addr) }

// WhyTransport is Why for a transport address.
func WhyTransport(in *Input, addr netip.Addr) Reasons { return why(in, in.Resolvers, addr) }

func why(in *Input, latency *Measured, addr netip.Addr) Reasons {
	c := newCompiler(in)
	c.sources = make(map[key]block)
	f, k := familyOf(addr), keyOf(addr)
	var w Reasons
	w.Geo, w.GeoNet = in.Geo.find(c.geo, addr)
	w.ASN, w.ASNNet = in.ASN.find(c.asn, addr)

	b := holding(c.located(f), k)
	place := c.places.values[b.val]
	holds := c.holds[holding(c.prefixes[f], k).val]
	for _, h := range holds {
		if int(h.set) < c.rules.spoken && int(h.bits) >= w.Prefix.Bits() {
			w.Prefix = netip.PrefixFrom(addr, int(h.bits)).Masked()
		}
	}
	w.SpecialSpace = place.barrier > 0
	if place.state == filled {
		from := c.sources[b.start]
		w.From = netip.PrefixFrom(from.start.addr(f == v4), int(from.bits))
	}
	d, _ := c.decide(place, holds, nil, 0)
	for _, fence := range c.fences(d.fences) {
		w.Fences = append(w.Fences, fence.Name)
	}
	m := newMeasured(latency, in.Regions)
	if m == nil {
		return w.of(d)
	}
	e, ok := m.find(addr)
	if !ok {
		return w.of(d)
	}
	entry := m.layer[f][e]
	w.Entry, w.EntryNet = e, netip.PrefixFrom(addr, int(entry.bits)).Masked()
	if f == v6 {
		w.Entry += len(m.layer[v4])
	}
	without := w.of(d)
	if d, _ = c.decide(place, holds, m, entry.val); d.by != Latency {
		return without
	}
	w = w.of(d)
	w.Without = &without
	return w
}

// of completes the reasons by a decision.
func (w Reasons) of(d decision) Reasons {
	w.List, w.Decided = d.list, d.by
	w.By = words[d.by]
	if w.By == "" {
		w.By, w.Rule = ByRule, int(d.rule)
	}
	if w.By != ByFill {
		w.From = netip.Prefix{}
	}
	return w
}

// holding finds the block of a gapless partition that holds an address.
func holding(blocks []block, k key) block {
	return blocks[sort.Search(len(blocks), func(i int) bool { return k.less(blocks[i].start) })-1]
}

// find gives the place of the block that holds an address in those of its family.
func (l *layer) find(addr netip.Addr) (i int, ok bool) {
	blocks, k := l[familyOf(addr)], keyOf(addr)
	i = sort.Search(len(blocks), func(i int) bool { return k.less(blocks[i].start) }) - 1
	return i, i >= 0 && blocks[i].start.covers(int(blocks[i].bits), k)
}

// find gives a database's facts of an address and the network they are of.
func (d *Database) find(l *layer, addr netip.Addr) (*Facts, netip.Prefix) {
	i, ok := l.find(addr)
	if !ok {
		return nil, netip.Prefix{}
	}
	b := l[familyOf(addr)][i]
	return &d.Facts[b.val-1], netip.PrefixFrom(addr, int(b.bits)).Masked()
}
