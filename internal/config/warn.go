package config

import (
	"slices"
	"strings"
	"time"
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
	b.warnLevers()
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

// warnReordered notes that the block's latency map gives the order of a host's one list for
// everybody, which may be meant as that of failover, another turn.
func (b *Block) warnReordered(h *Host) {
	if h.OwnRules && len(h.Rules) == 1 && h.Rules[0].Rest && len(h.Rules[0].List.Split) == 0 && len(h.Rules[0].List.Order) > 1 {
		b.note(h.Rules[0].Pos, "host "+h.Names[0]+" has one order for everybody, which the block's latency map ("+h.Latency.Pos.String()+") changes to what users measured: "+
			"if it is the order of failover, write `latency off` in the host; if not, name the map there")
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
		if e.Probe.IsValid() {
			b.warnProbe(e.Pos, "endpoint "+e.Addr.String(), p, e.State)
		}
	}
	for _, t := range p.Targets {
		if t.Probe > 0 {
			b.warnProbe(t.Pos, "target "+t.Name, p, t.State)
		}
	}
}

func (b *Block) warnProbe(at Pos, what string, p *Pool, state EndpointState) {
	switch {
	case len(p.Checks) == 0:
		b.note(at, what+" says where its probes go, but its pool has no check")
	case state != StateAuto:
		b.note(at, what+" says where its probes go, but with `"+string(state)+"` written it is not probed")
	}
}

// warnDrained notes what of a host an operator has drained altogether, for all
// time.
func (b *Block) warnDrained(h *Host) {
	r := h.LastResort
	switch {
	case b.drained(h, h.regions(), time.Time{}):
		b.note(h.Pos, "host "+h.title()+": every endpoint is drained: "+h.whenDrained())
	case r.Kind == LastRegions && b.drained(h, r.Regions, time.Time{}):
		b.note(r.Pos, "last_resort regions "+strings.Join(r.Regions, " ")+" of host "+h.title()+": every endpoint is drained: SERVFAIL")
	}
}

// whenDrained says what clients get when everything is drained.
func (h *Host) whenDrained() string {
	if h.LastResort.Kind == LastAddresses {
		return "clients get the addresses of last_resort"
	}
	return "SERVFAIL"
}

// regions gives the regions that the host has a pool in.
func (h *Host) regions() []string {
	list := make([]string, len(h.Pools))
	for i, p := range h.Pools {
		list[i] = p.Region
	}
	return list
}

// drained reports whether the pools of the regions have nothing left, of the
// families that the host offers, that has a weight and is not drained at t. At
// the zero time only what has no schedule counts.
func (b *Block) drained(h *Host, regions []string, t time.Time) bool {
	offered := h.offered()
	left := func(e Endpoint) bool {
		return e.Weight > 0 && e.State != StateDrain && slices.Contains(offered, familyOf(e.Addr))
	}
	resolved := func(t Target) bool { return t.Weight > 0 && t.State != StateDrain }
	out := func(d Drain) bool { return d.When == When{} || !t.IsZero() && d.When.Active(t) }
	return !slices.ContainsFunc(h.Pools, func(p Pool) bool {
		return slices.Contains(regions, p.Region) && !slices.ContainsFunc(b.LeversOf(&p).Drain, out) &&
			(slices.ContainsFunc(p.Endpoints, left) || slices.ContainsFunc(p.Targets, resolved))
	})
}

// note adds a warning unless it is there, as policies repeat their rules.
func (b *Block) note(at Pos, text string) {
	if w := (Warning{Pos: at, Text: text}); !slices.Contains(b.Warnings, w) {
		b.Warnings = append(b.Warnings, w)
	}
}
