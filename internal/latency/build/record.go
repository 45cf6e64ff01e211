package build

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"time"
)

// key is a prefix of one kind and family: the kind in the highest bit, the family in
// the next (1 for IPv6), the address in those that follow, first bit first. Keys in order
// are kinds, families and addresses in order.
type key uint64

const (
	familyBit   = 62
	addressBits = 56 // 61 to 6
	lowestBit   = familyBit - addressBits
)

// newKey cuts an address to a length.
func newKey(k Kind, addr netip.Addr, bits int) key {
	if addr.Is4() {
		a := addr.As4()
		return newKey4(k, binary.BigEndian.Uint32(a[:]), bits)
	}
	a := addr.As16()
	x := binary.BigEndian.Uint64(a[:]) >> (64 - familyBit)
	return key(k)<<63 | 1<<familyBit | key(x)&^(1<<(familyBit-bits)-1)
}

func newKey4(k Kind, addr uint32, bits int) key {
	return key(k)<<63 | key(addr)<<(familyBit-32)&^(1<<(familyBit-bits)-1)
}

func (k key) kind() Kind { return Kind(k >> 63) }
func (k key) is6() bool  { return k>>familyBit&1 == 1 }

// prefix gives the prefix of a length that the key lies in.
func (k key) prefix(bits int) netip.Prefix {
	x := uint64(k) << (64 - familyBit)
	if k.is6() {
		var a [16]byte
		binary.BigEndian.PutUint64(a[:], x)
		return netip.PrefixFrom(netip.AddrFrom16(a), bits).Masked()
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], uint32(x>>32))
	return netip.PrefixFrom(netip.AddrFrom4(a), bits).Masked()
}

// cut gives the key without the bits past a length, which may be 0.
func (k key) cut(bits int) key { return k &^ (1<<(familyBit-bits) - 1) }

// bit is bit i of the address, counted from 0.
func (k key) bit(i int) int { return int(k >> (familyBit - 1 - i) & 1) }

// longest and shortest are the lengths that prefixes like the key may have.
func (o *Options) longest(k key) int {
	if k.is6() {
		return o.Longest6
	}
	return o.Longest4
}

func (o *Options) shortest(k key) int {
	if k.is6() {
		return o.Shortest6
	}
	return o.Shortest4
}

// record is one measurement. Records are sorted by all of their bits, so their
// order says nothing about the order that they came in.
type record struct {
	key key
	// rest is, from the highest bit: region (8), day (12), source (20), whether it failed
	// (1), and the round trip in units (23).
	rest uint64
}

const (
	unitsPerMs = 100   // so a round trip is exact to 10 us
	maxRTT     = 60000 // milliseconds; 6,000,000 units are less than 2^23
	unitBits   = 23
	sourceBits = 20
	dayBits    = 12
)

func newRecord(k key, region uint8, day uint16, source uint32, failed bool, units uint32) record {
	rest := uint64(region)<<56 | uint64(day)<<44 | uint64(source&(1<<sourceBits-1))<<24 | uint64(units)
	if failed {
		rest = rest&^(1<<unitBits-1) | 1<<unitBits
	}
	return record{k, rest}
}

func (r record) region() uint8  { return uint8(r.rest >> 56) }
func (r record) day() uint16    { return uint16(r.rest >> 44 & (1<<dayBits - 1)) }
func (r record) failed() bool   { return r.rest>>unitBits&1 == 1 }
func (r record) units() uint32  { return uint32(r.rest & (1<<unitBits - 1)) }
func (r record) cell() uint64   { return r.rest >> 44 } // region and day
func (r record) source() uint64 { return r.rest >> 24 }

func (r record) compare(s record) int {
	if r.key != s.key {
		return cmp.Compare(r.key, s.key)
	}
	return cmp.Compare(r.rest, s.rest)
}

// calendar counts days, in UTC, from one so that those of a window fit a record.
type calendar int64

// newCalendar makes one for windows that end at a time.
func newCalendar(until time.Time) calendar {
	return calendar(floorDay(until.Unix()) - 1<<(dayBits-1))
}

func floorDay(unix int64) int64 {
	d := unix / 86400
	if unix%86400 < 0 {
		d--
	}
	return d
}

// day gives the day of a time that is no further than 2000 days from the end
// of the window.
func (c calendar) day(unix int64) uint16 { return uint16(floorDay(unix) - int64(c)) }
