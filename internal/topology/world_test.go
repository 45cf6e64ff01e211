package topology

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
)

// world makes a random input whose every network and prefix is at most /16.
func world(r *rand.Rand) *Input {
	in := &Input{
		Regions: regions("eu", "us", "ap", "sa", "af"),
		Depth:   1 + r.IntN(4), Fill: r.IntN(4) > 0, Max4: 24, Max6: 56,
	}
	for i := range in.Regions {
		in.Regions[i].Pooled = i < 2 || r.IntN(3) > 0
		in.Regions[i].Located = r.IntN(3) > 0
		in.Regions[i].Lat, in.Regions[i].Lon = float64(r.IntN(150)-75), float64(r.IntN(360)-180)
	}
	if r.IntN(4) == 0 { // two regions at one place
		in.Regions[1].Lat, in.Regions[1].Lon, in.Regions[1].Located = in.Regions[0].Lat, in.Regions[0].Lon, in.Regions[0].Located
	}
	if r.IntN(5) > 0 {
		in.Geo = randomDatabase(r, 300)
	}
	if r.IntN(2) > 0 {
		in.ASN = randomDatabase(r, 100)
	}
	for range r.IntN(8) {
		in.Rules = append(in.Rules, Rule{Alts: randomAlts(r), Spec: randomSpec(r)})
	}
	distinctRanks(in)
	if r.IntN(2) > 0 {
		s := randomSpec(r)
		in.Rest = &s
	}
	for i := range r.IntN(3) {
		f := Fence{Name: fmt.Sprint("f", i), Regions: []Region{0, 1}}
		if i == 0 {
			f.Regions = []Region{1, 4}
		}
		for range 1 + r.IntN(2) {
			f.Match = append(f.Match, randomAlts(r))
		}
		in.Fences = append(in.Fences, f)
	}
	return in
}

// measuredWorld is a world with latency maps and marks.
func measuredWorld(r *rand.Rand) *Input {
	in := world(r)
	for i := range in.Rules {
		if s := in.Rules[i].Spec.Split; s != nil && r.IntN(2) == 0 {
			s[0].Weight, s[1].Weight = 70*uint32(r.IntN(2)), 70
		}
	}
	switch r.IntN(4) {
	case 0:
		in.Clients = randomMeasured(r)
		in.Resolvers = in.Clients
	case 1:
		in.Clients = randomMeasured(r)
	case 2:
		in.Resolvers = randomMeasured(r)
	default:
		in.Clients, in.Resolvers = randomMeasured(r), randomMeasured(r)
	}
	for i := range r.IntN(4) {
		k := Mark{Name: fmt.Sprint("m", i)}
		for range 1 + r.IntN(2) {
			k.Match = append(k.Match, randomAlts(r))
		}
		in.Marks = append(in.Marks, k)
	}
	return in
}

func randomMeasured(r *rand.Rand) *Measured {
	m := &Measured{Networks: randomDatabase(r, 100).Networks, Depth: r.IntN(4)}
	for range 8 {
		var order []Region
		for _, p := range r.Perm(5)[:r.IntN(6)] {
			order = append(order, Region(p))
		}
		m.Orders = append(m.Orders, order)
	}
	return m
}

// distinctRanks keeps the first rule of each shape, since the configuration
// refuses rules that rank equally and overlap.
func distinctRanks(in *Input) {
	seen := map[string]bool{}
	var keep []Rule
	for _, r := range in.Rules {
		k := fmt.Sprint(r.Alts[0].Kind, len(r.Alts))
		if !seen[k] {
			seen[k] = true
			keep = append(keep, r)
		}
	}
	in.Rules = keep
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	special := []string{"10.0.0.0/8", "10.1.0.0/16", "192.168.0.0/16", "172.16.0.0/12", "0.0.0.0/0", "192.0.0.0/8", "224.0.0.0/4"}
	if r.IntN(5) == 0 {
		return netip.MustParsePrefix(special[r.IntN(len(special))])
	}
	return netip.PrefixFrom(leafAddr(r.IntN(leaves)), 1+r.IntN(16)).Masked()
}

var ruleKinds = []Kind{Continent, Country, Subdivision, ASN, Prefix}

func randomAlts(r *rand.Rand) []Alt {
	var alts []Alt
	for range 1 + r.IntN(5)/3 {
		a := Alt{Kind: ruleKinds[r.IntN(5)]}
		switch a.Kind {
		case Continent:
			a.Codes = []string{[]string{"EU", "NA", "AS"}[r.IntN(3)]}
		case Country:
			a.Codes = []string{[]string{"DE", "FR", "US", "JP"}[r.IntN(4)], "IT"}
		case Subdivision:
			a.Codes = []string{[]string{"US-CA", "US-VA"}[r.IntN(2)]}
		case ASN:
			a.ASNs = []uint32{uint32(1 + r.IntN(3)), 9}
		case Prefix:
			for range 1 + r.IntN(4) {
				a.Prefixes = append(a.Prefixes, randomPrefix(r))
			}
		}
		alts = append(alts, a)
	}
	return alts
}

func randomSpec(r *rand.Rand) Spec {
	perm := r.Perm(5)
	n := 1 + r.IntN(4)
	s := Spec{Rest: r.IntN(2) == 0}
	switch r.IntN(8) {
	case 0:
		return Spec{Refuse: true}
	case 1:
		near := Region(perm[0])
		return Spec{Near: &near}
	case 2:
		s.Split = []Weighted{{Region(perm[0]), 70}, {Region(perm[1]), 30}}
		perm = perm[2:]
		n = r.IntN(3)
	}
	for _, p := range perm[:n] {
		s.Order = append(s.Order, Region(p))
	}
	return s
}

// randomDatabase cuts the space into random disjoint networks, some missing.
func randomDatabase(r *rand.Rand, n int) *Database {
	facts := []Facts{
		{Continent: "EU", Country: "DE", ASN: 1}, {Continent: "EU", Country: "FR", ASN: 2}, {Continent: "NA", Country: "US", ASN: 3},
		{Continent: "NA", Country: "US", Subdivisions: []string{"US-CA"}, Lat: 34, Lon: -118, Coordinates: true, ASN: 4},
		{Continent: "AS", Country: "JP", Lat: 35.7, Lon: 139.7, Coordinates: true, ASN: 5},
		{Continent: "AN", ASN: 6}, {ASN: 7}, {Lat: 0, Lon: 0, Coordinates: true, ASN: 9},
	}
	var nets []netip.Prefix
	var cut func(p netip.Prefix)
	cut = func(p netip.Prefix) {
		if p.Bits() == 16 || p.Bits() > 3 && r.IntN(leaves) > n*leaves>>(p.Bits()+4)*2 {
			nets = append(nets, p)
			return
		}
		l := netip.PrefixFrom(p.Addr(), p.Bits()+1)
		k := keyOf(p.Addr()).withBit(p.Bits())
		cut(l)
		cut(netip.PrefixFrom(k.addr(true), p.Bits()+1))
	}
	cut(netip.MustParsePrefix("0.0.0.0/0"))
	pick := make([]int, len(nets))
	for i := range pick {
		pick[i] = r.IntN(len(facts) + 4)
	}
	return &Database{Facts: facts, Networks: networks(nets, pick, len(facts))}
}

func networks(nets []netip.Prefix, pick []int, n int) iter.Seq2[netip.Prefix, int] {
	return func(yield func(netip.Prefix, int) bool) {
		for i, p := range nets {
			if pick[i] < n && !yield(p, pick[i]) {
				return
			}
		}
	}
}
