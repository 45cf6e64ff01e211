package topology

import (
	"net/netip"
	"slices"
)

// The model computes what the package promises the slow and obvious way, over
// an IPv4 space cut into 65,536 pieces of /16. Every special block is at least
// that large, so the model sees all of them.

const leaves = 1 << 16

func leafAddr(x int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(x >> 8), byte(x), 0, 0})
}

type model struct {
	in   *Input
	list [leaves]string // final lists, written out
	bar  [leaves]int
}

func newModel(in *Input) *model {
	m := &model{in: in}
	var db [leaves]string // list by the databases; "" when unlocated
	var spreads [leaves]bool
	for x := range leaves {
		a := leafAddr(x)
		m.bar[x] = barrierOf(a)
		geo, asn := find(in.Geo, a), find(in.ASN, a)
		list, located := m.byFacts(geo, asn)
		if located {
			db[x] = list
		}
		spreads[x] = located && !m.fencedByFacts(geo, asn) && m.bar[x] == 0
	}
	if in.Fill && (in.Geo != nil || in.ASN != nil) {
		m.fill(&db, &spreads)
	}
	for x := range leaves {
		if db[x] == "" {
			db[x] = m.deflt()
		}
		a := leafAddr(x)
		m.list[x] = m.final(a, find(in.Geo, a), find(in.ASN, a), db[x])
	}
	return m
}

// fill goes through the levels of the whole binary tree, from the leaves up.
func (m *model) fill(db *[leaves]string, spreads *[leaves]bool) {
	for size := 1; size < leaves; size *= 2 {
		for at := 0; at < leaves; at += 2 * size {
			l, r := db[at:at+size], db[at+size:at+2*size]
			ls, rs := spreads[at:at+size], spreads[at+size:at+2*size]
			lb, rb := m.bar[at:at+size], m.bar[at+size:at+2*size]
			switch {
			case allEmpty(l, lb) && uniform(r, rs):
				set(l, r[0])
				setTrue(ls)
			case allEmpty(r, rb) && uniform(l, ls):
				set(r, l[0])
				setTrue(rs)
			}
		}
	}
}

func allEmpty(l []string, bar []int) bool {
	for i := range l {
		if l[i] != "" || bar[i] != 0 {
			return false
		}
	}
	return true
}

func uniform(l []string, spreads []bool) bool {
	for i := range l {
		if l[i] != l[0] || !spreads[i] {
			return false
		}
	}
	return l[0] != ""
}

func set(l []string, v string) {
	for i := range l {
		l[i] = v
	}
}

func setTrue(l []bool) {
	for i := range l {
		l[i] = true
	}
}

func barrierOf(a netip.Addr) int {
	for i, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
		"224.0.0.0/3", "fc00::/7", "fe80::/10", "ff00::/8", "::/128", "::1/128", "::ffff:0:0/96", "64:ff9b::/96",
		"2002::/16", "2001::/32",
	} {
		if netip.MustParsePrefix(s).Contains(a) {
			return i + 1
		}
	}
	return 0
}

func find(d *Database, a netip.Addr) *Facts {
	if d == nil {
		return nil
	}
	for p, i := range d.Networks {
		if p.Contains(a) {
			return &d.Facts[i]
		}
	}
	return nil
}

func (m *model) altHolds(alt *Alt, a netip.Addr, geo, asn *Facts) bool {
	switch alt.Kind {
	case Continent:
		return geo != nil && slices.Contains(alt.Codes, geo.Continent)
	case Country:
		return geo != nil && slices.Contains(alt.Codes, geo.Country)
	case Subdivision:
		if geo != nil {
			for _, s := range geo.Subdivisions {
				if slices.Contains(alt.Codes, s) {
					return true
				}
			}
		}
		return false
	case ASN:
		return asn != nil && slices.Contains(alt.ASNs, asn.ASN)
	}
	return longest(alt.Prefixes, a) >= 0
}

func longest(ps []netip.Prefix, a netip.Addr) int {
	best := -1
	for _, p := range ps {
		if p.Contains(a) {
			best = max(best, p.Bits())
		}
	}
	return best
}

func hasPrefix(alts []Alt) bool {
	return slices.ContainsFunc(alts, func(a Alt) bool { return a.Kind == Prefix })
}

func (m *model) allHold(alts []Alt, a netip.Addr, geo, asn *Facts) bool {
	for i := range alts {
		if !m.altHolds(&alts[i], a, geo, asn) {
			return false
		}
	}
	return true
}

// better compares what two rules rank by: kind, prefix length, alternatives.
func better(a, b [3]int) bool { return slices.Compare(a[:], b[:]) > 0 }

func (m *model) byFacts(geo, asn *Facts) (list string, located bool) {
	list = m.deflt()
	located = geo != nil && (geo.Country != "" || geo.Continent != "" || geo.Coordinates)
	ranked := [3]int{}
	for _, r := range m.in.Rules {
		if hasPrefix(r.Alts) || !m.allHold(r.Alts, netip.Addr{}, geo, asn) {
			continue
		}
		text := m.spec(r.Spec)
		if text == "-" {
			continue
		}
		located = true
		if rk := [3]int{int(r.Alts[0].Kind), 0, len(r.Alts)}; better(rk, ranked) {
			ranked, list = rk, text
		}
	}
	if m.fencedByFacts(geo, asn) {
		located = true
	}
	if ranked == [3]int{} && m.in.Rest == nil && geo != nil && geo.Coordinates {
		list = m.distance(geo.Lat, geo.Lon)
	}
	return list, located
}

func (m *model) fencedByFacts(geo, asn *Facts) bool {
	for _, f := range m.in.Fences {
		for _, alts := range f.Match {
			if !hasPrefix(alts) && m.allHold(alts, netip.Addr{}, geo, asn) {
				return true
			}
		}
	}
	return false
}

func (m *model) final(a netip.Addr, geo, asn *Facts, db string) string {
	list := db
	ranked := [3]int{}
	if geo != nil || asn != nil { // rules that need no prefix ranked already
		for _, r := range m.in.Rules {
			if !hasPrefix(r.Alts) && m.spec(r.Spec) != "-" && m.allHold(r.Alts, a, geo, asn) {
				if rk := [3]int{int(r.Alts[0].Kind), 0, len(r.Alts)}; better(rk, ranked) {
					ranked = rk
				}
			}
		}
	}
	for _, r := range m.in.Rules {
		if !hasPrefix(r.Alts) || !m.allHold(r.Alts, a, geo, asn) || m.spec(r.Spec) == "-" {
			continue
		}
		bits := 0
		if r.Alts[0].Kind == Prefix {
			bits = longest(r.Alts[0].Prefixes, a)
		}
		if rk := [3]int{int(r.Alts[0].Kind), bits, len(r.Alts)}; better(rk, ranked) {
			ranked, list = rk, m.spec(r.Spec)
		}
	}
	for _, f := range m.in.Fences {
		for _, alts := range f.Match {
			if m.allHold(alts, a, geo, asn) {
				list = m.fence(list, f)
				break
			}
		}
	}
	return list
}
