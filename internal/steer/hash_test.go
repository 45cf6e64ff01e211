package steer

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestNegLog2(t *testing.T) {
	check := func(h uint64) {
		t.Helper()
		want := 64 - math.Log2(float64(h|1))
		got := float64(negLog2(h)) / log2One
		if diff := math.Abs(got - want); diff > 50.0/log2One {
			t.Fatalf("negLog2(%#x) = %.12f; want %.12f, off by %.1f units", h, got, want, diff*log2One)
		}
	}
	for _, h := range []uint64{0, 1, 2, 3, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64} {
		check(h)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		check(rng.Uint64() >> rng.IntN(64))
	}
	if got := negLog2(0); got != 64<<32 {
		t.Errorf("negLog2(0) = %d; want 64", got)
	}
	if got := negLog2(math.MaxUint64); got > 1 {
		t.Errorf("negLog2(2^64-1) = %d units; want 0 or 1", got)
	}
}

// Scores near 0 decide for small weights, so the error there must be small in
// proportion, not only absolutely.
func TestNegLog2NearZero(t *testing.T) {
	for shift := range 24 {
		h := math.MaxUint64 - uint64(1)<<(39+shift) + 1 // 1 - 2^-25, 1 - 2^-24, …
		want := -math.Log1p(-math.Ldexp(1, shift-25)) / math.Ln2
		got := float64(negLog2(h)) / log2One
		if r := math.Abs(got/want - 1); r > 2e-5+2/(want*log2One) {
			t.Errorf("negLog2(%#x) = %g; want %g, off by %.2g of it", h, got, want, r)
		}
	}
}

func TestNegLog2Falls(t *testing.T) {
	const step = 1<<64/1_000_003 + 1
	last := negLog2(0)
	for h := uint64(step); h >= step; h += step {
		now := negLog2(h)
		if now > last {
			t.Fatalf("negLog2 rises at %#x: %d after %d", h, now, last)
		}
		last = now
	}
}

// The golden choices hold HashVersion: if one changes, HashVersion must, for
// instances of both versions will send the same client to different places.
func TestGoldenChoices(t *testing.T) {
	if HashVersion != 1 {
		t.Fatal("a new HashVersion needs new golden choices")
	}
	cfg := HostConfig{
		Name: "a.example.", Regions: []string{"eu", "us", "ap"}, Grain: [2]int{16, 32}, TTL: 30,
		Lists: []List{{Split: []Weighted{{0, 5}, {1, 3}, {2, 2}}}},
		Pools: []*PoolConfig{
			{Answers: 1, Endpoints: []EndpointConfig{{addr("192.0.2.1"), 1}, {addr("192.0.2.2"), 2}, {addr("192.0.2.3"), 3}}},
			{Answers: 1, Endpoints: []EndpointConfig{{addr("198.51.100.1"), 7}, {addr("198.51.100.2"), 1}}},
			{Answers: 2, Endpoints: []EndpointConfig{{addr("203.0.113.1"), 1}, {addr("203.0.113.2"), 1}, {addr("203.0.113.3"), 2}}},
		},
	}
	tests := []struct {
		client    string
		bits      int
		source    Source
		transport string
		spread    Spread
		want      string
	}{
		{"192.0.2.0", 24, ECS, "198.51.100.53", Sticky, "eu 192.0.2.3"},
		{"10.1.2.0", 24, ECS, "198.51.100.53", Sticky, "ap 203.0.113.2 203.0.113.3"},
		{"172.217.0.0", 16, ECS, "198.51.100.53", Sticky, "eu 192.0.2.2"},
		{"8.8.8.0", 24, ECS, "198.51.100.53", Sticky, "eu 192.0.2.1"},
		{"2001:db8:1::", 48, ECS, "198.51.100.53", Sticky, "ap 203.0.113.1 203.0.113.3"},
		{"2a00:1450::", 32, ECS, "198.51.100.53", Sticky, "us 198.51.100.2"},
		{"198.51.100.53", 32, Transport, "198.51.100.53", Sticky, "eu 192.0.2.3"},
		{"203.0.113.9", 32, Transport, "203.0.113.9", Sticky, "eu 192.0.2.3"},
		{"2001:db8:ffff::53", 128, Transport, "2001:db8:ffff::53", Sticky, "eu 192.0.2.2"},
		{"8.8.8.0", 24, ECS, "198.51.100.53", Resolver, "us 198.51.100.1"},
		{"8.8.8.0", 24, ECS, "203.0.113.53", Resolver, "ap 203.0.113.2 203.0.113.3"},
		{"2a00:1450::", 32, ECS, "2001:db8:ffff::53", Resolver, "eu 192.0.2.3"},
	}
	for _, tt := range tests {
		cfg.Spread = tt.spread
		h := mustHost(t, cfg)
		c := &Client{Addr: addr(tt.client), Bits: tt.bits, Source: tt.source, Transport: addr(tt.transport), Block: 12}
		d := h.Decide(h.NewSnapshot(allUp, nil), c, V4, nil)
		if got := h.regionName(d.Region) + " " + join(d.Answer.Addrs); got != tt.want {
			t.Errorf("%s/%d by %s from %s, %s: %s; want %s", tt.client, tt.bits, tt.source, tt.transport, tt.spread, got, tt.want)
		}
	}
}
