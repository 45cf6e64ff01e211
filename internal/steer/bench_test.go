package steer

import (
	"fmt"
	"net/netip"
	"testing"
)

// benchHost has three regions with n endpoints each, in a split and in an order.
func benchHost(tb testing.TB, spread Spread, endpoints, answers int) *Host {
	cfg := HostConfig{
		Name: "www.example.org.", Regions: []string{"eu", "us", "ap"}, Spread: spread, Grain: [2]int{16, 32},
		TTL: 30, Floor: 5, MaxDown: 100, SpillBelow: 50,
		Lists: []List{
			{Order: []Region{0, 1, 2}},
			{Split: []Weighted{{0, 70}, {1, 30}}, Order: []Region{2}},
		},
	}
	for r := range cfg.Regions {
		p := &PoolConfig{Answers: answers}
		for i := range endpoints {
			p.Endpoints = append(p.Endpoints,
				EndpointConfig{netip.AddrFrom4([4]byte{192, 0, byte(r), byte(i)}), uint32(1 + i)},
				EndpointConfig{netip.MustParseAddr(fmt.Sprintf("2001:db8:%d::%d", r, i)), uint32(1 + i)})
		}
		cfg.Pools = append(cfg.Pools, p)
	}
	return mustHost(tb, cfg)
}

func benchClient(list int) *Client {
	return &Client{
		Addr: netip.MustParseAddr("198.51.100.0"), Bits: 24, Source: ECS,
		Transport: netip.MustParseAddr("203.0.113.53"), List: list, Block: 11,
	}
}

var benchCases = []struct {
	spread             Spread
	answers, list, per int
}{
	{Sticky, 0, 0, 8},
	{Sticky, 0, 1, 8},
	{Sticky, 1, 0, 8},
	{Sticky, 1, 1, 8},
	{Sticky, 3, 1, 8},
	{Resolver, 1, 1, 8},
	{Balanced, 1, 1, 8},
	{Balanced, 3, 1, 8},
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range benchCases {
		b.Run(fmt.Sprintf("spread=%s/answers=%d/split=%v/endpoints=%d", c.spread, c.answers, c.list == 1, c.per), func(b *testing.B) {
			h := benchHost(b, c.spread, c.per, c.answers)
			s := h.NewSnapshot(allUp, nil)
			client := benchClient(c.list)
			b.ReportAllocs()
			for b.Loop() {
				h.Decide(s, client, V4, nil)
			}
		})
	}
}

// Half of what comes to the first two regions spills.
func BenchmarkDecideSpilling(b *testing.B) {
	for _, c := range benchCases {
		b.Run(fmt.Sprintf("spread=%s/answers=%d/split=%v/endpoints=%d", c.spread, c.answers, c.list == 1, c.per), func(b *testing.B) {
			h := benchHost(b, c.spread, c.per, c.answers)
			s := h.NewSnapshot(spilling, nil)
			client := benchClient(c.list)
			b.ReportAllocs()
			for b.Loop() {
				h.Decide(s, client, V4, nil)
			}
		})
	}
}

// All levers at once: a soak of a tenth, a dial, what the law admits, a trickle.
func BenchmarkDecideLevers(b *testing.B) {
	for _, c := range benchCases {
		b.Run(fmt.Sprintf("spread=%s/answers=%d/split=%v/endpoints=%d", c.spread, c.answers, c.list == 1, c.per), func(b *testing.B) {
			h := benchHost(b, c.spread, c.per, c.answers)
			s := h.NewSnapshot(allUp, pulling)
			client := benchClient(c.list)
			b.ReportAllocs()
			for b.Loop() {
				h.Decide(s, client, V4, nil)
			}
		})
	}
}

// pulling moves every lever.
var pulling = levers(
	both(dial(0.9), admit(0.5, 0.5), trickle(0.2)),
	both(ramp(0.7), trickle(0.2)),
	soak(0.1),
)

// spilling is a state in which two regions are full.
func spilling(r Region, _ int) EndpointState {
	if r < 2 {
		return EndpointState{Verdict: Full}
	}
	return EndpointState{}
}

// BenchmarkFlow is one list with a split in which two regions of three take a part.
func BenchmarkFlow(b *testing.B) {
	h := benchHost(b, Sticky, 8, 0)
	s := h.NewSnapshot(spilling, pulling)
	for b.Loop() {
		h.Flow(s, 1, V4)
	}
}

func BenchmarkNewSnapshot(b *testing.B) {
	for _, answers := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("answers=%d/regions=3/endpoints=16", answers), func(b *testing.B) {
			h := benchHost(b, Sticky, 8, answers)
			b.ReportAllocs()
			for b.Loop() {
				h.NewSnapshot(allUp, nil)
			}
		})
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	for _, c := range benchCases {
		h := benchHost(t, c.spread, c.per, c.answers)
		client := benchClient(c.list)
		for name, s := range map[string]*Snapshot{
			"up": h.NewSnapshot(allUp, nil), "spilling": h.NewSnapshot(spilling, nil), "levers": h.NewSnapshot(spilling, pulling),
		} {
			if n := testing.AllocsPerRun(100, func() { h.Decide(s, client, V6, nil) }); n != 0 {
				t.Errorf("%+v, %s: %v allocations; want 0", c, name, n)
			}
		}
	}
}
