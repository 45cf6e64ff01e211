package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// ruleSet is the rules of a block, or a host's own, for the topology.
type ruleSet struct {
	rules   []topology.Rule
	from    []origin // of each rule
	rest    *topology.Spec
	restPos config.Pos
}

// origin is where a rule comes from.
type origin struct {
	pos  config.Pos // of its statement
	file string     // path of the file that its first prefixes are in; empty: none
}

// compiler turns a block and its data into topologies and hosts.
type compiler struct {
	block   *config.Block
	data    *Data
	regions map[string]topology.Region
	fences  []topology.Fence
	marks   []topology.Mark
	common  *ruleSet // of hosts without rules of their own
	plan    *Plan
	needs   map[string]*Need
	now     time.Time
	// measured are the latency maps, by path.
	measured map[string]*latencyMap
	apart    [][]float64 // round trips between regions, see costs
}

func newCompiler(b *config.Block, d *Data, p *Plan, now time.Time) (*compiler, error) {
	c := &compiler{block: b, data: d, plan: p, regions: regionIDs(b), needs: make(map[string]*Need), now: now, measured: make(map[string]*latencyMap), apart: waysBetween(b.Regions)}
	for _, f := range b.Fences {
		c.fences = append(c.fences, topology.Fence{Name: f.Area, Match: c.area(f.Pos, f.Area), Regions: c.ids(f.Regions)})
	}
	for _, name := range marksOf(b) {
		c.marks = append(c.marks, topology.Mark{Name: name, Match: c.area(b.Pos, name)})
	}
	common, err := c.ruleSet(b.Rules, true)
	c.common = common
	return c, err
}

// area gives the conjunctions of an area.
func (c *compiler) area(pos config.Pos, name string) (match [][]topology.Alt) {
	for _, m := range c.block.Expand(config.Match{Pos: pos, Alts: []config.Alt{{Kind: config.AltArea, Codes: []string{name}}}}) {
		match = append(match, c.alts(m))
	}
	return match
}

// regionIDs numbers the regions in the order written.
func regionIDs(b *config.Block) map[string]topology.Region {
	ids := make(map[string]topology.Region, len(b.Regions))
	for i, r := range b.Regions {
		ids[r.Name] = topology.Region(i)
	}
	return ids
}

func (c *compiler) ids(names []string) []topology.Region {
	ids := make([]topology.Region, len(names))
	for i, n := range names {
		ids[i] = c.regions[n]
	}
	return ids
}

// ruleSet converts rules, and with nets the lines of the block's nets files.
func (c *compiler) ruleSet(rules []config.Rule, nets bool) (*ruleSet, error) {
	s := &ruleSet{}
	for _, r := range rules {
		spec := c.spec(r)
		if r.Rest {
			s.rest, s.restPos = &spec, r.Pos
			continue
		}
		for _, m := range c.block.Expand(r.Match) {
			s.rules = append(s.rules, topology.Rule{Alts: c.alts(m), Spec: spec})
			s.from = append(s.from, origin{r.Pos, c.fileOf(m)})
		}
	}
	if nets {
		if err := c.addNets(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// addNets adds one rule for each distinct list of each nets file. A prefix that
// is written twice with different lists is an error.
func (c *compiler) addNets(s *ruleSet) error {
	written := make(map[netip.Prefix]string)
	for i, r := range s.rules {
		if len(r.Alts) == 1 && r.Alts[0].Kind == topology.Prefix {
			for _, p := range r.Alts[0].Prefixes {
				written[p] = s.from[i].pos.String()
			}
		}
	}
	byList := make(map[string]int)
	for _, n := range c.block.Nets {
		for _, line := range c.data.lists[c.data.path(n.Path)].lines {
			at := config.Pos{File: n.Path, Line: line.Line}
			if where, twice := written[line.Prefix]; twice {
				return fmt.Errorf("%s: prefix %s is already written at %s: write it once", at, line.Prefix, where)
			}
			written[line.Prefix] = at.String()
			key := strings.Join(append([]string{n.Path}, line.Words...), " ")
			i, ok := byList[key]
			if !ok {
				i = len(s.rules)
				byList[key] = i
				s.rules = append(s.rules, topology.Rule{
					Alts: []topology.Alt{{Kind: topology.Prefix}},
					Spec: topology.Spec{Order: c.ids(line.Words)},
				})
				s.from = append(s.from, origin{n.Pos, c.data.path(n.Path)})
			}
			alt := &s.rules[i].Alts[0]
			alt.Prefixes = append(alt.Prefixes, line.Prefix)
		}
	}
	return nil
}

// fileOf is the path of the first file of prefixes in a match.
func (c *compiler) fileOf(m config.Match) string {
	for _, a := range m.Alts {
		if a.Kind == config.AltFile {
			return c.data.path(a.File)
		}
	}
	return ""
}

// spec converts the list of a rule. A region's own clients get the region, then
// what it says comes next.
func (c *compiler) spec(r config.Rule) topology.Spec {
	if r.Refuse {
		return topology.Spec{Refuse: true}
	}
	if r.Region != "" {
		id := c.regions[r.Region]
		region := c.block.Regions[id]
		if region.Next == nil && !region.NextRest {
			return topology.Spec{Near: &id}
		}
		order := append([]topology.Region{id}, c.ids(region.Next)...)
		return topology.Spec{Order: order, Rest: region.NextRest}
	}
	s := topology.Spec{Order: c.ids(r.List.Order), Rest: r.List.Rest}
	for _, w := range r.List.Split {
		s.Split = append(s.Split, topology.Weighted{Region: c.regions[w.Name], Weight: uint32(w.Weight)})
	}
	return s
}

var kinds = map[config.AltKind]topology.Kind{
	config.AltContinent: topology.Continent, config.AltCountry: topology.Country,
	config.AltSubdivision: topology.Subdivision, config.AltASN: topology.ASN,
	config.AltPrefix: topology.Prefix, config.AltFile: topology.Prefix,
}

func (c *compiler) alts(m config.Match) []topology.Alt {
	alts := make([]topology.Alt, len(m.Alts))
	for i, a := range m.Alts {
		alts[i] = topology.Alt{Kind: kinds[a.Kind], Codes: a.Codes, ASNs: a.ASNs, Prefixes: a.Prefixes}
		if a.Kind == config.AltFile {
			alts[i].Prefixes = c.data.prefixes(a.File)
		}
	}
	return alts
}
