package topology

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
)

// FenceError says that the fences over a network leave no region for it.
type FenceError struct {
	Fences  []*Fence
	Network netip.Prefix
}

// Error names the network and the fences.
func (e *FenceError) Error() string {
	names := make([]string, len(e.Fences))
	for i, f := range e.Fences {
		names[i] = f.Name
	}
	return fmt.Sprintf("no region with a pool is left for %s inside the fences %s: let them share a region, or make their areas disjoint",
		e.Network, strings.Join(names, ", "))
}

// Compile folds the input into a topology. Time and memory grow linearly with
// the networks of the databases, the prefixes of the rules and the entries of
// the latency maps. The only errors are a FenceError, more than half a
// million distinct lists, and more than 64 marks.
func Compile(in *Input) (*Topology, error) {
	if len(in.Marks) > maxMarks {
		return nil, fmt.Errorf("%d areas that levers bear on are too many (at most %d): use one area for several levers", len(in.Marks), maxMarks)
	}
	return newCompiler(in).compile()
}

// compile does what Compile says.
func (c *compiler) compile() (*Topology, error) {
	in := c.in
	resolvers := newMeasured(in.Resolvers, in.Regions)
	clients := resolvers
	if in.Clients != in.Resolvers {
		clients = newMeasured(in.Clients, in.Regions)
	}
	var full, ecs [2][]block
	var own [2]bool // whether client subnets need a table of their own
	for f, limit := range [2]int{in.Max4, in.Max6} {
		located := c.located(f)
		full[f] = c.join(f, located, resolvers)
		subnets := full[f]
		if clients != resolvers {
			subnets = c.join(f, located, clients)
		}
		ecs[f] = c.capped(f, subnets, limit)
		own[f] = clients != resolvers || longerThan(subnets, limit)
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case c.orders.full:
		return nil, fmt.Errorf("there are more than %d distinct candidate lists: lower depth, or that of the latency map", c.orders.most)
	}
	return c.tables(full, ecs, own), nil
}

// tables makes the topology of the finished blocks.
func (c *compiler) tables(full, ecs [2][]block, own [2]bool) *Topology {
	cellOf := func(b block) cell {
		v := c.finalOf(b)
		return newCell(int(v.list), int(b.bits), kindOf(b.val), v.barrier > 0)
	}
	t := &Topology{special: c.special, Lists: c.orders.lists}
	t.full4, t.full6 = newTable4(full[v4], cellOf), newTable6(full[v6], cellOf)
	t.stats = Stats{
		Full4: len(full[v4]), Full6: len(full[v6]), ECS4: len(ecs[v4]), ECS6: len(ecs[v6]),
		Lists: len(t.Lists),
		Bytes: t.full4.bytes() + t.full6.bytes(),
	}
	t.ecs4, t.ecs6 = t.full4, t.full6
	if own[v4] {
		t.ecs4 = newTable4(ecs[v4], cellOf)
		t.stats.Bytes += t.ecs4.bytes()
	}
	if own[v6] {
		t.ecs6 = newTable6(ecs[v6], cellOf)
		t.stats.Bytes += t.ecs6.bytes()
	}
	t.digest = t.hash()
	return t
}

// compiler holds what the steps of a compilation share.
type compiler struct {
	in      *Input
	orders  *orders
	rules   *rules
	special []special
	deflt   uint32 // list of a client no rule matches

	barriers *layer
	geo, asn *layer // facts by network: index plus one
	places   *interner[located]
	prefixes *layer
	holds    [][]held
	sets     *numberSets
	finals   *interner[final]
	err      *FenceError
	// sources, if not nil, gets for each block filled where its list is from.
	sources map[key]block
}

func newCompiler(in *Input) *compiler {
	c := &compiler{
		in:      in,
		orders:  newOrders(in),
		special: specialSpace(),
		places:  newInterner[located](),
		sets:    newNumberSets(),
		finals:  newInterner[final](),
	}
	c.rules = newRules(in, c.orders)
	rest := Spec{Rest: true}
	if in.Rest != nil {
		rest = *in.Rest
	}
	l := c.orders.written(rest)
	if !l.Reaches() {
		l = c.orders.written(Spec{Rest: true})
	}
	c.deflt = c.orders.id(l)
	for _, set := range c.rules.sets[:c.rules.spoken] {
		ruleSpecial(c.special, set)
	}
	c.barriers = barriers(c.special)
	c.geo, c.asn = layerOf(in.Geo), layerOf(in.ASN)
	c.prefixes, c.holds = c.rules.prefixLayer()
	return c
}

// finalOf gives what a finished block holds.
func (c *compiler) finalOf(b block) final { return c.finals.values[b.val>>kindBits] }

// layerOf reads a database's networks; nil gives an empty layer.
func layerOf(d *Database) *layer {
	var l layer
	if d == nil {
		return &l
	}
	for p, i := range d.Networks {
		f := familyOf(p.Addr())
		l[f] = append(l[f], block{keyOf(p.Addr()), uint8(p.Bits()), uint32(i + 1)})
	}
	return &l
}

// hash digests blocks and lists.
func (t *Topology) hash() uint64 {
	h := fnv.New64a()
	var b []byte
	for i := range t.Lists {
		l := t.Lists[i]
		l.Tied = false // why there is a split is no difference that a client sees
		b = append(l.appendKey(b[:0]), '\n')
		h.Write(b)
	}
	for _, full := range []bool{true, false} {
		for p, list := range t.Blocks(full) {
			b, _ = p.AppendBinary(b[:0])
			h.Write(binary.BigEndian.AppendUint32(b, uint32(list)))
		}
	}
	return h.Sum64()
}
