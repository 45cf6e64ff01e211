package config

import (
	"slices"
	"strings"
)

// rulesOf gives the rules that decide for a host.
func (b *Block) rulesOf(h *Host) []Rule {
	if h.OwnRules {
		return h.Rules
	}
	return b.Rules
}

// candidates gives the regions that can be in the list of a rule.
func (b *Block) candidates(r *Rule) []string {
	list, written := b.listOf(r)
	if !written || list.Rest {
		return b.regionNames()
	}
	return list.regions()
}

// checkReach holds that every list of a host leads to a pool, for each family
// too, and that a list or a last resort leads to every pool.
func (b *Block) checkReach(h *Host) error {
	rules := b.rulesOf(h)
	rest := false
	var reached []string
	for i := range rules {
		r := &rules[i]
		rest = rest || r.Rest
		if r.Refuse {
			continue
		}
		regions := b.candidates(r)
		if f, ok := h.reaches(regions); !ok {
			return r.errorf("the list of these clients (%s) leads to no %s address of host %s: name a region where it has one", strings.Join(regions, " "), f.record(), h.title())
		}
		reached = append(reached, regions...)
	}
	if !rest || len(b.Nets) > 0 && !h.OwnRules {
		return nil // clients without a rule can get any region, and nets can name any
	}
	reached = append(reached, h.LastResort.Regions...)
	for _, f := range b.Fences {
		reached = append(reached, f.Regions...)
	}
	for _, p := range h.Pools {
		if !slices.Contains(reached, p.Region) {
			return p.errorf("the pool of region %q of host %s can never be used: no list, last resort or fence leads to its region", p.Region, h.title())
		}
	}
	return nil
}

// reaches reports whether the regions hold an address of every family the host
// offers, and else the family that is missing. A target may have any.
func (h *Host) reaches(regions []string) (missing family, ok bool) {
	offered := h.offered()
	if len(offered) == 0 {
		offered = []family{4} // all are targets: one must be there
	}
	for _, f := range offered {
		lives := func(n string) bool { p := h.poolOf(n); return p != nil && p.may(f) }
		if !slices.ContainsFunc(regions, lives) {
			return f, false
		}
	}
	return 0, true
}

func (h *Host) poolOf(region string) *Pool {
	for i := range h.Pools {
		if h.Pools[i].Region == region {
			return &h.Pools[i]
		}
	}
	return nil
}

// checkFences holds that a fence leaves the host something to answer, and that
// no last resort leads out of it unless the host agrees.
func (b *Block) checkFences(h *Host) error {
	for _, f := range b.Fences {
		if missing, ok := h.reaches(f.Regions); !ok {
			return f.errorf("the fence of area %q leaves host %s no %s address: give %s", f.Area, h.title(), missing.record(), h.remedy(f.Regions, missing))
		}
		if h.FencedOK {
			continue
		}
		r := h.LastResort
		if r.Kind == LastAddresses {
			return r.errorf("last_resort addresses of host %s could break the fence of area %q (%s): write `fenced_ok` in the host to accept that", h.title(), f.Area, f.Pos)
		}
		for _, n := range r.Regions {
			if !slices.Contains(f.Regions, n) {
				return r.errorf("last_resort region %q of host %s is outside the fence of area %q (%s): write `fenced_ok` in the host to accept that", n, h.title(), f.Area, f.Pos)
			}
		}
	}
	return nil
}

// remedy says what would give the host an address of a family in one of the
// regions.
func (h *Host) remedy(regions []string, f family) string {
	pooled := slices.DeleteFunc(slices.Clone(regions), func(n string) bool { return h.poolOf(n) == nil })
	if len(pooled) == 0 {
		return "the host a pool in " + strings.Join(regions, " or ")
	}
	return "its pool in " + strings.Join(pooled, " or ") + " an " + f.version() + " endpoint"
}
