package steer

import (
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

func TestDrawsInTurnAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		weights := make([]uint64, 1+rng.IntN(20))
		for i := range weights {
			weights[i] = uint64(1 + rng.IntN(30))
		}
		d := weightDraws(weights)
		counts := make([]uint64, len(weights))
		start := rng.Uint64N(1 << 40)
		for n := range d.total() {
			counts[d.inTurn(start+n)]++
		}
		for i := range weights {
			if counts[i] != d.size(i) || counts[i]*weights[0] != counts[0]*weights[i] {
				t.Fatalf("weights %v from %d: counts %v", weights, start, counts)
			}
		}
	}
}

// Short runs must come close too: with 9:1, no two of ten in a row are the one's.
func TestDrawsInTurnAreSmooth(t *testing.T) {
	tests := []struct {
		weights []uint64
		off     float64 // at most so many resolutions from the exact share, ever
	}{
		{[]uint64{1, 1}, 0.5},
		{[]uint64{70, 30}, 1.5},
		{[]uint64{9, 1}, 1},
		{[]uint64{99, 1}, 1.5},
		{[]uint64{4, 3, 2}, 1.5},
		{[]uint64{5, 4, 3, 2, 1, 1}, 1.8},
	}
	for _, tt := range tests {
		d := weightDraws(tt.weights)
		counts := make([]float64, len(tt.weights))
		for n := range 3 * d.total() {
			counts[d.inTurn(n)]++
			for i := range counts {
				want := float64(n+1) * float64(d.size(i)) / float64(d.total())
				if off := counts[i] - want; off > tt.off || off < -tt.off {
					t.Errorf("weights %v: share %d is %.2f off after %d draws", tt.weights, i, off, n+1)
				}
			}
		}
	}
}

func TestDrawsTotalsBeyond32Bits(t *testing.T) {
	d := weightDraws([]uint64{1 << 40, 1<<40 - 1})
	if got := d.inTurn(d.total() - 1 + d.total()<<10); got < 0 || got > 1 {
		t.Errorf("share %d", got)
	}
	if got := d.byHash(1<<64 - 1); got != 1 {
		t.Errorf("the greatest hash falls in share %d; want the last", got)
	}
}

// Over all draws every weight is in exactly its part of the sets.
func TestSampleSetsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		weights := make([]uint64, 3+rng.IntN(10))
		signed := make([]int64, len(weights))
		for i := range weights {
			weights[i] = 1 + rng.Uint64N(1<<rng.IntN(10))
			signed[i] = int64(weights[i])
		}
		n := 2 + rng.IntN(len(weights)-2)
		d, sets := sampleSets(weights, n)
		if len(sets) > len(weights) || len(sets) != len(d.ends) {
			t.Fatalf("weights %v, n %d: %d sets for %d ends", weights, n, len(sets), len(d.ends))
		}
		in := make([]uint64, len(weights))
		for k, set := range sets {
			if len(set) != n || !slices.IsSorted(set) {
				t.Fatalf("weights %v: set %v; want %d rising indexes", weights, set, n)
			}
			for _, i := range set {
				in[i] += d.size(k)
			}
		}
		for i, want := range inclusions(signed, n) {
			got := new(big.Rat).SetFrac(new(big.Int).SetUint64(in[i]), new(big.Int).SetUint64(d.total()))
			if got.Cmp(want) != 0 {
				t.Fatalf("weights %v, n %d: %d is in %v of the sets; want %v", weights, n, i, got, want)
			}
		}
	}
}

// Equal weights, the usual case, need no more sets than a rotation.
func TestSampleSetsOfEqualWeights(t *testing.T) {
	d, sets := sampleSets([]uint64{7, 7, 7, 7}, 2)
	if want := [][]int{{0, 2}, {1, 3}}; !slices.EqualFunc(sets, want, slices.Equal) || d.total() != 2 {
		t.Errorf("sets %v over %d draws; want %v over 2", sets, d.total(), want)
	}
}

func join(addrs []netip.Addr) (s string) {
	for i, a := range addrs {
		if i > 0 {
			s += " "
		}
		s += a.String()
	}
	return s
}
