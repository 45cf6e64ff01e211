package steer

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// levers makes the levers of each region from a function that moves some.
func levers(moves ...func(*Levers)) func(Region) Levers {
	return func(r Region) Levers {
		l := NoLevers()
		if int(r) < len(moves) && moves[r] != nil {
			moves[r](&l)
		}
		return l
	}
}

func dial(p float64) func(*Levers)    { return func(l *Levers) { l.Dial = p } }
func ramp(p float64) func(*Levers)    { return func(l *Levers) { l.Ramp = p } }
func trickle(p float64) func(*Levers) { return func(l *Levers) { l.Trickle = p } }
func soak(p float64) func(*Levers)    { return func(l *Levers) { l.Shared, l.Share = true, p } }
func admit(p ...float64) func(*Levers) {
	return func(l *Levers) { l.Admission = p }
}

// both moves levers of the same region.
func both(moves ...func(*Levers)) func(*Levers) {
	return func(l *Levers) {
		for _, move := range moves {
			move(l)
		}
	}
}

// regionsBy is the region of each client, and len(regions) for those who are shed.
func regionsBy(h *Host, s *Snapshot) []int {
	got := make([]int, clients)
	for n := range got {
		d := h.Decide(s, nthClient(n), V4, nil)
		if got[n] = int(d.Region); d.Shed {
			got[n] = len(h.regions)
		}
	}
	return got
}

