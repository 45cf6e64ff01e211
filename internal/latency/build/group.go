package build

// grouper makes one cell for each prefix, region and day of sorted records and
// cells. Of each source, no more records count than its cap.
type grouper struct {
	records *merger[record]
	cells   *merger[cell]
	caps    [2]int // by kind; 0: none
	sum     tally
	source  sampler
	out     cell
	capped  [2]uint64 // records beyond a cap, by kind
}

// next gives the next cell, valid until the next call; nil at the end.
func (g *grouper) next() (*cell, error) {
	r, c := g.records.peek(), g.cells.peek()
	if r == nil && c == nil {
		if g.records.err != nil {
			return nil, g.records.err
		}
		return nil, g.cells.err
	}
	var k key
	var order uint64
	if r != nil {
		k, order = r.key, r.cell()
	}
	if r == nil || c != nil && (c.key < k || c.key == k && c.order() < order) {
		k, order = c.key, c.order()
	}
	g.sum.reset()
	for ; r != nil && r.key == k && r.cell() == order; r = g.records.peek() {
		g.addSource(r)
	}
	for ; c != nil && c.key == k && c.order() == order; c = g.cells.peek() {
		g.addCell(c)
		g.cells.skip()
	}
	g.finish(k, order)
	return &g.out, nil
}

// addSource counts the records of one source, as many as its cap has it.
func (g *grouper) addSource(r *record) {
	k, source := r.key, r.source()
	limit := g.caps[k.kind()]
	g.source.reset(limit)
	for ; r != nil && r.key == k && r.source() == source; r = g.records.peek() {
		g.source.add(*r)
		g.records.skip()
	}
	for _, r := range g.source.pick() {
		if r.failed() {
			g.sum.failed++
		} else {
			g.sum.add(r.units(), 1, 1)
		}
	}
	g.capped[k.kind()] += g.source.left()
}

func (g *grouper) addCell(c *cell) {
	g.sum.failed += c.failed
	for _, p := range c.points {
		if c.binned {
			g.sum.addBins(int(p.value), p.n, 1)
		} else {
			g.sum.add(p.value, p.n, 1)
		}
	}
}

func (g *grouper) finish(k key, order uint64) {
	c := &g.out
	*c = cell{
		key: k, region: uint8(order >> dayBits), day: uint16(order & (1<<dayBits - 1)),
		binned: g.sum.binned, failed: g.sum.failed, points: c.points[:0],
	}
	if !c.binned {
		g.sum.sort()
		for _, s := range g.sum.samples {
			c.addPoint(s.units, 1)
		}
		return
	}
	for bin := g.sum.low; bin < g.sum.high; bin++ {
		if n := g.sum.bins[bin]; n > 0 {
			c.points = append(c.points, point{uint32(bin), n})
		}
	}
}

// sampler takes records in order and picks a number of them that are evenly spaced, so
// that what a source with too many of them says stays the same. It holds few of
// many: beyond samplerSize it keeps every second, then every fourth, and so on.
type sampler struct {
	limit  int
	kept   []record
	stride uint64
	seen   uint64
	taken  uint64
}

const samplerSize = 1 << 12

func (s *sampler) reset(limit int) {
	*s = sampler{limit: limit, kept: s.kept[:0], stride: 1}
}

func (s *sampler) add(r record) {
	if s.seen%s.stride == 0 {
		s.kept = append(s.kept, r)
	}
	s.seen++
	if s.limit > 0 && len(s.kept) == max(samplerSize, 2*s.limit) {
		for i := range len(s.kept) / 2 {
			s.kept[i] = s.kept[2*i]
		}
		s.kept = s.kept[:len(s.kept)/2]
		s.stride *= 2
	}
}

func (s *sampler) pick() []record {
	if n := len(s.kept); s.limit > 0 && n > s.limit {
		for i := range s.limit {
			s.kept[i] = s.kept[(2*i+1)*n/(2*s.limit)]
		}
		s.kept = s.kept[:s.limit]
	}
	s.taken = uint64(len(s.kept))
	return s.kept
}

func (s *sampler) left() uint64 { return s.seen - s.taken }
