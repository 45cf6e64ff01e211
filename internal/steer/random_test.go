package steer

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// randomHost is a small host with every kind of rule. It is never Balanced.
func randomHost(rng *rand.Rand) HostConfig {
	cfg := HostConfig{
		Name:     "www.example.org.",
		Regions:  []string{"eu", "us", "ap", "sa", "af", "oc"}[:1+rng.IntN(6)],
		Spread:   Spread(rng.IntN(2)),
		Grain:    [2]int{rng.IntN(33), rng.IntN(129)},
		Families: FamilyRule(rng.IntN(4)),
		TTL:      30,
		Floor:    5,
		MaxDown:  100,
	}
	if rng.IntN(2) == 0 {
		cfg.SpillBelow = float64(rng.IntN(10001)) / 100
	}
	if rng.IntN(4) == 0 {
		cfg.MaxDown = float64(rng.IntN(10001)) / 100
	}
	cfg.Pools = make([]*PoolConfig, len(cfg.Regions))
	for r := range cfg.Pools {
		if rng.IntN(5) > 0 {
			cfg.Pools[r] = randomPool(rng, r)
		}
	}
	for range 1 + rng.IntN(3) {
		cfg.Lists = append(cfg.Lists, randomList(rng, len(cfg.Regions)))
	}
	cfg.LastResort = LastResort{Kind: LastResortKind(rng.IntN(4)), Regions: randomRegions(rng, len(cfg.Regions))}
	if rng.IntN(3) == 0 {
		cfg.Shed = "shed.example.org."
	}
	for i := range rng.IntN(3) {
		cfg.LastResort.Addresses = append(cfg.LastResort.Addresses, randomEndpoint(rng, 99, 9-i))
	}
	return cfg
}

func randomEndpoint(rng *rand.Rand, region, i int) netip.Addr {
	if rng.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{192, 0, byte(region), byte(i)})
	}
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(region), 15: byte(i)})
}

func randomPool(rng *rand.Rand, region int) *PoolConfig {
	p := &PoolConfig{Answers: rng.IntN(5), MinHealthy: rng.IntN(3)}
	if rng.IntN(3) == 0 {
		p.MinHealthyPct = float64(1 + rng.IntN(100))
	}
	for _, i := range rng.Perm(1 + rng.IntN(8)) {
		p.Endpoints = append(p.Endpoints, EndpointConfig{randomEndpoint(rng, region, i), uint32(rng.IntN(6))})
	}
	p.Endpoints[0].Weight++
	if rng.IntN(6) == 0 {
		p.Name = []string{"a.example.org.", "b.example.org."}[rng.IntN(2)]
	}
	return p
}

func randomRegions(rng *rand.Rand, regions int) (rs []Region) {
	for _, r := range rng.Perm(regions)[:rng.IntN(regions+1)] {
		rs = append(rs, Region(r))
	}
	return rs
}

func randomList(rng *rand.Rand, regions int) List {
	l := List{Refuse: rng.IntN(20) == 0, Order: randomRegions(rng, regions), Marks: rng.Uint64N(4)}
	if rng.IntN(2) == 0 {
		for _, r := range randomRegions(rng, regions) {
			l.Split = append(l.Split, Weighted{r, uint32(rng.IntN(4))})
		}
	}
	if rng.IntN(3) == 0 {
		for range regions {
			l.Allowed = append(l.Allowed, rng.IntN(2) == 0)
		}
	}
	return l
}

// randomState is a fixed random state: mostly up, at times mostly drained.
func randomState(rng *rand.Rand, cfg HostConfig) func(Region, int) EndpointState {
	states := make([][]EndpointState, len(cfg.Pools))
	usual, weighed := Verdict(rng.IntN(4)), rng.IntN(3) == 0
	for r, p := range cfg.Pools {
		if p == nil {
			continue
		}
		for range p.Endpoints {
			st := EndpointState{Verdict: usual, Streak: rng.IntN(6) == 0, Since: rng.Int64N(4)}
			if rng.IntN(3) == 0 {
				st.Verdict = Verdict(rng.IntN(4))
			}
			if weighed {
				st.Weighed, st.Weight = rng.IntN(2) == 0, uint32(rng.IntN(3))
			}
			states[r] = append(states[r], st)
		}
	}
	return func(r Region, i int) EndpointState { return states[r][i] }
}

// randomLevers moves some levers of some regions; nil: none.
func randomLevers(rng *rand.Rand, cfg HostConfig) func(Region) Levers {
	if rng.IntN(3) == 0 {
		return nil
	}
	part := func(often int) float64 { // mostly what the lever is not moved to
		switch rng.IntN(often) {
		case 0:
			return rng.Float64()
		case 1:
			return []float64{0, 1, 0.5, -1, 2, math.NaN()}[rng.IntN(6)]
		}
		return math.NaN()
	}
	all := make([]Levers, len(cfg.Regions))
	for r := range all {
		l := Levers{Dial: part(4), Ramp: part(6), Trickle: part(4), Mark: -1}
		if l.Shared = rng.IntN(4) == 0; l.Shared {
			l.Share, l.Mark = part(2), rng.IntN(4)-2
		}
		if rng.IntN(2) == 0 {
			for range rng.IntN(len(cfg.Lists) + 2) {
				l.Admission = append(l.Admission, part(3))
			}
		}
		all[r] = l
	}
	return func(r Region) Levers { return all[r] }
}

func randomAddr(rng *rand.Rand) netip.Addr {
	if rng.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())})
	}
	var b [16]byte
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	b[0] = 0x20
	return netip.AddrFrom16(b)
}

func randomClient(rng *rand.Rand, cfg HostConfig) Client {
	c := Client{Source: Source(rng.IntN(2)), Transport: randomAddr(rng), List: rng.IntN(len(cfg.Lists))}
	if c.Source == Transport {
		c.Addr, c.Bits = c.Transport, c.Transport.BitLen()
		c.Fixed = rng.IntN(5) == 0
	} else {
		a := randomAddr(rng)
		c.Bits = rng.IntN(a.BitLen() + 1)
		c.Addr = netip.PrefixFrom(a, c.Bits).Masked().Addr()
		if a.Is4() && rng.IntN(5) == 0 {
			c.ScopeBase = 96
		}
	}
	c.Block = rng.IntN(c.Addr.BitLen() + 1)
	return c
}

// Drawn in turn, regions get what flows say, with any levers and verdicts; and every
// decision comes to an end.
func TestBalancedFollowsFlows(t *testing.T) {
	const draws = clients / 32
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		cfg := randomHost(rng)
		cfg.Spread = Balanced
		h := mustHost(t, cfg)
		s := h.NewSnapshot(randomState(rng, cfg), randomLevers(rng, cfg))
		for list := range cfg.Lists {
			flow := h.Flow(s, list, V4)
			counts := make([]float64, len(flow))
			for range draws {
				switch d := h.Decide(s, &Client{List: list}, V4, nil); {
				case d.Shed:
					counts[len(flow)-1]++
				case d.Region != NoRegion:
					counts[d.Region]++
				}
			}
			for r, part := range flow {
				if got := counts[r] / draws; math.Abs(got-part) > 0.02 {
					t.Errorf("seed %d, list %d: %d got %.3f; want %.3f", seed, list, r, got, part)
				}
			}
		}
	}
}
