package gslb

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/steer"
)

// sized is the demand of one host.
func sized(lists, regions int, coarse bool) *demand {
	d := &demand{hosts: make([]hostDemand, 1)}
	d.hosts[0].size(lists, regions+1, coarse)
	return d
}

// TestDemandCounts counts from many goroutines while means are taken: nothing is lost,
// and nothing counted twice.
func TestDemandCounts(t *testing.T) {
	const each = 20_000
	for _, coarse := range []bool{false, true} {
		d := sized(3, 2, coarse)
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := range each {
					c := steer.Client{List: i % 3, Transport: netip.AddrFrom4([4]byte{10, byte(worker), byte(i), 1})}
					r := steer.Region(worker % 2)
					if i%10 == 0 {
						r = steer.NoRegion
					}
					d.count(0, &c, r)
				}
			})
		}
		for range 100 {
			d.settle(start)
		}
		wg.Wait()
		d.settle(start)
		h := &d.hosts[0]
		if total := sum(h.lists); total != 4*each || sum(h.served) != 4*each {
			t.Errorf("coarse %v: %v resolutions by list, %v by region, want %d", coarse, total, sum(h.served), 4*each)
		}
		if h.served[2] != 4*each/10 || h.served[0] != h.served[1] {
			t.Errorf("coarse %v: by region %v", coarse, h.served)
		}
		if n := 4 * each; math.Abs(h.lists[0]-float64(n)/3) > 4 {
			t.Errorf("coarse %v: by list %v", coarse, h.lists)
		}
		if _, n := h.concentration(); n != 4*each {
			t.Errorf("coarse %v: %v by resolver", coarse, n)
		}
	}
}

// Half of what was counted is left after five minutes, however often means are taken.
func TestDemandFades(t *testing.T) {
	for _, step := range []time.Duration{time.Second, 15 * time.Second, 5 * time.Minute} {
		for _, coarse := range []bool{false, true} {
			d := sized(1, 1, coarse)
			now := start
			d.settle(now)
			for range 1000 {
				d.count(0, &steer.Client{Transport: netip.MustParseAddr("192.0.2.1")}, 0)
			}
			d.settle(now)
			for now.Sub(start) < demandHalf {
				now = now.Add(step)
				d.settle(now)
			}
			if n := d.hosts[0].lists[0]; math.Abs(n-500) > 1e-6 {
				t.Errorf("steps of %s, coarse %v: %v left of 1000, want half", step, coarse, n)
			}
			for range 500 {
				now = now.Add(5 * time.Minute)
				d.settle(now)
			}
			if n := d.hosts[0].lists[0]; n != 0 {
				t.Errorf("%v is left for ever", n)
			}
		}
	}
}

// TestConcentration compares the estimate with the index of the population that resolutions
// are drawn from.
func TestConcentration(t *testing.T) {
	equal := func(n int) []float64 {
		w := make([]float64, n)
		for i := range w {
			w[i] = 1
		}
		return w
	}
	zipf := func(n int, s float64) []float64 {
		w := make([]float64, n)
		for i := range w {
			w[i] = math.Pow(float64(i+1), -s)
		}
		return w
	}
	big := equal(6000) // ten resolvers have 40 % of all
	for i := range 10 {
		big[i] = 5990 * 0.04 / 0.6
	}
	for _, tc := range []struct {
		name    string
		weights []float64
		exact   float64 // 0: whatever it is
	}{
		{"one", equal(1), 1},
		{"two", equal(2), 0.5},
		{"ten", equal(10), 0.1},
		{"ten with 40 %", big, 0.016},
		{"thousands", equal(5000), 0.0002},
		{"zipf 1", zipf(10_000, 1), 0},
		{"zipf 0.5", zipf(10_000, 0.5), 0},
	} {
		total, exact := sum(tc.weights), 0.0
		steps := make([]float64, len(tc.weights))
		at := 0.0
		for i, w := range tc.weights {
			exact += w / total * w / total
			at += w / total
			steps[i] = at
		}
		if tc.exact > 0 && math.Abs(exact-tc.exact) > 0.03*tc.exact+0.0001 {
			t.Fatalf("%s: the population has %v, want %v", tc.name, exact, tc.exact)
		}
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, 1))
			names := make([]netip.Addr, len(tc.weights))
			for i := range names {
				names[i] = netip.AddrFrom4([4]byte{byte(1 + r.IntN(200)), byte(r.Uint32()), byte(r.Uint32()), 1})
			}
			d := sized(1, 1, false)
			now := start
			for range 20 {
				for range 2500 {
					x, i := r.Float64(), 0
					for lo, hi := 0, len(steps)-1; lo < hi; i = lo {
						if mid := (lo + hi) / 2; steps[mid] < x {
							lo = mid + 1
						} else {
							hi = mid
						}
					}
					d.count(0, &steer.Client{Transport: names[i]}, 0)
				}
				now = now.Add(time.Minute)
				d.settle(now)
			}
			got, _ := d.hosts[0].concentration()
			t.Logf("%s, seed %d: %v", tc.name, seed, got) // the same in every run, to the last digit
			if math.Abs(got-exact) > 0.2*exact+0.0008 {
				t.Errorf("%s, seed %d: %.5f, the population has %.5f", tc.name, seed, got, exact)
			}
		}
	}
	if hhi, n := sized(1, 1, false).hosts[0].concentration(); hhi != 0 || n != 0 {
		t.Errorf("of nobody: %v, %v", hhi, n)
	}
}

