// Package topology folds everything known about where clients are into one
// prefix-free partition of the address space: each block of it has one
// candidate list, and no two blocks that could be one are two. A look-up is
// one longest-prefix match, and the length of the matched block is the exact
// scope of the answer (RFC 7871, section 7.2.1: no overlaps, fewest prefixes).
//
// A Topology is immutable; any number of goroutines may use it at once.
package topology

import (
	"net/netip"
)

// Region is an index into Input.Regions.
type Region = uint8

// RegionSet is a set of regions.
type RegionSet [4]uint64

// Add puts a region into the set.
func (s *RegionSet) Add(r Region) { s[r>>6] |= 1 << (r & 63) }

func (s *RegionSet) remove(r Region) { s[r>>6] &^= 1 << (r & 63) }

// Has tells whether a region is in the set.
func (s *RegionSet) Has(r Region) bool { return s[r>>6]&(1<<(r&63)) != 0 }

// Weighted is a region with its relative weight.
type Weighted struct {
	Region Region
	Weight uint32
}

// List is one candidate list: the split tier comes first, then Order. It names
// only regions in which the host has a pool.
type List struct {
	Split  []Weighted
	Order  []Region
	Tied   bool // the split is of regions equally far, not written
	Refuse bool // these clients get no data
	// Fenced says that a fence confines these clients to the regions in Allowed.
	Fenced  bool
	Allowed RegionSet
	// Marks has bit i set when Input.Marks[i] holds these clients. Lists that
	// differ in nothing else are distinct, so blocks end where a mark does.
	Marks uint64
}

// Match is what a look-up finds: the list, and the length of the block in the
// bits of the address that was looked up.
type Match struct {
	List int
	Bits int
	// Decided is what gave the list. Of several kinds in one block it is that of
	// most addresses; when none has most, any of them. It never splits a block.
	Decided Kind
}

// Topology maps every client to a candidate list.
type Topology struct {
	// Lists are the distinct candidate lists; Match.List is an index into it.
	Lists []List

	full4, ecs4 table4
	full6, ecs6 table6
	special     []special
	stats       Stats
	digest      uint64
}

// Stats describe a compiled topology.
type Stats struct {
	Full4, Full6 int // blocks that transport addresses are looked up in
	ECS4, ECS6   int // blocks that client subnets are looked up in
	Lists        int
	Bytes        int // memory held by the tables
}

// Stats returns the size of the topology.
func (t *Topology) Stats() Stats { return t.stats }

// Digest is a hash of all blocks and lists: equal topologies, and only those,
// have equal digests, on every machine.
func (t *Topology) Digest() uint64 { return t.digest }

// Client is where a client was found.
type Client struct {
	// Addr is the address that was looked up, bits past SOURCE zero. It is an
	// IPv4 address when one was embedded in IPv6.
	Addr netip.Addr
	// Bits is how many bits of Addr the client was known by.
	Bits int
	// ECS says that the client subnet decided; otherwise the transport did.
	ECS bool
	// Base is the number of bits before an embedded IPv4 address, else 0.
	Base int
	// Special is the length of the special-purpose block (without Base) that
	// made a client subnet be ignored in favour of the transport; 0 if none did.
	Special int
	Match
}

// Locate finds the candidate list of a client: by its subnet when that is
// valid, of SOURCE above 0 and not in special-purpose space, and else by the
// transport address. An invalid subnet means that there is none.
func (t *Topology) Locate(subnet netip.Prefix, transport netip.Addr) Client {
	if !subnet.IsValid() || subnet.Bits() == 0 {
		return t.locateTransport(transport)
	}
	addr, bits, base := extract(subnet.Masked().Addr(), subnet.Bits())
	found := lookup(&t.ecs4, &t.ecs6, addr)
	if found.barrier() {
		if s := t.ignored(addr, bits); s != nil {
			c := t.locateTransport(transport)
			c.Special = int(s.bits)
			c.Base = base
			return c
		}
	}
	return Client{Addr: addr, Bits: bits, ECS: true, Base: base, Match: found.match()}
}

func (t *Topology) locateTransport(transport netip.Addr) Client {
	if !transport.IsValid() { // nothing known: what the lowest address gets
		transport = netip.IPv4Unspecified()
	}
	addr := Unembed(transport)
	return Client{Addr: addr, Bits: addr.BitLen(), Match: lookup(&t.full4, &t.full6, addr).match()}
}

func lookup(t4 *table4, t6 *table6, addr netip.Addr) cell {
	if addr.Is4() {
		return t4.lookup(addr)
	}
	return t6.lookup(addr)
}

// Blocks calls yield for each block of the partition in address order, IPv4
// first: those that client subnets are looked up in, or with full those of
// transport addresses.
func (t *Topology) Blocks(full bool) func(yield func(netip.Prefix, int) bool) {
	return t.blocks(full, func(cell) bool { return true })
}

// Ordinary is Blocks without those in special-purpose and embedding space.
func (t *Topology) Ordinary(full bool) func(yield func(netip.Prefix, int) bool) {
	return t.blocks(full, func(c cell) bool { return !c.barrier() })
}

func (t *Topology) blocks(full bool, wanted func(cell) bool) func(yield func(netip.Prefix, int) bool) {
	return func(yield func(netip.Prefix, int) bool) {
		t4, t6 := &t.ecs4, &t.ecs6
		if full {
			t4, t6 = &t.full4, &t.full6
		}
		for i, c := range t4.cells {
			if wanted(c) && !yield(t4.prefix(i), c.match().List) {
				return
			}
		}
		for i, c := range t6.cells {
			if wanted(c) && !yield(t6.prefix(i), c.match().List) {
				return
			}
		}
	}
}
