package latency

import (
	"errors"
	"net/netip"
	"slices"
)

// rule is a prefix of a foreign file, where prefixes may lie inside others: the
// most specific one counts.
type rule struct {
	prefix netip.Prefix
	order  uint16 // index into a list of distinct orders
	line   int
}

// noRule is the order of addresses that no rule is for, and mixed that of
// networks with several.
const (
	noRule = -1
	mixed  = -2
)

// flatten turns rules into entries without overlaps, as few as there can be.
// clash makes the error for two rules of the same prefix and different orders.
func flatten(rules []rule, orders [][]uint8, clash func(a, b rule) error) ([]Entry, error) {
	slices.SortStableFunc(rules, func(a, b rule) int {
		if c := a.prefix.Addr().Compare(b.prefix.Addr()); c != 0 {
			return c
		}
		return a.prefix.Bits() - b.prefix.Bits()
	})
	for i := 1; i < len(rules); i++ {
		if a, b := rules[i-1], rules[i]; a.prefix == b.prefix && a.order != b.order {
			return nil, clash(a, b)
		}
	}
	f := flattener{orders: orders}
	first6 := slices.IndexFunc(rules, func(r rule) bool { return r.prefix.Addr().Is6() })
	if first6 < 0 {
		first6 = len(rules)
	}
	all4, all6 := netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	f.emit(all4, f.visit(all4, rules[:first6], noRule))
	f.emit(all6, f.visit(all6, rules[first6:], noRule))
	if f.full {
		return nil, errTooMany
	}
	slices.SortFunc(f.entries, func(a, b Entry) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
	return f.entries, nil
}

type flattener struct {
	orders  [][]uint8
	entries []Entry
	full    bool
}

// visit is the order of a network that the rules inside it give all of it, where
// the rules around give one. If it is mixed, its parts have been emitted.
func (f *flattener) visit(p netip.Prefix, rules []rule, order int) int {
	for len(rules) > 0 && rules[0].prefix == p {
		order, rules = int(rules[0].order), rules[1:]
	}
	if len(rules) == 0 || f.full {
		return order
	}
	zero, one := halves(p)
	n, _ := slices.BinarySearchFunc(rules, one.Addr(), func(r rule, a netip.Addr) int { return r.prefix.Addr().Compare(a) })
	z := f.visit(zero, rules[:n], order)
	o := f.visit(one, rules[n:], order)
	if z == o {
		return z
	}
	f.emit(zero, z)
	f.emit(one, o)
	return mixed
}

func (f *flattener) emit(p netip.Prefix, order int) {
	switch {
	case order < 0 || validPrefix(p) != nil: // pieces around a rule may lie where IPv4 is embedded, and nobody looks
	case len(f.entries) == MaxEntries:
		f.full = true
	default:
		f.entries = append(f.entries, Entry{Prefix: p, Order: f.orders[order]})
	}
}

// orderList are the distinct orders of a foreign file.
type orderList struct {
	list  [][]uint8
	index map[string]uint16
}

func (l *orderList) of(order []uint8) (uint16, error) {
	if i, ok := l.index[string(order)]; ok {
		return i, nil
	}
	if len(l.list) == 1<<16-1 {
		return 0, errors.New("more than 65535 different orders of regions")
	}
	if l.index == nil {
		l.index = map[string]uint16{}
	}
	i := uint16(len(l.list))
	l.list = append(l.list, order)
	l.index[string(order)] = i
	return i, nil
}
