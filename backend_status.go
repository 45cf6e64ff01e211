package gslb

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// Base implements control.Backend.
func (b backend) Base(_ context.Context, l control.Lever, o control.Object) (control.Base, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	base := control.Base{Object: o}
	found := false
	var regions, hosts []string
	for _, g := range b.r.latest() {
		p := g.live.Load().plan
		for i := range p.Block.Regions {
			regions = append(regions, p.Block.Regions[i].Name)
			if o.Host == "" && !o.Endpoint.IsValid() && o.Region == p.Block.Regions[i].Name && !found {
				found = true
				leverBase(&base, l, &p.Block.Regions[i].Levers)
			}
		}
		for _, h := range p.Hosts {
			hosts = append(hosts, h.Config.Names...)
			if o.Host != "" && !slices.Contains(h.Config.Names, o.Host) {
				continue
			}
			for i := range h.Config.Pools {
				pool := &h.Config.Pools[i]
				if o.Region != "" && o.Region != pool.Region || found {
					continue
				}
				switch {
				case o.Endpoint.IsValid():
					found = endpointBase(&base, l, pool, o.Endpoint)
				case o.Host != "" && o.Region != "":
					levers := p.Block.LeversOf(pool)
					found = true
					leverBase(&base, l, &levers)
				}
				if found && o.Host != "" {
					base.Object.Host = h.Config.Names[0]
				}
			}
		}
	}
	switch {
	case found:
		return base, nil
	case o.Host != "" && !slices.Contains(hosts, o.Host):
		return base, missingObject("host", o.Host, hosts)
	case o.Region != "" && !slices.Contains(regions, o.Region):
		return base, missingObject("region", o.Region, regions)
	case o.Endpoint.IsValid():
		return base, &control.Invalid{Field: "endpoint", Text: fmt.Sprintf("no pool has %s", o), Missing: true, Hint: "look at the status for the endpoints of every pool"}
	}
	return base, &control.Invalid{Field: "region", Text: fmt.Sprintf("there is no %s", o), Missing: true, Hint: "that host has no pool in that region"}
}

func missingObject(field, name string, known []string) error {
	return &control.Invalid{Field: field, Text: fmt.Sprintf("there is no %s %s%s", field, name, config.DidYouMean(name, known)), Missing: true}
}

// leverBase says what the Corefile holds of a lever of a region or pool.
func leverBase(base *control.Base, l control.Lever, levers *config.Levers) {
	at, _ := levers.At(time.Now())
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
}

// endpointBase says what the Corefile holds of a lever of an endpoint, if the pool
// has it.
func endpointBase(base *control.Base, l control.Lever, pool *config.Pool, addr netip.Addr) bool {
	i := slices.IndexFunc(pool.Endpoints, func(e config.Endpoint) bool { return e.Addr == addr })
	if i < 0 {
		return false
	}
	e := &pool.Endpoints[i]
	base.At = e.Pos.String()
	switch l {
	case control.Drain:
		base.Value, base.Written = onOff(e.State == config.StateDrain), e.State == config.StateDrain
	case control.Weight:
		base.Value, base.Written = control.Value(strconv.Itoa(e.Weight)), true
	case control.Force:
		base.Value, base.Written = control.Value(e.State), e.State == config.StateUp || e.State == config.StateDown
	}
	return true
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
	s := control.Status{Digest: b.r.digest(), Time: now.UTC(), Regions: []control.RegionStatus{}, Hosts: []control.HostStatus{}}
	seen := make(map[string]bool)
	law := &b.r.steering.law
	if law.out != nil {
		s.Deficit = law.out.Deficit
	}
	for _, g := range b.r.latest() {
		live, m := g.live.Load(), g.moves(now)
		for i := range g.block.Regions {
			if region := &g.block.Regions[i]; !seen[region.Name] {
				seen[region.Name] = true
				s.Regions = append(s.Regions, law.region(region, live.plan.RegionSettings(region, m), now))
			}
		}
		for i, h := range live.plan.Hosts {
			s.Hosts = append(s.Hosts, g.hostStatus(live, i, h, m))
		}
	}
	return s, nil
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
	if signal := l.signals.read(region.Name, c.Score, now); signal.Valid {
		age := signal.Age.Seconds()
		s.Load, s.LoadAge = &signal.Value, &age
	}
	i, ok := l.sinks.index[region.Name]
	if l.out == nil || !ok {
		return s
	}
	o := &l.out.Sinks[i]
	use := 100 * o.Utilisation
	s.Utilisation, s.Demand = &use, &o.Demand
	if o.Demand > 0 {
		admission := 100 * min(1, o.Expected/o.Demand)
		s.Admission = &admission
	}
	s.Deficit = max(0, o.Expected-o.Limit)
	return s
}

// hostStatus is the state of a host.
func (g *GSLB) hostStatus(live *state, index int, h *plan.Host, m *plan.Moves) control.HostStatus {
	s := control.HostStatus{Name: h.Config.Names[0], Regions: []control.HostRegion{}}
	f := family(h)
	wanted, served := live.demand.shares(live, index)
	for i := range h.Config.Pools {
		pool := &h.Config.Pools[i]
		r := steer.Region(slices.IndexFunc(g.block.Regions, func(r config.Region) bool { return r.Name == pool.Region }))
		st := live.snapshots[index].Region(r, f)
		one := control.HostRegion{Name: pool.Region, Usable: st.Usable, Availability: 100 * st.Availability, Why: st.Why()}
		if wanted != nil {
			w, sv := 100*wanted[r], 100*served[r]
			one.Wanted, one.Served = &w, &sv
		}
		levers := live.plan.Settings(h, pool, m)
		region := live.plan.RegionSettings(&g.block.Regions[r], m)
		own, its := settings(&levers), settings(&region)
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

// Explain implements control.Backend.
func (b backend) Explain(_ context.Context, q control.Question) (control.Explained, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	name := strings.ToLower(strings.TrimSuffix(q.Host, ".")) + "."
	out := control.Explained{Name: name, Blocks: []control.ExplainedBlock{}}
	resolver := q.Resolver
	if !resolver.IsValid() {
		resolver, out.TransportAssumed = q.Client.Addr(), true
	}
	if !resolver.IsValid() {
		return out, &control.Invalid{Field: "client", Text: "neither client nor resolver", Expected: "one of them", Hint: "say whom the answer is for"}
	}
	families := map[string][]steer.Family{"": {steer.V4, steer.V6}, "A": {steer.V4}, "AAAA": {steer.V6}}[q.Type]
	for _, g := range b.r.latest() {
		live := g.live.Load()
		zone := plugin.Zones(g.zones).Matches(name)
		if zone == "" {
			continue
		}
		block := control.ExplainedBlock{At: g.block.Pos.String(), Zone: zone, View: g.files.view}
		host, exists := live.plan.Find(zone, name)
		switch {
		case host != nil:
			e := live.plan.Explain(host, live.snapshots[host.Index], q.Client, resolver, families...)
			raw, err := json.Marshal(e)
			if err != nil {
				return out, err
			}
			block.Explanation = raw
		case g.falls(name):
			block.Unsteered, block.Exists = "fallthrough", exists
		case exists || name == zone:
			block.Unsteered, block.Exists = "nodata", true
		default:
			block.Unsteered = "nxdomain"
		}
		out.Blocks = append(out.Blocks, block)
	}
	if len(out.Blocks) == 0 {
		return out, &control.Invalid{Field: "host", Text: name + " is in no zone of a gslb block", Missing: true}
	}
	return out, nil
}
