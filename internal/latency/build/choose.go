package build

import (
	"math"
	"math/bits"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// What a decision goes by. The numbers are measured in docs/latency.md.
const (
	minGap       = 5.0  // milliseconds; less is no difference
	minGapPart   = 0.1  // the same, as a part of the better round trip
	emergencyGap = 30.0 // milliseconds; so much worse, as far as noise can tell, is acted on at once
	failedPart   = 0.05 // more failures than elsewhere, as a part of all, than a region may have
	failedCost   = 1000 // milliseconds that a failure counts when changes are ranked
	none         = 255  // no region
	withoutEntry = 1 << 63
)

// reason is why a prefix has the region it has.
type reason uint8

const (
	tooFew      reason = iota // samples, here and in what could be pooled
	disagreeing               // too few, and what is around differs
	unmeasured                // there are samples, but none of the region in use
	widespread                // a resolver of clients in many places
	near                      // the region in use is within tolerance of the best
	unproven                  // the best is better, but that may be chance
	better                    // the best is better
	urgent                    // and by much, or the one in use fails
	first                     // there is no region in use
	silent                    // nothing was measured of an entry of the previous map
	numReasons
)

var reasonNames = [numReasons]string{
	"too few samples", "too few samples, and neighbours disagree", "region in use not measured", "resolver of many places",
	"within tolerance", "not proven", "better", "emergency", "no region in use", "entry without measurements",
}

// leaf is a prefix that has measurements, and what may be chosen for it.
type leaf struct {
	key      key
	demand   uint32 // measurements, by weight
	entry    int32  // of the previous map, of which nothing was measured; else -1
	bits     uint8  // length of the prefix
	evidence int32  // index of its cells, divided by the number of regions; -1: none
	set      uint64 // regions that it may get, and withoutEntry
	stay     uint64 // the same, if it must not change
	spread   uint64 // regions that it may get along with its neighbours, if nothing is known of it
	gain     float32
	geo      uint8 // region that it has without a map, or none
	prev     uint8 // region of the previous map's entry, or none
	why      reason
	moves    bool
}

// current is the region in use.
func (l *leaf) current() uint8 {
	if l.prev != none {
		return l.prev
	}
	return l.geo
}

// chooser decides on the prefixes of one kind.
type chooser struct {
	o       *Options
	kind    Kind
	leaves  []leaf
	cells   []latency.Cell // of evidence: one for each region
	pools   []float64      // measurements that each evidence is of
	views   int            // of nodes
	first   int            // of them that is of a day
	before  *previous
	expired int // entries of before that are gone
	stored  stored
}

// stored is whose evidence was stored last.
type stored struct {
	n       *node
	at      key
	allowed uint64
	view    int
	index   int32
}

func newChooser(o *Options, k Kind) *chooser {
	return &chooser{o: o, kind: k, before: newPrevious(o, k)}
}

// newLeaf adds a leaf for a prefix.
func (c *chooser) newLeaf(n *node) (at int) {
	demand := 0.0
	for r := range n.stats[allDays] {
		s := &n.stats[allDays][r]
		demand += s.n + s.failed
	}
	l := leaf{key: n.at, demand: uint32(min(max(math.Round(demand), 1), math.MaxUint32)), entry: -1, bits: uint8(n.bits), evidence: -1, geo: none, why: tooFew}
	prefix := n.at.prefix(n.bits)
	l.prev = c.before.region(prefix)
	allowed := uint64(1)<<len(c.o.Regions) - 1
	if c.o.Geography != nil {
		order := c.o.Geography(c.kind, prefix)
		allowed = 0
		for _, r := range order {
			allowed |= 1 << r
		}
		if len(order) > 0 {
			l.geo = order[0]
		}
		if l.prev != none && allowed>>l.prev&1 == 0 { // it can't be had any more
			l.prev = none
		}
	}
	c.leaves = append(c.leaves, l)
	at = len(c.leaves) - 1
	c.keep(&c.leaves[at])
	c.leaves[at].spread = allowed // what it may get, while it waits for evidence and if there is none
	return at
}

// keep has a leaf stay where it is.
func (c *chooser) keep(l *leaf) {
	switch {
	case l.prev == none:
		l.stay = withoutEntry
		if l.geo != none {
			l.stay |= 1 << l.geo
		}
	case l.prev == l.geo:
		l.stay = withoutEntry | 1<<l.prev
	default:
		l.stay = 1 << l.prev
	}
	l.set, l.spread, l.moves = l.stay, 0, false
}

// disagree ends the wait of a leaf whose neighbours are unlike each other.
func (c *chooser) disagree(w *waiter) {
	if l := &c.leaves[w.at]; !w.decided {
		l.why, l.spread = disagreeing, 0
	}
}

// giveUp ends the wait of a leaf that never had evidence.
func (c *chooser) giveUp(w *waiter) {
	if l := &c.leaves[w.at]; l.why != tooFew {
		l.spread = 0
	}
}

// evidence is what a node says of the regions that a leaf may get.
type evidence struct {
	stats                 []stat
	enough, failing, near uint64 // regions; near is within tolerance of the best, and itself
	best                  int    // region, or -1
}

// weigh looks at the regions with enough samples. One that fails more than another,
// by failedPart of all, is never good.
func (c *chooser) weigh(stats []stat, allowed uint64) evidence {
	e := evidence{stats: stats, best: -1}
	least := float64(c.o.minSamples(c.kind))
	failed := math.Inf(1)
	for r := range stats {
		if s := &stats[r]; allowed>>r&1 == 1 && s.n+s.failed >= least {
			failed = min(failed, s.failed/(s.n+s.failed))
		}
	}
	for r := range stats {
		s := &stats[r]
		if allowed>>r&1 == 0 || s.n+s.failed < least {
			continue
		}
		switch {
		case s.failed/(s.n+s.failed) >= failed+failedPart:
			e.failing |= 1 << r
			e.enough |= 1 << r
		case s.n >= least:
			e.enough |= 1 << r
			if e.best < 0 || s.p75 < stats[e.best].p75 {
				e.best = r
			}
		}
	}
	if e.best >= 0 {
		limit := stats[e.best].p75 + tolerance(stats[e.best].p75)
		for r := range stats {
			if (e.enough&^e.failing)>>r&1 == 1 && stats[r].p75 < limit {
				e.near |= 1 << r
			}
		}
	}
	return e
}

// tolerance is how much worse than a round trip another may be and count as no worse.
func tolerance(ms float64) float64 { return max(minGap, minGapPart*ms) }

// ensure fills in what a node is sure of, where nothing in it is.
func (c *chooser) ensure(n *node) {
	for v := range c.views {
		if n.sure[v] == 0 {
			n.sure[v] = c.sure(n.stats[v])
		}
	}
}

// surely tells whether a region is slower than another beyond chance (95 %).
func (e *evidence) surely(slow, fast int) bool {
	ms, less, _ := gap(&e.stats[slow], &e.stats[fast])
	return ms > less
}

// sure gives the region that is clearly the best by some stats of a node, as a set.
func (c *chooser) sure(stats []stat) uint64 {
	e := c.weigh(stats, 1<<len(c.o.Regions)-1)
	if e.best < 0 || several(e.near) || bits.OnesCount64(e.enough) < 2 {
		return 0
	}
	for r := range e.stats {
		if r != e.best && (e.enough&^e.failing)>>r&1 == 1 && !e.surely(r, e.best) {
			return 0
		}
	}
	return e.near
}

// decide chooses for a leaf by the evidence of a node, its own or one around it. It is
// false if that isn't enough, or if nearer days are still to be looked for further up.
func (c *chooser) decide(w *waiter, n *node) (done bool) {
	l := &c.leaves[w.at]
	var e evidence
	if !w.decided {
		e = c.weigh(n.stats[allDays], w.allowed)
		if e.best < 0 || l.geo != none && (e.enough>>l.geo&1 == 0 || !several(e.enough)) {
			if e.best >= 0 && several(e.enough) {
				l.why = unmeasured
			}
			return false
		}
		if c.choose(l, &e); l.why == widespread {
			w.open = 0
		}
	}
	decided, open, view := w.decided, w.open, allDays
	w.decided = true
	recent, v, is := c.emergency(w, n)
	switch {
	case is:
		l.why, w.open = urgent, 0
		c.move(l, &recent)
		e, view = recent, v
	case w.stopgap && w.open < open:
		c.calmDown(w)
	case !decided && w.open == open && l.why != widespread:
		c.stopgap(w, &e)
	}
	if decided && !is {
		return w.open == 0
	}
	if s := (stored{n, n.at, w.allowed, view, 0}); s != c.stored.same() {
		s.index = c.store(&e)
		c.stored = s
	}
	l.evidence = c.stored.index
	return w.open == 0
}

// choose fills in what the leaf may get by all days.
func (c *chooser) choose(l *leaf, e *evidence) {
	c.keep(l)
	cur := l.current()
	switch {
	case c.kind == Resolvers && e.stats[e.best].p90-e.stats[e.best].p10 > c.o.ResolverSpread:
		c.leave(l)
	case cur == none:
		l.why, l.set, l.stay = first, e.near, e.near
	case e.enough>>cur&1 == 0:
		l.why = unmeasured
	case (e.near|e.failing)>>cur&1 == 1: // one that fails, but not on a recent day, is kept
		l.why = near
	case l.prev == none && !e.surely(int(cur), e.best):
		l.why = unproven
	default:
		l.why = better
		c.move(l, e)
	}
}

// move has a leaf get one of the regions near the best.
func (c *chooser) move(l *leaf, e *evidence) {
	cur := l.current()
	l.moves, l.set = true, e.near&^(1<<cur)
	if l.geo != none && l.set>>l.geo&1 == 1 {
		l.set |= withoutEntry
	}
	l.gain = float32(cost(&e.stats[cur]) - cost(&e.stats[e.best]))
}

// cost of a region, to rank changes by.
func cost(s *stat) float64 {
	if s.n+s.failed == 0 {
		return 0
	}
	return s.p75 + failedCost*s.failed/(s.n+s.failed)
}

// leave has a resolver do without an entry, since it is not one place.
func (c *chooser) leave(l *leaf) {
	l.why, l.set = widespread, withoutEntry
	if l.geo != none {
		l.set |= 1 << l.geo
	}
	l.moves = l.prev != none && l.prev != l.geo
	if l.geo == none {
		l.stay, l.moves = l.set, false
	}
}

// same is what must be equal for evidence to be the same.
func (s stored) same() stored { s.index = 0; return s }

// store keeps the cells of evidence.
func (c *chooser) store(e *evidence) int32 {
	at := int32(len(c.cells) / len(e.stats))
	pool := 0.0
	for r := range e.stats {
		pool += e.stats[r].n + e.stats[r].failed
	}
	c.pools = append(c.pools, pool)
	for r := range e.stats {
		var cell latency.Cell
		if s := &e.stats[r]; e.enough>>r&1 == 1 {
			cell = latency.Cell{
				P75: float32(s.p75), Samples: uint32(min(s.n, math.MaxUint32)), Failed: float32(s.failed / (s.n + s.failed)),
			}
		}
		c.cells = append(c.cells, cell)
	}
	return at
}
