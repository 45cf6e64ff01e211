package steer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// placed is where a decision's client goes: a region, or regions for one shed;
// -1: nowhere.
func placed(d Decision, regions int) int {
	switch {
	case d.Shed:
		return regions
	case d.Region == NoRegion:
		return -1
	}
	return int(d.Region)
}

// The flow of a random host is what its clients do.
func TestFlowFollowsDecisions(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	kinds := make(map[string]int)
	worst := 0.0 // in parts of what is allowed
	for range 100 {
		cfg := randomHost(rng)
		cfg.Spread, cfg.Grain = Spread(rng.IntN(3)), [2]int{}
		h := mustHost(t, cfg)
		s := h.NewSnapshot(randomState(rng, cfg), randomLevers(rng, cfg))
		list, f := rng.IntN(len(cfg.Lists)), Family(rng.IntN(2))
		const n = clients
		got := make([]float64, len(cfg.Regions)+1)
		for i := range n {
			c := nthClient(i)
			c.List, c.Block = list, 16
			d := h.Decide(s, c, f, nil)
			if to := placed(d, len(cfg.Regions)); to >= 0 {
				got[to] += 1.0 / n
			}
			kinds[d.By.String()]++
		}
		flow, sum := h.Flow(s, list, f), 0.0
		for r, part := range flow {
			sum += part
			// Five standard deviations: 1 % at most.
			limit := 5*math.Sqrt(part*(1-part)/n) + 1e-3
			worst = max(worst, math.Abs(part-got[r])/limit)
			if math.Abs(part-got[r]) > limit {
				t.Fatalf("%s: flow %.4f, decisions %.4f\nhost %+v, list %d\nlevers %+v", cfg.Spread, flow, got, cfg, list, s.levers)
			}
		}
		if sum > 1+1e-8 || sum < 1-1e-8 && slices.Max(flow) > 0 {
			t.Fatalf("flow %v sums to %v", flow, sum)
		}
	}
	t.Logf("at worst %v of what is allowed; decisions by %v", worst, kinds)
	if len(kinds) != int(ByForced)+1 {
		t.Errorf("only decisions by %v were made", kinds)
	}
}

// sequence is a race by the definition of drawing without replacement: the first is
// drawn by weight, and where it declines, so is the next among the others.
func sequence(weights, parts []float64, mass float64, won []float64, out []bool) {
	total := 0.0
	for i, w := range weights {
		if !out[i] {
			total += w
		}
	}
	for i, w := range weights {
		if out[i] {
			continue
		}
		won[i] += mass * w / total * parts[i]
		out[i] = true
		sequence(weights, parts, mass*w/total*(1-parts[i]), won, out)
		out[i] = false
	}
}

func TestRace(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for n := range 7 {
		for range 20 {
			weights, parts := make([]float64, n), make([]float64, n)
			for i := range weights {
				weights[i] = math.Exp2(24 * rng.Float64())
				parts[i] = []float64{rng.Float64(), rng.Float64(), 0, 1}[rng.IntN(4)]
			}
			want := make([]float64, n)
			sequence(weights, parts, 1, want, make([]bool, n))
			won := race(weights, parts)
			for i := range won {
				if math.Abs(won[i]-want[i]) > 1e-8 {
					t.Fatalf("weights %v, parts %v: %v; want %v", weights, parts, won, want)
				}
				next, alone := second(weights, parts, i)
				if got := sum(next) + alone; math.Abs(got-want[i]) > 1e-8 {
					t.Fatalf("weights %v, parts %v: with a second to %d there are %v; want %v", weights, parts, i, got, want[i])
				}
			}
		}
	}
}

// Who has a second is who wins where the first is not there, of those who came later.
func TestSecondOfTwo(t *testing.T) {
	next, alone := second([]float64{3, 1}, []float64{0.5, 0.5}, 0)
	// The first wins 0.5*(3/4 + 1/4*0.5); the second takes half of what comes first
	// to the first, and the rest of these nobody else takes.
	if math.Abs(next[1]-0.5*0.75*0.5) > 1e-9 || next[0] != 0 || alone != 0.25 {
		t.Errorf("%v and %v", next, alone)
	}
}

func TestFlowOfLastResorts(t *testing.T) {
	cfg := splitHost(Sticky, 1, 3, 0)
	for _, tt := range []struct {
		resort LastResort
		want   []float64
	}{
		{LastResort{}, []float64{0.25, 0.75, 0, 0}},
		{LastResort{Kind: Closed}, []float64{0, 0, 0, 0}},
		{LastResort{Kind: Regions, Regions: []Region{2, 0}}, []float64{0, 0, 1, 0}},
	} {
		cfg.LastResort = tt.resort
		h := mustHost(t, cfg)
		if got := h.Flow(h.NewSnapshot(words("d", "d", "d"), nil), 0, V4); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v; want %v", tt.resort.Kind, got, tt.want)
		}
		if got := h.Flow(h.NewSnapshot(allUp, nil), 0, V6); !slices.Equal(got, make([]float64, 4)) {
			t.Errorf("a family that is not offered flows: %v", got)
		}
	}
}

