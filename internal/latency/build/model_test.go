package build

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// modelMap is the rule at its plainest: of each prefix, the regions with 200
// samples or more, by third quartile.
func modelMap(samples map[string]map[int][]float64) map[string][]int {
	out := make(map[string][]int)
	for prefix, by := range samples {
		p75 := make(map[int]float64)
		var order []int
		for region, ms := range by {
			if n := len(ms); n >= 200 {
				slices.Sort(ms)
				rank := 0.75 * float64(n+1)
				i := int(rank)
				p75[region] = ms[i-1] + (rank-float64(i))*(ms[i]-ms[i-1])
				order = append(order, region)
			}
		}
		if len(order) > 0 {
			slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(p75[a], p75[b]), cmp.Compare(a, b)) })
			out[prefix] = order
		}
	}
	return out
}

// TestModel compares maps of one day, without pooling and without a map before, with
// the model.
func TestModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 10 {
		b := newBeacons(uint64(round))
		samples := make(map[string]map[int][]float64)
		for range 12 {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(11 + rng.IntN(200)), byte(rng.IntN(256)), 3, 0}), 24).String()
			if rng.IntN(3) == 0 {
				p = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, byte(rng.IntN(256)), 6: 7}), 56).String()
			}
			samples[p] = make(map[int][]float64)
			for r := range regions {
				base := 20 + 20*rng.Float64()
				for range []int{0, 150, 199, 200, 201, 300, 512}[rng.IntN(7)] {
					ms := float64(int(100*(base+30*rng.Float64()))) / 100
					samples[p][r] = append(samples[p][r], ms)
					b.one(p, regions[r], ms, fmt.Sprint(rng.Uint64()))
				}
			}
		}
		r := mapOf(t, Options{Shortest4: 24, Shortest6: 56}, b)
		want := modelMap(samples)
		for _, e := range r.Map.Clients {
			order := want[e.Prefix.String()]
			got := make([]int, len(e.Order))
			for i, region := range e.Order {
				got[i] = int(region)
			}
			// Within tolerance the lower number of near regions may be taken first, no more.
			if !slices.Equal(got, order) {
				t.Errorf("%s: %v, want %v, cells %v", e.Prefix, got, order, e.Cells)
			}
			delete(want, e.Prefix.String())
		}
		if len(want) > 0 {
			t.Errorf("not in the map: %v", want)
		}
	}
}

// TestSampleRule holds that 199 samples are too few and 200 are enough.
func TestSampleRule(t *testing.T) {
	var b strings.Builder
	b.WriteString("time,client,region,rtt_ms,source\n")
	for i := range 200 {
		fmt.Fprintf(&b, "2026-11-02,192.0.2.0/24,eu,%d,%d\n", i+1, i)
		if i < 199 {
			fmt.Fprintf(&b, "2026-11-02,192.0.2.0/24,us,1,%d\n", i)
		}
	}
	r := mapOf(t, Options{}, strings.NewReader(b.String()))
	expect(t, r, "192.0.2.0/24 eu")
	if c := r.Map.Clients[0].Cells[0]; c.P75 != 150.75 || c.Samples != 200 || c.Failed != 0 {
		t.Errorf("cell is %+v, want a p75 of 150.75 from 200 samples", c)
	}
}
