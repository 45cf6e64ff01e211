package steer

import (
	"math"
	"testing"
)

var isFull = EndpointState{Verdict: Full}

// words makes a state of one letter for each endpoint of each region: up, full,
// down, drained (o, for out of service).
func words(regions ...string) func(Region, int) EndpointState {
	return func(r Region, i int) EndpointState {
		return map[byte]EndpointState{'u': {}, 'f': isFull, 'd': isDown, 'o': isDrained}[regions[r][i]]
	}
}

// orderHost has a pool of equal endpoints for each size, in that order for all.
func orderHost(spread Spread, below float64, sizes ...int) HostConfig {
	cfg := HostConfig{Name: "h", Spread: spread, Grain: [2]int{16, 32}, TTL: 30, Lists: make([]List, 1), SpillBelow: below, MaxDown: 100}
	for r, n := range sizes {
		weights := make([]uint32, n)
		for i := range weights {
			weights[i] = 1
		}
		cfg.Regions = append(cfg.Regions, "r"+string(rune('a'+r)))
		cfg.Pools = append(cfg.Pools, poolOf(byte(r), 1, weights...))
		cfg.Lists[0].Order = append(cfg.Lists[0].Order, Region(r))
	}
	return cfg
}

func TestAvailability(t *testing.T) {
	tests := []struct {
		name          string
		below         float64
		states        string
		availability  float64
		healthy       float64
		minHealthyPct float64
	}{
		{"all up", 50, "uuuuuuuuuu", 1, 1, 0},
		{"at the threshold", 50, "uuuuuddddd", 1, 0.5, 0},
		{"below it", 50, "uuuudddddd", 0.8, 0.4, 0},
		{"far below it", 50, "uddddddddd", 0.2, 0.1, 0},
		{"a higher threshold", 70, "uuuuuudddd", 6.0 / 7, 0.6, 0},
		{"the whole pool", 100, "uuuuuuuuud", 0.9, 0.9, 0},
		{"in hundredths", 62.5, "uuuuuddddd", 0.8, 0.5, 0},
		{"off", 0, "uddddddddd", 1, 0.1, 0},
		{"drained don't count", 50, "uuooooooud", 1, 0.75, 0},
		{"all but the drained", 50, "uooooooooo", 1, 1, 0},
		{"none left", 50, "oooooooooo", 0, 0, 0},
		{"down", 50, "dddddddddd", 0, 0, 0},
		{"too few", 50, "uuuudddddd", 0, 0.4, 41},
		{"just enough", 50, "uuuudddddd", 0.8, 0.4, 40},
		{"enough of what is left", 50, "uuuudddooo", 1, 4.0 / 7, 57},
		{"half full", 50, "uuuuufffff", 0.75, 1, 0},
		{"one full", 50, "uuuuuuuuuf", 0.95, 1, 0},
		{"all full", 50, "ffffffffff", 0.5, 1, 0},
		{"full and down", 50, "uuffdddddd", 0.8 * 0.75, 0.4, 0},
		{"full without a threshold", 0, "uffddddddd", 1 - 2.0/6, 0.3, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := orderHost(Sticky, tt.below, 10)
			cfg.Pools[0].MinHealthyPct = tt.minHealthyPct
			h := mustHost(t, cfg)
			got := h.NewSnapshot(words(tt.states), nil).Region(0, V4)
			if math.Abs(got.Availability-tt.availability) > 1e-12 || math.Abs(got.Healthy-tt.healthy) > 1e-12 || got.Usable != (tt.availability > 0) {
				t.Errorf("%+v; want availability %v, healthy %v", got, tt.availability, tt.healthy)
			}
		})
	}
}

// What a region keeps and what the next ones get is the product of the parts: each
// region asks a hash of its own.
func TestSpilledSharesMultiply(t *testing.T) {
	tests := []struct {
		name   string
		sizes  []int
		states []string
		want   []uint32
	}{
		{"one spills", []int{10, 1}, []string{"uuuudddddd", "u"}, []uint32{8, 2}},
		{"two spill", []int{4, 5, 1}, []string{"uddd", "udddd", "u"}, []uint32{50, 20, 30}},
		{"full", []int{2, 2, 1}, []string{"uf", "ff", "u"}, []uint32{6, 1, 1}},
		{"the last one takes what it can't spill", []int{4, 1}, []string{"d" + "ddd", "f"}, []uint32{0, 1}},
		{"nobody takes a part, the first serves", []int{4, 5}, []string{"uddd", "udddd"}, []uint32{80, 20}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := orderHost(Sticky, 50, tt.sizes...)
			checkShares(t, count(chosen(t, cfg, words(tt.states...)), len(tt.sizes)), tt.want)
		})
	}
}

