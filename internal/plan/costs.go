package plan

import (
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// What the way between two places costs where nobody measured it, in milliseconds of
// round trip.
const (
	// perKilometre: light in fibre makes 100 km there and back in a millisecond, and
	// measured round trips take 2.1 times as long as that over the great circle (Bozkurt et
	// al., Dissecting Latency in the Internet's Fiber Infrastructure, 2018).
	perKilometre = 0.02
	// Unplaced is the way to or from a place of which nothing is known: 3000 km.
	Unplaced = 60
	// least is by how much a candidate costs more than the one before it: an order that
	// is not by cost was written, and holds.
	least = perKilometre
)

// costs is what candidates cost the clients of a topology's lists, in milliseconds of
// round trip.
type costs struct {
	apart [][]float64 // by region and region: estimated by distance; NaN: not known
	lists []listCosts // nil: nothing was measured
}

// listCosts is what a latency map says of a list's clients.
type listCosts struct {
	rtt   []float32 // by region: the mean p75, for regions with a pool; nil: nothing was measured
	known float64   // part of the clients, 0..1, that this is of
}

// Costs are what regions cost the clients of a list who go through them in this order,
// in milliseconds of round trip, never less than the one before; only their differences
// mean something. For clients that a latency map has measurements of, it is their mean p75;
// for the others, what the way from the first region adds.
func (n *Need) Costs(list int, regions []steer.Region) []float64 {
	var measured listCosts
	if n.costs.lists != nil {
		measured = n.costs.lists[list]
	}
	costs := make([]float64, len(regions))
	way := 0.0
	for i, r := range regions {
		if i > 0 {
			if d := n.costs.apart[regions[0]][r]; math.IsNaN(d) {
				way += Unplaced
			} else {
				way = max(d, way+least)
			}
		}
		costs[i] = way
		if measured.rtt != nil { // products are rounded, so that every machine finds the same
			costs[i] = float64(measured.known*float64(measured.rtt[r])) + float64((1-measured.known)*way)
		}
		if i > 0 {
			costs[i] = max(costs[i], costs[i-1]+least)
		}
	}
	return costs
}

// waysBetween estimates the round trips between regions.
func waysBetween(regions []config.Region) [][]float64 {
	apart := make([][]float64, len(regions))
	for i := range regions {
		apart[i] = make([]float64, len(regions))
		for j := range regions {
			apart[i][j] = math.NaN()
			if a, b := regions[i].Location, regions[j].Location; a != nil && b != nil {
				apart[i][j] = perKilometre * float64(Kilometres(a.Lat, a.Lon, b.Lat, b.Lon))
			}
		}
	}
	return apart
}

// costs works out what a map says of the lists of a topology.
//
// A list's mean is over the entries that hold its clients, whatever decided on the list, by
// their demand and, where an entry has several lists, the part of its addresses. Where an
// entry lacks a region, it is as far as the best one, and the way from there.
//
// Of whom no entry holds, no demand is known, so addresses tell how many they are: those
// of IPv4, if there are any, since IPv6 is so empty that its addresses tell nothing. As
// client subnets and as resolvers the same users are seen, so who is known as either is known.
func (c *compiler) costs(in *topology.Input, t *topology.Topology, m *latencyMap) costs {
	if m == nil || m.file.clients.cells == nil && m.file.resolvers.cells == nil {
		return costs{apart: c.apart}
	}
	w := weigher{regions: in.Regions, ids: m.ids, apart: c.apart, lists: make([]tally, len(t.Lists))}
	w.weigh(t, false, &m.file.clients) // with ecs off, all is one block, and as special as what lies in it
	w.weigh(t, true, &m.file.resolvers)
	return costs{c.apart, w.means()}
}

// weigher adds up what entries say of the clients of lists.
type weigher struct {
	regions []topology.RegionInfo
	ids     []topology.Region // of the map's regions
	apart   [][]float64
	lists   []tally
}

// tally is about the clients of one list.
type tally struct {
	demand float64    // of the entries that hold them
	rtt    []float64  // by region: p75 times demand
	space  [2]float64 // by family: part of all addresses that are the list's, in one view
	held   [2]float64 // and that entries hold
	known  float64    // part of the clients that entries hold
}

// weigh goes through blocks and entries, both of which are in address order: one of
// the two holds the other, or they don't meet.
func (w *weigher) weigh(t *topology.Topology, full bool, s *mapSide) {
	e := cursor{side: s}
	e.load()
	for p, list := range t.Ordinary(full) {
		l, f, size := &w.lists[list], family(p), math.Ldexp(1, -p.Bits())
		l.space[f] += size
		for e.ok && e.prefix.Addr().Less(p.Addr()) && !e.prefix.Contains(p.Addr()) {
			e.next()
		}
		for e.ok && e.prefix.Overlaps(p) {
			if e.prefix.Bits() <= p.Bits() {
				w.add(l, &e, f, size)
				break // the next block may lie in it, too
			}
			w.add(l, &e, f, math.Ldexp(1, -e.prefix.Bits()))
			e.next()
		}
	}
	for i := range w.lists {
		w.lists[i].endView()
	}
}

func (l *tally) endView() {
	f := steer.V4
	if l.space[f] == 0 {
		f = steer.V6
	}
	if l.held[f] > 0 {
		l.known = max(l.known, min(1, l.held[f]/l.space[f]))
	}
	l.space, l.held = [2]float64{}, [2]float64{}
}

func family(p netip.Prefix) steer.Family {
	if p.Addr().Is4() {
		return steer.V4
	}
	return steer.V6
}

// add takes an entry into account that holds a list's clients in so much of the
// address space.
func (w *weigher) add(l *tally, e *cursor, f steer.Family, size float64) {
	cells := e.cells()
	if cells == nil {
		return
	}
	l.held[f] += size
	demand := float64(cells[0].float() * math.Ldexp(size, e.prefix.Bits()))
	l.demand += demand
	if l.rtt == nil {
		l.rtt = make([]float64, len(w.regions))
	}
	var has topology.RegionSet
	best, from := 0.0, topology.Region(0)
	for i, r := range e.order() {
		if p75 := cells[1+i].float(); p75 > 0 {
			id := w.ids[r]
			if best == 0 {
				best, from = p75, id
			}
			has.Add(id)
			l.rtt[id] += float64(demand * p75)
		}
	}
	for r := range w.regions {
		if id := topology.Region(r); w.regions[r].Pooled && !has.Has(id) {
			way := w.apart[from][id]
			if math.IsNaN(way) {
				way = Unplaced
			}
			l.rtt[r] += float64(demand * (best + way))
		}
	}
}

// means are what the tallies come to.
func (w *weigher) means() []listCosts {
	lists := make([]listCosts, len(w.lists))
	for i := range w.lists {
		l := &w.lists[i]
		if l.known == 0 {
			continue
		}
		lists[i] = listCosts{make([]float32, len(l.rtt)), l.known}
		for r, sum := range l.rtt {
			lists[i].rtt[r] = float32(sum / l.demand)
		}
	}
	return lists
}

// appendKey writes what was measured so that different costs differ.
func (c *costs) appendKey(b []byte) []byte {
	for i := range c.lists {
		if l := &c.lists[i]; l.rtt != nil {
			b = binary.BigEndian.AppendUint32(b, uint32(i))
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(l.known))
			for _, rtt := range l.rtt {
				b = binary.BigEndian.AppendUint32(b, math.Float32bits(rtt))
			}
		}
	}
	return b
}

