package topology

import (
	"encoding/binary"
	"net/netip"
)

// key is an address as 128 bits; IPv4 fills the first 32.
type key struct{ hi, lo uint64 }

// keyOf gives an address as a key.
func keyOf(a netip.Addr) key {
	if a.Is4() {
		b := a.As4()
		return key{hi: uint64(binary.BigEndian.Uint32(b[:])) << 32}
	}
	b := a.As16()
	return key{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// addr gives a key as an address of its family.
func (k key) addr(v4 bool) netip.Addr {
	if v4 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(k.hi>>32))
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], k.hi)
	binary.BigEndian.PutUint64(b[8:], k.lo)
	return netip.AddrFrom16(b)
}

// withBit sets bit i, counted from the most significant one.
func (k key) withBit(i int) key {
	if i < 64 {
		return key{k.hi | 1<<(63-i), k.lo}
	}
	return key{k.hi, k.lo | 1<<(127-i)}
}

// less orders keys as addresses.
func (k key) less(o key) bool { return k.hi < o.hi || k.hi == o.hi && k.lo < o.lo }

// masked zeroes all bits from n on.
func (k key) masked(n int) key {
	if n <= 64 {
		return key{hi: k.hi & maskHi(n)}
	}
	return key{k.hi, k.lo & maskHi(n-64)}
}

// maskHi has the first n of 64 bits set.
func maskHi(n int) uint64 { return ^(^uint64(0) >> n) }

// covers tells whether the prefix k/n contains o.
func (k key) covers(n int, o key) bool {
	if n <= 64 {
		return (k.hi^o.hi)&maskHi(n) == 0
	}
	return k.hi == o.hi && (k.lo^o.lo)&maskHi(n-64) == 0
}

// block is a prefix with a value.
type block struct {
	start key
	bits  uint8
	val   uint32
}

// layer is a set of disjoint blocks in address order, per family. Addresses in
// no block have the value 0.
type layer [2][]block

// Indexes into a layer and everything else kept per family.
const (
	v4 = 0
	v6 = 1
)

// widths are the address lengths by family.
var widths = [2]int{32, 128}

// familyOf gives the family index of an address.
func familyOf(a netip.Addr) int {
	if a.Is4() {
		return v4
	}
	return v6
}
