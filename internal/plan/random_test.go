package plan_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// writer writes random gslb blocks.
type writer struct {
	*rand.Rand
	strings.Builder
	regions []string
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *writer) maybe(percent int) bool { return w.IntN(100) < percent }

func (w *writer) pick(words ...string) string { return words[w.IntN(len(words))] }

// some gives at least one of the words, in random order.
func (w *writer) some(words []string) []string {
	words = slices.Clone(words)
	w.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:1+w.IntN(len(words))]
}

func (w *writer) names() string { return strings.Join(w.some(w.regions), " ") }

// matches are of clients that the fixtures know; no two overlap in one kind.
var matches = []string{
	"continent EU", "continent NA", "continent AS SA", "country DE", "country JP US", "subdivision US-CA", "subdivision US-VA DE-HE",
	"asn 3320", "asn 64496 65536", "prefix 198.51.100.0/24", "prefix 198.51.100.192/27 10.9.0.0/16", "prefix 2001:db8:1::/48 0.0.0.0/1",
	"country DE in asn 3320", "prefix 127.0.0.0/9 in continent EU", "area some",
}

// randomBlock is the text of a block; many are not valid.
func randomBlock(r *rand.Rand) string {
	w := &writer{Rand: r, regions: []string{"eu", "us", "ap", "sa"}[:1+r.IntN(4)]}
	w.line("geoip city city.mmdb\ngeoip asn asn.mmdb\narea some prefix 203.0.113.0/25 2001:db8:8000::/40")
	w.line("area some country TR")
	switch w.IntN(8) {
	case 0:
		w.line("ecs off")
	case 1:
		w.line("ecs {\n from 127.0.0.0/8 203.0.113.0/24 2001:db8::/32\n}")
	case 2, 3:
		w.line("ecs {\n max %d %d\n fill %s\n}", w.IntN(33), w.IntN(129), w.pick("on", "off"))
	}
	if w.maybe(40) {
		w.line("area fenced %s", w.pick(matches[:12]...))
		w.line("fence fenced %s", w.names())
	}
	for i, name := range w.regions {
		w.line("region %s {", name)
		if w.maybe(60) {
			w.line("location %d.5 %d", w.IntN(170)-85, w.IntN(359)-179)
		}
		if w.maybe(40) {
			w.line("clients %s", matches[i])
		}
		if w.maybe(20) && i > 0 {
			w.line("next %s rest", w.regions[i-1])
		}
		w.line("}")
	}
	w.rules(30)
	for i := range 1 + w.IntN(3) {
		w.host(i)
	}
	return w.String()
}

// rules writes clients statements, of which no two have the same match.
func (w *writer) rules(percent int) {
	for _, m := range matches[4:] {
		if !w.maybe(percent) {
			continue
		}
		w.line("clients %s {", m)
		if w.maybe(10) {
			w.line("refuse")
		} else {
			w.list()
		}
		w.line("}")
	}
}

func (w *writer) list() {
	regions := w.some(w.regions)
	if w.maybe(40) {
		w.WriteString("split")
		for _, r := range regions {
			fmt.Fprintf(w, " %s %d", r, w.IntN(4))
		}
		w.line("")
		return
	}
	w.line("order %s %s", strings.Join(regions, " "), w.pick("", "rest"))
}

func (w *writer) host(i int) {
	w.line("host h%d.example.com {", i)
	switch w.IntN(4) {
	case 0:
		w.list()
	case 1:
		w.rules(30)
		w.line("clients rest {")
		w.list()
		w.line("}")
	}
	w.line("spread %s", w.pick("sticky", "sticky 20 48", "sticky 0 0", "resolver", "balanced"))
	w.line("last_resort %s", w.pick("open", "open", "closed", "regions "+w.names(), "addresses 203.0.113.250"))
	w.line("ttl %d\nttl_floor %s\nfenced_ok", w.IntN(60), w.pick("off", "0", "7"))
	w.line("families %s", w.pick("same", "mixed", "mixed"))
	for _, name := range w.some(w.regions) {
		w.line("pool %s {", name)
		for e := range 1 + w.IntN(4) {
			address := fmt.Sprintf("203.0.113.%d", 10*slices.Index(w.regions, name)+e)
			if w.maybe(30) {
				address = fmt.Sprintf("2001:db8::%d:%d", slices.Index(w.regions, name), e)
			}
			w.line("endpoint %s weight %d %s", address, 1+w.IntN(3)*w.IntN(2), w.pick("", "", "up", "down", "drain"))
		}
		w.line("answers %d\n}", 1+w.IntN(2))
	}
	w.line("}")
}

