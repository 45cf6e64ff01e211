package build

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// Check is what a map promised and what measurements that it was not made from
// say. Its JSON form is stable. Gains are means by demand of how much lower the p75 is in the
// map's region than in that without the map, in milliseconds.
type Check struct {
	Lines     int64   `json:"lines"`
	Demand    uint64  `json:"demand"`    // measurements held out
	Overrides uint64  `json:"overrides"` // of them, by prefixes that the map sends elsewhere
	Compared  uint64  `json:"compared"`  // of those, with enough samples of both regions
	Predicted float64 `json:"predicted_ms"`
	Observed  float64 `json:"observed_ms"`
	// Cost is Observed with a failure as 1000 ms. It decides.
	Cost    float64      `json:"cost_ms"`
	Classes []CheckClass `json:"classes"`
	Worst   []CheckEntry `json:"worst,omitempty"` // those that lose most
}

// CheckClass is the entries of one side with a predicted gain of From and more.
type CheckClass struct {
	Kind      string  `json:"kind"`
	From      float64 `json:"from_ms"`
	Entries   int     `json:"entries"`
	Compared  uint64  `json:"compared"`
	Predicted float64 `json:"predicted_ms"`
	Observed  float64 `json:"observed_ms"`
}

// CheckEntry is an entry as far as one region would have served it without the map.
type CheckEntry struct {
	Prefix    string  `json:"prefix"`
	Region    string  `json:"region"`
	Without   string  `json:"without"`
	Compared  uint64  `json:"compared"`
	Predicted float64 `json:"predicted_ms"`
	Cost      float64 `json:"cost_ms"`
}

// Good tells whether the map should be published.
func (c *Check) Good() bool { return c.Compared > 0 && c.Cost > 0 }

// classes are the least gains of classes.
var classes = [numClasses]float64{0, 10, 20, 50, 100}

const numClasses = 5

// checkSamples is what a comparison takes of each region. It is less than a
// decision takes, since it is only one of many in a mean.
const checkSamples = 50

// Check holds a map against what was added. It needs Options.Geography. The builder can't be
// used again but to be closed.
func (b *Builder) Check(m *latency.Map) (*Check, error) {
	if b.o.Geography == nil {
		return nil, fmt.Errorf("a map is checked against the order without it, which is not known")
	}
	if err := m.Check(b.o.Regions); err != nil {
		return nil, err
	}
	c := &checker{o: &b.o, m: m, numbers: numbersOf(m, b.o.Regions), kind: Clients, entry: -1}
	c.walker.entries = m.Clients
	if _, err := b.each(c.add); err != nil {
		return nil, err
	}
	c.flush()
	c.out.Lines = b.lines
	return c.finish(), nil
}

// checker compares entry by entry.
type checker struct {
	walker
	o       *Options
	m       *latency.Map
	numbers []uint8 // of the map's regions
	kind    Kind
	entry   int // that groups are of, or -1
	key     key
	geo     uint8    // of key
	found   int      // entry of key
	groups  []*group // what is in the entry, by region without the map
	free    []*group
	classes [2][numClasses]CheckClass
	entries []CheckEntry
	out     Check
}

// group is the part of an entry that has one region without the map.
type group struct {
	geo     uint8
	demand  uint64
	tallies []tally
}

func (c *checker) add(x *cell) error {
	if x.key.kind() != c.kind {
		c.flush()
		c.kind, c.entry = x.key.kind(), -1
		c.walker = walker{entries: entriesOf(c.m, c.kind)}
	}
	if c.key != x.key {
		c.key = x.key
		prefix := x.key.prefix(c.o.longest(x.key))
		c.found, c.geo = c.find(prefix), none
		if order := c.o.Geography(c.kind, prefix); len(order) > 0 {
			c.geo = order[0]
		}
		if c.found != c.entry {
			c.flush()
			c.entry = c.found
		}
	}
	n := x.demand()
	c.out.Demand += n
	if c.entry >= 0 && c.geo != none {
		g := c.group()
		g.demand += n
		g.tallies[x.region].addCell(x, weightOne)
	}
	return nil
}

// group finds the group that the present prefix belongs to.
func (c *checker) group() *group {
	for _, g := range c.groups {
		if g.geo == c.geo {
			return g
		}
	}
	g := &group{tallies: make([]tally, len(c.o.Regions))}
	if last := len(c.free) - 1; last >= 0 {
		g, c.free = c.free[last], c.free[:last]
	}
	g.geo, g.demand = c.geo, 0
	c.groups = append(c.groups, g)
	return g
}

