package topology

import (
	"encoding/binary"
	"net/netip"
)

// special is a block of space that is nobody's location, or that holds
// another family's addresses. It never merges with its neighbours and is never
// filled from them.
type special struct {
	prefix netip.Prefix
	bits   uint8
	// embeds says that the block holds IPv4 addresses in IPv6.
	embeds bool
	// ruled says that a prefix rule speaks of the block, so that a client
	// subnet in it counts.
	ruled bool
}

// specialSpace lists the blocks, by the IANA special-purpose registries
// (RFC 6890). Documentation and benchmark space is ordinary on purpose.
func specialSpace() []special {
	var all []special
	for _, p := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
		"172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3",
		"::/128", "::1/128", "fc00::/7", "fe80::/10", "ff00::/8",
	} {
		all = append(all, special{prefix: netip.MustParsePrefix(p)})
	}
	for _, p := range []string{mappedPrefix, nat64Prefix, sixToFourPrefix, teredoPrefix} {
		all = append(all, special{prefix: netip.MustParsePrefix(p), embeds: true})
	}
	for i := range all {
		all[i].bits = uint8(all[i].prefix.Bits())
	}
	return all
}

// The IPv6 prefixes that hold IPv4 addresses: RFC 4291 section 2.5.5.2,
// RFC 6052, RFC 3056, RFC 4380.
const (
	mappedPrefix    = "::ffff:0:0/96"
	nat64Prefix     = "64:ff9b::/96"
	sixToFourPrefix = "2002::/16"
	teredoPrefix    = "2001::/32"
)

// barriers is the layer that numbers the special blocks from 1.
func barriers(all []special) *layer {
	var l layer
	for i, s := range all {
		f := familyOf(s.prefix.Addr())
		l[f] = append(l[f], block{keyOf(s.prefix.Addr()), s.bits, uint32(i + 1)})
	}
	for f := range l {
		sortBlocks(l[f])
	}
	return &l
}

// rule marks the blocks that a prefix rule speaks of: one inside the block, or
// one that contains it and is more than "everything".
func ruleSpecial(all []special, prefixes []netip.Prefix) {
	for i := range all {
		s := &all[i]
		for _, p := range prefixes {
			if p.Bits() > 0 && s.prefix.Overlaps(p) {
				s.ruled = true
				break
			}
		}
	}
}

// ignored gives the special-purpose block that makes a client subnet be
// ignored: SOURCE covers the block, and no prefix rule speaks of it.
func (t *Topology) ignored(addr netip.Addr, bits int) *special {
	for i := range t.special {
		s := &t.special[i]
		if !s.embeds && !s.ruled && bits >= int(s.bits) && s.prefix.Contains(addr) {
			return s
		}
	}
	return nil
}

// Unembed gives the IPv4 address that an IPv6 one embeds, or the address itself.
func Unembed(addr netip.Addr) netip.Addr {
	a, _, _ := extract(addr.WithZone(""), addr.BitLen())
	return a
}

// extract finds the IPv4 address in an IPv6 one that embeds it, if the known
// bits reach it. base is the number of bits before it.
func extract(addr netip.Addr, bits int) (netip.Addr, int, int) {
	if !addr.Is6() {
		return addr, bits, 0
	}
	b := addr.As16()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	hi := binary.BigEndian.Uint64(b[:8])
	switch {
	case hi>>48 == 0x2002:
		if bits > 16 {
			return at(2), min(bits-16, 32), 16
		}
	case bits <= 96:
	case hi == 0 && binary.BigEndian.Uint32(b[8:]) == 0xffff,
		hi == 0x0064ff9b<<32 && binary.BigEndian.Uint32(b[8:]) == 0:
		return at(12), bits - 96, 96
	case hi>>32 == 0x20010000: // Teredo: the client's address, inverted
		n := binary.BigEndian.Uint32(b[12:])
		return key{hi: uint64(^n) << 32}.masked(bits - 96).addr(true), bits - 96, 96
	}
	return addr, bits, 0
}