// cursor reads the entries of a side in turn.
type cursor struct {
	side   *mapSide
	i      int
	at     int // of its cells
	about  about
	prefix netip.Prefix
	ok     bool // there is an entry
}

func (c *cursor) next() {
	c.at += 1 + len(c.order())
	c.i++
	c.load()
}

func (c *cursor) load() {
	if c.ok = c.i < c.side.entries(); c.ok {
		c.prefix, c.about = c.side.entry(c.i)
	}
}

func (c *cursor) order() []uint8 { return c.side.orders[c.about.order()] }

// cells are the demand of the entry, and the p75 of each region of its order; nil if
// nothing was measured.
func (c *cursor) cells() []short {
	if c.side.cells == nil || c.side.cells[c.at] == 0 {
		return nil
	}
	return c.side.cells[c.at : c.at+1+len(c.order())]
}

// short is a number of 0 or more in little room: the upper half of a float32, which is
// within 0.4 %.
type short uint16

func shortOf(f float32) short { return short((math.Float32bits(f) + 1<<15) >> 16) }

func (s short) float() float64 { return float64(math.Float32frombits(uint32(s) << 16)) }

// cellsOf is how many cells a side of a map has; 0: it has no measurements.
func cellsOf(entries []latency.Entry) (n int) {
	measured := false
	for i := range entries {
		measured = measured || entries[i].Cells != nil
		n += 1 + len(entries[i].Order)
	}
	if !measured {
		return 0
	}
	return n
}

// appendCells adds those of an entry. With a p75 it has some demand, whatever its samples.
func appendCells(cells []short, e *latency.Entry) []short {
	at := len(cells)
	cells = append(cells, 0)
	for i := range e.Order {
		p75 := short(0)
		if e.Cells != nil {
			p75 = shortOf(e.Cells[i].P75)
		}
		if p75 > 0 {
			cells[at] = shortOf(float32(max(1, e.Demand())))
		}
		cells = append(cells, p75)
	}
	return cells
}
