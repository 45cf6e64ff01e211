package steer

import (
	"cmp"
	"slices"
)

// sampleSets divides the integers below a total into shares with one set each: the
// indexes of n of the weights. Over all draws, index i is in exactly
// min(1, n*w/W) of the sets; what is cut off at 1 goes to the others in proportion.
//
// This is systematic sampling. Lay the weights end to end, each n times its
// length, on a circle of circumference W, and stick n pins at distance W, the
// first at the draw. The set is the weights that have a pin. Only where one weight
// ends and the next begins does the set change, so there are no more sets than
// weights.
func sampleSets(weights []uint64, n int) (draws, [][]int) {
	certain, pins, total := certainties(weights, n)
	marks := []uint64{0}
	pos := uint64(0)
	for i, w := range weights {
		if !certain[i] {
			pos += w * pins
			marks = append(marks, pos%total)
		}
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)

	sets := make([][]int, len(marks))
	for k, start := range marks {
		sets[k] = pinned(weights, certain, pins, total, start)
	}
	ends := append(marks[1:len(marks):len(marks)], total)
	return newDraws(reduce(ends)), sets
}

// certainties finds the weights so great that they are in every set, and leaves
// the number of pins and the total weight for the others. n is less than the
// number of weights, so some are left and pins is positive.
func certainties(weights []uint64, n int) (certain []bool, pins, total uint64) {
	byWeight := make([]int, len(weights))
	for i, w := range weights {
		byWeight[i] = i
		total += w
	}
	slices.SortStableFunc(byWeight, func(a, b int) int { // greatest first
		return cmp.Compare(weights[b], weights[a])
	})
	certain = make([]bool, len(weights))
	pins = uint64(n)
	for _, i := range byWeight {
		if pins*weights[i] < total {
			break
		}
		certain[i] = true
		pins--
		total -= weights[i]
	}
	return certain, pins, total
}

// pinned is the set for one draw.
func pinned(weights []uint64, certain []bool, pins, total, draw uint64) (set []int) {
	pos, pin := uint64(0), draw
	for i, w := range weights {
		if certain[i] {
			set = append(set, i)
			continue
		}
		pos += w * pins
		if pin < pos {
			set = append(set, i)
			pin += total
		}
	}
	return set
}

// reduce divides all ends by their greatest common divisor.
func reduce(ends []uint64) []uint64 {
	g := uint64(0)
	for _, e := range ends {
		g = gcd(g, e)
	}
	for i := range ends {
		ends[i] /= g
	}
	return ends
}
