package guard

import (
	"encoding/binary"
	"net/netip"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// mostNetworks is how many IPv6 networks of a database are located at most: any part of
// all is known to a hundredth.
const mostNetworks = 1 << 13

// networks are IPv6 networks of the database of the first of some topologies that has one.
func (c *comparison) networks(needs ...*plan.Need) []netip.Prefix {
	for _, n := range needs {
		if db := database(n); db != nil {
			if _, ok := c.known[db]; !ok {
				c.known[db] = networksOf(db, mostNetworks)
			}
			return c.known[db]
		}
	}
	return nil
}

// database is what locates a topology's clients; nil: nothing does.
func database(n *plan.Need) *topology.Database {
	if n.Input.Geo != nil {
		return n.Input.Geo
	}
	return n.Input.ASN
}

// networksOf are IPv6 networks of a database: all, or every n-th, so that they are at most
// so many. There are none if the database is nil or knows fewer than enough.
func networksOf(db *topology.Database, most int) []netip.Prefix {
	if db == nil {
		return nil
	}
	var some sampler
	for p := range db.Networks {
		if p.Addr().Is6() {
			some.add(p, most)
		}
	}
	if some.seen < enough {
		return nil
	}
	return some.list
}

// sampler keeps every n-th of the prefixes that it is given; n doubles as often as there
// are too many.
type sampler struct {
	list []netip.Prefix
	seen int
	log2 int // of n
}

// add adds a prefix; at most so many are kept.
func (s *sampler) add(p netip.Prefix, most int) {
	if s.seen&(1<<s.log2-1) == 0 {
		s.list = append(s.list, p)
	}
	s.seen++
	if len(s.list) > most { // every second of these, and of what comes
		half := (len(s.list) + 1) / 2
		for i := range half {
			s.list[i] = s.list[2*i]
		}
		s.list = s.list[:half]
		s.log2++
	}
}

// addresses4 are so many IPv4 addresses, evenly spaced.
func addresses4(n int) (list []netip.Prefix) {
	for i := range n {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32((uint64(2*i+1)<<32)/uint64(2*n)))
		list = append(list, netip.PrefixFrom(netip.AddrFrom4(b), 32))
	}
	return list
}

// located gives the candidate list of a network in a view. It is not ok where nobody
// is: in special-purpose space, and in IPv6 where IPv4 addresses are embedded.
func located(n *plan.Need, view int, p netip.Prefix) (list int, ok bool) {
	subnet := p
	if view == resolvers {
		subnet = netip.Prefix{}
	}
	c := n.Topology.Locate(subnet, p.Addr())
	return c.List, n.Topology.Locate(p, p.Addr()).Special == 0 && c.Addr.Is4() == p.Addr().Is4()
}