// flush compares what is in the present entry.
func (c *checker) flush() {
	for _, g := range c.groups {
		if region := c.numbers[c.walker.entries[c.entry].Order[0]]; region != g.geo {
			c.compare(g, region)
		}
		for r := range g.tallies {
			g.tallies[r].reset()
		}
	}
	c.free = append(c.free, c.groups...)
	c.groups = c.groups[:0]
}

func (c *checker) compare(g *group, region uint8) {
	c.out.Overrides += g.demand
	with, without := g.tallies[region].stat(), g.tallies[g.geo].stat()
	// A region that only fails has no round trips to compare.
	if with.n+with.failed < checkSamples || without.n+without.failed < checkSamples || with.n == 0 || without.n == 0 {
		return
	}
	e := &c.walker.entries[c.entry]
	predicted := float64(cellOf(e, c.numbers, g.geo).P75) - float64(cellOf(e, c.numbers, region).P75)
	if e.Cells == nil || cellOf(e, c.numbers, g.geo).Samples == 0 {
		predicted = 0
	}
	d := float64(g.demand)
	observed, gain := without.p75-with.p75, cost(&without)-cost(&with)
	c.out.Compared += g.demand
	c.out.Predicted += d * predicted
	c.out.Observed += d * observed
	c.out.Cost += d * gain
	i := numClasses - 1
	for i > 0 && predicted < classes[i] {
		i--
	}
	class := &c.classes[c.kind][i]
	class.Entries++
	class.Compared += g.demand
	class.Predicted += d * predicted
	class.Observed += d * observed
	c.entries = worst(append(c.entries, CheckEntry{
		e.Prefix.String(), c.o.Regions[region], c.o.Regions[g.geo], g.demand, predicted, gain,
	}))
}

// worst keeps the entries that lose most.
func worst(list []CheckEntry) []CheckEntry {
	slices.SortStableFunc(list, func(a, b CheckEntry) int {
		return cmp.Compare(a.Cost*float64(a.Compared), b.Cost*float64(b.Compared))
	})
	for len(list) > 0 && (len(list) > shownChanges || list[len(list)-1].Cost >= 0) {
		list = list[:len(list)-1]
	}
	return list
}

func cellOf(e *latency.Entry, numbers []uint8, region uint8) (cell latency.Cell) {
	for i, r := range e.Order {
		if numbers[r] == region && e.Cells != nil {
			return e.Cells[i]
		}
	}
	return cell
}

// finish makes means of sums.
func (c *checker) finish() *Check {
	out := &c.out
	n := float64(max(out.Compared, 1))
	out.Predicted, out.Observed, out.Cost = out.Predicted/n, out.Observed/n, out.Cost/n
	out.Worst = c.entries
	for kind := range c.classes {
		for i := range c.classes[kind] {
			class := c.classes[kind][i]
			if class.Entries == 0 {
				continue
			}
			class.Kind, class.From = Kind(kind).String(), classes[i]
			class.Predicted /= float64(class.Compared)
			class.Observed /= float64(class.Compared)
			out.Classes = append(out.Classes, class)
		}
	}
	return out
}

// WriteText writes the comparison for people.
func (c *Check) WriteText(w io.Writer) error {
	var b strings.Builder
	part := func(n, of uint64) string { return percent(float64(n) / float64(max(of, 1))) }
	fmt.Fprintf(&b, "%d measurements, %s of them where the map overrides, %s of those compared\n",
		c.Demand, part(c.Overrides, c.Demand), part(c.Compared, c.Overrides))
	better, cost := "better", c.Cost
	if cost < 0 {
		better, cost = "worse", -cost
	}
	fmt.Fprintf(&b, "p75 %s, predicted %s; with a failure as %d ms, %s by %.1f ms\n",
		lower(c.Observed, "%.1f ms"), lower(c.Predicted, "%.1f ms"), failedCost, better, cost)
	for _, x := range c.Classes {
		fmt.Fprintf(&b, "  %-9s from %3.0f ms: %6d entries, observed %6.1f ms, predicted %6.1f ms\n", x.Kind, x.From, x.Entries, x.Observed, x.Predicted)
	}
	for _, x := range c.Worst {
		fmt.Fprintf(&b, "  loses, failures included: %s with %s instead of %s: worse by %.1f ms, predicted better by %.1f ms\n", x.Prefix, x.Region, x.Without, -x.Cost, x.Predicted)
	}
	switch {
	case c.Good():
		b.WriteString("good: publish it\n")
	case c.Compared == 0:
		b.WriteString("nothing to compare: no override has enough measurements of both regions; nothing speaks against the map\n")
	default:
		b.WriteString("no gain: do not publish, but for emergencies (map build -budget 0)\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
