package config

import (
	"net/netip"
	"slices"
	"strings"
)

// checkPools holds that the pools of a host agree with its options.
func (b *Block) checkPools(h *Host) error {
	offered := h.offered()
	for i := range h.Pools {
		p := &h.Pools[i]
		for _, f := range offered {
			if !p.may(f) && h.Families != FamiliesMixed {
				return h.lacks(p, f)
			}
		}
		if err := p.checkWeights(offered); err != nil {
			return err
		}
		if up := p.weighted(); p.MinHealthy.Count > up && len(p.Targets) == 0 {
			return p.errorf("min_healthy %d of the pool of region %q can never be: it has %d endpoints with a weight", p.MinHealthy.Count, p.Region, up)
		}
	}
	return nil
}

// lacks is the error about a pool that doesn't offer a family it must.
func (h *Host) lacks(p *Pool, f family) error {
	version := f.version()
	if h.Families != FamiliesSame {
		return p.errorf("the pool of region %q has no %s address, but host %s says `families %s`", p.Region, version, h.title(), h.Families)
	}
	return p.errorf("the pool of region %q has no %s address, but other pools of host %s have: its %s clients would be sent to another region; add one, or write `families mixed`, `families v4` or `families v6`",
		p.Region, version, h.title(), version)
}

// checkWeights holds that the weights have an effect, and can have one. A target
// counts as one endpoint of each family.
func (p *Pool) checkWeights(offered []family) error {
	if len(offered) == 0 {
		offered = []family{4} // all are targets: their weights are the same for each
	}
	unequal, choice := false, false
	for _, f := range offered {
		weights := p.weights(f)
		if len(weights) == 0 {
			continue
		}
		used := slices.DeleteFunc(weights, func(w int) bool { return w == 0 })
		switch {
		case len(used) == 0 && len(p.Targets) > 0:
			return p.errorf("all targets and %s endpoints in the pool of region %q have weight 0: give one a weight", f.record(), p.Region)
		case len(used) == 0:
			return p.errorf("all %s endpoints in the pool of region %q have weight 0: give one a weight", f.record(), p.Region)
		}
		unequal = unequal || slices.Min(used) != slices.Max(used)
		choice = choice || p.Answers > 0 && p.Answers < len(used)
	}
	if unequal && !choice {
		return p.errorf("unequal weights where all are answered, in the pool of region %q: write `answers 1`, or the same weight for each", p.Region)
	}
	return nil
}

// weights gives the weights of the endpoints of one family and of the targets.
func (p *Pool) weights(f family) []int {
	var list []int
	for _, e := range p.Endpoints {
		if familyOf(e.Addr) == f {
			list = append(list, e.Weight)
		}
	}
	for _, t := range p.Targets {
		list = append(list, t.Weight)
	}
	return list
}

// weighted counts the endpoints with a weight.
func (p *Pool) weighted() int {
	n := 0
	for _, e := range p.Endpoints {
		if e.Weight > 0 {
			n++
		}
	}
	return n
}

// checkAuthority holds that checks that ask for the host's own name can. For the
// endpoints of a target they ask for the target's.
func (b *Block) checkAuthority(h *Host) error {
	if !strings.HasPrefix(h.title(), "*.") {
		return nil
	}
	for _, p := range h.Pools {
		for _, n := range p.Checks {
			if b.checkOf(n).Each && len(p.Endpoints) > 0 {
				return h.errorf("check %q asks for the first name of each host (`authority each`), but that of this host is the wildcard %s: write a plain name first, or give the host a check with `authority NAME`", n, h.title())
			}
		}
	}
	return nil
}

// checkLastResort holds that the last resort can be answered.
func (b *Block) checkLastResort(h *Host) error {
	r := h.LastResort
	for _, n := range r.Regions {
		if h.poolOf(n) == nil {
			return r.errorf("last_resort region %q has no pool in host %s", n, h.title())
		}
	}
	if r.Kind != LastAddresses || h.targeted() { // whose families nobody knows yet
		return nil
	}
	offered := h.offered()
	for _, f := range []family{4, 6} {
		has := slices.ContainsFunc(r.Addresses, func(a netip.Addr) bool { return familyOf(a) == f })
		if want := slices.Contains(offered, f); has != want {
			verb := map[bool]string{true: "have no", false: "have an"}[want]
			return r.errorf("last_resort addresses %s %s address, unlike the pools of host %s: its families must be those of the pools", verb, f.record(), h.title())
		}
	}
	return nil
}
