package topology

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
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

// Lists are written "eu:70+us:30>ap>sa", refused ones "refuse", and those that
// reach no region "-". A fence appends "|eu,us".
func (m *model) spec(s Spec) string {
	if s.Refuse {
		return "refuse"
	}
	if s.Near != nil {
		return m.near(*s.Near)
	}
	var split []string
	var order []string
	seen := map[Region]bool{}
	for _, w := range s.Split {
		if m.in.Regions[w.Region].Pooled {
			split = append(split, fmt.Sprintf("%s:%d", m.in.Regions[w.Region].Name, w.Weight))
			seen[w.Region] = true
		}
	}
	names := slices.Clone(s.Order)
	if s.Rest {
		for r := range m.in.Regions {
			names = append(names, Region(r))
		}
	}
	for _, r := range names {
		if m.in.Regions[r].Pooled && !seen[r] {
			order = append(order, m.in.Regions[r].Name)
			seen[r] = true
		}
	}
	return join(split, order)
}

func join(split, order []string) string {
	if len(split) == 1 {
		order = append([]string{split[0][:strings.Index(split[0], ":")]}, order...)
		split = nil
	}
	if len(split)+len(order) == 0 {
		return "-"
	}
	return strings.TrimPrefix(strings.TrimSuffix(strings.Join(split, "+")+">"+strings.Join(order, ">"), ">"), ">")
}

func (m *model) deflt() string {
	if m.in.Rest != nil {
		if t := m.spec(*m.in.Rest); t != "-" {
			return t
		}
	}
	return m.spec(Spec{Rest: true})
}

func (m *model) near(r Region) string {
	info := m.in.Regions[r]
	if !info.Located {
		return m.spec(Spec{Order: []Region{r}, Rest: true})
	}
	order := []Region{r}
	for _, o := range m.ranked(info.Lat, info.Lon) {
		if o != r {
			order = append(order, o)
		}
	}
	keep := m.in.Depth
	if !info.Pooled {
		keep++ // r itself is no candidate
	}
	return m.spec(Spec{Order: order[:min(keep, len(order))], Rest: true})
}

// ranked gives the located regions with a pool, nearest first, by haversine.
func (m *model) ranked(lat, lon float64) []Region {
	var rs []Region
	for r, i := range m.in.Regions {
		if i.Located && i.Pooled {
			rs = append(rs, Region(r))
		}
	}
	slices.SortStableFunc(rs, func(a, b Region) int {
		da, db := m.haversine(lat, lon, a), m.haversine(lat, lon, b)
		if math.Abs(da-db) < 1e-6 {
			return int(a) - int(b)
		}
		return int(math.Copysign(1, da-db))
	})
	return rs
}

func (m *model) haversine(lat, lon float64, r Region) float64 {
	rad := func(d float64) float64 { return d * math.Pi / 180 }
	i := m.in.Regions[r]
	sLat, sLon := math.Sin(rad(i.Lat-lat)/2), math.Sin(rad(i.Lon-lon)/2)
	h := sLat*sLat + math.Cos(rad(lat))*math.Cos(rad(i.Lat))*sLon*sLon
	return 2 * 6371 * math.Asin(math.Sqrt(math.Min(1, h)))
}

func (m *model) distance(lat, lon float64) string {
	rs := m.ranked(lat, lon)
	if len(rs) == 0 {
		return m.deflt()
	}
	var split []Weighted
	for _, r := range rs {
		if math.Abs(m.haversine(lat, lon, r)-m.haversine(lat, lon, rs[0])) < 1e-6 {
			split = append(split, Weighted{r, 1})
		}
	}
	order := rs[:min(m.in.Depth, len(rs))]
	if len(split) < 2 {
		split = nil
	}
	return m.spec(Spec{Split: split, Order: order, Rest: true})
}

func (m *model) fence(list string, f Fence) string {
	if list == "refuse" {
		return list
	}
	allowed := map[string]bool{}
	var names []string
	body, was, twice := strings.Cut(list, "|")
	for _, r := range f.Regions {
		if !twice || slices.Contains(strings.Split(was, ","), m.in.Regions[r].Name) {
			allowed[m.in.Regions[r].Name] = true
			names = append(names, m.in.Regions[r].Name)
		}
	}
	var split, order []string
	for _, part := range strings.Split(body, ">") {
		for _, one := range strings.Split(part, "+") {
			name, _, weighted := strings.Cut(one, ":")
			switch {
			case !allowed[name]:
			case weighted:
				split = append(split, one)
			default:
				order = append(order, name)
			}
		}
	}
	text := join(split, order)
	if text == "-" {
		var rs []Region
		for _, r := range f.Regions {
			if allowed[m.in.Regions[r].Name] {
				rs = append(rs, r)
			}
		}
		text = m.spec(Spec{Order: rs})
	}
	slices.Sort(names)
	return text + "|" + strings.Join(names, ",")
}

// text writes a compiled list as the model does.
func text(in *Input, l *List) string {
	if l.Refuse {
		return "refuse"
	}
	var split, order []string
	for _, w := range l.Split {
		split = append(split, fmt.Sprintf("%s:%d", in.Regions[w.Region].Name, w.Weight))
	}
	for _, r := range l.Order {
		order = append(order, in.Regions[r].Name)
	}
	s := join(split, order)
	if l.Fenced {
		var names []string
		for r, i := range in.Regions {
			if l.Allowed.Has(Region(r)) {
				names = append(names, i.Name)
			}
		}
		slices.Sort(names)
		s += "|" + strings.Join(names, ",")
	}
	return s
}
