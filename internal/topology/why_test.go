package topology

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// TestWhyAgrees holds that the reasons for an address are those of the list it
// has, in both views, and that those without the latency map are those of an
// input that has none.
func TestWhyAgrees(t *testing.T) {
	latency := 0
	for seed := range 30 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		in := world(r)
		if seed%2 == 1 {
			in = measuredWorld(r)
		}
		top := mustCompile(t, in)
		bare := *in
		bare.Clients, bare.Resolvers = nil, nil
		for i := range 20 {
			a := leafAddr(r.IntN(leaves))
			w, found, view := Why(in, a), top.ecs4.lookup(a).match(), in.Clients
			if i%2 == 0 {
				w, found, view = WhyTransport(in, a), top.full4.lookup(a).match(), in.Resolvers
			}
			want := text(in, &top.Lists[found.List])
			if got := text(in, &w.List); got != want {
				t.Fatalf("seed %d: %s: reasons for %s, but the list is %s: %+v", seed, a, got, want, w)
			}
			if w.By == ByRule {
				l := newOrders(in).written(in.Rules[w.Rule].Spec)
				if len(w.Fences) == 0 && len(in.Marks) == 0 && text(in, &l) != want {
					t.Fatalf("seed %d: %s: rule %d does not give %s", seed, a, w.Rule, want)
				}
			}
			if w.By == ByFill && (!w.From.IsValid() || w.From.Contains(a)) {
				t.Fatalf("seed %d: %s: filled from %s", seed, a, w.From)
			}
			entry, net := entryOf(view, a)
			if w.EntryNet != net || net.IsValid() && w.Entry != entry {
				t.Fatalf("seed %d: %s: entry %d, %s, want %d, %s", seed, a, w.Entry, w.EntryNet, entry, net)
			}
			without := Why(&bare, a)
			if w.By == ByLatency {
				latency++
				w = *w.Without
			}
			w.Entry, w.EntryNet = 0, netip.Prefix{}
			if !reflect.DeepEqual(w, without) {
				t.Fatalf("seed %d: %s: without the map %+v, want %+v", seed, a, w, without)
			}
		}
	}
	t.Logf("latency decided %d times", latency)
	if latency < 50 {
		t.Errorf("latency decided only %d times", latency)
	}
}

// entryOf finds the entry of a map that holds an address.
func entryOf(m *Measured, a netip.Addr) (int, netip.Prefix) {
	i := 0
	if m != nil {
		for p := range m.Networks {
			if p.Contains(a) {
				return i, p
			}
			i++
		}
	}
	return 0, netip.Prefix{}
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

func TestWhyLatency(t *testing.T) {
	in := measuredFixture()
	for _, tc := range []struct {
		addr, list, without, net string
		by                       By
		entry                    int
	}{
		{"20.1.2.3", "ap>us>eu", "eu>us>ap", "0.0.0.0/1", ByLatency, 0},
		{"22.200.0.0", "us>eu", "us>eu", "0.0.0.0/1", ByLatency, 0},
		{"24.0.0.0", "ap>eu|ap,eu", "eu>ap|ap,eu", "0.0.0.0/1", ByLatency, 0},
		{"20.7.2.3", "eu>us>ap", "", "0.0.0.0/1", ByRule, 0},
		{"23.1.2.3", "refuse", "", "0.0.0.0/1", ByRule, 0},
		{"10.1.2.3", "eu>us>ap", "", "0.0.0.0/1", ByOrder, 0},
		{"2001:db8::", "us>eu>ap", "eu>us>ap", "2000::/3", ByLatency, 2},
		{"4000::", "eu>us>ap", "", "invalid Prefix", ByOrder, 0},
	} {
		a := netip.MustParseAddr(tc.addr)
		w := Why(in, a)
		if w.By != tc.by || text(in, &w.List) != tc.list || w.Entry != tc.entry || w.EntryNet.String() != tc.net {
			t.Errorf("%s: got %s by %s, entry %d %s", a, text(in, &w.List), w.By, w.Entry, w.EntryNet)
		}
		if (w.Without != nil) != (tc.without != "") || w.Without != nil && (text(in, &w.Without.List) != tc.without || w.Without.By == ByLatency) {
			t.Errorf("%s: without the map %+v", a, w.Without)
		}
		if w := WhyTransport(in, a); w.By == ByLatency || w.EntryNet.IsValid() || w.Without != nil {
			t.Errorf("%s: there is no map of resolvers: %+v", a, w)
		}
	}
	if w := Why(in, netip.MustParseAddr("22.200.0.0")); w.From.IsValid() || w.Without.By != ByFill || w.Without.From.String() != "22.0.0.0/9" {
		t.Errorf("got %+v, without the map %+v", w, w.Without)
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