// randomClient gives the client subnet and transport of a query; mostly in what
// the fixtures know.
func randomClient(r *rand.Rand) (subnet netip.Prefix, transport netip.Addr) {
	around := []string{"127.0.0.0/12", "198.51.100.0/24", "203.0.113.0/24", "192.0.2.0/24", "10.0.0.0/12", "0.0.0.0/0",
		"2001:db8::/32", "2001:db8:1::/48", "::ffff:198.51.100.0/120", "2002:c633:6400::/40", "2001:0:0:0::/32", "::/0"}
	random := func() netip.Addr {
		p := netip.MustParsePrefix(around[r.IntN(len(around))])
		bytes := p.Addr().AsSlice()
		for i := range bytes {
			if known := p.Bits() - 8*i; known < 8 {
				bytes[i] |= byte(r.Uint32()) & (0xff >> max(0, known))
			}
		}
		a, _ := netip.AddrFromSlice(bytes)
		return a
	}
	a := random()
	subnet = netip.PrefixFrom(a, r.IntN(a.BitLen()+1))
	if r.IntN(2) == 0 {
		subnet = subnet.Masked()
	}
	if r.IntN(4) == 0 {
		subnet = netip.Prefix{}
	}
	return subnet, random().Unmap()
}

// eachRandom calls f for random plans that are valid.
func eachRandom(t *testing.T, seed uint64, plans int, f func(*rand.Rand, *plan.Plan)) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	tries := 0
	for valid := 0; valid < plans; tries++ {
		if tries > 100*plans {
			t.Fatalf("only %d of %d blocks are valid", valid, tries)
		}
		text := randomBlock(r)
		b, err := parse("example.com", text)
		if err != nil {
			continue
		}
		p, err := plan.Build(b, plan.Options{Root: fixtures})
		if err != nil {
			continue
		}
		valid++
		f(r, p)
		if t.Failed() {
			t.Fatal(text)
		}
	}
	t.Logf("%d of %d blocks are valid", plans, tries)
}

// TestAnswers holds that whoever is answered gets addresses, of the right
// family, of the host, and for as long as the configuration says.
func TestAnswers(t *testing.T) {
	outcomes := make(map[steer.Outcome]int)
	eachRandom(t, 1, 300, func(r *rand.Rand, p *plan.Plan) {
		for i, h := range p.Hosts {
			s := snapshots(p)[i]
			for range 50 {
				subnet, transport := randomClient(r)
				c := h.Locate(subnet, transport)
				for _, f := range []steer.Family{steer.V4, steer.V6} {
					d := h.Steer.Decide(s, &c, f, nil)
					outcomes[d.Outcome]++
					checkDecision(t, h, f, &c, &d)
				}
			}
		}
	})
	t.Log(outcomes)
	for o := steer.OutcomeAnswer; o <= steer.OutcomeFailed; o++ {
		if outcomes[o] == 0 {
			t.Errorf("no decision ended with %s", o)
		}
	}
}

func checkDecision(t *testing.T, h *plan.Host, f steer.Family, c *steer.Client, d *steer.Decision) {
	t.Helper()
	answered := d.Outcome == steer.OutcomeAnswer || d.Outcome == steer.OutcomeLastResort
	if answered != (d.Answer != nil && len(d.Answer.Addrs) > 0) {
		t.Errorf("%s: outcome %s with answer %v", h.Config.Names[0], d.Outcome, d.Answer)
	}
	if c.Source == steer.Transport && !c.Fixed && d.Scope != 0 {
		t.Errorf("scope %d without client subnet", d.Scope)
	}
	if !answered {
		return
	}
	if d.TTL > uint32(h.Config.TTL) {
		t.Errorf("ttl %d of %d", d.TTL, h.Config.TTL)
	}
	for _, a := range d.Answer.Addrs {
		if a.Is4() != (f == steer.V4) || !known(h, d.Region, a) {
			t.Errorf("%s is answered for %s from region %d", a, f, d.Region)
		}
	}
}