func TestLeversMoveTheirPart(t *testing.T) {
	tests := []struct {
		name   string
		states []string
		shed   bool
		levers []func(*Levers)
		want   []uint32 // by region, and what is shed
	}{
		{"nothing", []string{"u", "u", "u"}, false, nil, []uint32{1, 0, 0, 0}},
		{"dial", []string{"u", "u", "u"}, false, []func(*Levers){dial(0.3)}, []uint32{3, 7, 0, 0}},
		{"dial and ramp", []string{"u", "u", "u"}, false, []func(*Levers){both(dial(0.5), ramp(0.5)), dial(0.4)}, []uint32{25, 30, 45, 0}},
		{"dial and health", []string{"ffff", "u", "u"}, false, []func(*Levers){dial(0.5)}, []uint32{1, 3, 0, 0}},
		{"dialled to nothing", []string{"u", "u", "u"}, false, []func(*Levers){dial(0)}, []uint32{0, 1, 0, 0}},
		{"dialled to nothing, all others down", []string{"u", "d", "d"}, false, []func(*Levers){dial(0)}, []uint32{1, 0, 0, 0}},
		{"dialled to nothing comes last", []string{"u", "u", "d"}, false, []func(*Levers){dial(0), dial(0.1)}, []uint32{0, 1, 0, 0}},
		{"all dialled to nothing", []string{"u", "u", "u"}, false, []func(*Levers){dial(0), dial(0), dial(0)}, []uint32{1, 0, 0, 0}},
		{"nobody admits", []string{"u", "u", "u"}, false, []func(*Levers){both(dial(0), admit(1)), admit(0), admit(0)}, []uint32{0, 1, 0, 0}},
		{"admission", []string{"u", "u", "u"}, false, []func(*Levers){admit(0.25), admit(0.5)}, []uint32{2, 3, 3, 0}},
		{"admission of another list", []string{"u", "u", "u"}, false, []func(*Levers){admit(1, 0.25)}, []uint32{1, 0, 0, 0}},
		{"shed", []string{"u", "u", "u"}, true, []func(*Levers){both(dial(0.5), admit(0.25)), admit(0.5)}, []uint32{1, 2, 0, 5}},
		{"shed without a law", []string{"u", "u", "u"}, true, []func(*Levers){dial(0.5)}, []uint32{1, 1, 0, 0}},
		{"nothing is shed by force", []string{"u", "d", "d"}, true, []func(*Levers){both(dial(0), admit(0))}, []uint32{1, 0, 0, 0}},
		{"soak", []string{"u", "u", "u"}, false, []func(*Levers){soak(0.05)}, []uint32{1, 19, 0, 0}},
		{"soak last in the order", []string{"u", "u", "u"}, false, []func(*Levers){nil, nil, soak(0.25)}, []uint32{3, 0, 1, 0}},
		{"soak of nothing", []string{"u", "u", "u"}, false, []func(*Levers){soak(0)}, []uint32{0, 1, 0, 0}},
		{"soak of all", []string{"u", "u", "u"}, false, []func(*Levers){nil, soak(1)}, []uint32{0, 1, 0, 0}},
		{"soak that is down", []string{"d", "u", "u"}, false, []func(*Levers){soak(0.05)}, []uint32{0, 1, 0, 0}},
		{"soak held back", []string{"ffff", "u", "u"}, false, []func(*Levers){both(soak(0.4), dial(0.5))}, []uint32{1, 9, 0, 0}},
		{"soak is not admitted by the law", []string{"u", "u", "u"}, false, []func(*Levers){both(soak(0.5), admit(0))}, []uint32{1, 1, 0, 0}},
		{"soak is not shed by the law", []string{"u", "u", "u"}, true, []func(*Levers){both(soak(0.5), admit(0))}, []uint32{1, 1, 0, 0}},
		{"two soaks", []string{"u", "u", "u"}, false, []func(*Levers){soak(0.2), nil, soak(0.5)}, []uint32{2, 3, 5, 0}},
		{"two soaks, the first down", []string{"d", "u", "u"}, false, []func(*Levers){soak(0.2), nil, soak(0.5)}, []uint32{0, 1, 1, 0}},
		{"soaks of more than all", []string{"u", "u", "u"}, false, []func(*Levers){soak(0.7), nil, soak(0.7)}, []uint32{7, 0, 3, 0}},
		{"soak alone", []string{"u", "d", "d"}, false, []func(*Levers){soak(0.05)}, []uint32{1, 0, 0, 0}},
		{"soaks alone", []string{"u", "d", "u"}, false, []func(*Levers){both(soak(0.05), dial(0.5)), nil, soak(0)}, []uint32{1, 0, 1, 0}},
		{"soak beside one that is dialled to nothing", []string{"u", "u", "d"}, false, []func(*Levers){soak(0.25), dial(0)}, []uint32{1, 3, 0, 0}},
		{"open last resort leaves out the soak", []string{"d", "d", "d"}, false, []func(*Levers){soak(0.25)}, []uint32{0, 1, 0, 0}},
		{"open last resort leaves out one that is dialled to nothing", []string{"d", "d", "d"}, false, []func(*Levers){dial(0), dial(0.1)}, []uint32{0, 1, 0, 0}},
		{"open last resort of one that is dialled to nothing", []string{"d", "o", "o"}, false, []func(*Levers){dial(0)}, []uint32{1, 0, 0, 0}},
		{"open last resort of a soak", []string{"d", "o", "o"}, false, []func(*Levers){soak(0.25)}, []uint32{1, 0, 0, 0}},
		{"trickle", []string{"u", "u", "u"}, false, []func(*Levers){trickle(0.1)}, []uint32{9, 1, 0, 0}},
		{"trickle goes no further", []string{"u", "u", "u"}, false, []func(*Levers){trickle(0.1), trickle(0.5)}, []uint32{9, 1, 0, 0}},
		{"trickle of more than half", []string{"u", "u", "u"}, false, []func(*Levers){trickle(0.9)}, []uint32{1, 1, 0, 0}},
		{"trickle to those that take it", []string{"u", "u", "u"}, false, []func(*Levers){trickle(0.5), dial(0.4)}, []uint32{5, 2, 3, 0}},
		{"trickle with nowhere to go", []string{"u", "d", "u"}, false, []func(*Levers){trickle(0.5), nil, soak(0)}, []uint32{1, 0, 0, 0}},
		{"trickle of what is spilled", []string{"u", "u", "u"}, false, []func(*Levers){dial(0.5), trickle(0.5)}, []uint32{2, 1, 1, 0}},
		{"trickle is not shed", []string{"u", "u", "u"}, true, []func(*Levers){both(admit(0.8), trickle(0.5)), admit(0.5)}, []uint32{60, 20, 0, 20}},
		{"share, then trickle", []string{"u", "u", "u"}, false, []func(*Levers){soak(0.2), trickle(0.25)}, []uint32{2, 6, 2, 0}},
	}
	for _, tt := range tests {
		for _, spread := range []Spread{Sticky, Balanced} {
			t.Run(fmt.Sprintf("%s, %s", tt.name, spread), func(t *testing.T) {
				cfg := orderHost(spread, 50, len(tt.states[0]), len(tt.states[1]), len(tt.states[2]))
				if tt.shed {
					cfg.Shed = "full.example."
				}
				h := mustHost(t, cfg)
				s := h.NewSnapshot(words(tt.states...), levers(tt.levers...))
				counts := count(regionsBy(h, s), 4)
				if spread == Sticky {
					checkShares(t, counts, tt.want)
				}
				total := 0.0
				for _, w := range tt.want {
					total += float64(w)
				}
				for i, part := range h.Flow(s, 0, V4) {
					if want := float64(tt.want[i]) / total; math.Abs(part-want) > 1e-9 {
						t.Errorf("the flow of %d is %v; want %v", i, part, want)
					} else if off := math.Abs(float64(counts[i]) - want*clients); spread == Balanced && off > 12 {
						t.Errorf("%d got %d of %d resolutions; want %v of them", i, counts[i], clients, want)
					}
				}
			})
		}
	}
}

