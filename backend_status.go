package gslb

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Base implements control.Backend. An object may be in several places: a region in
// several server blocks, an endpoint in several pools. Of those the one counts that
// the Corefile says most of.
func (b backend) Base(_ context.Context, l control.Lever, o control.Object) (control.Base, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	return b.r.base(l, o, time.Now())
}

func (r *registry) base(l control.Lever, o control.Object, now time.Time) (control.Base, error) {
	best := control.Base{Object: o}
	found := false
	take := func(base control.Base, host string) {
		base.Object = o
		if o.Host != "" {
			base.Object.Host = host
		}
		if !found || says(base) > says(best) {
			found, best = true, base
		}
	}
	var regions, hosts []string
	for _, g := range r.latest() {
		p := g.live.Load().plan
		for i := range p.Block.Regions {
			regions = append(regions, p.Block.Regions[i].Name)
			if o.Host == "" && !o.Endpoint.IsValid() && o.Region == p.Block.Regions[i].Name {
				take(leverBase(l, &p.Block.Regions[i].Levers, now), "")
			}
		}
		for _, h := range p.Hosts {
			hosts = append(hosts, h.Config.Names...)
			if o.Host != "" && !slices.Contains(h.Config.Names, o.Host) {
				continue
			}
			for i := range h.Config.Pools {
				pool := &h.Config.Pools[i]
				if o.Region != "" && o.Region != pool.Region {
					continue
				}
				if o.Endpoint.IsValid() {
					if base, ok := endpointBase(l, pool, o.Endpoint); ok {
						take(base, h.Config.Names[0])
					}
				} else if o.Host != "" && o.Region != "" {
					levers := p.Block.LeversOf(pool)
					take(leverBase(l, &levers, now), h.Config.Names[0])
				}
			}
		}
	}
	switch {
	case found:
		return best, nil
	case o.Host != "" && !slices.Contains(hosts, o.Host):
		return best, missingObject("host", o.Host, hosts)
	case o.Region != "" && !slices.Contains(regions, o.Region):
		return best, missingObject("region", o.Region, regions)
	case o.Endpoint.IsValid():
		return best, &control.Invalid{Field: "endpoint", Text: fmt.Sprintf("no pool has %s", o), Missing: true, Hint: "look at the status for the endpoints of every pool"}
	}
	return best, &control.Invalid{Field: "region", Text: fmt.Sprintf("there is no %s", o), Missing: true, Hint: "that host has no pool in that region"}
}

// says is how much the Corefile says of a lever: that it is moved now, that it is at
// other times, or nothing.
func says(base control.Base) int {
	switch {
	case base.Written && base.At != "":
		return 2
	case base.Written:
		return 1
	}
	return 0
}

func missingObject(field, name string, known []string) error {
	return &control.Invalid{Field: field, Text: fmt.Sprintf("there is no %s %s%s", field, name, config.DidYouMean(name, known)), Missing: true}
}

// leverBase says what the Corefile holds of a lever of a region or pool.
func leverBase(l control.Lever, levers *config.Levers, now time.Time) (base control.Base) {
	at, _ := levers.At(now)
	place := func(pos config.Pos) string {
		if pos.Line == 0 {
			return ""
		}
		return pos.String()
	}
	switch l {
	case control.Drain:
		base.Value, base.Written = onOff(at.Drain), len(levers.Drain) > 0
		base.At = place(at.DrainPos)
	case control.Dial:
		base.Value, base.Written = percentOf(at.Dial), len(levers.Dial) > 0
		base.At = place(at.DialPos)
	case control.Share:
		base.Value, base.Written = "off", len(levers.Share) > 0
		if at.Share != nil {
			base.Value, base.At = percentOf(at.Share.Percent), place(at.Share.Pos)
		}
	case control.Trickle:
		base.Value, base.Written = percentOf(at.Trickle), levers.Trickle != nil
		if levers.Trickle != nil {
			base.At = place(levers.Trickle.Pos)
		}
	}
	return base
}

