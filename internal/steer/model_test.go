package steer

import (
	"cmp"
	"math"
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
	moved func(Region) Levers
	kept  []Region // by MaxDown
	c     Client
	f     Family
}

func newModel(cfg HostConfig, state func(Region, int) EndpointState, levers func(Region) Levers) model {
	m := model{cfg: cfg, state: state, moved: levers}
	m.kept = m.held()
	return m
}

type modelDecision struct {
	outcome Outcome
	region  Region
	addrs   []netip.Addr
	name    string
	by      By
	class   TTLClass
	scope   int
	reason  Reason
	moved   bool
}

// members are the endpoints of a region in family f with one of these verdicts, and
// the weights that hold.
func (m *model) members(r Region, f Family, verdicts ...Verdict) (es []EndpointConfig) {
	p := m.cfg.Pools[r]
	if p == nil {
		return nil
	}
	weights := m.weights(r, f)
	for i, e := range p.Endpoints {
		if e.Weight = weights[i]; e.Weight > 0 && slices.Contains(verdicts, m.state(r, i).Verdict) {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, func(a, b EndpointConfig) int { return a.Addr.Compare(b.Addr) })
	return es
}

// weights are the weights that hold in family f, 0 for endpoints of the other one.
func (m *model) weights(r Region, f Family) []uint32 {
	p := m.cfg.Pools[r]
	written := make([]uint32, len(p.Endpoints))
	live := make([]uint32, len(p.Endpoints))
	for i, e := range p.Endpoints {
		if p.Name == "" && e.Addr.Is4() != (f == V4) {
			continue
		}
		written[i], live[i] = e.Weight, e.Weight
		if st := m.state(r, i); st.Weighed {
			live[i] = st.Weight
		}
	}
	if slices.Max(live) == 0 {
		return written
	}
	return live
}

func weight(es []EndpointConfig) (w float64) {
	for _, e := range es {
		w += float64(e.Weight)
	}
	return w
}

// written says whether some endpoint of the region has a weight for the family, as
// configured.
func (m *model) written(r Region, f Family) bool {
	p := m.cfg.Pools[r]
	return p != nil && slices.ContainsFunc(p.Endpoints, func(e EndpointConfig) bool {
		return e.Weight > 0 && (p.Name != "" || e.Addr.Is4() == (f == V4))
	})
}

func (m *model) offered(f Family) bool {
	for r := range m.cfg.Regions {
		if m.written(Region(r), f) {
			return m.cfg.Families == FamiliesSame || m.cfg.Families == FamiliesMixed || (m.cfg.Families == FamiliesV4) == (f == V4)
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
		return firstOf(rs, func(r Region) bool { return ok(r, m.f) })
	}
	if m.choose(order, &d); d.region != NoRegion {
		if d.name == "" {
			d.addrs, d.name = m.answer(d.region)
		}
		if m.streak(d.region) {
			d.class = ClassStreak
		}
		return d
	}
	d.outcome, d.class = OutcomeLastResort, ClassLastResort
	switch lr := m.cfg.LastResort; lr.Kind {
	case Open:
		open := func(r Region, f Family) bool { return m.candidate(r, f, m.open) }
		if d.region = first(order, func(r Region, f Family) bool { return open(r, f) && m.levers(r).Dial > 0 }); d.region == NoRegion {
			d.region = first(order, open)
		}
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
		d.addrs, d.name = m.answer(d.region)
	}
	if len(d.addrs) == 0 && d.name == "" {
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

func firstOf(rs []Region, ok func(Region) bool) Region {
	if i := slices.IndexFunc(rs, ok); i >= 0 {
		return rs[i]
	}
	return NoRegion
}

func (m *model) streak(r Region) bool {
	weights := m.weights(r, m.f)
	for i := range m.cfg.Pools[r].Endpoints {
		if st := m.state(r, i); weights[i] > 0 && st.Streak && st.Verdict != Drained {
			return true
		}
	}
	return false
}

func (m *model) answer(r Region) (addrs []netip.Addr, name string) {
	if name := m.cfg.Pools[r].Name; name != "" {
		return nil, name
	}
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
	return addrs, ""
}