// An open last resort of a split whose regions are all dialled to nothing goes by their
// weights, in turn as well as by hash.
func TestLastResortDialledToNothing(t *testing.T) {
	for _, spread := range []Spread{Sticky, Balanced} {
		h := mustHost(t, splitHost(spread, 1, 3))
		s := h.NewSnapshot(words("d", "d"), levers(dial(0), dial(0)))
		checkShares(t, count(regionsBy(h, s), 3), []uint32{1, 3, 0})
	}
}

// A change of a lever moves the part that it changes by, in one direction only.
func TestLeversMoveNobodyElse(t *testing.T) {
	tests := []struct {
		name     string
		shed     bool
		lever    func(p float64) func(*Levers)
		region   int // whose lever it is
		from, to int // where clients move as p rises
		scale    float64
	}{
		{"dial", false, dial, 0, 1, 0, 1},
		{"ramp", false, ramp, 0, 1, 0, 1},
		{"admission", false, func(p float64) func(*Levers) { return admit(p) }, 0, 1, 0, 1},
		{"shed", true, func(p float64) func(*Levers) { return admit(p) }, 0, 3, 0, 1},
		{"share", false, soak, 2, 0, 2, 1},
		{"trickle", false, func(p float64) func(*Levers) { return trickle(p / 2) }, 0, 0, 1, 0.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := orderHost(Sticky, 50, 1, 1, 1)
			if tt.shed {
				cfg.Shed = "full.example."
			}
			h := mustHost(t, cfg)
			var last []int
			for p := 0.0; p <= 1; p += 0.125 {
				moves := make([]func(*Levers), 3)
				moves[tt.region] = tt.lever(p)
				now := regionsBy(h, h.NewSnapshot(allUp, levers(moves...)))
				moved := 0
				for n := range last {
					if last[n] == now[n] {
						continue
					}
					if moved++; last[n] != tt.from || now[n] != tt.to {
						t.Fatalf("at %v, client %d moved from %d to %d", p, n, last[n], now[n])
					}
				}
				if part := uint32(1000 * tt.scale / 8); last != nil {
					checkShares(t, []int{moved, clients - moved}, []uint32{part, 1000 - part})
				}
				last = now
			}
			if slices.ContainsFunc(last, func(r int) bool { return r != tt.to && tt.scale == 1 }) {
				t.Errorf("not everybody moved at 1")
			}
		})
	}
}

// Every lever asks a hash of its own, and so does the choice in a pool: what is
// left by one is split by the next in the same proportion.
func TestLeversAreIndependent(t *testing.T) {
	cfg := orderHost(Sticky, 50, 2, 2, 2, 2)
	cfg.Shed = "full.example."
	h := mustHost(t, cfg)
	s := h.NewSnapshot(words("uu", "uu", "uu", "uu"), levers(soak(0.25), both(dial(0.5), admit(0.75), trickle(0.4)), dial(0.5)))
	counts := make([]int, 9)
	for n := range clients {
		d := h.Decide(s, nthClient(n), V4, nil)
		if d.Shed {
			counts[8]++
			continue
		}
		counts[2*int(d.Region)+int(d.Answer.Addrs[0].As4()[3])]++
	}
	// Of 1600: the soak 400. Of 1200, half to b: 600, of which 150 are shed and 0.4 of
	// 450 trickle, half to c and half to d; the other half 300 to c and 300 to d.
	checkShares(t, counts, []uint32{200, 200, 135, 135, 195, 195, 195, 195, 150})
}