// endpointBase says what the Corefile holds of a lever of an endpoint, if the pool
// has it.
func endpointBase(l control.Lever, pool *config.Pool, addr netip.Addr) (base control.Base, ok bool) {
	i := slices.IndexFunc(pool.Endpoints, func(e config.Endpoint) bool { return e.Addr == addr })
	if i < 0 {
		return base, false
	}
	e := &pool.Endpoints[i]
	switch l {
	case control.Drain:
		base.Value, base.Written = onOff(e.State == config.StateDrain), e.State == config.StateDrain
	case control.Weight:
		base.Value, base.Written = control.Value(strconv.Itoa(e.Weight)), true
	case control.Force:
		base.Value, base.Written = "as checked", e.State == config.StateUp || e.State == config.StateDown
		if base.Written {
			base.Value = control.Value(e.State)
		}
	}
	if base.Written {
		base.At = e.Pos.String()
	}
	return base, true
}

func onOff(on bool) control.Value {
	if on {
		return "on"
	}
	return "off"
}

func percentOf(percent float64) control.Value {
	return control.Value(strconv.FormatFloat(percent, 'f', -1, 64) + "%")
}

func setting(l plan.Lever, value control.Value) control.Setting {
	return control.Setting{Value: value, From: l.From, Area: l.Area}
}

// settings are the levers in the words of the API: drain, dial, share, trickle.
func settings(s *plan.Settings) [4]control.Setting {
	share := control.Value("off")
	if s.Share.On {
		share = percentOf(s.Share.Percent)
	}
	return [4]control.Setting{
		setting(s.Drain, onOff(s.Drain.On)), setting(s.Dial, percentOf(s.Dial.Percent)), setting(s.Share, share), setting(s.Trickle, percentOf(s.Trickle.Percent)),
	}
}

// Status implements control.Backend.
func (b backend) Status(context.Context) (control.Status, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	now := time.Now()
	s := control.Status{Digest: b.r.digest(), Time: now.UTC(), Warnings: b.r.withoutEffect(now), Regions: []control.RegionStatus{}, Hosts: []control.HostStatus{}}
	shown := make(map[string]*control.RegionStatus) // a host's levers are told where they are others than these
	law := &b.r.steering.law
	if law.out != nil {
		s.Deficit = law.out.Deficit
	}
	s.Warnings = append(s.Warnings, law.warnings(now)...)
	for _, g := range b.r.latest() {
		if g.postponed {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s: guards postpone levers that the clock would move; the log says why", g.block.Pos))
		}
		live, m := g.live.Load(), g.moves(now)
		for i := range g.block.Regions {
			if region := &g.block.Regions[i]; shown[region.Name] == nil {
				one := law.region(region, live.plan.RegionSettings(region, m), now)
				s.Regions, shown[region.Name] = append(s.Regions, one), &one
			}
		}
		for i, h := range live.plan.Hosts {
			s.Hosts = append(s.Hosts, g.hostStatus(live, i, h, m, shown))
		}
	}
	return s, nil
}

// withoutEffect tells of overrides that do nothing: what they name is gone from the
// Corefile.
func (r *registry) withoutEffect(now time.Time) (warnings []string) {
	for _, o := range r.overrides().All() {
		_, err := r.base(o.Lever, o.Object, now)
		if err == nil {
			err = r.marked(o)
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("override %s (%s of %s is %s, by %s: %s) is without effect: %v", o.ID, o.Lever, o.Object, o.Value, o.By, o.Why, err))
		}
	}
	return warnings
}

// marked holds that the clients of a share's area are told apart wherever it applies.
func (r *registry) marked(o *control.Override) error {
	if o.Area == "" {
		return nil
	}
	for _, g := range r.latest() {
		p := g.live.Load().plan
		concerned := slices.ContainsFunc(p.Hosts, func(h *plan.Host) bool {
			return (o.Host == "" || o.Host == h.Config.Names[0]) &&
				slices.ContainsFunc(h.Config.Pools, func(pool config.Pool) bool { return pool.Region == o.Region })
		})
		if !concerned || p.Marked(o.Area) {
			continue
		}
		var areas []string
		for _, a := range g.block.Areas {
			areas = append(areas, a.Name)
		}
		if !slices.Contains(areas, o.Area) {
			return missingObject("area", o.Area, areas)
		}
		return &control.Invalid{Field: "area", Text: fmt.Sprintf("the clients of area %s are not told apart in the gslb block at %s, as no share written there names it", o.Area, g.block.Pos),
			Hint: "name it in a share of the Corefile, which may be one that begins long after: only what is written changes the scope of answers"}
	}
	return nil
}

