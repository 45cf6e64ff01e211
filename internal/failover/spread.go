package failover

import (
	"math"
	"slices"
	"time"
)

// Spread is the time that one client takes to move, as a sum of what is fixed and
// of times that are spread evenly from nothing to an end: the phase of the
// probes, the rest of a TTL, and for some clients a delay of their own.
type Spread struct {
	Fixed  time.Duration   // detection and publication
	Even   []time.Duration // of everybody; each from 0 to this
	Part   float64         // of the clients, 0..1, who take Beyond as well
	Beyond time.Duration
}

// CDF is the probability that a client has moved after t seconds. The sum of
// even times has a closed form, by inclusion and exclusion of the corners of a box
// (the same as that of Irwin and Hall, with sides of any length).
func (s *Spread) CDF(t float64) float64 {
	x := t - s.Fixed.Seconds()
	sides := make([]float64, 0, len(s.Even)+1)
	for _, e := range s.Even {
		if e > 0 {
			sides = append(sides, e.Seconds())
		}
	}
	p := boxBelow(sides, x)
	if s.Part > 0 && s.Beyond > 0 {
		p = (1-s.Part)*p + s.Part*boxBelow(append(sides, s.Beyond.Seconds()), x)
	}
	return p
}

// boxBelow is the part of a box with these sides in which the coordinates add up
// to at most x.
func boxBelow(sides []float64, x float64) float64 {
	sum, volume, fact := 0.0, 1.0, 1.0
	for i, s := range sides {
		sum += s
		volume *= s
		fact *= float64(i + 1)
	}
	switch {
	case x >= sum:
		return 1
	case x < 0:
		return 0
	}
	total := 0.0
	for corner := range 1 << len(sides) {
		rest, sign := x, 1.0
		for i, s := range sides {
			if corner>>i&1 == 1 {
				rest -= s
				sign = -sign
			}
		}
		if rest > 0 {
			total += sign * math.Pow(rest, float64(len(sides)))
		}
	}
	return min(1, max(0, total/(fact*volume)))
}

// Percentile is the time in seconds after which a part p, 0..1, of the clients
// has moved, exact to a millisecond.
func (s *Spread) Percentile(p float64) float64 {
	low, high := s.Range()
	for high-low > 1e-3 {
		if mid := (low + high) / 2; s.CDF(mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Range is the least and the greatest time in seconds.
func (s *Spread) Range() (low, high float64) {
	low = s.Fixed.Seconds()
	high = low
	for _, e := range s.Even {
		high += e.Seconds()
	}
	if s.Part > 0 {
		high += s.Beyond.Seconds()
	}
	return low, high
}

// Mean is the mean time in seconds.
func (s *Spread) Mean() float64 {
	mean := s.Fixed.Seconds() + s.Part*s.Beyond.Seconds()/2
	for _, e := range s.Even {
		mean += e.Seconds() / 2
	}
	return mean
}

// Draws simulates n clients and gives their times in seconds, sorted. Equal seeds
// give equal draws.
func (s *Spread) Draws(n int, seed uint64) []float64 {
	r := rng(seed)
	all := make([]float64, n)
	for i := range all {
		t := s.Fixed.Seconds()
		for _, e := range s.Even {
			t += r.unit() * e.Seconds()
		}
		if late, by := r.unit(), r.unit(); late < s.Part {
			t += by * s.Beyond.Seconds()
		}
		all[i] = t
	}
	slices.Sort(all)
	return all
}

// Drawn is the percentile p, 0..1, of sorted draws.
func Drawn(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// rng is splitmix64.
type rng uint64

func (r *rng) unit() float64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

// Spread gives the model's times for clients that honour the TTL; the others are
// those who take longer by up to beyond.
func (m *Model) Spread(ttl time.Duration, part float64, beyond time.Duration) *Spread {
	return &Spread{Fixed: m.detected(), Even: []time.Duration{ttl, m.phase()}, Part: part, Beyond: beyond}
}