// In a split, a region keeps its part of its share, and the losers get the rest in
// proportion to their weights. The choice inside the pool stays independent.
func TestSplitSpills(t *testing.T) {
	cfg := orderHost(Sticky, 50, 4, 2, 1)
	cfg.Lists[0] = List{Split: []Weighted{{0, 5}, {1, 3}, {2, 2}}}
	state := words("uddd", "uu", "u")
	checkShares(t, count(chosen(t, cfg, state), 3), []uint32{25, 45, 30}) // 5/2, 3+5/2*3/5, 2+5/2*2/5
	h := mustHost(t, cfg)
	s := h.NewSnapshot(state, nil)
	counts := make([]int, 2)
	for n := range clients {
		if d := h.Decide(s, nthClient(n), V4, nil); d.Region == 1 {
			counts[d.Answer.Addrs[0].As4()[3]]++
		}
	}
	checkShares(t, counts, []uint32{1, 1})
}

// As a pool fails, clients only ever leave it, as many as its part shrinks; none
// moves between others. As it heals they come back to where they were.
func TestOnlyTheSpilledMove(t *testing.T) {
	cfg := orderHost(Sticky, 100, 10, 10, 10)
	// The part that two regions take at each step.
	var last []int
	for up := 10; up >= 0; up-- {
		now := chosenRegions(t, cfg, func(r Region, i int) EndpointState {
			if r == 0 && i >= up || r == 1 && i >= 7 {
				return isDown
			}
			return EndpointState{}
		})
		moved := 0
		for n := range last {
			if last[n] == now[n] {
				continue
			}
			if moved++; last[n] != 0 {
				t.Fatalf("client %d moved from %d to %d while the first region failed", n, last[n], now[n])
			}
		}
		if last != nil {
			checkShares(t, []int{moved, clients - moved}, []uint32{1, 9})
		}
		checkShares(t, count(now, 3), []uint32{uint32(100 * up / 10), uint32(7 * (10 - up)), uint32(3 * (10 - up))})
		last = now
	}
}

func chosenRegions(t *testing.T, cfg HostConfig, state func(Region, int) EndpointState) []int {
	h := mustHost(t, cfg)
	s := h.NewSnapshot(state, nil)
	got := make([]int, clients)
	for n := range got {
		got[n] = int(h.Decide(s, nthClient(n), V4, nil).Region)
	}
	return got
}

// A full endpoint keeps serving with half its weight, unless all are full.
func TestFullSpreads(t *testing.T) {
	for states, want := range map[string][]uint32{
		"uuuu": {1, 1, 1, 1}, "ufuu": {2, 1, 2, 2}, "ufuf": {2, 1, 2, 1}, "ffff": {1, 1, 1, 1}, "fufd": {1, 2, 1, 0},
	} {
		cfg := orderHost(Sticky, 50, 4) // nowhere to spill to
		checkShares(t, count(chosen(t, cfg, words(states)), 4), want)
	}
	cfg := orderHost(Sticky, 50, 3)
	cfg.Pools[0].Answers = 0
	h := mustHost(t, cfg)
	d := h.Decide(h.NewSnapshot(words("ufd"), nil), nthClient(1), V4, nil)
	if got, want := outcome(h, d), "answer ra 192.0.0.0 192.0.0.1"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// When one endpoint gets full, only its clients move, and half of them.
func TestOnlyTheFullOnesClientsMove(t *testing.T) {
	cfg := orderHost(Sticky, 50, 4)
	before, after := chosen(t, cfg, words("uuuu")), chosen(t, cfg, words("ufuu"))
	moved := 0
	for n := range before {
		if before[n] == after[n] {
			continue
		}
		if moved++; before[n] != 1 {
			t.Fatalf("client %d moved from %d, which is not full", n, before[n])
		}
	}
	checkShares(t, []int{moved, clients - moved}, []uint32{3, 25}) // 1/4 - 1/7
}

func TestBalancedSpills(t *testing.T) {
	tests := []struct {
		name   string
		split  []Weighted
		states []string
		want   []float64
	}{
		{"order", nil, []string{"uddd", "ffff", "uuuu"}, []float64{0.5, 0.25, 0.25}},
		{"order, nobody takes a part", nil, []string{"uddd", "uddd", "uddd"}, []float64{0.625, 0.25, 0.125}},
		{"split", []Weighted{{0, 7}, {1, 2}, {2, 1}}, []string{"uddd", "uuuu", "uuuu"}, []float64{0.35, 0.2 + 0.35*2/3, 0.1 + 0.35/3}},
		{"split, two spill", []Weighted{{0, 1}, {1, 1}}, []string{"uddd", "ffff", "uuuu"}, []float64{0.375, 0.375, 0.25}},
		{"split, nobody takes a part", []Weighted{{0, 3}, {1, 1}, {2, 0}}, []string{"uddd", "ffff", "dddd"},
			[]float64{0.375 + 0.0625 + 0.25*0.75, 0.125 + 0.1875 + 0.25*0.25}},
		{"split, all spill", []Weighted{{0, 5}, {1, 3}, {2, 2}}, []string{"uddd", "uuff", "ffff"}, nil}, // as the trace says
		{"split, then a standby", []Weighted{{0, 1}, {1, 0}}, []string{"uddd", "ffff", "uuuu"}, []float64{0.5, 0.25, 0.25}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := orderHost(Balanced, 50, 4, 4, 4)
			cfg.Lists[0].Split = tt.split
			h := mustHost(t, cfg)
			s := h.NewSnapshot(words(tt.states...), nil)
			const n = 20_000
			got := make([]float64, 3)
			traced := make([]float64, 3)
			var tr Trace
			for i := range n {
				if i%1000 == 0 {
					traced = sharesOf(h, s, &tr)
				}
				got[h.Decide(s, nthClient(i), V4, nil).Region]++
			}
			if tt.want == nil {
				tt.want = traced
			}
			for r, want := range tt.want {
				if math.Abs(got[r]/n-want) > 0.003 {
					t.Errorf("region %d: %v of the resolutions; want %v", r, got[r]/n, want)
				}
				if math.Abs(traced[r]-want) > 2e-6 {
					t.Errorf("region %d: the trace says %v; want %v", r, traced[r], want)
				}
			}
		})
	}
}

