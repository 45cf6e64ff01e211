package topology

// located is what the databases say of a network: its list, and what the
// prefix rules and fences need to know of its facts later.
type located struct {
	state    locatedState
	list     uint32
	rank     rank   // of the rule that gave the list; 0 for none
	rule     int32  // its number; noRule for none
	distance bool   // distances gave the list
	marks    uint64 // that hold it by facts alone
	fences   uint32 // interned set of fences that hold it by facts alone
	partials uint32 // interned set of conjunctions whose facts it has
	barrier  uint32
}

// noRule stands where no rule gave the list.
const noRule = -1

type locatedState uint8

const (
	unlocated locatedState = iota
	known                  // located by a database
	filled                 // took its sibling's list
)

// factsKey is what located is computed from.
type factsKey struct{ geo, asn, barrier uint32 }

// located partitions one family by what the databases say, filled.
func (c *compiler) located(family int) []block {
	memo := make(map[factsKey]uint32)
	var lastKey factsKey
	lastVal, haveLast := uint32(0), false
	classify := func(vals []uint32, _ key, _ int) uint32 {
		k := factsKey{vals[0], vals[1], vals[2]}
		if haveLast && k == lastKey {
			return lastVal
		}
		v, ok := memo[k]
		if !ok {
			v = c.places.id(c.locate(k))
			memo[k] = v
		}
		lastKey, lastVal, haveLast = k, v, true
		return v
	}
	blocks := fold(family, 0, classify, c.geo, c.asn, c.barriers)
	if c.in.Fill && (c.in.Geo != nil || c.in.ASN != nil) {
		c.fill(blocks)
	}
	return blocks
}

// locate applies the rules that need database facts alone.
func (c *compiler) locate(k factsKey) located {
	var geo, asn *Facts
	if k.geo > 0 {
		geo = &c.in.Geo.Facts[k.geo-1]
	}
	if k.asn > 0 {
		asn = &c.in.ASN.Facts[k.asn-1]
	}
	v := located{barrier: k.barrier, list: c.deflt, rule: noRule}
	if geo != nil && (geo.Country != "" || geo.Continent != "" || geo.Coordinates) {
		v.state = known
	}
	var fences, partials []uint32
	for i := range c.rules.data {
		r := &c.rules.data[i]
		if !r.dataMatches(geo, asn) {
			continue
		}
		switch r.what {
		case ofMark: // doesn't locate: a mark must not change a list
			v.marks |= 1 << r.number
			continue
		case ofFence:
			fences = append(fences, uint32(r.number))
		default:
			if rk := newRank(r.first, 0, r.n); rk > v.rank {
				v.rank, v.list, v.rule = rk, r.list, int32(r.number)
			}
		}
		v.state = known
	}
	for i := range c.rules.prefixes {
		if r := &c.rules.prefixes[i]; r.partial >= 0 && r.dataMatches(geo, asn) {
			partials = append(partials, uint32(r.partial))
		}
	}
	if v.rank == 0 && c.in.Rest == nil && geo != nil && geo.Coordinates && c.anyLocated() {
		v.list, v.distance = c.orders.id(c.orders.byDistance(pointOf(geo.Lat, geo.Lon), nil)), true
	}
	v.fences = c.sets.id(fences)
	v.partials = c.sets.id(partials)
	return v
}

// anyLocated tells whether distances can order the regions at all.
func (c *compiler) anyLocated() bool {
	for _, r := range c.in.Regions {
		if r.Located && r.Pooled {
			return true
		}
	}
	return false
}

// spread is what a subtree offers its unlocated sibling.
type spread struct {
	all  locatedState // unlocated: nothing in it is located; known: uniform
	list uint32
	ok   bool // uniform, and its list may spread
}

// filler walks a gapless partition in address order.
type filler struct {
	c      *compiler
	blocks []block
	i      int
}

// fill gives unlocated networks the list of their sibling, bottom-up, where
// the sibling is uniform after its own fill and in no fence.
func (c *compiler) fill(blocks []block) {
	f := &filler{c: c, blocks: blocks}
	f.node(0)
}

func (f *filler) node(bits int) spread {
	if b := f.blocks[f.i]; int(b.bits) == bits {
		f.i++
		v := f.c.places.values[b.val]
		switch {
		case v.barrier > 0:
			return spread{all: known}
		case v.state == unlocated:
			return spread{all: unlocated}
		}
		return spread{all: known, list: v.list, ok: f.c.sets.empty(v.fences)}
	}
	from := f.i
	left := f.node(bits + 1)
	mid := f.i
	right := f.node(bits + 1)
	switch {
	case left.all == unlocated && right.all == unlocated:
		return left
	case left.all == unlocated && right.ok:
		f.give(from, mid, mid, bits+1, right.list)
		return right
	case right.all == unlocated && left.ok:
		f.give(mid, f.i, from, bits+1, left.list)
		return left
	case left.ok && right.ok && left.list == right.list:
		return left
	}
	return spread{all: known}
}

// give sets the list of the blocks from..to; it is that of the subtree of the
// given length that starts at the block source.
func (f *filler) give(from, to, source, bits int, list uint32) {
	for i := from; i < to; i++ {
		v := f.c.places.values[f.blocks[i].val]
		f.blocks[i].val = f.c.places.id(located{
			state: filled, list: list, rule: noRule, marks: v.marks, fences: v.fences, partials: v.partials,
		})
		if f.c.sources != nil {
			f.c.sources[f.blocks[i].start] = block{start: f.blocks[source].start, bits: uint8(bits)}
		}
	}
}
