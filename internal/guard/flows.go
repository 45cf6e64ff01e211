package guard

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// flows are what the clients of each list of a host get.
type flows struct {
	host     *plan.Host
	snapshot *steer.Snapshot
	regions  []int // by steer.Region: what it is called, an index of comparison.names
	size     int   // of comparison.names
	known    map[[2]int][]float64
}

// flows of a host; alias gives other names to some of its regions.
func (c *comparison) flows(h *plan.Host, s *steer.Snapshot, alias map[string]string) *flows {
	fl := &flows{host: h, snapshot: s, size: len(c.names), known: make(map[[2]int][]float64)}
	for _, r := range h.Need.Input.Regions {
		name := r.Name
		if other, ok := alias[name]; ok {
			name = other
		}
		fl.regions = append(fl.regions, c.name(name))
	}
	return fl
}

// tiny is a part that is nothing but the rounding of floating point numbers.
const tiny = 1e-7

// of is the part of the clients of a list that gets each region, by index of
// comparison.names.
func (fl *flows) of(list int, f steer.Family) []float64 {
	key := [2]int{list, int(f)}
	if parts := fl.known[key]; parts != nil {
		return parts
	}
	parts := make([]float64, fl.size)
	left := 1.0
	for r, part := range fl.host.Steer.Flow(fl.snapshot, list, f) {
		if part <= tiny {
			continue
		}
		to := shed
		if r < len(fl.regions) {
			to = fl.regions[r]
		}
		parts[to] += part
		left -= part
	}
	if left > tiny {
		parts[nowhere] = left
	}
	fl.known[key] = parts
	return parts
}

// change is what happens to the clients of an overlap that ask for a family.
type change struct {
	at            *overlap
	before, after []float64
	moves         []move
	lost          float64 // the parts of before that are less in after
}

// move is a part of the clients of an overlap that goes from one region to another.
type move struct {
	from, to int
	part     float64
}

// moved is the part of the clients that loses the region it had.
func (ch *change) moved() (part float64) {
	for _, m := range ch.moves {
		if m.from != nowhere {
			part += m.part
		}
	}
	return part
}

// differ works out who moves from the flows alone: what a region loses goes to those
// that gain, in proportion. No fewer can move, and as choices are made by threshold
// and by rendezvous no more do, unless several levers or an order change at once.
func (ch *change) differ() {
	for to := range ch.before {
		ch.lost += max(0, ch.before[to]-ch.after[to])
	}
	if ch.lost <= tiny {
		return
	}
	for from := range ch.before {
		loss := ch.before[from] - ch.after[from]
		if loss <= 0 {
			continue
		}
		for to := range ch.after {
			if gain := ch.after[to] - ch.before[to]; gain > 0 {
				ch.moves = append(ch.moves, move{from, to, loss * gain / ch.lost})
			}
		}
	}
}

// whole tells whether all clients get the same.
func whole(parts []float64) bool {
	for _, part := range parts {
		if part >= 1-tiny {
			return true
		}
	}
	return false
}

// Clients that a comparison asks for, in all hosts together and for one host and
// family.
const (
	allSamples   = 1 << 17
	leastSamples = 512
	mostSamples  = 8192
)

// changes are those of the overlaps of one host for a family. Where all clients have
// the same region before or after, flows tell exactly who moves. Elsewhere a sample of
// clients is asked, too, and counts if by that significantly more move.
func (c *comparison) changes(g *grid, before, after *flows, f steer.Family, demand []float64) []change {
	all := make([]change, len(g.overlaps))
	asked := make([][]move, len(all))
	var evidence [3]evidence // by blocks, by space and by demand
	total := sum(demand)
	for i, at := range g.overlaps {
		ch := change{at: at, before: before.of(at.was, f), after: after.of(at.is, f)}
		ch.differ()
		all[i] = ch
		if whole(ch.before) || whole(ch.after) || same(at, before, after) {
			continue
		}
		weights := [3]float64{ratio(at.blocks, g.blocks[at.group]) / groups, ratio(at.space, g.space[at.group]) / groups, ratio(g.part(at, demand), total)}
		n := max(16, int(slices.Max(weights[:])*float64(c.samples)))
		asked[i] = ask(at, before, after, f, n)
		sampled := change{moves: asked[i]}
		for k, w := range weights {
			evidence[k].add(w, ch.moved(), sampled.moved(), float64(n))
		}
	}
	if !evidence[0].significant() && !evidence[1].significant() && !evidence[2].significant() {
		return all
	}
	for i := range all {
		if asked[i] != nil {
			all[i].moves = asked[i]
		}
	}
	return all
}

// evidence is how much more of the clients move by a sample than by flows.
type evidence struct{ more, variance float64 }

// add adds a part of all clients, of which the part flow moves by flows, and asked by a
// sample of n.
func (e *evidence) add(weight, flow, asked, n float64) {
	e.more += weight * (asked - flow)
	e.variance += weight * weight * max(asked*(1-asked), 1/n) / n
}

func (e *evidence) significant() bool { return e.more > 4*math.Sqrt(e.variance) }

func sum(list []float64) (total float64) {
	for _, n := range list {
		total += n
	}
	return total
}

// same tells whether nothing can have changed for an overlap, or clients can't be
// asked: they take turns.
func same(at *overlap, before, after *flows) bool {
	return len(at.some.list) == 0 || before.host.Steer == after.host.Steer && before.snapshot == after.snapshot && at.was == at.is ||
		before.host.Config.Spread == config.Balanced || after.host.Config.Spread == config.Balanced
}

// ask has n clients decided for on both sides, and gives those who move.
func ask(at *overlap, before, after *flows, f steer.Family, n int) []move {
	counts := make(map[[2]int]int)
	for i := range n {
		p := at.some.list[i%len(at.some.list)]
		key := [2]int{before.decide(at.group/2, p, at.was, i, f), after.decide(at.group/2, p, at.is, i, f)}
		if key[0] != key[1] {
			counts[key]++
		}
	}
	moves := make([]move, 0, len(counts))
	for key, count := range counts {
		moves = append(moves, move{key[0], key[1], float64(count) / float64(n)})
	}
	slices.SortFunc(moves, func(a, b move) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }) // sums depend on it
	return moves
}

// decide gives what the n-th client of a block with a list gets: one that is where the
// block is, but whose choices are made as for an address drawn from all.
func (fl *flows) decide(view int, block netip.Prefix, list, n int, f steer.Family) int {
	var subnet netip.Prefix
	if view == subnets {
		subnet = block
	}
	c := fl.host.Locate(subnet, block.Addr())
	c.Addr = drawn(uint64(n), block.Addr().Is4())
	c.Transport, c.List = c.Addr, list
	d := fl.host.Steer.Decide(fl.snapshot, &c, f, nil)
	switch {
	case d.Shed:
		return shed
	case d.Region == steer.NoRegion:
		return nowhere
	}
	return fl.regions[d.Region]
}

// drawn is the n-th address of a fixed random sequence (splitmix64).
func drawn(n uint64, v4 bool) netip.Addr {
	x := (n + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	var b [16]byte
	for i := range 8 {
		b[i] = byte(x >> (8 * i))
	}
	if v4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b)
}
