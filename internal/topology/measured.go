package topology

// measured is a latency map as a layer. Its values are indexes into orders; 0
// stands for none.
type measured struct {
	layer
	orders [][]Region
	depth  int
}

// newMeasured reads a latency map; nil gives nil. Orders that are equal as far
// as the host has pools are one.
func newMeasured(in *Measured, regions []RegionInfo) *measured {
	if in == nil {
		return nil
	}
	m := &measured{orders: [][]Region{nil}, depth: in.Depth}
	ids := map[string]uint32{"": 0}
	vals := make([]uint32, len(in.Orders))
	for i, order := range in.Orders {
		var pooled []Region
		for _, r := range order {
			if regions[r].Pooled {
				pooled = append(pooled, r)
			}
		}
		id, ok := ids[string(pooled)]
		if !ok {
			id = uint32(len(m.orders))
			ids[string(pooled)] = id
			m.orders = append(m.orders, pooled)
		}
		vals[i] = id
	}
	for p, i := range in.Networks {
		f := familyOf(p.Addr())
		m.layer[f] = append(m.layer[f], block{keyOf(p.Addr()), uint8(p.Bits()), vals[i]})
	}
	return m
}

// reorder puts the regions of a list that were measured first, at most depth of
// them if that is above 0. It says no if there are none, of a refused list, and of one with a
// split that was written: its weights say who gets how much, such as a canary or a standby,
// and are no order.
func (l List) reorder(order []Region, depth int) (List, bool) {
	if len(l.Split) > 0 && !l.Tied {
		return l, false
	}
	tail := make([]Region, 0, len(l.Split)+len(l.Order))
	for _, w := range l.Split {
		tail = append(tail, w.Region)
	}
	tail = append(tail, l.Order...)
	rest := regionSet(tail)
	all := make([]Region, 0, len(tail))
	for _, r := range order {
		if rest.Has(r) && (depth == 0 || len(all) < depth) {
			all = append(all, r)
			rest.remove(r)
		}
	}
	if len(all) == 0 {
		return l, false
	}
	for _, r := range tail {
		if rest.Has(r) {
			all = append(all, r)
		}
	}
	l.Split, l.Tied, l.Order = nil, false, all
	return l, true
}
