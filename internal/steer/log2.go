package steer

import "math/bits"

// The weighted choice needs -log2 of a hash. Floating point may differ between
// architectures (fused multiply-add), so it is computed in integers: quadratic
// interpolation between exact values of log2, in units of 2^-32. Between nodes
// 1/256 apart the third derivative of log2 bounds the error by 48 units (about
// 1.1e-8); at nodes it is zero, so that scores near 0, which decide for small
// weights, stay right in proportion too.

const (
	log2Nodes = 256     // nodes per octave
	log2One   = 1 << 32 // 1.0 in the unit of a score
)

// log2Table[i] is log2(1+i/256) in units of 2^-32, rounded down.
var log2Table = makeLog2Table()

func makeLog2Table() (t [log2Nodes + 1]int64) {
	for i := range log2Nodes {
		t[i] = int64(exactLog2(1<<63 + uint64(i)<<(63-8)))
	}
	t[log2Nodes] = log2One
	return t
}

// exactLog2 is log2(m/2^63) in units of 2^-32 for m in [2^63, 2^64): each
// squaring of the mantissa yields one binary digit of its logarithm.
func exactLog2(m uint64) (frac uint64) {
	for range 32 {
		frac <<= 1
		hi, lo := bits.Mul64(m, m) // [2^126, 2^128)
		if hi>>63 == 1 {
			frac |= 1
			m = hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return frac
}

// negLog2 is -log2((h|1)/2^64) in units of 2^-32: an exponentially distributed
// number for a uniform h, from 0 to 64<<32. It never grows as h grows by more
// than rounding.
func negLog2(h uint64) uint64 {
	h |= 1
	zeros := bits.LeadingZeros64(h)
	m := h << zeros << 1          // the mantissa's fraction, 64 bits
	i := m >> 57 * 2              // left node of three
	s := int64(m << 7 >> 33)      // position in [0, 2) nodes, unit 2^-30
	q := s * (s - 1<<30) >> 31    // s(s-1)/2, unit 2^-30
	t := log2Table[i : i+3 : i+3] // constant length: one bounds check
	d1 := t[1] - t[0]             // first difference
	d2 := t[2] - t[1] - d1        // second difference
	f := t[0] + (s*d1+q*d2)>>30   // Newton's form
	return uint64(zeros+1)<<32 - uint64(f)
}
