package config

import (
	"slices"
	"strings"
)

// warn collects what the operator should know.
func (b *Block) warn() {
	for _, r := range b.allRules() {
		if r.Refuse {
			b.note(r.Pos, "clients are refused: caches share negative answers, so others behind the same resolver may be told that the name has no address")
		}
	}
	for _, m := range b.matches() {
		b.warnLong(m)
	}
	b.warnLocations()
	b.warnChecks()
	for i := range b.Hosts {
		b.warnDrained(&b.Hosts[i])
	}
	if len(b.Hosts) == 0 {
		b.note(b.Pos, "the block has no host; an import whose pattern matches no file is no error to the server")
	}
}

// warnLocations notes locations that can't tell clients apart.
func (b *Block) warnLocations() {
	located := b.firstLocated()
	if located != nil && len(b.Rules)+len(b.Nets)+len(b.GeoIP) == 0 {
		b.note(located.Pos, "regions have locations and there is no `geoip city` to tell how far clients are: they get the order written")
	}
}

// warnLong notes prefixes that ECS is not told apart at.
func (b *Block) warnLong(m Match) {
	for _, a := range m.Alts {
		for _, p := range a.Prefixes {
			limit := b.ECS.Max6
			if p.Addr().Is4() {
				limit = b.ECS.Max4
			}
			if !b.ECS.Off && p.Bits() > limit {
				b.note(m.Pos, "prefix "+p.String()+" is longer than ecs max: for ECS the list of most addresses of the shorter prefix counts")
			}
		}
	}
}

// warnChecks notes what says how to probe and will never be used.
func (b *Block) warnChecks() {
	used := map[string]bool{}
	for _, h := range b.Hosts {
		for _, p := range h.Pools {
			for _, n := range p.Checks {
				used[n] = true
			}
			p.warnProbes(b)
		}
	}
	for _, c := range b.Checks {
		if !used[c.Name] {
			b.note(c.Pos, "no pool uses check "+c.Name+": write `check "+c.Name+"` in a host, a policy, a pool or the block")
		}
	}
}

func (p *Pool) warnProbes(b *Block) {
	for _, e := range p.Endpoints {
		switch {
		case !e.Probe.IsValid():
		case len(p.Checks) == 0:
			b.note(e.Pos, "endpoint "+e.Addr.String()+" says where its probes go, but its pool has no check")
		case e.State != StateAuto:
			b.note(e.Pos, "endpoint "+e.Addr.String()+" says where its probes go, but with `"+string(e.State)+"` written it is not probed")
		}
	}
}

// warnDrained notes what of a host an operator has drained altogether.
func (b *Block) warnDrained(h *Host) {
	var all []string
	for _, p := range h.Pools {
		all = append(all, p.Region)
	}
	r := h.LastResort
	switch {
	case !h.drained(all):
		if r.Kind == LastRegions && h.drained(r.Regions) {
			b.note(r.Pos, "last_resort regions "+strings.Join(r.Regions, " ")+" of host "+h.title()+": every endpoint is drained: SERVFAIL")
		}
	case r.Kind == LastAddresses:
		b.note(h.Pos, "host "+h.title()+": every endpoint is drained: clients get the addresses of last_resort")
	default:
		b.note(h.Pos, "host "+h.title()+": every endpoint is drained: SERVFAIL")
	}
}

// drained reports whether the pools of the regions have no endpoint left, of
// the families that the host offers, that has a weight and is not drained.
func (h *Host) drained(regions []string) bool {
	offered := h.offered()
	left := func(e Endpoint) bool {
		return e.Weight > 0 && e.State != StateDrain && slices.Contains(offered, familyOf(e.Addr))
	}
	return !slices.ContainsFunc(h.Pools, func(p Pool) bool {
		return slices.Contains(regions, p.Region) && slices.ContainsFunc(p.Endpoints, left)
	})
}

// note adds a warning unless it is there, as policies repeat their rules.
func (b *Block) note(at Pos, text string) {
	if w := (Warning{Pos: at, Text: text}); !slices.Contains(b.Warnings, w) {
		b.Warnings = append(b.Warnings, w)
	}
}
