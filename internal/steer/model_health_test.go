package steer

import (
	"math"
	"math/big"
	"slices"
)

func (m *model) usable(r Region, f Family) bool {
	return m.healthy(r, f, Up, Full) || m.fails(r, f) && slices.Contains(m.kept, r)
}

// healthy says whether the endpoints with these verdicts are enough.
func (m *model) healthy(r Region, f Family, verdicts ...Verdict) bool {
	alive := m.members(r, f, verdicts...)
	if len(alive) == 0 {
		return false
	}
	p := m.cfg.Pools[r]
	if p.MinHealthyPct > 0 {
		return weight(alive)*100 >= p.MinHealthyPct*weight(m.members(r, f, Up, Full, Down))
	}
	return len(alive) >= p.MinHealthy
}

// fails says whether only verdicts of down keep a family of a region from use.
func (m *model) fails(r Region, f Family) bool {
	return !m.healthy(r, f, Up, Full) && m.healthy(r, f, Up, Full, Down)
}

// held is the regions that MaxDown keeps in service.
func (m *model) held() (held []Region) {
	var out []Region
	counted := 0
	for i := range m.cfg.Regions {
		r := Region(i)
		there, failed, healthy := false, false, false
		for _, f := range []Family{V4, V6} {
			if m.offered(f) {
				there = there || m.written(r, f)
				failed = failed || m.fails(r, f)
				healthy = healthy || m.healthy(r, f, Up, Full)
			}
		}
		if there {
			counted++
		}
		if failed && !healthy {
			out = append(out, r)
		}
	}
	limit := int(math.Floor(float64(counted)*m.cfg.MaxDown/100 + 1e-9))
	for len(out) > limit {
		last := 0
		for i := range out {
			if m.failedAt(out[i]) > m.failedAt(out[last]) {
				last = i
			}
		}
		held = append(held, out[last])
		out = slices.Delete(out, last, last+1)
	}
	return held
}

func (m *model) failedAt(r Region) (at int64) {
	for _, f := range []Family{V4, V6} {
		if !m.offered(f) {
			continue
		}
		weights := m.weights(r, f)
		for i := range weights {
			if st := m.state(r, i); st.Verdict == Down && weights[i] > 0 {
				at = max(at, st.Since)
			}
		}
	}
	return at
}

// available is the part of the clients that a usable region takes for its health.
func (m *model) available(r Region, f Family) *big.Rat {
	one := big.NewRat(1, 1)
	if !m.healthy(r, f, Up, Full) {
		return one // held
	}
	w := func(verdicts ...Verdict) int64 { return int64(weight(m.members(r, f, verdicts...))) }
	part := one
	if below := int64(math.Round(m.cfg.SpillBelow * 100)); below > 0 {
		h := big.NewRat(w(Up, Full), w(Up, Full, Down))
		if h.Mul(h, big.NewRat(10000, below)); h.Cmp(one) < 0 {
			part = h
		}
	}
	left := big.NewRat(2*w(Up, Full)-w(Full), 2*w(Up, Full))
	return left.Mul(left, part)
}
