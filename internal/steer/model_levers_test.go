package steer

import (
	"math"
	"math/big"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// levers are those of a region, within their ranges.
func (m *model) levers(r Region) Levers {
	if m.moved == nil {
		return NoLevers()
	}
	l := m.moved(r)
	for p, otherwise := range map[*float64]float64{&l.Dial: 1, &l.Ramp: 1, &l.Share: 0, &l.Trickle: 0} {
		if math.IsNaN(*p) {
			*p = otherwise
		}
		*p = math.Max(0, math.Min(1, *p))
	}
	l.Trickle = math.Min(l.Trickle, 0.5)
	return l
}

func rat(p float64) *big.Rat { return new(big.Rat).SetFloat64(p) }

// below says whether the client falls below a part for a purpose of a region.
func (m *model) below(purpose string, r Region, part *big.Rat) bool {
	hash := salted(m.keyHash(), xxhash.Sum64String(purpose+m.cfg.Regions[r]))
	place := new(big.Rat).SetFrac(new(big.Int).SetUint64(hash), new(big.Int).Lsh(big.NewInt(1), 64))
	return place.Cmp(part) < 0
}

// admitted is what the law admits of the client's list.
func (m *model) admitted(r Region) *big.Rat {
	all := m.levers(r).Admission
	if m.c.List >= len(all) || math.IsNaN(all[m.c.List]) {
		return rat(1)
	}
	return rat(math.Max(0, math.Min(1, all[m.c.List])))
}

// held is availability x dial x ramp.
func (m *model) part(r Region, f Family) *big.Rat {
	l := m.levers(r)
	p := m.available(r, f)
	p.Mul(p, rat(l.Dial))
	return p.Mul(p, rat(l.Ramp))
}

// candidate says whether a region has what is asked for and is no soak, or nobody
// on the list is both.
func (m *model) candidate(r Region, f Family, ok func(Region, Family) bool) bool {
	if !ok(r, f) {
		return false
	}
	return !m.levers(r).Shared || !slices.ContainsFunc(m.order(), func(o Region) bool { return ok(o, f) && !m.levers(o).Shared })
}

// takes says whether a region takes the client for family f as a candidate.
func (m *model) takes(r Region, f Family) bool {
	if !m.candidate(r, f, m.usable) {
		return false
	}
	part := m.part(r, f)
	if m.cfg.Shed == "" {
		part.Mul(part, m.admitted(r))
	}
	return m.below("admission", r, part)
}

// soak is the soak whose share has the client; NoRegion if none.
func (m *model) soak(f Family) Region {
	order := m.order()
	if !slices.ContainsFunc(order, func(r Region) bool { return m.usable(r, f) && !m.levers(r).Shared }) {
		return NoRegion
	}
	given := rat(0)
	for i := range m.cfg.Regions {
		r := Region(i)
		l := m.levers(r)
		if !l.Shared || !slices.Contains(order, r) || !m.usable(r, f) || l.Mark >= 0 && m.cfg.Lists[m.c.List].Marks&(1<<l.Mark) == 0 {
			continue
		}
		p := m.part(r, f)
		p.Mul(p, rat(l.Share))
		left := new(big.Rat).Sub(rat(1), given)
		if p.Sign() > 0 && (p.Cmp(left) >= 0 || m.below("share", r, new(big.Rat).Quo(p, left))) {
			return r
		}
		given.Add(given, p)
		if given.Cmp(rat(1)) > 0 {
			given = rat(1)
		}
	}
	return NoRegion
}

func (m *model) choose(order []Region, d *modelDecision) {
	d.region = m.soak(m.f)
	if other := m.soak(1 - m.f); m.offered(1-m.f) && other < d.region {
		d.moved = true
	}
	if d.region != NoRegion {
		d.by = ByShare
		return
	}
	usable := func(r Region) bool { return m.candidate(r, m.f, m.usable) }
	d.by = ByChoice
	if d.region = firstOf(order, func(r Region) bool { return m.takes(r, m.f) }); d.region == NoRegion {
		d.by = ByForced
		d.region = firstOf(order, func(r Region) bool { return usable(r) && m.levers(r).Dial > 0 })
	}
	if d.region == NoRegion {
		d.region = firstOf(order, usable)
	}
	for _, r := range order {
		if r == d.region {
			break
		}
		d.moved = d.moved || m.offered(1-m.f) && m.takes(r, 1-m.f)
		if usable(r) && d.by == ByChoice {
			d.by = BySpill
		}
	}
	switch {
	case d.region == NoRegion:
		d.by = ByNone
	case d.by == ByForced:
	case m.sheds(d.region):
		d.by, d.name = ByShed, m.cfg.Shed
	case m.below("trickle", d.region, rat(m.levers(d.region).Trickle)):
		m.trickle(order, d)
	}
}

func (m *model) sheds(r Region) bool { return m.cfg.Shed != "" && !m.below("shed", r, m.admitted(r)) }

// trickle gives the client to the next candidate that takes it and doesn't shed it.
func (m *model) trickle(order []Region, d *modelDecision) {
	from := d.region
	for _, r := range order {
		if r == from {
			continue
		}
		if m.takes(r, m.f) {
			if !m.sheds(r) {
				d.region, d.by = r, ByTrickle
			}
			return
		}
		d.moved = d.moved || m.offered(1-m.f) && m.takes(r, 1-m.f)
	}
}
