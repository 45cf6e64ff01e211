package steer

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// pools makes a pool for each text: addresses, each with "=weight" if not 1.
func pools(texts ...string) (ps []*PoolConfig) {
	for _, text := range texts {
		if text == "" {
			ps = append(ps, nil)
			continue
		}
		p := &PoolConfig{}
		for _, word := range strings.Fields(text) {
			a, zero := strings.CutSuffix(word, "=0")
			e := EndpointConfig{addr(a), 1}
			if zero {
				e.Weight = 0
			}
			p.Endpoints = append(p.Endpoints, e)
		}
		ps = append(ps, p)
	}
	return ps
}

// states makes a state from words by address; others are up.
func states(cfg *HostConfig, words map[string]EndpointState) func(Region, int) EndpointState {
	return func(r Region, i int) EndpointState { return words[cfg.Pools[r].Endpoints[i].Addr.String()] }
}

// two is a host with two regions, eu and us, in that order for everybody.
func two(pools []*PoolConfig) HostConfig {
	return HostConfig{
		Name: "h", Regions: []string{"eu", "us"}, Pools: pools, Lists: []List{{Order: []Region{0, 1}}},
		Grain: [2]int{16, 32}, TTL: 30, Floor: 5, MaxDown: 100,
	}
}

var (
	isDown    = EndpointState{Verdict: Down}
	isDrained = EndpointState{Verdict: Drained}
)

// outcome is a decision in words.
func outcome(h *Host, d Decision) string {
	words := []string{d.Outcome.String()}
	for _, w := range []string{d.Reason.String(), h.regionName(d.Region)} {
		if w != "" {
			words = append(words, w)
		}
	}
	if d.Answer != nil {
		words = append(words, d.Answer.Name+join(d.Answer.Addrs))
	}
	if d.FamilyMoved {
		words = append(words, "moved")
	}
	return strings.Join(words, " ")
}

func TestLastResort(t *testing.T) {
	v4 := pools("192.0.2.1 192.0.2.2 192.0.2.3=0", "198.51.100.1")
	allDown := map[string]EndpointState{"192.0.2.1": isDown, "192.0.2.2": isDown, "192.0.2.3": isDown, "198.51.100.1": isDown}
	euDrained := map[string]EndpointState{"192.0.2.1": isDrained, "192.0.2.2": isDrained, "198.51.100.1": isDown}
	allDrained := map[string]EndpointState{"192.0.2.1": isDrained, "192.0.2.2": isDrained, "198.51.100.1": isDrained}
	usDrained := map[string]EndpointState{"192.0.2.1": isDown, "192.0.2.2": isDown, "198.51.100.1": isDrained}
	oneLeft := map[string]EndpointState{"192.0.2.1": isDown, "192.0.2.2": isDrained, "198.51.100.1": isDown}
	named := LastResort{Kind: Regions, Regions: []Region{1, 0}}
	static := LastResort{Kind: Addresses, Addresses: []netip.Addr{addr("203.0.113.2"), addr("203.0.113.1"), addr("2001:db8::1")}}
	euOnly := &List{Order: []Region{0}, Allowed: []bool{true, false}}
	tests := []struct {
		name   string
		resort LastResort
		list   *List
		states map[string]EndpointState
		want   string
	}{
		{"not needed", LastResort{}, nil, nil, "answer eu 192.0.2.1 192.0.2.2"},
		{"open", LastResort{}, nil, allDown, "last_resort eu 192.0.2.1 192.0.2.2"},
		{"open keeps a drain", LastResort{}, nil, euDrained, "last_resort us 198.51.100.1"},
		{"open keeps an endpoint's drain", LastResort{}, nil, oneLeft, "last_resort eu 192.0.2.1"},
		{"open all drained", LastResort{}, nil, allDrained, "failed all_drained"},
		{"open is cut to the list", LastResort{}, euOnly, euDrained, "failed all_drained"},
		{"closed", LastResort{Kind: Closed}, nil, allDown, "failed closed"},
		{"closed all drained", LastResort{Kind: Closed}, nil, allDrained, "failed all_drained"},
		{"regions", named, nil, allDown, "last_resort us 198.51.100.1"},
		{"regions prefer a usable one", LastResort{Kind: Regions, Regions: []Region{0, 1}}, euOnlyButOpen(), map[string]EndpointState{"192.0.2.1": isDown, "192.0.2.2": isDown}, "last_resort us 198.51.100.1"},
		{"regions cut to the fence", named, euOnly, map[string]EndpointState{"192.0.2.1": isDown, "192.0.2.2": isDown}, "last_resort eu 192.0.2.1 192.0.2.2"},
		{"regions keep a drain", named, nil, usDrained, "last_resort eu 192.0.2.1 192.0.2.2"},
		{"regions outside the fence only", LastResort{Kind: Regions, Regions: []Region{1}}, euOnly, map[string]EndpointState{"192.0.2.1": isDown, "192.0.2.2": isDown}, "failed nothing_left"},
		{"regions all drained", named, nil, allDrained, "failed all_drained"},
		{"addresses", static, nil, allDown, "last_resort 203.0.113.1 203.0.113.2"},
		{"addresses though all drained", static, nil, allDrained, "last_resort 203.0.113.1 203.0.113.2"},
		{"addresses of the other family only", LastResort{Kind: Addresses, Addresses: []netip.Addr{addr("2001:db8::1")}}, nil, allDown, "failed nothing_left"},
		{"refuse", LastResort{}, &List{Refuse: true, Order: []Region{0}}, nil, "refused"},
		{"empty list", LastResort{}, &List{}, nil, "failed nothing_left"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := two(v4)
			cfg.LastResort = tt.resort
			if tt.list != nil {
				cfg.Lists = []List{*tt.list}
			}
			h := mustHost(t, cfg)
			d := h.Decide(h.NewSnapshot(states(&cfg, tt.states), nil), nthClient(1), V4, nil)
			if got := outcome(h, d); got != tt.want {
				t.Errorf("%s; want %s", got, tt.want)
			}
			if lastResort := d.Outcome == OutcomeLastResort; lastResort != (d.Class == ClassLastResort) || lastResort && d.TTL != 5 {
				t.Errorf("outcome %v with class %v, TTL %d", d.Outcome, d.Class, d.TTL)
			}
		})
	}
}

