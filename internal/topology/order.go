package topology

import (
	"encoding/binary"
	"math"
	"slices"
)

// orders makes candidate lists and gives equal ones one number.
type orders struct {
	regions []RegionInfo
	depth   int
	points  []point // by region; valid when Located
	ids     map[string]uint32
	lists   []List
	plain   []uint32          // by list: the first one that differs from it in marks alone
	plains  map[string]uint32 // those
	most    int               // lists that there may be
	full    bool              // there were more
	key     []byte            // scratch
}

func newOrders(in *Input) *orders {
	o := &orders{regions: in.Regions, depth: in.Depth, most: maxLists, ids: make(map[string]uint32), plains: make(map[string]uint32)}
	for _, r := range in.Regions {
		o.points = append(o.points, pointOf(r.Lat, r.Lon))
	}
	return o
}

// id interns a list. Once there are too many it gives any.
func (o *orders) id(l List) uint32 {
	o.key = l.appendKey(o.key[:0])
	if id, ok := o.ids[string(o.key)]; ok {
		return id
	}
	if len(o.lists) == o.most {
		o.full = true
		return 0
	}
	id := uint32(len(o.lists))
	o.ids[string(o.key)] = id
	o.lists = append(o.lists, l)
	l.Marks = 0
	o.key = l.appendKey(o.key[:0])
	plain, ok := o.plains[string(o.key)]
	if !ok {
		plain = id
		o.plains[string(o.key)] = id
	}
	o.plain = append(o.plain, plain)
	return id
}

// appendKey writes the list so that different lists differ.
func (l *List) appendKey(b []byte) []byte {
	b = append(b, byte(len(l.Split)))
	for _, w := range l.Split {
		b = append(b, w.Region)
		b = binary.BigEndian.AppendUint32(b, w.Weight)
	}
	b = append(b, byte(len(l.Order)))
	b = append(b, l.Order...)
	if l.Tied {
		b = append(b, 't')
	}
	if l.Refuse {
		b = append(b, 'r')
	}
	if l.Fenced {
		b = append(b, 'f')
		for _, w := range l.Allowed {
			b = binary.BigEndian.AppendUint64(b, w)
		}
	}
	if l.Marks != 0 {
		b = append(b, 'm')
		b = binary.BigEndian.AppendUint64(b, l.Marks)
	}
	return b
}

// written gives the list for a spec, restricted to the regions with a pool.
func (o *orders) written(s Spec) List {
	if s.Refuse {
		return List{Refuse: true}
	}
	if s.Near != nil {
		return o.near(*s.Near)
	}
	l := List{}
	var seen RegionSet
	for _, w := range s.Split {
		if o.regions[w.Region].Pooled {
			l.Split = append(l.Split, w)
			seen.Add(w.Region)
		}
	}
	for _, r := range s.Order {
		if o.regions[r].Pooled && !seen.Has(r) {
			l.Order = append(l.Order, r)
			seen.Add(r)
		}
	}
	if s.Rest {
		l.Order = o.appendRest(l.Order, seen)
	}
	return l.tidy()
}

// appendRest adds the regions not seen, in the order written.
func (o *orders) appendRest(order []Region, seen RegionSet) []Region {
	for r := range o.regions {
		if o.regions[r].Pooled && !seen.Has(Region(r)) {
			order = append(order, Region(r))
		}
	}
	return order
}

// near is the list of a region's own clients: the region, then the others by
// distance from it when it has a location, else in the order written.
func (o *orders) near(r Region) List {
	if o.regions[r].Located {
		return o.byDistance(o.points[r], &r)
	}
	return o.written(Spec{Order: []Region{r}, Rest: true})
}

