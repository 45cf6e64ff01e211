package latency

import (
	"encoding/binary"
	"math"
	"net/netip"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// Lookup is the entry for a client's address, if the map has one. An IPv4-mapped
// address is looked up as IPv4.
func (m *Map) Lookup(addr netip.Addr) (Entry, bool) { return lookup(m.Clients, addr) }

// LookupResolver is the entry for a query's transport address, if the map has one.
func (m *Map) LookupResolver(addr netip.Addr) (Entry, bool) { return lookup(m.Resolvers, addr) }

func lookup(entries []Entry, addr netip.Addr) (Entry, bool) {
	addr = addr.Unmap().WithZone("")
	if i := before(entries, addr); i >= 0 && entries[i].Prefix.Contains(addr) {
		return entries[i], true
	}
	return Entry{}, false
}

// before is the index of the last entry that begins at an address or before it, or -1.
func before(entries []Entry, addr netip.Addr) int {
	return sort.Search(len(entries), func(i int) bool { return addr.Less(entries[i].Prefix.Addr()) }) - 1
}

// Around is the index of the entry that holds an address among entries in address
// order, -1 if none does, and those of its neighbours: previous is -1 and next is
// the length of entries where there is none.
func Around(entries []Entry, addr netip.Addr) (at, previous, next int) {
	i := before(entries, addr)
	if i >= 0 && entries[i].Prefix.Contains(addr) {
		return i, i - 1, i + 1
	}
	return -1, i, i + 1
}

// Stats is the size of a map.
type Stats struct {
	Clients4, Clients6     int // entries by family
	Resolvers4, Resolvers6 int
	Measured               int    // entries with measurements
	Samples                uint64 // successful measurements, all together
}

// Stats counts what the map holds.
func (m *Map) Stats() (s Stats) {
	s.Clients4, s.Clients6 = s.count(m.Clients)
	s.Resolvers4, s.Resolvers6 = s.count(m.Resolvers)
	return s
}

func (s *Stats) count(entries []Entry) (v4, v6 int) {
	v4 = before(entries, netip.AddrFrom4([4]byte{255, 255, 255, 255})) + 1
	for i := range entries {
		if entries[i].Cells != nil {
			s.Measured++
			s.Samples += entries[i].samples()
		}
	}
	return v4, len(entries) - v4
}

// Digest is the xxhash of all that the map says, when it was built included.
// It is the same for every form of the file.
func (m *Map) Digest() uint64 {
	h := xxhash.New()
	var b []byte
	number := func(v uint64) { b = binary.AppendUvarint(b, v) }
	text := func(s string) { number(uint64(len(s))); b = append(b, s...) }
	number(FormatVersion)
	number(uint64(m.Built.Unix()))
	number(uint64(m.From.Unix()))
	number(uint64(m.Until.Unix()))
	if r := m.Rollback; r != nil {
		number(uint64(r.At.Unix()))
		text(r.Why)
		text(r.By)
	}
	number(uint64(len(m.Regions)))
	for _, name := range m.Regions {
		text(name)
	}
	for _, entries := range m.sides() {
		number(uint64(len(entries)))
		for i := range entries {
			e := &entries[i]
			b = append(append(b, byte(e.Prefix.Bits())), e.Prefix.Addr().AsSlice()...)
			text(string(e.Order))
			number(uint64(len(e.Cells)))
			for _, c := range e.Cells {
				b = binary.BigEndian.AppendUint32(b, math.Float32bits(c.P75))
				b = binary.BigEndian.AppendUint32(b, c.Samples)
				b = binary.BigEndian.AppendUint32(b, math.Float32bits(c.Failed))
			}
			h.Write(b)
			b = b[:0]
		}
	}
	if m.Demand != [2]uint64{} {
		number(m.Demand[0])
		number(m.Demand[1])
	}
	h.Write(b)
	return h.Sum64()
}

// last is the last address of a prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i, bits := 0, p.Bits(); i < len(b); i++ {
		if n := bits - 8*i; n < 8 {
			b[i] |= 0xff >> max(n, 0)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// halves are the two halves of a prefix that is no single address.
func halves(p netip.Prefix) (zero, one netip.Prefix) {
	b, bits := p.Addr().AsSlice(), p.Bits()
	b[bits/8] |= 0x80 >> (bits % 8)
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(p.Addr(), bits+1), netip.PrefixFrom(a, bits+1)
}

// bit is a bit of an address, counted from 0 at its front.
func bit(a netip.Addr, n int) bool {
	if a.Is4() {
		b := a.As4()
		return b[n/8]&(0x80>>(n%8)) != 0
	}
	b := a.As16()
	return b[n/8]&(0x80>>(n%8)) != 0
}
