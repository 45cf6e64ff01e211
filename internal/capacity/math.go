package capacity

import (
	"math"
	"time"
)

// mul is a product that is rounded by itself. The language lets a compiler fuse
// a product with the sum it goes into, which some architectures do and others
// don't; an explicit conversion forbids it. All products of the package are
// made here (a test holds it), so every machine computes the same.
func mul(a, b float64) float64 { return float64(a * b) }

// pow is x to the power a, for x >= 0 and a in 0..1, by square roots: those are
// exact to the last bit everywhere, which math.Pow is not. The error is that of a rounded
// to 2^-30.
func pow(x, a float64) float64 {
	switch {
	case a <= 0:
		return 1
	case a >= 1:
		return x
	}
	result := 1.0
	for range 30 {
		x = math.Sqrt(x)
		a += a
		if a >= 1 {
			result = mul(result, x)
			a--
		}
	}
	return result
}

// clamp is v within lo..hi; NaN is lo.
func clamp(v, lo, hi float64) float64 {
	if v > hi {
		return hi
	}
	if v > lo {
		return v
	}
	return lo
}

// amount is v as an amount: 0 where it is none.
func amount(v float64) float64 {
	if v > 0 && v <= MaxLoad {
		return v
	}
	return 0
}

// blend is a at part 0 and b at part 1.
func blend(a, b, part float64) float64 { return a + mul(b-a, part) }

// seconds of d, at least 0.
func seconds(d time.Duration) float64 { return max(0, d.Seconds()) }