// sharesOf is what a trace says each region gets.
func sharesOf(h *Host, s *Snapshot, tr *Trace) []float64 {
	h.Decide(s, nthClient(1), V4, tr)
	shares := make([]float64, len(h.regions))
	for _, sh := range tr.Shares {
		for r, name := range h.regions {
			if name == sh.Region {
				shares[r] += float64(sh.Part) / float64(sh.Of)
			}
		}
	}
	return shares
}

// Any stretch of resolutions comes close to the part, and traces take no turn.
func TestBalancedSpillsEvenly(t *testing.T) {
	cfg := orderHost(Balanced, 50, 4, 1)
	h := mustHost(t, cfg)
	s := h.NewSnapshot(words("uddd", "u"), nil)
	kept := 0
	var tr Trace
	for n := range 5000 {
		if h.Decide(s, nthClient(n), V4, nil).Region == 0 {
			kept++
		}
		if off := float64(kept) - float64(n+1)/2; math.Abs(off) > 3 {
			t.Fatalf("%v off after %d resolutions", off, n+1)
		}
		want := h.Decide(s, nthClient(n), V4, &tr)
		if again := h.Decide(s, nthClient(n), V4, &tr); again != want {
			t.Fatalf("a trace took a turn: %+v, then %+v", want, again)
		}
	}
}

// The golden admissions hold HashVersion, as the golden choices do.
func TestGoldenAdmissions(t *testing.T) {
	if HashVersion != 1 {
		t.Fatal("a new HashVersion needs new golden admissions")
	}
	cfg := orderHost(Sticky, 50, 4, 1)
	h := mustHost(t, cfg)
	s := h.NewSnapshot(words("uddd", "u"), nil)
	got := ""
	for n := range 32 {
		got += h.regionName(h.Decide(s, nthClient(n), V4, nil).Region)[1:]
	}
	if want := "aaababbaabababbbaaaaaabaabaaaabb"; got != want {
		t.Errorf("admitted %s; want %s", got, want)
	}
}

// The same for the levers that have a hash of their own.
func TestGoldenLevers(t *testing.T) {
	if HashVersion != 1 {
		t.Fatal("a new HashVersion needs new golden levers")
	}
	cfg := orderHost(Sticky, 50, 1, 1, 1)
	cfg.Shed = "full.example."
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, levers(soak(0.25), both(trickle(0.5), admit(0.75))))
	got := ""
	for n := range 32 {
		d := h.Decide(s, nthClient(n), V4, nil)
		if got += h.regionName(d.Region)[1:]; d.Shed {
			got = got[:len(got)-1] + "-"
		}
	}
	if want := "b-cacaacccba-bccbcbacccbacc-aa-c"; got != want {
		t.Errorf("levers gave %s; want %s", got, want)
	}
}
