package topology

import (
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// entries is a latency map that gives each prefix its own order.
func entries(orders [][]Region, ss ...string) *Measured {
	return &Measured{Networks: numbered(pfx(ss...)), Orders: orders}
}

func numbered(ps []netip.Prefix) iter.Seq2[netip.Prefix, int] {
	return func(yield func(netip.Prefix, int) bool) {
		for i, p := range ps {
			if !yield(p, i) {
				return
			}
		}
	}
}

func TestReorder(t *testing.T) {
	in := &Input{Regions: regions("a", "b", "c", "d", "e")}
	fence := List{Order: []Region{0, 1}, Fenced: true}
	fence.Allowed.Add(0)
	fence.Allowed.Add(1)
	for _, tc := range []struct {
		name  string
		list  List
		order []Region
		depth int
		want  string // empty: the map says nothing
	}{
		{"all", List{Order: []Region{0, 1, 2}}, []Region{2, 0, 1}, 0, "c>a>b"},
		{"two of five", List{Order: []Region{0, 1, 2, 3, 4}}, []Region{3, 1}, 0, "d>b>a>c>e"},
		{"not in the list", List{Order: []Region{0, 1}}, []Region{4, 1, 3}, 0, "b>a"},
		{"none of the list", List{Order: []Region{0, 1}}, []Region{4, 3}, 0, ""},
		{"none at all", List{Order: []Region{0, 1}}, nil, 0, ""},
		{"agreement", List{Order: []Region{0, 1}}, []Region{0}, 0, "a>b"},
		{"split", List{Split: []Weighted{{0, 10}, {1, 60}, {2, 0}}, Order: []Region{3, 4}}, []Region{2, 4}, 0, ""},
		{"equally far", List{Split: []Weighted{{3, 1}, {1, 1}, {2, 1}}, Order: []Region{0}, Tied: true}, []Region{2}, 0, "c>d>b>a"},
		{"depth", List{Order: []Region{0, 1, 2, 3}}, []Region{3, 2, 1}, 2, "d>c>a>b"},
		{"depth counts regions of the list", List{Order: []Region{0, 1, 2}}, []Region{4, 2, 1}, 1, "c>a>b"},
		{"twice", List{Order: []Region{0, 1, 2}}, []Region{2, 2, 1}, 2, "c>b>a"},
		{"refused", List{Refuse: true}, []Region{0}, 0, ""},
		{"fenced", fence, []Region{2, 1}, 0, "b>a|a,b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := text(in, &tc.list)
			got, ok := tc.list.reorder(tc.order, tc.depth)
			if ok != (tc.want != "") || ok && text(in, &got) != tc.want || !ok && text(in, &got) != before {
				t.Errorf("got %s %v, want %s", text(in, &got), ok, tc.want)
			}
			if text(in, &tc.list) != before {
				t.Errorf("the list itself became %s", text(in, &tc.list))
			}
		})
	}
}

// measuredFixture has a rule of each sort under one latency map.
func measuredFixture() *Input {
	geo := &Database{
		Facts:    []Facts{{Country: "DE"}, {Country: "FR"}, {Country: "US"}, {Country: "KP"}, {Country: "IE"}},
		Networks: networks(pfx("20.0.0.0/8", "21.0.0.0/8", "22.0.0.0/9", "23.0.0.0/8", "24.0.0.0/8"), []int{0, 1, 2, 3, 4}, 5),
	}
	country := func(c string, s Spec) Rule { return Rule{Alts: []Alt{{Kind: Country, Codes: []string{c}}}, Spec: s} }
	in := &Input{
		Regions: regions("eu", "us", "ap", "no"), Geo: geo, Depth: 3, Fill: true, Max4: 24, Max6: 56,
		Rules: []Rule{
			country("DE", Spec{Order: []Region{0}, Rest: true}),
			country("FR", Spec{Split: []Weighted{{0, 30}, {1, 70}}, Order: []Region{2}}),
			country("US", Spec{Order: []Region{1, 0}}),
			country("KP", Spec{Refuse: true}),
			country("IE", Spec{Order: []Region{1}}),
			prefixRule(0, "20.7.0.0/16"),
		},
		Fences:  []Fence{{Name: "home", Regions: []Region{0, 2}, Match: [][]Alt{{{Kind: Country, Codes: []string{"IE"}}}}}},
		Clients: entries([][]Region{{2, 1}, {3, 2}, {1}}, "0.0.0.0/1", "128.0.0.0/2", "2000::/3"),
	}
	in.Rules[5].Spec.Rest = true
	in.Regions[3].Pooled = false
	return in
}