// In turn, every stretch of resolutions comes close to the part of each lever, and
// traces take no turn.
func TestBalancedLeversEvenly(t *testing.T) {
	for name, move := range map[string][]func(*Levers){
		"dial":    {dial(0.37)},
		"share":   {nil, soak(0.37)},
		"trickle": {trickle(0.37)},
		"shed":    {admit(0.63)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := orderHost(Balanced, 50, 1, 1)
			cfg.Shed = "full.example."
			h := mustHost(t, cfg)
			s := h.NewSnapshot(allUp, levers(move...))
			want := h.Flow(s, 0, V4)
			got := make([]float64, 3)
			var tr Trace
			for n := range 5000 {
				next := h.Decide(s, nthClient(n), V4, &tr)
				d := h.Decide(s, nthClient(n), V4, nil)
				if d != next {
					t.Fatalf("the trace saw %+v coming; it was %+v", next, d)
				}
				got[placed(d, 2)]++
				for i, part := range want {
					if off := got[i] - part*float64(n+1); math.Abs(off) > 2 {
						t.Fatalf("%d is %v off after %d resolutions", i, off, n+1)
					}
				}
			}
		})
	}
}

// A list is exact over its own resolutions, however it alternates with others.
func TestBalancedSharesCountListsApart(t *testing.T) {
	cfg := orderHost(Balanced, 50, 1, 1)
	cfg.Lists = append(cfg.Lists, cfg.Lists[0])
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, levers(soak(0.25)))
	got := [2]int{}
	for n := range 14400 {
		c := nthClient(n)
		if n%144 == 0 { // where multiples of the golden ratio nearly come round
			c.List = 1
		}
		if h.Decide(s, c, V4, nil).By == ByShare {
			got[c.List]++
		}
	}
	if math.Abs(float64(got[0])-3575) > 2 || math.Abs(float64(got[1])-25) > 2 {
		t.Errorf("shares of 14300 and 100 resolutions: %v; want a quarter each", got)
	}
}

// What a trace says of the shares is what is answered.
func TestBalancedTraceOfLevers(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range 60 {
		cfg := randomHost(rng)
		cfg.Spread = Balanced
		h := mustHost(t, cfg)
		s := h.NewSnapshot(randomState(rng, cfg), randomLevers(rng, cfg))
		c := nthClient(1)
		c.List = rng.IntN(len(cfg.Lists))
		var tr Trace
		if d := h.Decide(s, c, V4, &tr); d.Outcome != OutcomeAnswer {
			continue
		}
		const n = 1 << 14
		got := make(map[string]float64)
		for range n {
			d := h.Decide(s, c, V4, nil)
			got[h.regionName(d.Region)+" "+d.Answer.Name+join(d.Answer.Addrs)] += 1.0 / n
		}
		total := 0.0
		for _, sh := range tr.Shares {
			part := float64(sh.Part) / float64(sh.Of)
			total += part
			if id := sh.Region + " " + sh.Name + join(sh.Answer); math.Abs(got[id]-part) > 0.01 {
				t.Fatalf("%s gets %.4f; the trace says %.4f\n%+v\n%+v", id, got[id], part, tr, cfg)
			}
		}
		if math.Abs(total-1) > 1e-5 {
			t.Fatalf("shares sum to %v", total)
		}
	}
}

// What trickles out of a split goes to the others by their weights.
func TestTrickleInASplit(t *testing.T) {
	const p = 0.4
	want := []float64{ // what each keeps, and what it gets of the other two
		0.5*(1-p) + p*(0.3*5/7+0.2*5/8),
		0.3*(1-p) + p*(0.5*3/5+0.2*3/8),
		0.2*(1-p) + p*(0.5*2/5+0.3*2/7),
	}
	for _, spread := range []Spread{Sticky, Balanced} {
		h := mustHost(t, splitHost(spread, 5, 3, 2))
		s := h.NewSnapshot(allUp, levers(trickle(p), trickle(p), trickle(p)))
		counts, flow := count(regionsBy(h, s), 3), h.Flow(s, 0, V4)
		for r, part := range want {
			if got := float64(counts[r]) / clients; math.Abs(got-part) > 0.01 || math.Abs(flow[r]-part) > 1e-8 {
				t.Errorf("%s: region %d gets %.4f, flow %.9f; want %.9f", spread, r, got, flow[r], part)
			}
		}
	}
}

// Drawn in turn, a region dialled to nothing leaves its turns to the others of the
// split by their weights, even where none of them takes the client.
func TestBalancedDialsToNothing(t *testing.T) {
	h := mustHost(t, splitHost(Balanced, 5, 3, 2))
	for name, move := range map[string][]func(*Levers){"they take all": {dial(0)}, "none takes any": {dial(0), ramp(0), ramp(0)}} {
		counts := count(regionsBy(h, h.NewSnapshot(allUp, levers(move...))), 3)
		for r, part := range []float64{0, 0.6, 0.4} {
			if got := float64(counts[r]) / clients; math.Abs(got-part) > 1e-4 {
				t.Errorf("%s: region %d gets %v; want %v", name, r, got, part)
			}
		}
	}
}