// TestDemandIsBounded holds that many lists and regions don't take memory without bound.
func TestDemandIsBounded(t *testing.T) {
	g := load(t, block(""), nil)
	p := *g.live.Load().plan
	for len(p.Hosts)*len(p.Hosts[0].Need.Topology.Lists)*(len(p.Block.Regions)+1) <= maxCells {
		p.Hosts = append(p.Hosts, p.Hosts...)
		if len(p.Hosts) > 1<<20 {
			break
		}
		big := *p.Block
		big.Regions = append(big.Regions, big.Regions...)
		p.Block = &big
	}
	d := newDemand(&p)
	for i := range d.hosts {
		if h := &d.hosts[i]; !h.coarse || h.cells != nil || len(h.counts) != len(h.lists)+h.regions {
			t.Fatalf("host %d has %d counters for %d lists and %d regions", i, len(h.counts), len(h.lists), h.regions)
		}
	}
	if newDemand(g.live.Load().plan).hosts[0].coarse {
		t.Error("coarse without need")
	}
}

// TestRoughSharesAreWarnedOf tells once of a soak that few resolvers make rough.
func TestRoughSharesAreWarnedOf(t *testing.T) {
	for _, resolvers := range []int{10, 250} {
		synctest.Test(t, func(t *testing.T) {
			r := newWorld().registry()
			gen, g := r.mustStart(t, probed("host api.example.com {\nspread resolver\npool a 192.0.2.1\npool b {\nendpoint 192.0.2.2\nshare 10%\n}\n}"))
			defer r.stop(gen)
			logged := logTo(t)
			for range 8 {
				for i := range 2500 {
					serveFrom(t, g, ask("api.example.com.", 1, ""), netip.AddrFrom4([4]byte{10, 1, byte(i % resolvers), 1}).String())
				}
				time.Sleep(lawEvery)
				synctest.Wait()
			}
			want := 0
			if resolvers == 10 { // deviation: sqrt(0.1 x 0.9 / 10) = 9.5 points
				want = 1
			}
			if n := strings.Count(logged.String(), "less than twice the deviation"); n != want {
				t.Errorf("%d resolvers: warned %d times, want %d: %s", resolvers, n, want, logged)
			}
		})
	}
}

// TestDemandOutlivesAReload holds that what was counted goes on under a new plan, by the
// names of lists and regions.
func TestDemandOutlivesAReload(t *testing.T) {
	p := newPlant(t, 60)
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		p.run(t, g, time.Minute)
		before := sum(g.live.Load().demand.hosts[0].lists)
		swapped := strings.NewReplacer("region eu", "region us", "region us", "region eu", "prefix 0.0.0.0/1", "rest", "clients rest", "clients prefix 0.0.0.0/1",
			p.dir+"/eu", p.dir+"/us", p.dir+"/us", p.dir+"/eu").Replace(p.block(""))
		second, next := r.mustStart(t, swapped)
		defer r.stop(second)
		h := &next.live.Load().demand.hosts[0]
		if after := sum(h.lists); before == 0 || math.Abs(after-before) > 1e-6*before || math.Abs(h.served[1]-before) > 1e-6*before {
			t.Errorf("%v resolutions of %v, by region %v", after, before, h.served)
		}
		r.stop(gen)
	})
}

// TestRecallIsExact holds that what is recalled is the same each time, to the last bit.
func TestRecallIsExact(t *testing.T) {
	g := load(t, manyHosts(1, 1, 30), nil)
	p := g.live.Load().plan
	h, r := p.Hosts[0], rand.New(rand.NewPCG(1, 1))
	lists := map[string]map[string]float64{}
	for i := range h.Need.Topology.Lists {
		regions := make(map[string]float64)
		for _, region := range p.Block.Regions {
			regions[region.Name] = r.ExpFloat64()
		}
		lists[listName(p, &h.Need.Topology.Lists[i])] = regions
	}
	recalled := func() []float64 {
		d := newDemand(p)
		d.recall(p, g, seen{seenName(g, h): lists})
		return d.hosts[0].lists
	}
	first := recalled()
	for range 20 {
		if again := recalled(); !slices.Equal(again, first) || sum(first) == 0 {
			t.Fatalf("%v, and then %v", first, again)
		}
	}
}

// TestDemandNeedsNoCapacity holds that guards know after a reload what was resolved
// before, without a capacity too.
func TestDemandNeedsNoCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		first, g := r.mustStart(t, block(""))
		for range 50 {
			told(t, g, "api A", "198.51.100.0/24")
		}
		time.Sleep(2 * lawEvery)
		synctest.Wait()
		second, g := r.mustStart(t, block("ttl 20"))
		r.stop(first)
		defer r.stop(second)
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := sum(g.live.Load().demand.hosts[0].lists); n < 25 || n > 50 {
			t.Errorf("%v resolutions are known after the reload", n)
		}
	})
}
