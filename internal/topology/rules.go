package topology

import (
	"net/netip"
	"slices"
)

// rank orders the rules that match a client: the kind of the first
// alternative, then the length of its matching prefix, then the number of
// alternatives.
type rank uint32

func (r rank) kind() Kind { return Kind(r >> 16) }

func newRank(k Kind, prefixLen, alts int) rank {
	return rank(k)<<16 | rank(prefixLen)<<8 | rank(min(alts, 255))
}

// conj is one conjunction of a rule, a fence or a mark. Its prefix alternatives are
// kept apart: they are numbers of prefix sets, joined after the databases.
type conj struct {
	first   Kind
	n       int       // alternatives
	data    []dataAlt // matched against database facts
	sets    []uint32  // prefix sets that must all hold the client
	list    uint32    // of a rule
	what    what      // it is of
	number  int       // of the rule, fence or mark
	partial int       // number among the conjunctions that need both, else -1
}

// what a conjunction is of.
type what uint8

const (
	ofRule what = iota
	ofFence
	ofMark
)

// dataAlt is an alternative that looks at the facts of one database.
type dataAlt struct {
	kind  Kind
	codes map[string]bool
	asns  map[uint32]bool
}

func (a *dataAlt) matches(geo, asn *Facts) bool {
	switch a.kind {
	case Continent:
		return geo != nil && a.codes[geo.Continent]
	case Country:
		return geo != nil && a.codes[geo.Country]
	case Subdivision:
		return geo != nil && slices.ContainsFunc(geo.Subdivisions, func(s string) bool { return a.codes[s] })
	}
	return asn != nil && a.asns[asn.ASN]
}

func (c *conj) dataMatches(geo, asn *Facts) bool {
	for i := range c.data {
		if !c.data[i].matches(geo, asn) {
			return false
		}
	}
	return true
}

// rules are the conjunctions of an Input, by what is needed to decide them.
type rules struct {
	data     []conj // database facts alone
	prefixes []conj // prefixes alone, or prefixes and database facts
	partials int
	sets     [][]netip.Prefix // the prefix sets
	spoken   int              // how many of them are of rules and fences; the others are of marks
}

func newRules(in *Input, o *orders) *rules {
	r := &rules{}
	for i := range in.Rules {
		rule := &in.Rules[i]
		l := o.written(rule.Spec)
		if !l.Reaches() { // no region of this list has a pool: the rule says nothing
			continue
		}
		r.add(rule.Alts, conj{list: o.id(l), what: ofRule, number: i})
	}
	for i := range in.Fences {
		for _, alts := range in.Fences[i].Match {
			r.add(alts, conj{what: ofFence, number: i})
		}
	}
	r.spoken = len(r.sets)
	for i := range in.Marks {
		for _, alts := range in.Marks[i].Match {
			r.add(alts, conj{what: ofMark, number: i})
		}
	}
	return r
}

// add sorts a conjunction in, of which c says what it is for.
func (r *rules) add(alts []Alt, c conj) {
	c.first, c.n, c.partial = alts[0].Kind, len(alts), -1
	for _, a := range alts {
		if a.Kind == Prefix {
			c.sets = append(c.sets, uint32(len(r.sets)))
			r.sets = append(r.sets, a.Prefixes)
			continue
		}
		d := dataAlt{kind: a.Kind, codes: make(map[string]bool), asns: make(map[uint32]bool)}
		for _, code := range a.Codes {
			d.codes[code] = true
		}
		for _, n := range a.ASNs {
			d.asns[n] = true
		}
		c.data = append(c.data, d)
	}
	if len(c.sets) == 0 {
		r.data = append(r.data, c)
		return
	}
	if len(c.data) > 0 {
		c.partial = r.partials
		r.partials++
	}
	r.prefixes = append(r.prefixes, c)
}

// held is one prefix set that holds an address, by its longest prefix there.
type held struct {
	set  uint32
	bits uint8
}

// prefixLayer partitions the space by which prefix sets hold it. Its values
// are indexes into the slice returned; 0 is the empty one.
func (r *rules) prefixLayer() (*layer, [][]held) {
	type entry struct {
		start key
		bits  uint8
		set   uint32
	}
	var entries [2][]entry
	for set, prefixes := range r.sets {
		for _, p := range prefixes {
			f := familyOf(p.Addr())
			entries[f] = append(entries[f], entry{keyOf(p.Addr()), uint8(p.Bits()), uint32(set)})
		}
	}
	holds := [][]held{nil}
	ids := map[string]uint32{"": 0}
	intern := func(h []held) uint32 {
		k := make([]byte, 0, 5*len(h))
		for _, x := range h {
			k = append(k, byte(x.set>>24), byte(x.set>>16), byte(x.set>>8), byte(x.set), x.bits)
		}
		id, ok := ids[string(k)]
		if !ok {
			id = uint32(len(holds))
			ids[string(k)] = id
			holds = append(holds, h)
		}
		return id
	}
	var l layer
	for f := range entries {
		es := entries[f]
		slices.SortFunc(es, func(a, b entry) int {
			switch {
			case a.start.less(b.start):
				return -1
			case b.start.less(a.start):
				return 1
			}
			return int(a.bits) - int(b.bits)
		})
		i := 0
		var descend func(k key, bits int, now uint32)
		descend = func(k key, bits int, now uint32) {
			for i < len(es) && es[i].start == k && int(es[i].bits) == bits {
				now = intern(with(holds[now], held{es[i].set, uint8(bits)}))
				i++
			}
			if i == len(es) || !k.covers(bits, es[i].start) {
				l[f] = append(l[f], block{k, uint8(bits), now})
				return
			}
			descend(k, bits+1, now)
			descend(k.withBit(bits), bits+1, now)
		}
		descend(key{}, 0, 0)
	}
	return &l, holds
}

// with gives the sets held after one more prefix, in the order of sets.
func with(hs []held, h held) []held {
	i, found := slices.BinarySearchFunc(hs, h, func(a, b held) int { return int(a.set) - int(b.set) })
	out := slices.Clone(hs)
	if found {
		out[i] = h
		return out
	}
	return slices.Insert(out, i, h)
}
