package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// MaxResolved is how many endpoints a pool has at most with those of its targets,
// as many as may be written. Of more, those of the targets written last are left out.
const MaxResolved = 1024

// maxOfTarget is how many addresses of one family a target has at most.
const maxOfTarget = 64

// Resolve gives the addresses of a target, fully qualified, that serve for up to
// keep after they were last confirmed. pending: the name has not been asked for
// yet, so that what it has is about to be known.
type Resolve func(name string, keep time.Duration) (addrs []netip.Addr, pending bool)

// Targets are the names that the hosts' pools are to be resolved from, each once.
func (p *Plan) Targets() []string {
	names := make(map[string]bool)
	for i := range p.Block.Hosts {
		for j := range p.Block.Hosts[i].Pools {
			for _, t := range p.Block.Hosts[i].Pools[j].Targets {
				names[t.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// resolution is a host with its targets' addresses as endpoints.
type resolution struct {
	host    *config.Host
	without []string // targets that have no address now, sorted
	pending bool     // some of them are about to have some
}

// resolved resolves the targets of a host. One without targets is itself.
func resolved(cfg *config.Host, resolve Resolve) resolution {
	if !hasTargets(cfg) {
		return resolution{host: cfg}
	}
	c := *cfg
	c.Pools = slices.Clone(cfg.Pools)
	r := resolution{host: &c}
	for i := range c.Pools {
		pool := &c.Pools[i]
		pool.Endpoints = slices.Clone(pool.Endpoints)
		for _, t := range pool.Targets {
			addrs, pending := []netip.Addr(nil), false
			if resolve != nil {
				addrs, pending = resolve(t.Name, pool.Keep)
			}
			if len(addrs) == 0 {
				r.without, r.pending = append(r.without, t.Name), r.pending || pending
			}
			for _, a := range addrs {
				addEndpoint(pool, t, a)
			}
		}
	}
	slices.Sort(r.without)
	r.without = slices.Compact(r.without)
	return r
}

// addEndpoint makes an address of a target an endpoint. An address that the pool
// has already, from another target or as written, stays the one it is.
func addEndpoint(pool *config.Pool, t config.Target, a netip.Addr) {
	if len(pool.Endpoints) >= MaxResolved || slices.ContainsFunc(pool.Endpoints, func(e config.Endpoint) bool { return e.Addr == a }) {
		return
	}
	e := config.Endpoint{Pos: t.Pos, Addr: a, Weight: t.Weight, State: t.State, Target: t.Name}
	if t.Probe > 0 {
		e.Probe = netip.AddrPortFrom(a, uint16(t.Probe))
	}
	pool.Endpoints = append(pool.Endpoints, e)
}

// unknown tells whether nobody can say yet which families the host has: a target
// is about to be resolved, or nothing at all is known.
func (r *resolution) unknown() bool {
	return r.pending || hasTargets(r.host) && !slices.ContainsFunc(r.host.Pools, func(p config.Pool) bool { return len(p.Endpoints) > 0 })
}

// same tells whether a host of these addresses is the one that there is.
func (r *resolution) same(h *Host) bool {
	return r.unknown() == h.unknown && slices.Equal(r.without, h.without) &&
		slices.EqualFunc(r.host.Pools, h.Config.Pools, func(a, b config.Pool) bool { return slices.Equal(a.Endpoints, b.Endpoints) })
}

// Unresolved are the host's targets that have no address now, sorted.
func (h *Host) Unresolved() []string { return slices.Clone(h.without) }

// Unknown tells whether nobody can say which families the host has, as its targets
// could not be resolved: then no type is denied.
func (h *Host) Unknown() bool { return h.unknown }

// Resolved gives the plan with what its targets resolve to now. Topologies, and
// hosts for which nothing has changed, are those of p, and if that is true of all
// it is p.
func (p *Plan) Resolved(o Options) (*Plan, error) {
	next := *p
	next.Hosts = slices.Clone(p.Hosts)
	next.byName, next.wild = make(map[string]*Host), make(map[string]*Host)
	c := &compiler{block: p.Block, data: p.Data, regions: regionIDs(p.Block), plan: &next}
	renewed := make(map[*Host]*Host)
	changed := false
	for i, h := range p.Hosts {
		renewed[h] = h
		r := resolved(&p.Block.Hosts[i], o.Resolve)
		if r.same(h) {
			continue
		}
		n, err := c.renew(h, r, o.Prepare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.host.Pos, err)
		}
		renewed[h], next.Hosts[i], changed = n, n, true
	}
	if !changed {
		return p, nil
	}
	for name, h := range p.byName {
		next.byName[name] = renewed[h]
	}
	for name, h := range p.wild {
		next.wild[name] = renewed[h]
	}
	return &next, nil
}

// Assumed is the plan as if every target had addresses: for comparing what is
// written, whatever the network says at that time. They stand for those of any name,
// and must never be answered. A plan without targets is itself.
func (p *Plan) Assumed() *Plan {
	next, err := p.Resolved(Options{Resolve: func(name string, _ time.Duration) (addrs []netip.Addr, _ bool) {
		for i := range byte(maxOfTarget) {
			addrs = append(addrs, netip.AddrFrom4([4]byte{192, 0, 2, i}), netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 15: i}))
		}
		return addrs, false
	}})
	if err != nil { // addresses that can't be answered are all that it could be
		return p
	}
	return next
}

// offered narrows the families of a host with targets, for what its load could not
// check: by `families same` a type is there once every pool that has addresses has
// it, and by `families mixed` once every candidate list that leads to any does. So
// nobody is sent to another region for one family, and no type depends on the client.
// Where that would leave none at all, all are offered.
func offered(hc *steer.HostConfig) steer.FamilyRule {
	var all [][2]bool
	switch hc.Families {
	case steer.FamiliesSame:
		for _, p := range hc.Pools {
			all = append(all, poolFamilies(p))
		}
	case steer.FamiliesMixed:
		for i := range hc.Lists {
			all = append(all, listFamilies(&hc.Lists[i], hc.Pools))
		}
	}
	has := [2]bool{true, true}
	for _, one := range all {
		if one != [2]bool{} {
			has[steer.V4], has[steer.V6] = has[steer.V4] && one[steer.V4], has[steer.V6] && one[steer.V6]
		}
	}
	switch has {
	case [2]bool{steer.V4: true}:
		return steer.FamiliesV4
	case [2]bool{steer.V6: true}:
		return steer.FamiliesV6
	}
	return hc.Families
}

// listFamilies are the families that the candidates of a list have.
func listFamilies(l *steer.List, pools []*steer.PoolConfig) (has [2]bool) {
	if l.Refuse {
		return has
	}
	reach := func(r steer.Region) {
		for f, some := range poolFamilies(pools[r]) {
			has[f] = has[f] || some
		}
	}
	for _, w := range l.Split {
		reach(w.Region)
	}
	for _, r := range l.Order {
		reach(r)
	}
	return has
}

// Named tells whether a pool of the host answers with a name.
func (h *Host) Named() bool {
	return slices.ContainsFunc(h.Config.Pools, func(p config.Pool) bool { return p.CName })
}

// setsToCome is how many sets of addresses a pool with targets may answer at a time,
// beyond those of the addresses that it has now.
func setsToCome(p *config.Pool) (n int) {
	if len(p.Targets) == 0 || p.CName {
		return 0
	}
	for _, v4 := range []bool{true, false} {
		now, most := 0, maxOfTarget*len(p.Targets)
		for _, e := range p.Endpoints {
			if e.Addr.Is4() == v4 {
				now++
				if e.Target == "" {
					most++
				}
			}
		}
		n += sets(p.Answers, min(most, MaxResolved)) - sets(p.Answers, now)
	}
	return max(0, n)
}

// sets is how many sets there may be of so many addresses; answers 0: all in each.
func sets(answers, addresses int) int {
	if answers == 0 || answers >= addresses {
		return min(addresses, 1)
	}
	return addresses
}
