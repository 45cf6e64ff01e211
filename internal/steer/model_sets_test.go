package steer

import "math/big"

// inclusions are the probabilities of being in a set of n, from the definition:
// in proportion to weight, whatever exceeds 1 cut off, the rest scaled up, again.
func inclusions(weights []int64, n int) []*big.Rat {
	one := big.NewRat(1, 1)
	p := make([]*big.Rat, len(weights))
	for {
		left, total := int64(n), int64(0)
		for i, w := range weights {
			if p[i] != nil {
				left--
			} else {
				total += w
			}
		}
		cut := false
		for i, w := range weights {
			if p[i] == nil && big.NewRat(left*w, total).Cmp(one) >= 0 {
				p[i], cut = one, true
			}
		}
		if cut {
			continue
		}
		for i, w := range weights {
			if p[i] == nil {
				p[i] = big.NewRat(left*w, total)
			}
		}
		return p
	}
}

// sampleModel puts pins at t, t+1, … on the inclusions laid end to end, where t is
// the hash rounded down to the coarsest fraction at which sets can differ.
func sampleModel(es []EndpointConfig, n int, hash uint64) (set []EndpointConfig) {
	var weights []int64
	for _, e := range es {
		weights = append(weights, int64(e.Weight))
	}
	p := inclusions(weights, n)
	unit := big.NewInt(1) // least common denominator of all ends
	end := new(big.Rat)
	for _, x := range p {
		end.Add(end, x)
		g := new(big.Int).GCD(nil, nil, unit, end.Denom())
		unit.Mul(unit, new(big.Int).Div(end.Denom(), g))
	}
	t := new(big.Int).Mul(unit, new(big.Int).SetUint64(hash))
	pin := new(big.Rat).SetFrac(t.Rsh(t, 64), unit)
	end.SetInt64(0)
	for i, x := range p {
		if x.Cmp(big.NewRat(1, 1)) == 0 {
			set = append(set, es[i])
			continue
		}
		if end.Add(end, x); pin.Cmp(end) < 0 {
			set = append(set, es[i])
			pin.Add(pin, big.NewRat(1, 1))
		}
	}
	return set
}