// region is the state of a region.
func (l *law) region(region *config.Region, levers plan.Settings, now time.Time) control.RegionStatus {
	all := settings(&levers)
	s := control.RegionStatus{Name: region.Name, Drain: all[0], Dial: all[1], Share: all[2], Trickle: all[3]}
	c := region.Levers.Capacity
	if c == nil {
		return s
	}
	whole := c.Value
	if c.Score {
		whole = 1
	}
	s.Capacity = &whole
	i, ok := l.sinks.index[sinkKey{region: region.Name}]
	if l.out == nil || !ok {
		return s
	}
	o := &l.out.Sinks[i]
	if load, old, ok := l.lastLoad(i, now); ok && region.Levers.Load != nil {
		age, use := old.Seconds(), 100*o.Utilisation
		s.Load, s.LoadAge, s.Utilisation, s.Demand = &load, &age, &use, &o.Demand
	}
	if o.Demand > 0 {
		admission := 100 * min(1, o.Expected/o.Demand)
		s.Admission = &admission
	}
	s.Deficit = max(0, o.Expected-o.Limit)
	return s
}

// hostStatus is the state of a host.
func (g *GSLB) hostStatus(live *state, index int, h *plan.Host, m *plan.Moves, shown map[string]*control.RegionStatus) control.HostStatus {
	s := control.HostStatus{Name: h.Config.Names[0], View: g.files.view, Regions: []control.HostRegion{}}
	f := family(h)
	wanted, served := live.demand.shares(live, index)
	for i := range h.Config.Pools {
		pool := &h.Config.Pools[i]
		r := steer.Region(slices.IndexFunc(g.block.Regions, func(r config.Region) bool { return r.Name == pool.Region }))
		st := live.snapshots[index].Region(r, f)
		one := control.HostRegion{Name: pool.Region, Usable: st.Usable, Availability: 100 * st.Availability, Why: st.Why()}
		if len(pool.Endpoints) == 0 && len(pool.Targets) > 0 {
			one.Why = "its target has no address, or none that is known"
		}
		if wanted != nil {
			w, sv := 100*wanted[r], 100*served[r]
			one.Wanted, one.Served = &w, &sv
		}
		levers := live.plan.Settings(h, pool, m)
		own, region := settings(&levers), shown[pool.Region]
		its := [4]control.Setting{region.Drain, region.Dial, region.Share, region.Trickle}
		for j, to := range []**control.Setting{&one.Drain, &one.Dial, &one.Share, &one.Trickle} {
			if own[j] != its[j] {
				*to = &own[j]
			}
		}
		for k := range pool.Endpoints {
			one.Endpoints = append(one.Endpoints, g.endpointStatus(live.plan, h, pool, k, &levers, m))
		}
		s.Regions = append(s.Regions, one)
	}
	return s
}

func (g *GSLB) endpointStatus(p *plan.Plan, h *plan.Host, pool *config.Pool, k int, levers *plan.Settings, m *plan.Moves) control.EndpointStatus {
	e := &pool.Endpoints[k]
	st := m.Endpoint(h, pool, e, levers, g.verdict(e))
	s := control.EndpointStatus{Endpoint: e.Addr, State: st.Verdict.String(), From: st.Reason,
		Weight: control.Setting{Value: control.Value(strconv.Itoa(e.Weight)), From: e.Pos.String()}}
	if o := m.Overrides.Endpoint(h.Config.Names[0], pool.Region, e.Addr).Weight; o != nil {
		s.Weight = control.Setting{Value: o.Value, From: "override " + o.ID}
	}
	for _, probe := range g.health.endpoints[e] {
		if probe.State().Waiting {
			s.Returnable = append(s.Returnable, probe.Check().Name)
		}
	}
	return s
}
