package plan

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// CandidateList is a candidate list by the names of its regions.
type CandidateList struct {
	Split  []RegionShare `json:"split,omitempty"` // the first tier
	Order  []string      `json:"order,omitempty"`
	Refuse bool          `json:"refuse,omitempty"` // these clients get no data
}

// RegionShare is a region with its relative weight in a split.
type RegionShare struct {
	Region string `json:"region"`
	Weight uint32 `json:"weight"`
}

// ListWhy is the client's candidate list and where it comes from.
type ListWhy struct {
	CandidateList
	// By is what gave it: rule, fill, rest, distance, order_written or latency. With
	// Exact, this and all below is why the address has that list.
	By         string       `json:"by"`
	Rule       *RuleWhy     `json:"rule,omitempty"`       // for rule and rest; for latency, of what it put in order
	FilledFrom netip.Prefix `json:"filled_from,omitzero"` // for fill: the located neighbour
	Distances  []Distance   `json:"distances,omitempty"`  // where they made the order
	Latency    *LatencyWhy  `json:"latency,omitempty"`    // what the host's map says
	Fences     []FenceWhy   `json:"fences,omitempty"`     // that confine the client
	LeftOut    []LeftOut    `json:"left_out,omitempty"`   // regions that are no candidates
	// Exact is the list of the address alone, where it differs: the block is as
	// short as ecs max has it, and most of its addresses have another list.
	Exact *CandidateList `json:"exact,omitempty"`
}

// RuleWhy is the rule that matched.
type RuleWhy struct {
	At    string `json:"at"`              // its statement, as file:line
	Match string `json:"match,omitempty"` // what of it matched, as written in a Corefile
	Line  string `json:"line,omitempty"`  // of a file of prefixes, as file:line
}

// Distance is how far a region is on the great circle.
type Distance struct {
	Region     string `json:"region"`
	Kilometres int    `json:"km"`
}

// FenceWhy is a fence that confines the client.
type FenceWhy struct {
	Area    string   `json:"area"`
	At      string   `json:"at"`
	Regions []string `json:"regions"` // that it leaves
	// Broken: with Exact, the list in use leads out of the fence, since most
	// addresses of the block are outside it.
	Broken bool `json:"broken,omitempty"`
}

// LeftOut is a region that is no candidate, and why: no_pool, fenced, or
// not_listed.
type LeftOut struct {
	Region string `json:"region"`
	Why    string `json:"why"`
}

// listWhy explains the list found for a client whose address is addr.
func (h *Host) listWhy(p *Plan, found *topology.Client, addr netip.Addr, why *topology.Reasons) ListWhy {
	list := &h.Need.Topology.Lists[found.List]
	l := ListWhy{CandidateList: h.Need.names(list), By: wordOf(why)}
	base := why // what the list would be made of without a latency map
	if why.Without != nil {
		base = why.Without
	}
	switch base.By {
	case topology.ByRule:
		l.Rule = h.ruleWhy(p.Data, addr, base)
	case topology.ByRest:
		l.Rule = &RuleWhy{At: h.rules.restPos.String(), Match: "rest"}
	case topology.ByFill:
		l.FilledFrom = base.From
	}
	if l.Latency = h.latencyWhy(p.Data, why, addr, found.ECS); l.Latency != nil {
		l.Latency.Costs = h.Need.costsWhy(found.List)
	}
	l.Distances = h.Need.distances(base)
	for _, name := range why.Fences {
		i := slices.IndexFunc(p.Block.Fences, func(f config.Fence) bool { return f.Area == name })
		f := p.Block.Fences[i]
		l.Fences = append(l.Fences, FenceWhy{Area: f.Area, At: f.Pos.String(), Regions: f.Regions, Broken: l.leaves(f.Regions)})
	}
	l.LeftOut = h.Need.leftOut(list)
	of, its := *list, why.List
	of.Marks, its.Marks = 0, 0 // they move nobody by themselves
	if !reflect.DeepEqual(its, of) {
		exact := h.Need.names(&why.List)
		l.Exact = &exact
	}
	return l
}

// wordOf is what gave a list, in one word.
func wordOf(why *topology.Reasons) string { return strings.ReplaceAll(string(why.By), " ", "_") }

func (n *Need) region(r topology.Region) string { return n.Input.Regions[r].Name }

func (n *Need) names(l *topology.List) CandidateList {
	c := CandidateList{Refuse: l.Refuse}
	for _, w := range l.Split {
		c.Split = append(c.Split, RegionShare{n.region(w.Region), w.Weight})
	}
	for _, r := range l.Order {
		c.Order = append(c.Order, n.region(r))
	}
	return c
}