// byDistance is the order of regions by great-circle distance from a point,
// cut at depth regions; the others follow in the order written, those without
// a location among them. Regions at equal least distance share the clients.
// first, if given, comes before all others: from is its own location.
func (o *orders) byDistance(from point, first *Region) List {
	type near struct {
		r Region
		d float64
	}
	var nearest []near
	l := List{}
	var seen RegionSet
	if first != nil && o.regions[*first].Pooled {
		l.Order = append(l.Order, *first)
		seen.Add(*first)
	}
	for r := range o.regions {
		if info := &o.regions[r]; info.Pooled && info.Located && !seen.Has(Region(r)) {
			nearest = append(nearest, near{Region(r), from.metres(o.points[r])})
		}
	}
	slices.SortStableFunc(nearest, func(a, b near) int {
		switch {
		case a.d < b.d:
			return -1
		case a.d > b.d:
			return 1
		}
		return int(a.r) - int(b.r)
	})
	keep := max(0, o.depth-len(l.Order))
	for i, n := range nearest {
		tied := first == nil && n.d == nearest[0].d
		switch {
		case tied && len(nearest) > 1 && nearest[1].d == nearest[0].d:
			l.Split, l.Tied = append(l.Split, Weighted{n.r, 1}), true
		case i < keep:
			l.Order = append(l.Order, n.r)
		default:
			continue
		}
		seen.Add(n.r)
	}
	l.Order = o.appendRest(l.Order, seen)
	return l.tidy()
}

// tidy turns a split of one region, or of standbys alone, into the first of the order:
// there is nothing to choose by weight.
func (l List) tidy() List {
	weighted := slices.ContainsFunc(l.Split, func(w Weighted) bool { return w.Weight > 0 })
	if n := len(l.Split); n == 1 || n > 0 && !weighted {
		order := make([]Region, 0, len(l.Split)+len(l.Order))
		for _, w := range l.Split {
			order = append(order, w.Region)
		}
		l.Split, l.Tied, l.Order = nil, false, append(order, l.Order...)
	}
	return l
}

// Reaches tells whether any region is left for the list's clients.
func (l *List) Reaches() bool { return l.Refuse || len(l.Split)+len(l.Order) > 0 }

// fenced confines a list to the regions of fences. If the list names none of
// them, they serve in the order of the first fence.
func (o *orders) fenced(l List, fences []*Fence) (List, *FenceError) {
	if len(fences) == 0 || l.Refuse {
		return l, nil
	}
	allowed := regionSet(fences[0].Regions)
	for _, f := range fences[1:] {
		other := regionSet(f.Regions)
		for i := range allowed {
			allowed[i] &= other[i]
		}
	}
	cut := List{Tied: l.Tied, Fenced: true, Allowed: allowed}
	for _, w := range l.Split {
		if allowed.Has(w.Region) {
			cut.Split = append(cut.Split, w)
		}
	}
	for _, r := range l.Order {
		if allowed.Has(r) {
			cut.Order = append(cut.Order, r)
		}
	}
	if !cut.Reaches() {
		for _, r := range fences[0].Regions {
			if allowed.Has(r) && o.regions[r].Pooled {
				cut.Order = append(cut.Order, r)
			}
		}
	}
	if !cut.Reaches() {
		return cut, &FenceError{Fences: fences}
	}
	return cut.tidy(), nil
}

func regionSet(rs []Region) RegionSet {
	var s RegionSet
	for _, r := range rs {
		s.Add(r)
	}
	return s
}

// point is a place on the unit sphere.
type point struct{ x, y, z float64 }

func pointOf(lat, lon float64) point {
	la, lo := lat*math.Pi/180, lon*math.Pi/180
	return point{
		math.Cos(la) * math.Cos(lo),
		math.Cos(la) * math.Sin(lo),
		math.Sin(la),
	}
}

// metres is the straight line between two points, which orders them as their
// great-circle distance does. It is rounded, so that every machine finds the
// same order and equal places are equal.
func (p point) metres(q point) float64 {
	dx, dy, dz := p.x-q.x, p.y-q.y, p.z-q.z
	d2 := float64(dx*dx) + float64(dy*dy) + float64(dz*dz)
	return math.Round(math.Sqrt(d2) * 6371000)
}
