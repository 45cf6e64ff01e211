package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

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
		return m.rest
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

// measured puts the regions of a list that the map's entry names first, but not of a split that
// was written; of the others, those that are equally far come first, then the order.
func (m *model) measured(list string, order []Region, depth int) (string, bool) {
	body, fence, fenced := strings.Cut(list, "|")
	if list == "refuse" {
		return "", false
	}
	names := strings.Split(body, ">")
	if strings.Contains(body, ":") {
		var split []string
		for _, one := range strings.Split(names[0], "+") {
			name, tied := strings.CutSuffix(one, ":1") // weights written in random worlds are others
			if !tied {
				return "", false
			}
			split = append(split, name)
		}
		names = append(split, names[1:]...)
	}
	var first []string
	for _, r := range order {
		n := m.in.Regions[r].Name
		if slices.Contains(names, n) && !slices.Contains(first, n) && (depth == 0 || len(first) < depth) {
			first = append(first, n)
		}
	}
	if len(first) == 0 {
		return "", false
	}
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(first, n) })
	list = strings.Join(append(first, names...), ">")
	if fenced {
		list += "|" + fence
	}
	return list, true
}

// text writes a compiled list as the model does. Marks are "#0#3" at the end.
func text(in *Input, l *List) string {
	marks := ""
	for i := range in.Marks {
		if l.Marks>>i&1 == 1 {
			marks += fmt.Sprint("#", i)
		}
	}
	if l.Refuse {
		return "refuse" + marks
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
	return s + marks
}