func TestLatencyMap(t *testing.T) {
	in := measuredFixture()
	top := mustCompile(t, in)
	for _, tc := range []struct {
		what, subnet, want string
		decided            Kind
	}{
		{"a rule of a country", "20.1.0.0/24", "ap>us>eu", Latency},
		{"a prefix rule wins", "20.7.1.0/24", "eu>us>ap", Prefix},
		{"a written split holds", "21.1.0.0/24", "eu:30+us:70>ap", Country},
		{"a written list is not widened", "22.1.0.0/24", "us>eu", Latency},
		{"filled from it", "22.200.0.0/24", "us>eu", Latency},
		{"refused", "23.1.0.0/24", "refuse", Country},
		{"what a fence leaves is put in order", "24.1.0.0/24", "ap>eu|ap,eu", Latency},
		{"unlocated", "99.0.0.0/24", "ap>us>eu", Latency},
		{"a region without a pool is passed over", "130.0.0.0/24", "ap>eu>us", Latency},
		{"no entry", "193.0.0.0/24", "eu>us>ap", OrderWritten},
		{"IPv6", "2001:db8::/48", "us>eu>ap", Latency},
		{"transport", "", "eu>us>ap", OrderWritten},
		{"special-purpose space", "10.1.0.0/24", "eu>us>ap", OrderWritten},
		{"shorter than special-purpose space", "10.0.0.0/6", "ap>us>eu", Latency},
	} {
		t.Run(tc.what, func(t *testing.T) {
			var subnet netip.Prefix
			if tc.subnet != "" {
				subnet = netip.MustParsePrefix(tc.subnet)
			}
			c := top.Locate(subnet, netip.MustParseAddr("20.1.2.3"))
			if tc.subnet == "" || c.Special > 0 { // 20.1.2.3 has no resolver map
				if text(in, &top.Lists[c.List]) != "eu>us>ap" || c.Decided != Country {
					t.Errorf("got %s by %s", text(in, &top.Lists[c.List]), c.Decided)
				}
				return
			}
			if got := text(in, &top.Lists[c.List]); got != tc.want || c.Decided != tc.decided {
				t.Errorf("got %s by %s, want %s by %s", got, c.Decided, tc.want, tc.decided)
			}
		})
	}
	in.Resolvers, in.Clients = in.Clients, nil
	top = mustCompile(t, in)
	for subnet, want := range map[string]string{"": "ap>us>eu", "21.1.0.0/24": "us:70+eu:30>ap"} {
		var p netip.Prefix
		if subnet != "" {
			p = netip.MustParsePrefix(subnet)
		}
		c := top.Locate(p, netip.MustParseAddr("20.1.2.3"))
		got := strings.ReplaceAll(text(in, &top.Lists[c.List]), "eu:30+us:70", "us:70+eu:30")
		if got != want {
			t.Errorf("resolvers' map, subnet %q: got %s, want %s", subnet, got, want)
		}
	}
	// Inside special-purpose space a transport address is looked up, but not measured.
	if got := text(in, &top.Lists[top.full4.lookup(netip.MustParseAddr("10.1.2.3")).match().List]); got != "eu>us>ap" {
		t.Errorf("10.1.2.3 has %s", got)
	}
}