// known tells whether an address is one of the host's in a region, or of its
// last resort.
func known(h *plan.Host, r steer.Region, a netip.Addr) bool {
	if r == steer.NoRegion {
		return slices.Contains(h.Config.LastResort.Addresses, a)
	}
	for _, p := range h.Config.Pools {
		if p.Region != h.Need.Input.Regions[r].Name {
			continue
		}
		for _, e := range p.Endpoints {
			if e.Addr == a {
				return true
			}
		}
	}
	return false
}

// TestExplain holds that an explanation tells what Decide does, and that its
// reasons lead to the list that the topology has.
func TestExplain(t *testing.T) {
	by := make(map[string]int)
	eachRandom(t, 2, 120, func(r *rand.Rand, p *plan.Plan) {
		for i, h := range p.Hosts {
			s := snapshots(p)[i]
			for range 6 {
				subnet, transport := randomClient(r)
				e := p.Explain(h, s, nil, subnet, transport, steer.V4, steer.V6)
				by[e.List.By]++
				if e.List.Exact != nil {
					by["exact"]++
				}
				checkExplanation(t, p, h, s, subnet, transport, &e)
			}
		}
	})
	for _, word := range []string{"rule", "rest", "fill", "distance", "order_written", "exact"} {
		if by[word] == 0 {
			t.Errorf("nothing was explained by %s", word)
		}
	}
	t.Log(by)
}

func checkExplanation(t *testing.T, p *plan.Plan, h *plan.Host, s *steer.Snapshot, subnet netip.Prefix, transport netip.Addr, e *plan.Explanation) {
	t.Helper()
	believed := subnet
	if !p.Believes(transport) {
		believed = netip.Prefix{}
	}
	c := h.Locate(believed, transport)
	for i := range e.Decisions {
		tr := &e.Decisions[i]
		d := h.Steer.Decide(s, &c, steer.Family(i), nil)
		var answer []netip.Addr
		if d.Answer != nil {
			answer = d.Answer.Addrs
		}
		if tr.Outcome != d.Outcome.String() || !slices.Equal(tr.Answer, answer) || tr.Scope != d.Scope || tr.TTL != d.TTL && d.Answer != nil {
			t.Errorf("explained %+v, decided %+v", tr, d)
		}
	}
	exact := fullList(h.Need.Topology, e.Facts.Address)
	why := topology.Why(h.Need.Input, e.Facts.Address)
	list := &h.Need.Topology.Lists[exact]
	if !slices.Equal(why.List.Order, list.Order) || !slices.Equal(why.List.Split, list.Split) || why.List.Refuse != list.Refuse || why.List.Fenced != list.Fenced {
		t.Errorf("%s: the reasons give %+v, the topology %+v", e.Facts.Address, why.List, list)
	}
	used := &e.List.CandidateList
	if (e.List.Exact != nil) != (exact != c.List) {
		t.Errorf("%s: exact list %v", e.Facts.Address, e.List.Exact)
	}
	if !slices.Equal(used.Order, names(h, h.Need.Topology.Lists[c.List].Order)) {
		t.Errorf("%s: explained %v", e.Facts.Address, used)
	}
	if e.List.Rule != nil && (e.List.Rule.At == "" || e.List.Rule.Match == "" || strings.Contains(e.List.Rule.Match, "invalid")) {
		t.Errorf("%s: rule %+v", e.Facts.Address, e.List.Rule)
	}
	if len(used.Order)+len(used.Split)+len(e.List.LeftOut) != len(p.Block.Regions) && !used.Refuse {
		t.Errorf("%s: %+v accounts for other than all %d regions", e.Facts.Address, e.List, len(p.Block.Regions))
	}
}

// fullList finds an address in the blocks of the transports' view, one by one.
func fullList(t *topology.Topology, a netip.Addr) int {
	for p, list := range t.Blocks(true) {
		if p.Contains(a) {
			return list
		}
	}
	return -1
}

func names(h *plan.Host, regions []topology.Region) (list []string) {
	for _, r := range regions {
		list = append(list, h.Need.Input.Regions[r].Name)
	}
	return list
}
