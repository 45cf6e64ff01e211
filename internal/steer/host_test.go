package steer

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestNewHostRefuses(t *testing.T) {
	tests := []struct {
		name string
		do   func(*HostConfig)
		want string
	}{
		{"too many regions", func(c *HostConfig) { c.Regions = make([]string, 256) }, "256 regions"},
		{"pools missing", func(c *HostConfig) { c.Pools = c.Pools[:1] }, "1 pools for 2 regions"},
		{"region twice", func(c *HostConfig) { c.Regions[1] = "eu" }, `region "eu" twice`},
		{"endpoint twice", func(c *HostConfig) { c.Pools = pools("192.0.2.1 192.0.2.1", "") }, "endpoint 192.0.2.1 twice"},
		{"no weight", func(c *HostConfig) { c.Pools = pools("192.0.2.1=0", "") }, "no endpoint with a weight"},
		{"weight too great", func(c *HostConfig) { c.Pools[0].Endpoints[0].Weight = MaxWeight + 1 }, "weight 16777217"},
		{"no address", func(c *HostConfig) { c.Pools[0].Endpoints[0].Addr = netip.Addr{} }, "expected a plain"},
		{"mapped address", func(c *HostConfig) { c.Pools = pools("::ffff:192.0.2.1", "") }, "expected a plain"},
		{"zone", func(c *HostConfig) { c.Pools = pools("fe80::1%eth0", "") }, "expected a plain"},
		{"answers", func(c *HostConfig) { c.Pools[0].Answers = -1 }, "out of range"},
		{"percentage", func(c *HostConfig) { c.Pools[0].MinHealthyPct = math.NaN() }, "out of range"},
		{"split region", func(c *HostConfig) { c.Lists[0].Split = []Weighted{{2, 1}} }, "list 0: split region 2"},
		{"split region twice", func(c *HostConfig) { c.Lists[0].Split = []Weighted{{1, 1}, {1, 2}} }, "split region 1"},
		{"split weight", func(c *HostConfig) { c.Lists[0].Split = []Weighted{{1, MaxWeight + 1}} }, "split weight"},
		{"order region", func(c *HostConfig) { c.Lists[0].Order = []Region{7} }, "region 7 out of range"},
		{"allowed flags", func(c *HostConfig) { c.Lists[0].Allowed = []bool{true} }, "1 allowed flags for 2 regions"},
		{"spill below", func(c *HostConfig) { c.SpillBelow = 100.1 }, "spill below 100.1, max down 100; expected 0..100"},
		{"max down", func(c *HostConfig) { c.MaxDown = math.NaN() }, "max down NaN"},
		{"grain", func(c *HostConfig) { c.Grain = [2]int{33, 32} }, "grain 33 32"},
		{"name without its final dot", func(c *HostConfig) { c.Pools[1].Name = "lb.example" }, `pool us: name "lb.example"; expected a fully qualified`},
		{"name without endpoints", func(c *HostConfig) { c.Pools[1] = &PoolConfig{Name: "lb.example."} }, "pool us: no endpoint with a weight"},
		{"shed name with a space", func(c *HostConfig) { c.Shed = "a b." }, `shed: name "a b."`},
		{"shed name too long", func(c *HostConfig) { c.Shed = strings.Repeat("a.", 128) }, "shed: name"},
		{"last resort region", func(c *HostConfig) { c.LastResort.Regions = []Region{2} }, "last resort: region 2"},
		{"last resort address", func(c *HostConfig) { c.LastResort.Addresses = make([]netip.Addr, 1) }, "last resort: address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := two(pools("192.0.2.1", "198.51.100.1"))
			tt.do(&cfg)
			_, err := NewHost(cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "host h: ") {
				t.Errorf("error %v; want one with %q", err, tt.want)
			}
		})
	}
}

func TestMinHealthy(t *testing.T) {
	tests := []struct {
		name string
		min  int
		pct  float64
		down []string
		want string
	}{
		{"one is enough", 0, 0, []string{"192.0.2.1", "192.0.2.2"}, "eu"},
		{"too few", 2, 0, []string{"192.0.2.1", "192.0.2.2"}, "us"},
		{"weight 0 doesn't count", 3, 0, []string{"192.0.2.1"}, "us"},
		{"part reached exactly", 0, 66.66, []string{"192.0.2.1"}, "eu"},
		{"part missed", 0, 66.67, []string{"192.0.2.1"}, "us"},
		{"part replaces the number", 3, 30, []string{"192.0.2.1"}, "eu"},
		{"least part, none up", 0, 0.01, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, "us"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := two(pools("192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4=0", "198.51.100.1"))
			cfg.Pools[0].MinHealthy, cfg.Pools[0].MinHealthyPct = tt.min, tt.pct
			h := mustHost(t, cfg)
			state := func(r Region, i int) EndpointState {
				if slices.Contains(tt.down, cfg.Pools[r].Endpoints[i].Addr.String()) {
					return isDown
				}
				return EndpointState{}
			}
			if got := h.regionName(h.Decide(h.NewSnapshot(state, nil), nthClient(1), V4, nil).Region); got != tt.want {
				t.Errorf("region %s; want %s", got, tt.want)
			}
		})
	}
}

func TestAnswersAreInternedAndPrepared(t *testing.T) {
	cfg := two(pools("192.0.2.2 192.0.2.1", "192.0.2.1 192.0.2.2"))
	prepared := 0
	cfg.Prepare = func(a *Answer) any { prepared++; return join(a.Addrs) }
	h := mustHost(t, cfg)
	decide := func(s *Snapshot) *Answer { return h.Decide(s, nthClient(1), V4, nil).Answer }
	first := decide(h.NewSnapshot(allUp, nil))
	if prepared != 1 || first.Prepared != "192.0.2.1 192.0.2.2" {
		t.Fatalf("prepared %d answers, the first as %v", prepared, first.Prepared)
	}
	usDown := h.NewSnapshot(func(r Region, _ int) EndpointState { return down(1)(r, 0) }, nil)
	if again := decide(usDown); again != first || prepared != 1 {
		t.Errorf("the same set is another Answer in the next snapshot, %d prepared", prepared)
	}
	h.NewSnapshot(down(0), nil) // only 192.0.2.1 of eu is up: sets of one and of two
	if prepared != 2 {
		t.Errorf("%d prepared; want 2", prepared)
	}
}

func TestMaxSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 1000 {
		cfg := randomHost(rng)
		cfg.Spread = Spread(rng.IntN(3))
		sets := make(map[*Answer]bool)
		cfg.Prepare = func(a *Answer) any { sets[a] = true; return nil }
		h := mustHost(t, cfg)
		h.NewSnapshot(randomState(rng, cfg), randomLevers(rng, cfg))
		for a := range sets {
			if a.Name == "" && !h.Offers(a.Family) {
				delete(sets, a)
			}
		}
		if len(sets) > h.MaxSets() {
			t.Fatalf("%d sets; MaxSets is %d for %+v", len(sets), h.MaxSets(), cfg)
		}
	}
}

func TestSnapshotsWhileDeciding(t *testing.T) {
	cfg := poolHost(Sticky, 1, 1, 2, 3)
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 300 {
				h.NewSnapshot(down(n%4), nil)
				if h.Decide(s, nthClient(n), V4, nil).Answer == nil {
					t.Error("no answer")
				}
			}
		})
	}
	wg.Wait()
}
