package steer

import (
	"cmp"
	"math"
	"math/big"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// The model: the rules of a decision done slowly over the configuration, with
// floats for bids and rationals for sets. It shares with the code only the
// final mix of a hash.

type model struct {
	cfg   HostConfig
	state func(Region, int) EndpointState
	kept  []Region // by MaxDown
	c     Client
	f     Family
}

func newModel(cfg HostConfig, state func(Region, int) EndpointState) model {
	m := model{cfg: cfg, state: state}
	m.kept = m.held()
	return m
}

type modelDecision struct {
	outcome Outcome
	region  Region
	addrs   []netip.Addr
	class   TTLClass
	scope   int
	reason  Reason
	moved   bool
}

// members are the endpoints of a region in family f with one of these verdicts.
func (m *model) members(r Region, f Family, verdicts ...Verdict) (es []EndpointConfig) {
	if m.cfg.Pools[r] == nil {
		return nil
	}
	for i, e := range m.cfg.Pools[r].Endpoints {
		if e.Addr.Is4() == (f == V4) && e.Weight > 0 && slices.Contains(verdicts, m.state(r, i).Verdict) {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, func(a, b EndpointConfig) int { return a.Addr.Compare(b.Addr) })
	return es
}

func weight(es []EndpointConfig) (w float64) {
	for _, e := range es {
		w += float64(e.Weight)
	}
	return w
}

func (m *model) offered(f Family) bool {
	for r := range m.cfg.Regions {
		if len(m.members(Region(r), f, Up, Full, Down, Drained)) > 0 {
			switch m.cfg.Families {
			case FamiliesV4:
				return f == V4
			case FamiliesV6:
				return f == V6
			}
			return true
		}
	}
	return false
}

func (m *model) open(r Region, f Family) bool { return len(m.members(r, f, Up, Full, Down)) > 0 }

func (m *model) keyHash() uint64 {
	bytes := func(a netip.Addr, n int) string {
		p := netip.PrefixFrom(a, n).Masked()
		b := p.Addr().As16()
		return string(b[:]) + string([]byte{byte(n)})
	}
	transport := 24
	if m.c.Transport.Is6() {
		transport = 56
	}
	switch {
	case m.c.Source == Transport:
		return xxhash.Sum64String(bytes(m.c.Transport, transport))
	case m.cfg.Spread == Resolver:
		return xxhash.Sum64String(bytes(m.c.Addr, m.c.Block) + bytes(m.c.Transport, transport))
	}
	return xxhash.Sum64String(bytes(m.c.Addr, m.stickyLength()))
}

func (m *model) stickyLength() int {
	grain := m.cfg.Grain[0]
	if m.c.Addr.Is6() {
		grain = m.cfg.Grain[1]
	}
	return max(grain, m.c.Block)
}

func (m *model) bid(saltText string, w uint32) float64 {
	u := (float64(salted(m.keyHash(), xxhash.Sum64String(saltText))) + 0.5) / (1 << 64)
	return -math.Log2(u) / float64(w)
}

// order is the whole order of candidates of the client's list.
func (m *model) order() (order []Region) {
	l := m.cfg.Lists[m.c.List]
	split := slices.Clone(l.Split)
	slices.SortStableFunc(split, func(a, b Weighted) int {
		value := func(w Weighted) float64 {
			if w.Weight == 0 {
				return math.Inf(1)
			}
			return m.bid("region"+m.cfg.Regions[w.Region], w.Weight)
		}
		return cmp.Compare(value(a), value(b))
	})
	for _, w := range split {
		order = append(order, w.Region)
	}
	return append(order, l.Order...)
}

func (m *model) decide() modelDecision {
	d := modelDecision{region: NoRegion}
	if !m.offered(m.f) {
		d.outcome = OutcomeNoFamily
		return d
	}
	l := m.cfg.Lists[m.c.List]
	if l.Refuse {
		d.outcome = OutcomeRefused
		return d
	}
	if m.c.Source == ECS || m.c.Fixed {
		d.scope = m.c.Block + m.c.ScopeBase
		if m.cfg.Spread == Sticky && !m.c.Fixed {
			d.scope = m.stickyLength() + m.c.ScopeBase
		}
	}
	order := m.order()
	first := func(rs []Region, ok func(Region, Family) bool) Region {
		if i := slices.IndexFunc(rs, func(r Region) bool { return ok(r, m.f) }); i >= 0 {
			return rs[i]
		}
		return NoRegion
	}
	if d.region = first(order, m.takes); d.region == NoRegion {
		d.region = first(order, m.usable)
	}
	for _, r := range order {
		if r == d.region {
			break
		}
		d.moved = d.moved || m.offered(1-m.f) && m.takes(r, 1-m.f)
	}
	if d.region != NoRegion {
		d.addrs = m.answer(d.region)
		if m.streak(d.region) {
			d.class = ClassStreak
		}
		return d
	}
	d.outcome, d.class = OutcomeLastResort, ClassLastResort
	switch lr := m.cfg.LastResort; lr.Kind {
	case Open:
		d.region = first(order, m.open)
	case Regions:
		allowed := slices.DeleteFunc(slices.Clone(lr.Regions), func(r Region) bool { return l.Allowed != nil && !l.Allowed[r] })
		if d.region = first(allowed, m.usable); d.region == NoRegion {
			d.region = first(allowed, m.open)
		}
	case Addresses:
		for _, a := range lr.Addresses {
			if a.Is4() == (m.f == V4) {
				d.addrs = append(d.addrs, a)
			}
		}
		slices.SortFunc(d.addrs, netip.Addr.Compare)
	}
	if d.region != NoRegion {
		d.addrs = m.answer(d.region)
	}
	if len(d.addrs) == 0 {
		d.outcome, d.class, d.reason = OutcomeFailed, 0, ReasonNothingLeft
		present := slices.ContainsFunc(order, func(r Region) bool { return len(m.members(r, m.f, Up, Full, Down, Drained)) > 0 })
		if present && first(order, m.open) == NoRegion {
			d.reason = ReasonAllDrained
		} else if m.cfg.LastResort.Kind == Closed {
			d.reason = ReasonClosed
		}
	}
	return d
}

func (m *model) streak(r Region) bool {
	for i, e := range m.cfg.Pools[r].Endpoints {
		st := m.state(r, i)
		if e.Addr.Is4() == (m.f == V4) && e.Weight > 0 && st.Streak && st.Verdict != Drained {
			return true
		}
	}
	return false
}

func (m *model) answer(r Region) (addrs []netip.Addr) {
	es := m.members(r, m.f, Up, Full, Down)
	if m.healthy(r, m.f, Up, Full) {
		es = m.members(r, m.f, Up, Full)
		up, full := m.members(r, m.f, Up), m.members(r, m.f, Full)
		for i := range es { // weights must be whole: double the others
			if len(full) > 0 && slices.Contains(up, es[i]) {
				es[i].Weight *= 2
			}
		}
	}
	n := m.cfg.Pools[r].Answers
	switch {
	case n == 0 || n >= len(es):
	case n == 1:
		es = []EndpointConfig{slices.MinFunc(es, func(a, b EndpointConfig) int {
			value := func(e EndpointConfig) float64 {
				b := e.Addr.As16()
				return m.bid("endpoint"+string(b[:]), e.Weight)
			}
			return cmp.Compare(value(a), value(b))
		})}
	default:
		h := salted(m.keyHash(), xxhash.Sum64String("answers"+m.cfg.Regions[r]))
		es = sampleModel(es, n, h)
	}
	for _, e := range es {
		addrs = append(addrs, e.Addr)
	}
	return addrs
}

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
