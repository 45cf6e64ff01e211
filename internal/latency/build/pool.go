package build

import "slices"

// pooler takes cells in order and makes a leaf of each prefix. A prefix with too few
// samples is decided by those of the smallest prefix around it that has
// enough, unless parts of that one clearly disagree.
//
// Since cells come in the order of addresses, only the prefixes around the present
// one are open at any time.
type pooler struct {
	chooser *chooser
	weights [1 << dayBits]uint64 // by age
	newest  uint16
	recent  []uint16 // days with a view of their own, newest first
	leaf    node     // the present prefix
	up      []*node  // around it, longest first
	pending []waiter // leaves without evidence, or not yet of the newest days
}

// node is a prefix with all that was measured below it.
type node struct {
	open    bool
	at      key
	bits    int
	regions uint64            // that have any
	tallies [maxViews][]tally // by region
	stats   [maxViews][]stat  // by region, once closed
	sure    [maxViews]uint64  // regions that are clearly the best somewhere in it
	first   int               // where its leaves begin in pending
}

// Views of the measurements: all of them, weighed by age, and those of each of the
// newest days. Which of these a prefix is judged by depends on where it has enough: so neither the
// first minutes of a day nor a line with a wrong date hide what yesterday showed.
const (
	allDays = iota
	firstDay
	maxViews = firstDay + recentDays
)

// recentDays is how many of the newest days emergencies are looked for on. Days
// with less than thinDay of what the fullest one has aren't among them.
const (
	recentDays = 3
	thinDay    = 0.01
)

// recent gives the days to look for emergencies on, newest first; none if there is but
// one day, which is all days then.
func (b *Builder) recent() (days []uint16) {
	if b.oldest >= b.newest {
		return nil
	}
	sums, most := [1 << dayBits]uint64{}, uint64(0)
	for d := range sums {
		for _, w := range b.workers {
			sums[d] += w.days[d]
		}
		most = max(most, sums[d])
	}
	for d := int(b.newest); d >= int(b.oldest) && len(days) < recentDays; d-- {
		if sums[d] > 0 && float64(sums[d]) >= thinDay*float64(most) {
			days = append(days, uint16(d))
		}
	}
	return days
}

// step is by how many bits prefixes get shorter while pooling, by family.
var step = [2]int{2, 4}

func newPooler(c *chooser, halfLifeDays float64, newest uint16, recent []uint16) *pooler {
	c.views, c.first = firstDay+len(recent), firstDay
	if len(recent) == 0 {
		c.first = allDays
	}
	return &pooler{chooser: c, weights: weights(halfLifeDays), newest: newest, recent: recent}
}

func (p *pooler) newNode(bits int) *node {
	n := &node{bits: bits}
	for v := range p.chooser.views {
		n.tallies[v] = make([]tally, len(p.chooser.o.Regions))
		n.stats[v] = make([]stat, len(p.chooser.o.Regions))
	}
	return n
}

// add takes in a cell.
func (p *pooler) add(c *cell) {
	if !p.leaf.open || p.leaf.at != c.key {
		p.closeLeaf()
		p.enter(c.key)
	}
	p.leaf.regions |= 1 << c.region
	weight := max(1, p.weights[p.newest-c.day])
	p.leaf.tallies[allDays][c.region].addCell(c, weight)
	if i := slices.Index(p.recent, c.day); i >= 0 {
		p.leaf.tallies[firstDay+i][c.region].addCell(c, weightOne)
	}
}

func (t *tally) addCell(c *cell, weight uint64) {
	t.failed += c.failed * weight
	for _, p := range c.points {
		if c.binned {
			t.addBins(int(p.value), p.n, weight)
		} else {
			t.add(p.value, p.n, weight)
		}
	}
}

// enter opens a prefix and those around it, after closing those that it is not in.
func (p *pooler) enter(k key) {
	for i, n := range p.up {
		if n.open && n.at != k.cut(n.bits) {
			p.close(i)
		}
	}
	if p.leaf.at>>familyBit != k>>familyBit || p.up == nil {
		p.family(k)
	}
	for _, n := range p.up {
		if !n.open {
			n.open, n.at, n.first = true, k.cut(n.bits), len(p.pending)
		}
	}
	p.leaf.open, p.leaf.at = true, k
}

// family makes the nodes for the keys of a kind and family.
func (p *pooler) family(k key) {
	o := p.chooser.o
	family := 0
	if k.is6() {
		family = 1
	}
	p.leaf = *p.newNode(o.longest(k))
	p.up = []*node{}
	shortest := o.shortest(k)
	for bits := p.leaf.bits; bits > shortest; {
		bits = max(bits-step[family], shortest)
		p.up = append(p.up, p.newNode(bits))
	}
}

// closeLeaf ends the present prefix.
func (p *pooler) closeLeaf() {
	n := &p.leaf
	if !n.open {
		return
	}
	n.finish(p.chooser.views)
	at := p.chooser.newLeaf(n)
	p.chooser.ensure(n)
	if w := p.chooser.newWaiter(at, n); !p.chooser.decide(&w, n) {
		p.pending = append(p.pending, w)
	}
	p.drop(0, 0)
	p.pass(n, 0)
}

// close ends a prefix around others, and gives evidence to those that wait.
func (p *pooler) close(i int) {
	n := p.up[i]
	waiting := p.pending[n.first:]
	n.finish(p.chooser.views)
	p.chooser.ensure(n)
	if several(n.sure[allDays]) {
		for i := range waiting {
			p.chooser.disagree(&waiting[i])
		}
		p.pending = p.pending[:n.first]
	} else {
		left := waiting[:0]
		for i := range waiting {
			if w := &waiting[i]; !p.chooser.decide(w, n) {
				left = append(left, *w)
			}
		}
		p.pending = p.pending[:n.first+len(left)]
	}
	p.drop(i+1, n.first)
	p.pass(n, i+1)
}

// drop gives up on leaves when no node is around them any more.
func (p *pooler) drop(to, first int) {
	if to < len(p.up) {
		return
	}
	for i := range p.pending[first:] {
		p.chooser.giveUp(&p.pending[first+i])
	}
	p.pending = p.pending[:first]
}

// pass adds a closed node to the one around it and empties it.
func (p *pooler) pass(n *node, to int) {
	for r := range n.tallies[allDays] {
		if n.regions>>r&1 == 0 {
			continue
		}
		for v := range p.chooser.views {
			if to < len(p.up) {
				p.up[to].tallies[v][r].merge(&n.tallies[v][r])
			}
			n.tallies[v][r].reset()
			n.stats[v][r] = stat{}
		}
	}
	if to < len(p.up) {
		p.up[to].regions |= n.regions
		for v := range p.chooser.views {
			p.up[to].sure[v] |= n.sure[v]
		}
	}
	n.open, n.regions, n.sure = false, 0, [maxViews]uint64{}
}

func (n *node) finish(views int) {
	for r := range n.tallies[allDays] {
		if n.regions>>r&1 == 1 {
			for v := range views {
				n.stats[v][r] = n.tallies[v][r].stat()
			}
		}
	}
}

// end closes what is open.
func (p *pooler) end() {
	p.closeLeaf()
	for i, n := range p.up {
		if n.open {
			p.close(i)
		}
	}
}

// several tells whether more than one bit is set.
func several(set uint64) bool { return set&(set-1) != 0 }