// euOnlyButOpen has one candidate and no fence.
func euOnlyButOpen() *List { return &List{Order: []Region{0}} }

func TestFamilies(t *testing.T) {
	dual := pools("192.0.2.1 2001:db8::1", "198.51.100.1 2001:db8:1::1")
	mixed := pools("192.0.2.1", "198.51.100.1 2001:db8:1::1")
	v4only := pools("192.0.2.1 2001:db8::9=0", "198.51.100.1")
	euV6Down := map[string]EndpointState{"2001:db8::1": isDown}
	tests := []struct {
		name   string
		rule   FamilyRule
		pools  []*PoolConfig
		states map[string]EndpointState
		v4, v6 string
	}{
		{"same", FamiliesSame, dual, nil, "answer eu 192.0.2.1", "answer eu 2001:db8::1"},
		{"a lost family moves alone", FamiliesSame, dual, euV6Down, "answer eu 192.0.2.1", "answer us 2001:db8:1::1 moved"},
		{"the other family not offered", FamiliesV6, dual, euV6Down, "no_family", "answer us 2001:db8:1::1"},
		{"v4 only by rule", FamiliesV4, dual, nil, "answer eu 192.0.2.1", "no_family"},
		{"mixed", FamiliesMixed, mixed, nil, "answer eu 192.0.2.1", "answer us 2001:db8:1::1 moved"},
		{"weight 0 offers nothing", FamiliesSame, v4only, nil, "answer eu 192.0.2.1", "no_family"},
		{"a region without a pool", FamiliesSame, pools("", "198.51.100.1"), nil, "answer us 198.51.100.1", "no_family"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := two(tt.pools)
			cfg.Families = tt.rule
			h := mustHost(t, cfg)
			s := h.NewSnapshot(states(&cfg, tt.states), nil)
			for f, want := range []string{tt.v4, tt.v6} {
				d := h.Decide(s, nthClient(1), Family(f), nil)
				if got := outcome(h, d); got != want {
					t.Errorf("%v: %s; want %s", Family(f), got, want)
				}
				if h.Offers(Family(f)) != (want != "no_family") {
					t.Errorf("%v: Offers is %v", Family(f), h.Offers(Family(f)))
				}
			}
		})
	}
}

