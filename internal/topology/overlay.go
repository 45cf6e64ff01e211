package topology

// cursor reads a layer's blocks of one family in address order.
type cursor struct {
	blocks []block
	i      int
}

// at gives the layer's value over the prefix k/bits, and whether it is
// constant there. Prefixes must be asked in address order, parents before
// children.
func (c *cursor) at(k key, bits int) (val uint32, constant bool) {
	for c.i+1 < len(c.blocks) && !k.less(c.blocks[c.i+1].start) {
		c.i++
	}
	if c.i >= len(c.blocks) {
		return 0, true
	}
	b := &c.blocks[c.i]
	if b.start.covers(int(b.bits), k) {
		return b.val, int(b.bits) <= bits
	}
	if b.start.less(k) { // ended before k
		if c.i+1 == len(c.blocks) {
			return 0, true
		}
		b = &c.blocks[c.i+1]
	}
	return 0, !k.covers(bits, b.start)
}

// overlay folds several layers into one: the space is cut where any layer
// changes, each piece gets the value that classify makes of the layers'
// values there, and equal siblings are merged. The result is prefix-free, without
// gaps, in address order, and has the fewest blocks that hold the values. The
// lowest loose bits of a value don't hold blocks apart: those that most of a block
// has stay.
type overlay struct {
	cursors  []cursor
	vals     []uint32
	loose    uint
	classify func(vals []uint32, k key, bits int) uint32
	width    int
	out      []block
}

// fold overlays the layers of one family.
func fold(family int, loose uint, classify func(vals []uint32, k key, bits int) uint32, layers ...*layer) []block {
	o := &overlay{
		cursors:  make([]cursor, len(layers)),
		vals:     make([]uint32, len(layers)),
		loose:    loose,
		classify: classify,
		width:    widths[family],
	}
	for i, l := range layers {
		o.cursors[i].blocks = l[family]
	}
	if v, _, uniform := o.descend(key{}, 0); uniform {
		o.out = append(o.out, block{val: v})
	}
	return o.out
}

// descend folds the prefix k/bits. A uniform result is left to the caller to
// put out, so that it can still be merged with its sibling. margin is the lead
// of val over values that differ from it in their loose bits, as a share of the
// prefix: those vote by the size of their pieces, and each cancels an equal size
// of others, so that a value which most of the prefix has comes through.
func (o *overlay) descend(k key, bits int) (val uint32, margin float64, uniform bool) {
	constant := true
	for i := range o.cursors {
		v, c := o.cursors[i].at(k, bits)
		o.vals[i] = v
		constant = constant && c
	}
	if constant || bits == o.width {
		return o.classify(o.vals, k, bits), 1, true
	}
	right := k.withBit(bits)
	lv, lm, lu := o.descend(k, bits+1)
	if lu {
		o.out = append(o.out, block{k, uint8(bits + 1), lv})
	}
	rv, rm, ru := o.descend(right, bits+1)
	if lu && ru && lv>>o.loose == rv>>o.loose {
		o.out = o.out[:len(o.out)-1]
		switch {
		case lv == rv:
			return lv, (lm + rm) / 2, true
		case lm > rm || lm == rm && lv > rv:
			return lv, (lm - rm) / 2, true
		}
		return rv, (rm - lm) / 2, true
	}
	if ru {
		o.out = append(o.out, block{right, uint8(bits + 1), rv})
	}
	return 0, 0, false
}