// TestTables holds when client subnets need a table of their own.
func TestTables(t *testing.T) {
	shared := func(in *Input) bool {
		top := mustCompile(t, in)
		return &top.full4.cells[0] == &top.ecs4.cells[0]
	}
	in := measuredFixture()
	if shared(in) {
		t.Error("a map of clients alone, and one table")
	}
	in.Resolvers = in.Clients
	if !shared(in) {
		t.Error("one map for both, and two tables")
	}
	in.Clients, in.Resolvers = nil, nil
	if !shared(in) {
		t.Error("no map, and two tables")
	}
}

// TestDecidedMerges holds that what decided doesn't split a block.
func TestDecidedMerges(t *testing.T) {
	in := &Input{
		Regions: regions("a", "b"), Rest: &Spec{Order: []Region{0, 1}}, Max4: 24, Max6: 56,
		Clients: entries([][]Region{{0}, {1}}, "20.0.0.0/24", "20.0.2.0/24"),
	}
	top := mustCompile(t, in)
	for subnet, want := range map[string]Match{
		"20.0.1.0/24": {Bits: 23, Decided: Latency}, // half of it measured what the other half gets anyhow, and no kind has most
		"20.0.2.0/24": {Bits: 24, Decided: Latency},
		"20.0.3.0/24": {Bits: 24, Decided: Rest},
	} {
		c := top.Locate(netip.MustParsePrefix(subnet), netip.Addr{})
		if c.Match.Bits != want.Bits || c.Decided != want.Decided {
			t.Errorf("%s: got %+v", subnet, c.Match)
		}
	}
}

// TestDecidedByMost holds that what little of a block measured doesn't stand for
// all of it, at full length and capped.
func TestDecidedByMost(t *testing.T) {
	in := &Input{
		Regions: regions("a", "b"), Rest: &Spec{Order: []Region{0, 1}}, Max4: 24, Max6: 56,
		Rules:   []Rule{prefixRule(1, "20.0.1.0/25", "20.0.3.0/24")},
		Clients: entries([][]Region{{0}, {0}, {1}}, "20.0.0.0/26", "20.0.1.128/26", "20.0.1.192/26"),
	}
	in.Rules = append(in.Rules, Rule{Alts: []Alt{{Kind: Prefix, Prefixes: pfx("20.0.2.0/25")}}, Spec: Spec{Order: []Region{0, 1}}})
	in.Resolvers = in.Clients
	top := mustCompile(t, in)
	for subnet, want := range map[string]Kind{
		"20.0.0.0/24": Rest,   // a quarter of it measured
		"20.0.1.0/24": Prefix, // half has a list of its own, a quarter each measured
		"20.0.3.0/24": Prefix,
	} {
		if c := top.Locate(netip.MustParsePrefix(subnet), netip.Addr{}); c.Decided != want {
			t.Errorf("%s: got %+v", subnet, c.Match)
		}
	}
	for addr, want := range map[string]Kind{"20.0.0.1": Rest, "20.0.1.200": Latency, "20.0.1.130": Latency} {
		if c := top.Locate(netip.Prefix{}, netip.MustParseAddr(addr)); c.Decided != want {
			t.Errorf("%s: got %+v", addr, c.Match)
		}
	}
	// Capped, and most has one list: half of all is told it by prefix, a quarter measured it.
	in.Max4 = 22
	in.Rules = []Rule{{Alts: []Alt{{Kind: Prefix, Prefixes: pfx("20.0.2.0/23")}}, Spec: Spec{Order: []Region{0, 1}}}, prefixRule(1, "20.0.4.0/22")}
	in.Clients = entries([][]Region{{0}, {1}}, "20.0.0.0/24", "20.0.1.0/26")
	if c := mustCompile(t, in).Locate(netip.MustParsePrefix("20.0.0.0/22"), netip.Addr{}); c.Decided != Prefix || c.Match.Bits != 22 {
		t.Errorf("got %+v", c.Match)
	}
}