func TestSoakOfMarkedLists(t *testing.T) {
	cfg := orderHost(Sticky, 50, 1, 1)
	cfg.Lists = []List{
		{Order: []Region{0, 1}, Marks: 1 << 5},
		{Order: []Region{0, 1}, Marks: 1<<4 | 1<<6},
		{Order: []Region{1}, Marks: 1 << 5},
		{Split: []Weighted{{1, 1}, {0, 0}}, Marks: 1 << 5},
	}
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, levers(both(soak(0.25), func(l *Levers) { l.Mark = 5 })))
	for list, want := range [][]uint32{{1, 3}, {0, 1}, {0, 1}, {1, 3}} {
		counts := make([]int, 2)
		for n := range clients {
			c := nthClient(n)
			c.List = list
			counts[h.Decide(s, c, V4, nil).Region]++
		}
		checkShares(t, counts, want)
		for r, part := range h.Flow(s, list, V4)[:2] {
			if want := float64(want[r]) / float64(want[0]+want[1]); part != want {
				t.Errorf("list %d: the flow to %d is %v; want %v", list, r, part, want)
			}
		}
	}
}

// Shares are compensated and rounded down, to 2^-64: the sum of products never
// passes what was asked for.
func TestSharesAreNeverExceeded(t *testing.T) {
	cfg := orderHost(Sticky, 50, 1, 1, 1, 1, 1)
	h := mustHost(t, cfg)
	for _, p := range [][4]float64{{0.1, 0.2, 0.3, 0.4}, {1.0 / 3, 1.0 / 3, 1.0 / 3, 0.5}, {1e-18, 0.999, 1, 0}, {0, 0.7, 0.2, 0.11}} {
		s := h.NewSnapshot(allUp, levers(nil, soak(p[0]), soak(p[1]), soak(p[2]), soak(p[3])))
		left, asked := 1.0, 0.0
		for i, part := range h.Flow(s, 0, V4)[1:5] {
			want := math.Min(p[i], left)
			if part > want*(1+1e-15) || part < want-1e-15 {
				t.Errorf("%v: %d gets %v; want %v", p, i, part, want)
			}
			left -= want
			asked += p[i]
		}
		if rest := h.Flow(s, 0, V4)[0]; math.Abs(rest-max(0, 1-asked)) > 1e-15 {
			t.Errorf("%v leave %v", p, rest)
		}
	}
}

func TestThresholds(t *testing.T) {
	points := []uint64{0, 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	for _, x := range points {
		if thresholdOf(0).takes(x) || !thresholdOf(1).takes(x) {
			t.Errorf("point %#x: a part of 0 takes it, or one of 1 doesn't", x)
		}
	}
	if below := thresholdOf(math.Nextafter(1, 0)); below == everybody || below.takes(math.MaxUint64) {
		t.Error("the part next to 1 takes everybody")
	}
	for _, p := range []float64{0, 0.1, 0.25, 0.5, 0.99, 1} {
		a := thresholdOf(p)
		if a.part() != p || a.times(everybody) != a || everybody.times(a) != a || a.times(0) != 0 {
			t.Errorf("part %v: threshold %#x is %v", p, a, a.part())
		}
		if sq := a.times(a).part(); math.Abs(sq-p*p) > 1e-15 {
			t.Errorf("%v squared is %v", p, sq)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), 7} {
		l := Levers{Dial: bad, Ramp: bad, Admission: []float64{bad}}
		if got := l.clean(); got.Dial != 1 || got.Ramp != 1 || got.admits(0) != 1 {
			t.Errorf("%v counts as %+v", bad, got)
		}
	}
	if got := (Levers{Dial: -1, Share: 2, Trickle: math.NaN(), Ramp: math.Inf(-1)}).clean(); got.Dial != 0 || got.Share != 1 || got.Trickle != 0 || got.Ramp != 0 {
		t.Errorf("bad levers count as %+v", got)
	}
}
