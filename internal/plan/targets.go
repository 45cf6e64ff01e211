package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// Resolve gives the addresses of a target, fully qualified, that serve for up to
// keep after they were last confirmed. It is not known while the name has never been
// resolved.
type Resolve func(name string, keep time.Duration) (addrs []netip.Addr, known bool)

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

// resolved is a host with its targets' addresses as endpoints, and whether a name of
// them has never been resolved. A host without targets is itself.
func resolved(cfg *config.Host, resolve Resolve) (host *config.Host, unresolved bool) {
	if !hasTargets(cfg) {
		return cfg, false
	}
	c := *cfg
	c.Pools = slices.Clone(cfg.Pools)
	for i := range c.Pools {
		pool := &c.Pools[i]
		pool.Endpoints = slices.Clone(pool.Endpoints)
		for _, t := range pool.Targets {
			var addrs []netip.Addr
			known := false
			if resolve != nil {
				addrs, known = resolve(t.Name, pool.Keep)
			}
			unresolved = unresolved || !known
			for _, a := range addrs {
				addEndpoint(pool, t, a)
			}
		}
	}
	return &c, unresolved
}

// addEndpoint makes an address of a target an endpoint. An address that the pool
// has already, from another target or as written, stays the one it is.
func addEndpoint(pool *config.Pool, t config.Target, a netip.Addr) {
	if slices.ContainsFunc(pool.Endpoints, func(e config.Endpoint) bool { return e.Addr == a }) {
		return
	}
	e := config.Endpoint{Pos: t.Pos, Addr: a, Weight: t.Weight, State: t.State, Target: t.Name}
	if t.Probe > 0 {
		e.Probe = netip.AddrPortFrom(a, uint16(t.Probe))
	}
	pool.Endpoints = append(pool.Endpoints, e)
}

// Resolved gives the plan with what its targets resolve to now. Topologies, and
// hosts without targets, are those of p.
func (p *Plan) Resolved(o Options) (*Plan, error) {
	next := *p
	next.Hosts = slices.Clone(p.Hosts)
	next.byName, next.wild, next.above = make(map[string]*Host), make(map[string]*Host), p.above
	c := &compiler{block: p.Block, data: p.Data, regions: regionIDs(p.Block), plan: &next}
	renewed := make(map[*Host]*Host)
	for i, h := range p.Hosts {
		cfg, unresolved := resolved(&p.Block.Hosts[i], o.Resolve)
		if cfg == &p.Block.Hosts[i] {
			renewed[h] = h
			continue
		}
		n, err := c.renew(h, cfg, unresolved, o.Prepare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Pos, err)
		}
		renewed[h], next.Hosts[i] = n, n
	}
	for name, h := range p.byName {
		next.byName[name] = renewed[h]
	}
	for name, h := range p.wild {
		next.wild[name] = renewed[h]
	}
	return &next, nil
}