func TestCells(t *testing.T) {
	for _, list := range []int{0, 1, maxLists - 1} {
		for _, bits := range []int{0, 1, 32, 127, 128} {
			for k := range Kind(Kinds) {
				for _, barrier := range []bool{false, true} {
					c := newCell(list, bits, k, barrier)
					if c.match() != (Match{List: list, Bits: bits, Decided: k}) || c.barrier() != barrier || c.bits() != bits {
						t.Fatalf("%d/%d by %s, %v: got %+v, %v", list, bits, k, barrier, c.match(), c.barrier())
					}
				}
			}
		}
	}
}

func TestTooManyLists(t *testing.T) {
	in := &Input{Regions: regions("a", "b", "c", "d", "e"), Max4: 24, Max6: 56, Clients: &Measured{}}
	r := rand.New(rand.NewPCG(1, 1))
	var nets []netip.Prefix
	for i := range 1000 {
		nets = append(nets, netip.PrefixFrom(key{hi: 0x14<<56 | uint64(i)<<36}.addr(true), 28))
		order := []Region{0, 1, 2, 3, 4}
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		in.Clients.Orders = append(in.Clients.Orders, order)
	}
	in.Clients.Networks = numbered(nets)
	c := newCompiler(in)
	c.orders.most = 100
	if _, err := c.compile(); err == nil || !strings.Contains(err.Error(), "more than 100 distinct") {
		t.Errorf("got %v", err)
	}
	in.Clients.Depth = 2
	c = newCompiler(in)
	c.orders.most = 5 * 4
	if top, err := c.compile(); err != nil || len(top.Lists) != 5*4 {
		t.Errorf("with depth 2: %v", err)
	}
}

// TestMeasuredIPv6 checks random entries of any length under nested prefix rules.
func TestMeasuredIPv6(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		in := &Input{Regions: regions("a", "b", "c", "d"), Rest: &Spec{Order: []Region{3, 0, 1, 2}}, Max4: 24, Max6: 128, Clients: &Measured{}}
		rule := []netip.Prefix{randomPrefix6(r), randomPrefix6(r)}
		in.Rules = []Rule{{Alts: []Alt{{Kind: Prefix, Prefixes: rule}}, Spec: Spec{Order: []Region{1}}}}
		var nets []netip.Prefix
		for range 1 + r.IntN(40) {
			p := randomPrefix6(r)
			if !slices.ContainsFunc(nets, p.Overlaps) {
				nets = append(nets, p)
			}
		}
		slices.SortFunc(nets, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
		for range nets {
			in.Clients.Orders = append(in.Clients.Orders, [][]Region{nil, {0}, {1, 2}, {2, 3, 1}}[r.IntN(4)])
		}
		in.Clients.Networks = numbered(nets)
		top := mustCompile(t, in)
		checkPartition(t, top)
		for range 300 {
			x := randomPrefix6(r).Addr()
			want := "d>a>b>c"
			if i := slices.IndexFunc(nets, func(p netip.Prefix) bool { return p.Contains(x) }); i >= 0 && barrierOf(x) == 0 {
				want = map[int]string{0: want, 1: "a>d>b>c", 2: "b>c>d>a", 3: "c>d>b>a"}[len(in.Clients.Orders[i])]
			}
			if longest(rule, x) >= 0 {
				want = "b"
			}
			m := top.ecs6.lookup(x).match()
			if got := text(in, &top.Lists[m.List]); got != want {
				t.Fatalf("seed %d: %s: got %s, want %s", seed, x, got, want)
			}
		}
	}
}

// TestOneBlock: with `ecs max 0 0` no client subnets are told apart.
func TestOneBlock(t *testing.T) {
	in := &Input{Regions: regions("a", "b"), Rest: &Spec{Order: []Region{0, 1}}, Rules: []Rule{prefixRule(1, "20.0.0.0/8")}}
	top := mustCompile(t, in)
	for _, subnet := range []string{"30.0.0.0/24", "20.0.0.0/24", "2001:db8::/56"} {
		if c := top.Locate(netip.MustParsePrefix(subnet), netip.Addr{}); c.Match.Bits != 0 || c.List >= len(top.Lists) || !c.ECS {
			t.Errorf("%s: got %+v", subnet, c)
		}
	}
}