// leaves tells whether a list has other regions than these.
func (l *CandidateList) leaves(regions []string) bool {
	return slices.ContainsFunc(l.Split, func(s RegionShare) bool { return !slices.Contains(regions, s.Region) }) ||
		slices.ContainsFunc(l.Order, func(r string) bool { return !slices.Contains(regions, r) })
}

// leftOut names the regions that a list doesn't.
func (n *Need) leftOut(l *topology.List) (out []LeftOut) {
	if l.Refuse {
		return nil
	}
	for i, info := range n.Input.Regions {
		r := topology.Region(i)
		listed := slices.Contains(l.Order, r) ||
			slices.ContainsFunc(l.Split, func(w topology.Weighted) bool { return w.Region == r })
		switch {
		case listed:
		case !info.Pooled:
			out = append(out, LeftOut{info.Name, "no_pool"})
		case l.Fenced && !l.Allowed.Has(r):
			out = append(out, LeftOut{info.Name, "fenced"})
		default:
			out = append(out, LeftOut{info.Name, "not_listed"})
		}
	}
	return out
}

// ruleWhy tells which rule matched, and by which of its values.
func (h *Host) ruleWhy(d *Data, addr netip.Addr, why *topology.Reasons) *RuleWhy {
	from := h.rules.from[why.Rule]
	w := &RuleWhy{At: from.pos.String()}
	var parts []string
	for _, a := range h.Need.Input.Rules[why.Rule].Alts {
		part, prefix := matched(a, addr, why)
		parts = append(parts, part)
		if from.file != "" && w.Line == "" && prefix.IsValid() {
			w.Line = d.lineOf(from.file, prefix)
		}
	}
	w.Match = strings.Join(parts, " in ")
	return w
}

// matched is the value of an alternative that holds the client; of prefixes,
// the longest.
func matched(a topology.Alt, addr netip.Addr, why *topology.Reasons) (text string, prefix netip.Prefix) {
	switch a.Kind {
	case topology.Continent:
		return "continent " + why.Geo.Continent, prefix
	case topology.Country:
		return "country " + why.Geo.Country, prefix
	case topology.Subdivision:
		i := slices.IndexFunc(why.Geo.Subdivisions, func(s string) bool { return slices.Contains(a.Codes, s) })
		return "subdivision " + why.Geo.Subdivisions[i], prefix
	case topology.ASN:
		return fmt.Sprintf("asn %d", why.ASN.ASN), prefix
	}
	for _, p := range a.Prefixes {
		if p.Contains(addr) && (!prefix.IsValid() || p.Bits() > prefix.Bits()) {
			prefix = p
		}
	}
	return "prefix " + prefix.String(), prefix
}

// lineOf is the place of a prefix in a file of prefixes; empty if it isn't there.
func (d *Data) lineOf(file string, prefix netip.Prefix) string {
	for _, line := range d.lists[file].lines {
		if line.Prefix == prefix {
			return config.Pos{File: file, Line: line.Line}.String()
		}
	}
	return ""
}

// distances are those that made the order of a list, nearest first: from the
// client, or from the region whose clients they are.
func (n *Need) distances(why *topology.Reasons) (ds []Distance) {
	var lat, lon float64
	switch {
	case why.By == topology.ByDistance:
		lat, lon = why.Geo.Lat, why.Geo.Lon
	case why.By == topology.ByRule && n.Input.Rules[why.Rule].Spec.Near != nil:
		own := n.Input.Regions[*n.Input.Rules[why.Rule].Spec.Near]
		if !own.Located {
			return nil
		}
		lat, lon = own.Lat, own.Lon
	default:
		return nil
	}
	for _, r := range n.Input.Regions {
		if r.Located && r.Pooled {
			ds = append(ds, Distance{r.Name, Kilometres(lat, lon, r.Lat, r.Lon)})
		}
	}
	slices.SortStableFunc(ds, func(a, b Distance) int { return a.Kilometres - b.Kilometres })
	return ds
}

// Kilometres is the great-circle distance between two points in degrees.
func Kilometres(lat1, lon1, lat2, lon2 float64) int {
	const radians, radius = math.Pi / 180, 6371
	hav := func(d float64) float64 { s := math.Sin(d * radians / 2); return s * s }
	h := hav(lat2-lat1) + math.Cos(lat1*radians)*math.Cos(lat2*radians)*hav(lon2-lon1)
	return int(math.Round(2 * radius * math.Asin(math.Sqrt(min(1, h)))))
}