func TestFamiliesAgree(t *testing.T) {
	cfg := splitHost(Sticky, 5, 3, 2)
	for r, p := range cfg.Pools {
		p.Endpoints = append(p.Endpoints, EndpointConfig{randomV6(r), 1})
	}
	h := mustHost(t, cfg)
	s := h.NewSnapshot(func(r Region, _ int) EndpointState { return down(1)(r, 0) }, nil)
	for n := range clients {
		c := nthClient(n)
		if a, b := h.Decide(s, c, V4, nil), h.Decide(s, c, V6, nil); a.Region != b.Region || b.FamilyMoved {
			t.Fatalf("client %d: A from %d, AAAA from %d", n, a.Region, b.Region)
		}
	}
}

// In turn, a family moves when none of the split's regions has it.
func TestBalancedFamilyMoves(t *testing.T) {
	cfg := two(pools("192.0.2.1", "198.51.100.1 2001:db8::1"))
	cfg.Spread = Balanced
	cfg.Lists = []List{{Split: []Weighted{{0, 1}}, Order: []Region{1}}}
	h := mustHost(t, cfg)
	d := h.Decide(h.NewSnapshot(allUp, nil), nthClient(1), V6, nil)
	if got, want := outcome(h, d), "answer us 2001:db8::1 moved"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func randomV6(r int) netip.Addr { return netip.AddrFrom16([16]byte{0x20, 0x01, 15: byte(r)}) }

func TestTTL(t *testing.T) {
	streak := map[string]EndpointState{"192.0.2.1": {Streak: true}}
	otherStreak := map[string]EndpointState{"198.51.100.1": {Streak: true}, "192.0.2.3": {Streak: true}}
	drainedStreak := map[string]EndpointState{"192.0.2.2": {Verdict: Drained, Streak: true}}
	down := map[string]EndpointState{"192.0.2.1": {Verdict: Down, Streak: true}, "192.0.2.2": isDown, "198.51.100.1": isDown}
	tests := []struct {
		name       string
		ttl, floor uint32
		off        bool
		states     map[string]EndpointState
		class      TTLClass
		want       uint32
	}{
		{"steady", 30, 5, false, nil, ClassSteady, 30},
		{"streak", 30, 5, false, streak, ClassStreak, 15},
		{"streak at the floor", 8, 5, false, streak, ClassStreak, 5},
		{"streak elsewhere, or of weight 0", 30, 5, false, otherStreak, ClassSteady, 30},
		{"streak of a drained endpoint", 30, 5, false, drainedStreak, ClassSteady, 30},
		{"last resort", 30, 5, false, down, ClassLastResort, 5},
		{"floor off, streak", 30, 5, true, streak, ClassStreak, 30},
		{"floor off, last resort", 30, 5, true, down, ClassLastResort, 30},
		{"floor above ttl, streak", 3, 5, false, streak, ClassStreak, 3},
		{"floor above ttl, last resort", 3, 5, false, down, ClassLastResort, 3},
		{"zero", 0, 0, false, streak, ClassStreak, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := two(pools("192.0.2.1 192.0.2.2 192.0.2.3=0", "198.51.100.1"))
			cfg.TTL, cfg.Floor, cfg.FloorOff = tt.ttl, tt.floor, tt.off
			h := mustHost(t, cfg)
			d := h.Decide(h.NewSnapshot(states(&cfg, tt.states), nil), nthClient(1), V4, nil)
			if d.Class != tt.class || d.TTL != tt.want {
				t.Errorf("class %v, TTL %d; want %v, %d", d.Class, d.TTL, tt.class, tt.want)
			}
		})
	}
}

