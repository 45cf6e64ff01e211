package topology

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// TestWhyAgrees holds that the reasons for an address are those of the list it
// has.
func TestWhyAgrees(t *testing.T) {
	for seed := range 15 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		in := world(r)
		top := mustCompile(t, in)
		for range 20 {
			a := leafAddr(r.IntN(leaves))
			w := Why(in, a)
			want := text(in, &top.Lists[top.full4.lookup(a).match().List])
			if got := text(in, &w.List); got != want {
				t.Fatalf("seed %d: %s: reasons for %s, but the list is %s: %+v", seed, a, got, want, w)
			}
			if w.By == ByRule {
				l := newOrders(in).written(in.Rules[w.Rule].Spec)
				if len(w.Fences) == 0 && text(in, &l) != want {
					t.Fatalf("seed %d: %s: rule %d does not give %s", seed, a, w.Rule, want)
				}
			}
			if w.By == ByFill && (!w.From.IsValid() || w.From.Contains(a)) {
				t.Fatalf("seed %d: %s: filled from %s", seed, a, w.From)
			}
		}
	}
}

func TestWhy(t *testing.T) {
	geo := &Database{
		Facts:    []Facts{{Continent: "EU", Country: "DE"}, {Country: "XX"}, {Country: "YY", Lat: 50, Lon: 8, Coordinates: true}},
		Networks: networks(pfx("20.0.0.0/9", "21.0.0.0/8", "22.0.0.0/8"), []int{0, 1, 2}, 3),
	}
	in := &Input{
		Regions: regions("eu", "us"), Geo: geo, Depth: 3, Fill: true, Max4: 24, Max6: 56,
		Rules: []Rule{
			{Alts: []Alt{{Kind: Continent, Codes: []string{"EU"}}}, Spec: Spec{Order: []Region{0}}},
			prefixRule(1, "20.1.0.0/16"),
		},
		Fences: []Fence{{Name: "home", Regions: []Region{0}, Match: [][]Alt{{{Kind: Country, Codes: []string{"YY"}}}}}},
	}
	in.Regions[0].Located, in.Regions[0].Lat, in.Regions[0].Lon = true, 50, 8
	for _, tc := range []struct {
		addr, list, from string
		by               By
		fences           int
	}{
		{"20.5.0.0", "eu", "", ByRule, 0},
		{"20.1.2.3", "us", "", ByRule, 0},
		{"20.200.0.0", "eu", "20.0.0.0/9", ByFill, 0},
		{"21.0.0.0", "eu>us", "", ByOrder, 0},
		{"22.0.0.0", "eu|eu", "", ByDistance, 1},
		{"10.0.0.0", "eu>us", "", ByOrder, 0},
	} {
		t.Run(tc.addr, func(t *testing.T) {
			w := Why(in, netip.MustParseAddr(tc.addr))
			if w.By != tc.by || text(in, &w.List) != tc.list || len(w.Fences) != tc.fences {
				t.Errorf("got %s by %s, fences %v", text(in, &w.List), w.By, w.Fences)
			}
			if tc.from != "" && w.From.String() != tc.from {
				t.Errorf("filled from %s, want %s", w.From, tc.from)
			}
		})
	}
	rest := &Spec{Order: []Region{1}}
	in.Rest = rest
	if w := Why(in, netip.MustParseAddr("21.0.0.0")); w.By != ByRest {
		t.Errorf("got %s", w.By)
	}
	if !Why(in, netip.MustParseAddr("10.0.0.0")).SpecialSpace {
		t.Error("10.0.0.0 is not special")
	}
}

func TestFencesThatLeaveNothing(t *testing.T) {
	in := fixture()
	in.Fences = []Fence{
		{Name: "one", Regions: []Region{0}, Match: [][]Alt{{{Kind: Prefix, Prefixes: pfx("203.0.112.0/20")}}}},
		{Name: "two", Regions: []Region{1}, Match: [][]Alt{{{Kind: Prefix, Prefixes: pfx("203.0.113.0/24")}}}},
	}
	_, err := Compile(in)
	var fence *FenceError
	if !errors.As(err, &fence) || fence.Network.String() != "203.0.113.0/24" || !strings.Contains(err.Error(), "one, two") {
		t.Errorf("got %v", err)
	}
}

func TestDigest(t *testing.T) {
	one := mustCompile(t, fixture()).Digest()
	if mustCompile(t, fixture()).Digest() != one {
		t.Error("two compilations differ")
	}
	in := fixture()
	in.Rules[0].Spec.Order = []Region{1}
	if mustCompile(t, in).Digest() == one {
		t.Error("another list, and the same digest")
	}
	in = fixture()
	in.Rules[0].Alts[0].Prefixes[0] = netip.MustParsePrefix("198.51.64.0/20")
	if mustCompile(t, in).Digest() == one {
		t.Error("another prefix, and the same digest")
	}
}

func TestRegionsAtOnePlace(t *testing.T) {
	in := &Input{Regions: regions("a", "b", "c"), Depth: 3}
	for i := range in.Regions {
		in.Regions[i].Located = true
	}
	in.Regions[2].Lat = 1
	o := newOrders(in)
	l := o.byDistance(pointOf(-5, 0), nil)
	if got := text(in, &l); got != "a:1+b:1>c" {
		t.Errorf("got %s", got)
	}
	if l = o.byDistance(pointOf(5, 0), nil); text(in, &l) != "c>a>b" {
		t.Errorf("got %s", text(in, &l))
	}
}

func TestHighLatitudes(t *testing.T) {
	in := &Input{Regions: regions("tromso", "reykjavik"), Depth: 3}
	in.Regions[0].Lat, in.Regions[0].Lon, in.Regions[0].Located = 69.6, 18.9, true
	in.Regions[1].Lat, in.Regions[1].Lon, in.Regions[1].Located = 64.1, -21.9, true
	// At 80 degrees north a degree of longitude is short: flat geometry would
	// take Reykjavik for the nearer one.
	l := newOrders(in).byDistance(pointOf(80, -8), nil)
	if got := text(in, &l); got != "tromso>reykjavik" {
		t.Errorf("got %s", got)
	}
}
