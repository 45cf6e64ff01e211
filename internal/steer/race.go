package steer

import (
	"math"
	"slices"
)

// A split is a race: every region arrives at an exponentially distributed time
// with its weight as the rate, and the first that takes the client has it. Who
// takes part at all is independent of when they arrive. With T the time,
//
//	P(i wins) = ∫ a_i w_i e^(-w_i T) ∏ over j≠i (1 - a_j (1 - e^(-w_j T))) dT
//
// where a is the part that each takes. On the scale of ln T the integrand is smooth
// and falls off on both sides, so that plain sums converge to 1e-9 at this step.

const (
	raceStep  = 0.25
	raceStart = -22.0 // ln T before which nobody arrives: 3e-10
	raceEnd   = 25.0  // T in units of the slowest: e^-25 are still to come
)

// race is the part of the clients that each wins; what is missing from 1 nobody takes.
func race(weights, parts []float64) []float64 {
	total := sum(weights)
	won := make([]float64, len(weights))
	if everyoneTakes(parts) {
		for i, w := range weights {
			won[i] = w / total
		}
		return won
	}
	steps(weights, parts, func(taken, open []float64) {
		for i, p := range taken {
			for j, o := range open {
				if j != i {
					p *= o
				}
			}
			won[i] += p
		}
	})
	return won
}

// second is the part of the clients that i wins and that each other one would have
// next, and the part that i wins and nobody else takes.
func second(weights, parts []float64, i int) (next []float64, alone float64) {
	next = make([]float64, len(weights))
	steps(weights, parts, func(taken, open []float64) {
		for j, p := range taken {
			if j == i {
				continue
			}
			p *= 1 - open[i]
			for k, o := range open {
				if k != i && k != j {
					p *= o
				}
			}
			next[j] += p
		}
	})
	alone = parts[i]
	for j := range parts {
		if j != i {
			alone *= 1 - parts[j]
		}
	}
	return next, alone
}

// steps calls do for every step of the time, with the probability that each takes
// the client in this step, and that it hasn't taken it yet.
func steps(weights, parts []float64, do func(taken, open []float64)) {
	if len(weights) == 0 {
		return
	}
	taken, open := make([]float64, len(weights)), make([]float64, len(weights))
	total := sum(weights)
	end := math.Log(raceEnd * total / slices.Min(weights))
	for x := raceStart; x <= end; x += raceStep {
		for i, w := range weights {
			t := w / total * math.Exp(x)
			taken[i] = parts[i] * t * math.Exp(-t) * raceStep
			open[i] = 1 + parts[i]*math.Expm1(-t)
		}
		do(taken, open)
	}
}

// everyoneTakes says whether all parts are 1.
func everyoneTakes(parts []float64) bool {
	return !slices.ContainsFunc(parts, func(p float64) bool { return p < 1 })
}

func sum(xs []float64) (total float64) {
	for _, x := range xs {
		total += x
	}
	return total
}