func TestScope(t *testing.T) {
	v4 := Client{Addr: addr("198.51.100.0"), Bits: 24, Source: ECS, Transport: addr("192.0.2.53")}
	v6 := Client{Addr: addr("2001:db8:1::"), Bits: 48, Source: ECS, Transport: addr("192.0.2.53")}
	transport := Client{Addr: addr("192.0.2.53"), Bits: 32, Source: Transport, Transport: addr("192.0.2.53")}
	with := func(c Client, block, base int, fixed bool) Client {
		c.Block, c.ScopeBase, c.Fixed = block, base, fixed
		return c
	}
	tests := []struct {
		name   string
		spread Spread
		client Client
		want   int
		why    string
	}{
		{"grain is longer", Sticky, with(v4, 9, 0, false), 16, "grain"},
		{"block is longer", Sticky, with(v4, 20, 0, false), 20, "block"},
		{"block as long", Sticky, with(v4, 16, 0, false), 16, "block"},
		{"IPv6 grain", Sticky, with(v6, 9, 0, false), 32, "grain"},
		{"embedded IPv4", Sticky, with(v4, 9, 96, false), 112, "grain"},
		{"special-purpose space", Sticky, with(v4, 8, 0, true), 8, "option_ignored"},
		{"resolver", Resolver, with(v4, 9, 0, false), 9, "block"},
		{"balanced", Balanced, with(v6, 9, 0, false), 9, "block"},
		{"no option", Sticky, with(transport, 9, 0, false), 0, "no_option"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := two(pools("192.0.2.1", "198.51.100.1"))
			cfg.Spread = tt.spread
			h := mustHost(t, cfg)
			var tr Trace
			d := h.Decide(h.NewSnapshot(allUp, nil), &tt.client, V4, &tr)
			if d.Scope != tt.want || tr.Scope != tt.want || tr.ScopeWhy != tt.why {
				t.Errorf("scope %d, traced %d for %s; want %d for %s", d.Scope, tr.Scope, tr.ScopeWhy, tt.want, tt.why)
			}
		})
	}
}

// Whatever the verdicts are, whoever spills or is held, and whatever levers are
// moved, a client's scope and key stay.
func TestStateNeverChangesScopeOrKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		cfg := randomHost(rng)
		h := mustHost(t, cfg)
		c := randomClient(rng, cfg)
		for f := range Family(families) {
			var was Trace
			h.Decide(h.NewSnapshot(allUp, nil), &c, f, &was)
			for range 5 {
				cfg.SpillBelow, cfg.MaxDown = rng.Float64()*100, rng.Float64()*100
				h = mustHost(t, cfg)
				var tr Trace
				d := h.Decide(h.NewSnapshot(randomState(rng, cfg), randomLevers(rng, cfg)), &c, f, &tr)
				if d.Scope != was.Scope || !slices.Equal(tr.Key, was.Key) || tr.ScopeWhy != was.ScopeWhy {
					t.Fatalf("scope %d, key %v; all up: %d, %v", d.Scope, tr.Key, was.Scope, was.Key)
				}
			}
		}
	}
}

// All clients of a scope get the same decision, which is what a cache assumes.
func TestDecisionHoldsForItsScope(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		cfg := randomHost(rng)
		cfg.Spread = Sticky
		h := mustHost(t, cfg)
		s := h.NewSnapshot(randomState(rng, cfg), nil)
		c := randomClient(rng, cfg)
		if c.Source == Transport {
			continue
		}
		d := h.Decide(s, &c, V4, nil)
		if d.Outcome == OutcomeNoFamily {
			continue
		}
		length := d.Scope - c.ScopeBase
		other := c
		other.Bits = c.Addr.BitLen()
		other.Addr = sameStart(randomAddrOf(rng, c.Addr), c.Addr, length)
		other.Transport = randomAddr(rng)
		if got := h.Decide(s, &other, V4, nil); got != d {
			t.Fatalf("%v and %v share /%d: %+v and %+v", c.Addr, other.Addr, length, d, got)
		}
	}
}

// randomAddrOf is a random address of a's family.
func randomAddrOf(rng *rand.Rand, a netip.Addr) netip.Addr {
	for {
		if b := randomAddr(rng); b.Is4() == a.Is4() {
			return b
		}
	}
}

// sameStart is a with the first bits of b.
func sameStart(a, b netip.Addr, length int) netip.Addr {
	x, y := a.AsSlice(), b.AsSlice()
	for i := range length {
		mask := byte(0x80) >> (i % 8)
		x[i/8] = x[i/8]&^mask | y[i/8]&mask
	}
	out, _ := netip.AddrFromSlice(x)
	return out
}
