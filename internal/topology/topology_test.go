package topology

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

func pfx(ss ...string) []netip.Prefix {
	ps := make([]netip.Prefix, len(ss))
	for i, s := range ss {
		ps[i] = netip.MustParsePrefix(s)
	}
	return ps
}

func regions(names ...string) []RegionInfo {
	rs := make([]RegionInfo, len(names))
	for i, n := range names {
		rs[i] = RegionInfo{Name: n, Pooled: true}
	}
	return rs
}

func prefixRule(r Region, ss ...string) Rule {
	return Rule{Alts: []Alt{{Kind: Prefix, Prefixes: pfx(ss...)}}, Spec: Spec{Order: []Region{r}}}
}

func mustCompile(t testing.TB, in *Input) *Topology {
	t.Helper()
	top, err := Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// fixture holds the prefixes that the protocol's scope vectors are worked out
// for: nested rules, so that scopes must be de-aggregated.
func fixture() *Input {
	return &Input{
		Regions: regions("a", "b", "c", "d"),
		Rules: []Rule{
			prefixRule(0, "198.51.96.0/20", "2001:db8::/32"),
			prefixRule(1, "198.51.99.0/24", "2001:db8:1::/48"),
			prefixRule(2, "203.0.113.0/24"),
		},
		Rest:  &Spec{Order: []Region{3}},
		Depth: 3, Fill: true, Max4: 24, Max6: 56,
	}
}

func TestScopeVectors(t *testing.T) {
	in := fixture()
	top := mustCompile(t, in)
	for _, tc := range []struct {
		subnet string
		region string
		scope  int
	}{
		{"198.51.96.0/24", "a", 23}, {"198.51.97.0/24", "a", 23}, {"198.51.98.0/24", "a", 24}, {"198.51.99.0/24", "b", 24},
		{"198.51.100.0/24", "a", 22}, {"198.51.104.0/24", "a", 21}, {"198.51.111.0/24", "a", 21}, {"198.51.112.0/24", "d", 20},
		{"203.0.113.0/24", "c", 24}, {"192.0.2.0/24", "d", 9}, {"198.51.96.0/20", "a", 23}, {"198.51.0.0/16", "d", 18},
		{"198.51.99.128/25", "b", 24}, {"198.51.99.5/32", "b", 24},
		{"2001:db8::/56", "a", 48}, {"2001:db8:1:100::/56", "b", 48}, {"2001:db8:2::/56", "a", 47}, {"2001:db9::/56", "d", 32},
		{"::ffff:198.51.99.0/120", "b", 120}, {"64:ff9b::198.51.97.0/120", "a", 96 + 23}, {"2002:c633:6300::/56", "b", 16 + 24},
	} {
		t.Run(tc.subnet, func(t *testing.T) {
			c := top.Locate(netip.MustParsePrefix(tc.subnet), netip.MustParseAddr("192.0.2.1"))
			if got := text(in, &top.Lists[c.List]); got != tc.region || c.Base+c.Match.Bits != tc.scope || !c.ECS {
				t.Errorf("got %s/%d (ecs %v), want %s/%d", got, c.Base+c.Match.Bits, c.ECS, tc.region, tc.scope)
			}
		})
	}
}

func TestTeredo(t *testing.T) {
	top := mustCompile(t, fixture())
	// 198.51.99.5 inverted in the last 32 bits.
	c := top.Locate(netip.MustParsePrefix("2001:0:1:2:0:0:39cc:9cfa/128"), netip.Addr{})
	if c.Addr.String() != "198.51.99.5" || c.Base != 96 || c.Match.Bits != 24 {
		t.Errorf("got %+v", c)
	}
	if c := top.Locate(netip.MustParsePrefix("2001:0:1:2::/64"), netip.Addr{}); c.Addr.Is4() || c.Match.Bits != 32 {
		t.Errorf("a prefix that does not reach the address: got %+v", c)
	}
}

func TestSpecialPurpose(t *testing.T) {
	in := fixture()
	in.Rules = append(in.Rules, prefixRule(1, "10.1.0.0/16"), prefixRule(2, "0.0.0.0/0"))
	in.Rest = nil
	top := mustCompile(t, in)
	transport := netip.MustParseAddr("198.51.99.9")
	for _, tc := range []struct {
		subnet  string
		region  string
		special int
	}{
		{"10.1.2.0/24", "b", 0}, {"10.2.0.0/24", "c", 0}, // a rule lies inside 10/8
		{"172.16.5.0/24", "b", 12}, {"192.168.1.0/24", "b", 16}, {"127.0.0.1/32", "b", 8}, {"169.254.0.0/16", "b", 16},
		{"100.64.1.0/24", "b", 10}, {"0.1.0.0/24", "b", 8}, {"224.1.0.0/24", "b", 3}, {"255.255.255.0/24", "b", 3},
		{"fd00:1122:3344:55::/56", "b", 7}, {"fe80::/64", "b", 10}, {"ff02::/64", "b", 8}, {"::1/128", "b", 128}, {"::/128", "b", 128},
		{"::ffff:192.168.1.0/120", "b", 16},
		{"172.0.0.0/8", "c", 0}, {"::/56", "a>b>c>d", 0}, // SOURCE shorter than the block
	} {
		t.Run(tc.subnet, func(t *testing.T) {
			c := top.Locate(netip.MustParsePrefix(tc.subnet), transport)
			if got := text(in, &top.Lists[c.List]); c.Special != tc.special || got != tc.region || c.ECS != (tc.special == 0) {
				t.Errorf("got %s special %d ecs %v, want %s special %d", got, c.Special, c.ECS, tc.region, tc.special)
			}
		})
	}
}

func TestNoSubnet(t *testing.T) {
	in := fixture()
	top := mustCompile(t, in)
	for _, a := range []string{"198.51.99.9", "::ffff:198.51.99.9", "2001:db8:1::9%eth0", "64:ff9b::198.51.99.9"} {
		for _, p := range []netip.Prefix{{}, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")} {
			if c := top.Locate(p, netip.MustParseAddr(a)); text(in, &top.Lists[c.List]) != "b" || c.ECS {
				t.Errorf("%s with %s: got %+v", a, p, c)
			}
		}
	}
	if c := top.Locate(netip.Prefix{}, netip.Addr{}); text(in, &top.Lists[c.List]) != "d" {
		t.Errorf("no address at all: got %+v", c)
	}
}

// TestIPv6 checks the promise that makes an answer cacheable, on random nested
// prefixes of any length: all of a scope has one list and that scope, and the
// list is the one of the longest prefix.
func TestIPv6(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		in := &Input{Regions: regions("a", "b", "c", "d"), Depth: 3, Max4: 24, Max6: 48 + r.IntN(81)}
		sets := make([][]netip.Prefix, 3)
		used := map[netip.Prefix]bool{}
		for range 1 + r.IntN(40) {
			p := randomPrefix6(r)
			if !used[p] {
				used[p] = true
				i := r.IntN(3)
				sets[i] = append(sets[i], p)
			}
		}
		for i, s := range sets {
			if len(s) > 0 {
				in.Rules = append(in.Rules, Rule{Alts: []Alt{{Kind: Prefix, Prefixes: s}}, Spec: Spec{Order: []Region{Region(i)}}})
			}
		}
		in.Rest = &Spec{Order: []Region{3}}
		top := mustCompile(t, in)
		checkPartition(t, top)
		for range 300 {
			x := randomPrefix6(r).Addr()
			if r.IntN(2) == 0 {
				x = keyOf(x).withBit(r.IntN(128)).addr(false)
			}
			want, best := "d", -1
			for i, s := range sets {
				if n := longest(s, x); n > best {
					want, best = []string{"a", "b", "c"}[i], n
				}
			}
			m := top.full6.lookup(x).match()
			if got := text(in, &top.Lists[m.List]); got != want {
				t.Fatalf("seed %d: %s: got %s, want %s", seed, x, got, want)
			}
			for _, view := range []*table6{&top.full6, &top.ecs6} {
				m := view.lookup(x).match()
				y := keyOf(x).masked(m.Bits)
				for b := m.Bits; b < 128; b++ {
					if r.IntN(2) == 0 {
						y = y.withBit(b)
					}
				}
				if got := view.lookup(y.addr(false)).match(); got != m {
					t.Fatalf("seed %d: %s has %+v, but %s in its scope has %+v", seed, x, m, y.addr(false), got)
				}
			}
		}
	}
}

func randomPrefix6(r *rand.Rand) netip.Prefix {
	k := key{0x2001_0db8<<32 | uint64(r.IntN(4))<<16 | r.Uint64()&3, r.Uint64() & 7}
	switch r.IntN(4) {
	case 0:
		k = key{r.Uint64(), r.Uint64()}
	case 1:
		k = key{0, r.Uint64() & 3}
	}
	return netip.PrefixFrom(k.addr(false), 1+r.IntN(128)).Masked()
}
