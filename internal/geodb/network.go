package geodb

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"net/netip"
	"sort"
)

// network4 is an IPv4 network and the index of its record.
type network4 struct {
	start  uint32
	record uint32
	bits   uint8
}

func (n network4) prefix() netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], n.start)
	return netip.PrefixFrom(netip.AddrFrom4(a), int(n.bits))
}

// network6 is an IPv6 network and the index of its record.
type network6 struct {
	hi, lo uint64
	record uint32
	bits   uint8
}

func (n network6) prefix() netip.Prefix {
	var a [16]byte
	binary.BigEndian.PutUint64(a[:8], n.hi)
	binary.BigEndian.PutUint64(a[8:], n.lo)
	return netip.PrefixFrom(netip.AddrFrom16(a), int(n.bits))
}

// Lookup is what the database tells of an address, by the networks of
// Networks; an IPv4-mapped address is looked up as IPv4. If it tells nothing,
// network is the largest one around the address that has no data.
// The only error is an invalid address.
func (db *DB) Lookup(addr netip.Addr) (rec Record, network netip.Prefix, found bool, err error) {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return Record{}, netip.Prefix{}, false, errors.New("look-up of an invalid address")
	}
	size, prefix := len(db.v6), func(i int) netip.Prefix { return db.v6[i].prefix() }
	if addr.Is4() {
		size, prefix = len(db.v4), func(i int) netip.Prefix { return db.v4[i].prefix() }
	}
	next := sort.Search(size, func(i int) bool { return addr.Less(prefix(i).Addr()) })
	gap := 0
	if next > 0 {
		network := prefix(next - 1)
		if network.Contains(addr) {
			return db.records[db.recordAt(addr, next-1)], network, true, nil
		}
		gap = commonBits(addr, network.Addr()) + 1
	}
	if next < size {
		gap = max(gap, commonBits(addr, prefix(next).Addr())+1)
	}
	network, err = addr.Prefix(gap)
	return Record{}, network, false, err
}

// recordAt is the record of the i-th network of an address's family.
func (db *DB) recordAt(addr netip.Addr, i int) uint32 {
	if addr.Is4() {
		return db.v4[i].record
	}
	return db.v6[i].record
}

// commonBits is the number of leading bits that two addresses of one family share.
func commonBits(a, b netip.Addr) int {
	x, y := a.AsSlice(), b.AsSlice()
	for i := range x {
		if diff := x[i] ^ y[i]; diff != 0 {
			return 8*i + bits.LeadingZeros8(diff)
		}
	}
	return 8 * len(x)
}
