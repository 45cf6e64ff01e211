package guard

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/steer"
)

// tally adds up what moves of one kind of clients.
type tally struct {
	total, moved  float64
	before, after []float64 // by index of comparison.names
	moves         map[[2]int]float64
}

// add adds an amount of clients to whom a change happens.
func (t *tally) add(amount float64, ch *change) {
	if amount == 0 {
		return
	}
	if t.moves == nil {
		t.before, t.after, t.moves = make([]float64, len(ch.before)), make([]float64, len(ch.after)), make(map[[2]int]float64)
	}
	t.total += amount
	for i := range ch.before {
		t.before[i] += amount * ch.before[i]
		t.after[i] += amount * ch.after[i]
	}
	for _, m := range ch.moves {
		t.moves[[2]int{m.from, m.to}] += amount * m.part
		if m.from != nowhere {
			t.moved += amount * m.part
		}
	}
}

// add adds the clients of an overlap that ask for a family.
func (c *comparison) add(at *overlap, f steer.Family, ch *change) {
	kind := 2*at.group + int(f)
	c.blocks[kind].add(at.blocks, ch)
	c.space[kind].add(at.space, ch)
}

// few is the part of all blocks below which a kind of them has no say: a family that
// location data hardly knows is a few large blocks, and one region has them all.
const few = 0.01

// worst is the kind of blocks, or of space, of which the greatest part moves, of those
// with at least so much; of several, the one with most. Without any it has no name.
func worst(all *[groups * 2]tally, least float64) (kind string, best *tally) {
	at := 0
	best = &tally{}
	for i := range all {
		t := &all[i]
		a, b := ratio(t.moved, t.total), ratio(best.moved, best.total)
		if t.total >= least && (a > b+tiny || a > b-tiny && t.total > best.total) {
			at, best = i, t
		}
	}
	if best.total == 0 {
		return "", best
	}
	return kinds[at], best
}

// kinds name the kinds of blocks.
var kinds = [groups * 2]string{
	"IPv4 clients asking for A", "IPv4 clients asking for AAAA", "IPv6 clients asking for A", "IPv6 clients asking for AAAA",
	"IPv4 resolvers asking for A", "IPv4 resolvers asking for AAAA", "IPv6 resolvers asking for A", "IPv6 resolvers asking for AAAA",
}

// report puts the sums into their final form.
func (c *comparison) report() *Report {
	all := 0.0
	for i := range c.blocks {
		all += c.blocks[i].total
	}
	kind, blocks := worst(&c.blocks, few*all)
	spaceKind, space := worst(&c.space, 0)
	demand := &c.demand
	r := &Report{
		Kind: kind, Blocks: ratio(blocks.moved, blocks.total), Demand: ratio(demand.moved, demand.total),
		SpaceKind: spaceKind, Space: ratio(space.moved, space.total), Subnets: c.subnets,
		Known: demand.total > 0, Total: c.total,
		Hosts: c.hosts, Stranded: c.left, served: c.served,
	}
	for i := range c.blocks {
		if t := &c.blocks[i]; t.total > 0 {
			r.Kinds = append(r.Kinds, Kind{kinds[i], ratio(t.total, all), ratio(t.moved, t.total)})
		}
	}
	pairs := make(map[[2]int]float64)
	for _, t := range []*tally{blocks, space, demand} {
		maps.Copy(pairs, t.moves)
	}
	for key := range pairs {
		r.Moves = append(r.Moves, Move{
			From: c.names[key[0]], To: c.names[key[1]],
			Blocks: ratio(blocks.moves[key], blocks.total), Space: ratio(space.moves[key], space.total), Demand: ratio(demand.moves[key], demand.total),
		})
	}
	slices.SortFunc(r.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.Blocks+b.Demand, a.Blocks+a.Demand), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for i, name := range c.names {
		s := Share{
			name, ratio(at(blocks.before, i), blocks.total), ratio(at(blocks.after, i), blocks.total),
			ratio(at(demand.before, i), demand.total), ratio(at(demand.after, i), demand.total),
		}
		if s != (Share{Region: name}) {
			r.Regions = append(r.Regions, s)
		}
	}
	slices.SortFunc(r.Regions, func(a, b Share) int { return cmp.Compare(a.Region, b.Region) })
	slices.SortFunc(r.Hosts, func(a, b HostReport) int {
		return cmp.Or(cmp.Compare(b.Blocks+b.Demand, a.Blocks+a.Demand), cmp.Compare(a.Host, b.Host))
	})
	return r
}

func at(list []float64, i int) float64 {
	if i >= len(list) {
		return 0
	}
	return list[i]
}
