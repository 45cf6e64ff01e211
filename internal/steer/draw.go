package steer

import (
	"math/bits"
	"slices"
)

// draws divides the integers below a total into consecutive shares. ends are the
// upper ends of the shares, rising; the last is the total.
type draws struct {
	ends   []uint64
	stride uint64
}

// newDraws makes draws from the shares' upper ends.
func newDraws(ends []uint64) draws {
	return draws{ends, stride(ends[len(ends)-1])}
}

// weightDraws makes draws of which each share is in proportion to a weight, with
// the least possible total. Weights are positive.
func weightDraws(weights []uint64) draws {
	g := uint64(0)
	for _, w := range weights {
		g = gcd(g, w)
	}
	ends := make([]uint64, len(weights))
	sum := uint64(0)
	for i, w := range weights {
		sum += w / g
		ends[i] = sum
	}
	return newDraws(ends)
}

// total is the number of distinct draws.
func (d *draws) total() uint64 { return d.ends[len(d.ends)-1] }

// size is how many of the draws fall into share i.
func (d *draws) size(i int) uint64 {
	if i == 0 {
		return d.ends[0]
	}
	return d.ends[i] - d.ends[i-1]
}

// byHash is the share that a uniform hash falls into.
func (d *draws) byHash(hash uint64) int { return d.find(below(hash, d.total())) }

// below is a uniform 64-bit number brought below total.
func below(uniform, total uint64) uint64 {
	draw, _ := bits.Mul64(uniform, total)
	return draw
}

// inTurn is the share of the n-th draw. Any total() consecutive n meet every draw
// once, so the shares are exact, and short runs come close.
func (d *draws) inTurn(n uint64) int {
	t := d.total()
	hi, lo := bits.Mul64(n%t, d.stride)
	return d.find(bits.Rem64(hi, lo, t))
}

// find is the share that a draw lies in.
func (d *draws) find(draw uint64) int {
	i, _ := slices.BinarySearch(d.ends, draw+1)
	return i
}

// golden is 2^64 divided by the golden ratio: multiples of it, mod 2^64, spread
// more evenly than those of any other number.
const golden = 0x9e3779b97f4a7c15

// stride is a number prime to total, near total divided by the golden ratio, so
// that successive multiples of it spread evenly.
func stride(total uint64) uint64 {
	s, _ := bits.Mul64(total, golden)
	for s = max(s, 1); gcd(s, total) != 1; s++ {
	}
	return s
}

// gcd is the greatest common divisor; gcd(0, b) is b.
func gcd(a, b uint64) uint64 {
	for a != 0 {
		a, b = b%a, a
	}
	return b
}
