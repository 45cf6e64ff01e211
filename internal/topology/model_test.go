package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// The model computes what the package promises the slow and obvious way, over
// an IPv4 space cut into 65,536 pieces of /16. Every special block is at least
// that large, so the model sees all of them.

const leaves = 1 << 16

func leafAddr(x int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(x >> 8), byte(x), 0, 0})
}

type model struct {
	in       *Input
	rules    []string // lists of the rules, written out
	rest     string   // the list of those for whom no rule decides
	geo, asn [leaves]*Facts
	bar      *[leaves]int   // the special-purpose block of each piece; 0: none
	list     [leaves]string // final lists, written out
	kind     [leaves]Kind   // what gave them
}

// bars are the same for all models.
var bars = sync.OnceValue(func() *[leaves]int {
	var all [leaves]int
	for x := range leaves {
		all[x] = barrierOf(leafAddr(x))
	}
	return &all
})

// newFacts is a model that knows the facts of every piece.
func newFacts(in *Input) *model {
	m := &model{in: in, bar: bars()}
	m.rest = m.deflt()
	for _, r := range in.Rules {
		m.rules = append(m.rules, m.spec(r.Spec))
	}
	for i, d := range []*Database{in.Geo, in.ASN} {
		if d == nil {
			continue
		}
		facts := [...]*[leaves]*Facts{&m.geo, &m.asn}[i]
		for p, at := range d.Networks {
			from, n := piecesOf(p)
			for x := from; x < from+n; x++ {
				facts[x] = &d.Facts[at]
			}
		}
	}
	return m
}

// piecesOf gives the first piece of a prefix, and their number.
func piecesOf(p netip.Prefix) (from, n int) {
	a := p.Addr().As4()
	return int(a[0])<<8 | int(a[1]), leaves >> p.Bits()
}

// newModel works out the lists of all pieces under one of the input's latency
// maps, or nil.
func newModel(in *Input, latency *Measured) *model {
	m := newFacts(in)
	ms := measurementsOf(latency)
	var db [leaves]string // list by the databases; "" when unlocated
	var spreads [leaves]bool
	for x := range leaves {
		list, kind, located := m.byFacts(m.geo[x], m.asn[x])
		m.kind[x] = Fill
		if located {
			db[x], m.kind[x] = list, kind
		}
		spreads[x] = located && !m.fencedByFacts(m.geo[x], m.asn[x]) && m.bar[x] == 0
	}
	if in.Fill && (in.Geo != nil || in.ASN != nil) {
		m.fill(&db, &spreads)
	}
	for x := range leaves {
		if db[x] == "" {
			db[x] = m.rest
			_, m.kind[x], _ = m.byFacts(nil, nil)
		}
		m.list[x], m.kind[x] = m.final(x, db[x], m.kind[x], ms)
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

var barrierPrefixes = pfx("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.168.0.0/16", "224.0.0.0/3", "fc00::/7", "fe80::/10", "ff00::/8", "::/128", "::1/128", "::ffff:0:0/96", "64:ff9b::/96",
	"2002::/16", "2001::/32")

func barrierOf(a netip.Addr) int {
	for i, p := range barrierPrefixes {
		if p.Contains(a) {
			return i + 1
		}
	}
	return 0
}

// measurements are what a latency map says of each piece.
type measurements struct {
	orders [leaves][]Region
	depth  int
}

func measurementsOf(latency *Measured) *measurements {
	if latency == nil {
		return nil
	}
	ms := &measurements{depth: latency.Depth}
	for p, i := range latency.Networks {
		from, n := piecesOf(p)
		for x := from; x < from+n; x++ {
			ms.orders[x] = latency.Orders[i]
		}
	}
	return ms
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

func (m *model) byFacts(geo, asn *Facts) (list string, kind Kind, located bool) {
	list = m.rest
	if m.in.Rest != nil {
		kind = Rest
	}
	located = geo != nil && (geo.Country != "" || geo.Continent != "" || geo.Coordinates)
	ranked := [3]int{}
	for i, r := range m.in.Rules {
		if hasPrefix(r.Alts) || !m.allHold(r.Alts, netip.Addr{}, geo, asn) {
			continue
		}
		text := m.rules[i]
		if text == "-" {
			continue
		}
		located = true
		if rk := [3]int{int(r.Alts[0].Kind), 0, len(r.Alts)}; better(rk, ranked) {
			ranked, list, kind = rk, text, r.Alts[0].Kind
		}
	}
	if m.fencedByFacts(geo, asn) {
		located = true
	}
	if ranked == [3]int{} && m.in.Rest == nil && geo != nil && geo.Coordinates {
		list = m.distance(geo.Lat, geo.Lon)
		if len(m.ranked(0, 0)) > 0 {
			kind = Distance
		}
	}
	return list, kind, located
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

// final puts prefix rules, fences, a latency map and marks over what the
// databases gave an address.
func (m *model) final(x int, list string, kind Kind, latency *measurements) (string, Kind) {
	a, geo, asn := leafAddr(x), m.geo[x], m.asn[x]
	ranked := [3]int{}
	if geo != nil || asn != nil { // rules that need no prefix ranked already
		for i, r := range m.in.Rules {
			if !hasPrefix(r.Alts) && m.rules[i] != "-" && m.allHold(r.Alts, a, geo, asn) {
				if rk := [3]int{int(r.Alts[0].Kind), 0, len(r.Alts)}; better(rk, ranked) {
					ranked = rk
				}
			}
		}
	}
	for i, r := range m.in.Rules {
		if !hasPrefix(r.Alts) || !m.allHold(r.Alts, a, geo, asn) || m.rules[i] == "-" {
			continue
		}
		bits := 0
		if r.Alts[0].Kind == Prefix {
			bits = longest(r.Alts[0].Prefixes, a)
		}
		if rk := [3]int{int(r.Alts[0].Kind), bits, len(r.Alts)}; better(rk, ranked) {
			ranked, list, kind = rk, m.rules[i], r.Alts[0].Kind
		}
	}
	for _, f := range m.in.Fences {
		if m.anyHolds(f.Match, a, geo, asn) {
			list = m.fence(list, f)
		}
	}
	return m.after(x, list, kind, latency)
}

// after puts a latency map and the marks over what all else gave a piece.
func (m *model) after(x int, list string, kind Kind, latency *measurements) (string, Kind) {
	if kind != Prefix && m.bar[x] == 0 && latency != nil {
		if l, ok := m.measured(list, latency.orders[x], latency.depth); ok {
			list, kind = l, Latency
		}
	}
	for i, k := range m.in.Marks {
		if m.anyHolds(k.Match, leafAddr(x), m.geo[x], m.asn[x]) {
			list += fmt.Sprint("#", i)
		}
	}
	return list, kind
}

func (m *model) anyHolds(match [][]Alt, a netip.Addr, geo, asn *Facts) bool {
	return slices.ContainsFunc(match, func(alts []Alt) bool { return m.allHold(alts, a, geo, asn) })
}
