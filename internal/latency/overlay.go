package latency

import (
	"net/netip"
	"slices"
)

// overlay calls visit for every piece of the address space that entries of a or
// of b hold, in address order, with the entries that hold it; either may be nil.
// A piece is as large as it can be.
func overlay(a, b []Entry, visit func(p netip.Prefix, a, b *Entry)) {
	for len(a) > 0 && len(b) > 0 {
		p, q := a[0].Prefix, b[0].Prefix
		switch {
		case !p.Overlaps(q) && p.Addr().Less(q.Addr()):
			visit(p, &a[0], nil)
			a = a[1:]
		case !p.Overlaps(q):
			visit(q, nil, &b[0])
			b = b[1:]
		case p.Bits() <= q.Bits():
			n := inside(b, p)
			pieces(p, b[:n], func(piece netip.Prefix, in *Entry) { visit(piece, &a[0], in) })
			a, b = a[1:], b[n:]
		default:
			n := inside(a, q)
			pieces(q, a[:n], func(piece netip.Prefix, in *Entry) { visit(piece, in, &b[0]) })
			a, b = a[n:], b[1:]
		}
	}
	for i := range a {
		visit(a[i].Prefix, &a[i], nil)
	}
	for i := range b {
		visit(b[i].Prefix, nil, &b[i])
	}
}

// inside is how many of the first entries lie in a prefix.
func inside(entries []Entry, p netip.Prefix) int {
	end := last(p)
	n, _ := slices.BinarySearchFunc(entries, end, func(e Entry, end netip.Addr) int {
		if e.Prefix.Addr().Compare(end) <= 0 {
			return -1
		}
		return 1
	})
	return n
}

// pieces cuts a prefix along the entries in it.
func pieces(p netip.Prefix, in []Entry, visit func(p netip.Prefix, in *Entry)) {
	switch {
	case len(in) == 0:
		visit(p, nil)
		return
	case in[0].Prefix == p:
		visit(p, &in[0])
		return
	}
	zero, one := halves(p)
	n := inside(in, zero)
	pieces(zero, in[:n], visit)
	pieces(one, in[n:], visit)
}
