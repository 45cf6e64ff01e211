package plan

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// Endpoint gives the configuration of endpoint i of the host's pool in region r.
func (h *Host) Endpoint(r steer.Region, i int) *config.Endpoint {
	return &h.Config.Pools[h.pools[r]].Endpoints[i]
}

// host compiles one host.
func (c *compiler) host(cfg *config.Host, o *Options) (*Host, error) {
	rules := c.common
	key := "common"
	if cfg.OwnRules {
		var err error
		if rules, err = c.ruleSet(cfg.Rules, false); err != nil {
			return nil, err
		}
		key = string(canonical(cfg.Rules))
	}
	pools := make([]int, len(c.block.Regions))
	pooled := make([]bool, len(c.block.Regions))
	for i, p := range cfg.Pools {
		pools[c.regions[p.Region]], pooled[c.regions[p.Region]] = i, true
	}
	maps := c.latency(cfg)
	need, err := c.need(fmt.Sprint(pooled, maps.key(), key), rules, pooled, maps)
	if err != nil {
		return nil, err
	}
	h := &Host{Need: need, pools: pools, rules: rules}
	return c.renew(h, resolved(cfg, o.Resolve), o.Prepare)
}

// renew makes a host anew for what its targets resolve to.
func (c *compiler) renew(old *Host, now resolution, prepare func(*config.Host, *steer.Answer) any) (*Host, error) {
	cfg := now.host
	hc := c.hostConfig(cfg)
	if prepare != nil {
		hc.Prepare = func(a *steer.Answer) any { return prepare(cfg, a) }
	}
	hc.Lists, hc.Unresolved = old.Need.lists, now.unknown()
	if hasTargets(cfg) && !hc.Unresolved {
		hc.Families = offered(&hc)
	}
	h, err := steer.NewHost(hc)
	if err != nil {
		return nil, err
	}
	if !hasTargets(cfg) {
		if err := c.reachable(h, old.Need, hc.Pools); err != nil {
			return nil, err
		}
	}
	return &Host{
		Config: cfg, Steer: h, Need: old.Need, Index: old.Index, pools: old.pools, rules: old.rules,
		without: now.without, unknown: hc.Unresolved,
	}, nil
}

// anyone makes the host that has a pool everywhere.
func (c *compiler) anyone() (*Host, error) {
	pooled := make([]bool, len(c.block.Regions))
	for i := range pooled {
		pooled[i] = true
	}
	need, err := c.need(fmt.Sprint(pooled, "common"), c.common, pooled, nil)
	if err != nil {
		return nil, err
	}
	return &Host{Need: need, rules: c.common}, nil
}

// need gives the topology for rules and regions with pools, compiled once.
func (c *compiler) need(key string, rules *ruleSet, pooled []bool, measured *latencyMap) (*Need, error) {
	if n := c.needs[key]; n != nil {
		return n, nil
	}
	b := c.block
	in := &topology.Input{
		Rules: rules.rules, Rest: rules.rest, Fences: c.fences, Marks: c.marks,
		Geo: c.data.geo().topology(), ASN: c.data.asn().topology(),
		Depth: b.Depth, Fill: !b.ECS.NoFill, Max4: b.ECS.Max4, Max6: b.ECS.Max6,
	}
	for i, r := range b.Regions {
		info := topology.RegionInfo{Name: r.Name, Pooled: pooled[i]}
		if r.Location != nil {
			info.Lat, info.Lon, info.Located = r.Location.Lat, r.Location.Lon, true
		}
		in.Regions = append(in.Regions, info)
	}
	if measured != nil {
		in.Clients, in.Resolvers = measured.clients, measured.resolvers
	}
	t, err := topology.Compile(in)
	if err != nil {
		return nil, err
	}
	n := &Need{Input: in, Topology: t, measured: measured, costs: c.costs(in, t, measured)}
	for _, l := range t.Lists {
		n.lists = append(n.lists, steerList(l, len(b.Regions)))
	}
	c.needs[key] = n
	c.plan.Needs = append(c.plan.Needs, n)
	return n, nil
}

func steerList(l topology.List, regions int) steer.List {
	s := steer.List{Refuse: l.Refuse, Marks: l.Marks}
	for _, w := range l.Split {
		s.Split = append(s.Split, steer.Weighted{Region: steer.Region(w.Region), Weight: w.Weight})
	}
	for _, r := range l.Order {
		s.Order = append(s.Order, steer.Region(r))
	}
	if l.Fenced {
		s.Allowed = make([]bool, regions)
		for r := range s.Allowed {
			s.Allowed[r] = l.Allowed.Has(topology.Region(r))
		}
	}
	return s
}

var spreads = map[config.Spread]steer.Spread{
	config.Sticky: steer.Sticky, config.Resolver: steer.Resolver, config.Balanced: steer.Balanced,
}

var familyRules = map[config.Families]steer.FamilyRule{
	config.FamiliesSame: steer.FamiliesSame, config.FamiliesMixed: steer.FamiliesMixed,
	config.FamiliesV4: steer.FamiliesV4, config.FamiliesV6: steer.FamiliesV6,
}

var lastResorts = map[config.LastResortKind]steer.LastResortKind{
	config.LastOpen: steer.Open, config.LastClosed: steer.Closed,
	config.LastRegions: steer.Regions, config.LastAddresses: steer.Addresses,
}

func (c *compiler) hostConfig(cfg *config.Host) steer.HostConfig {
	hc := steer.HostConfig{
		Name:     cfg.Names[0],
		Pools:    make([]*steer.PoolConfig, len(c.block.Regions)),
		Spread:   spreads[cfg.Spread],
		Grain:    [2]int{cfg.Grain4, cfg.Grain6},
		Families: familyRules[cfg.Families],
		LastResort: steer.LastResort{
			Kind: lastResorts[cfg.LastResort.Kind], Addresses: cfg.LastResort.Addresses,
		},
		SpillBelow: cfg.SpillBelow, MaxDown: cfg.MaxDown,
		TTL: uint32(cfg.TTL), Floor: uint32(max(0, cfg.TTLFloor)), FloorOff: cfg.TTLFloor < 0,
	}
	if cfg.Shed != nil {
		hc.Shed = cfg.Shed.Name
	}
	for _, r := range cfg.LastResort.Regions {
		hc.LastResort.Regions = append(hc.LastResort.Regions, steer.Region(c.regions[r]))
	}
	for _, r := range c.block.Regions {
		hc.Regions = append(hc.Regions, r.Name)
	}
	for _, p := range cfg.Pools {
		pool := &steer.PoolConfig{Answers: p.Answers, MinHealthy: p.MinHealthy.Count}
		if p.MinHealthy.IsPct {
			pool.MinHealthyPct = p.MinHealthy.Percent
		}
		for _, e := range p.Endpoints {
			pool.Endpoints = append(pool.Endpoints, steer.EndpointConfig{Addr: e.Addr, Weight: uint32(e.Weight)})
		}
		if p.CName {
			pool.Name = p.Targets[0].Name
		}
		if len(p.Targets) == 0 || slices.ContainsFunc(p.Endpoints, func(e config.Endpoint) bool { return e.Weight > 0 }) {
			hc.Pools[c.regions[p.Region]] = pool // else nothing is known to be there
		}
	}
	return hc
}

// reachable holds that whoever is answered at all can be answered for each
// family the host offers: whether a type exists must not depend on the client.
func (c *compiler) reachable(h *steer.Host, n *Need, pools []*steer.PoolConfig) error {
	for i := range n.lists {
		l := &n.lists[i]
		if l.Refuse {
			continue
		}
		var reached [2]bool
		var names []string
		reach := func(r steer.Region) {
			names = append(names, c.block.Regions[r].Name)
			for f, has := range poolFamilies(pools[r]) {
				reached[f] = reached[f] || has
			}
		}
		for _, w := range l.Split {
			reach(w.Region)
		}
		for _, r := range l.Order {
			reach(r)
		}
		for f, v := range [2]string{"IPv4", "IPv6"} {
			if h.Offers(steer.Family(f)) && !reached[f] {
				return fmt.Errorf("the candidate list %v holds no %s endpoint, but other clients get one: "+
					"add an %s endpoint to one of its regions, or a region that has one to the list or its fence", names, v, v)
			}
		}
	}
	return nil
}

// hasTargets tells whether a host's addresses are known at load.
func hasTargets(cfg *config.Host) bool {
	return slices.ContainsFunc(cfg.Pools, func(p config.Pool) bool { return len(p.Targets) > 0 })
}

func poolFamilies(p *steer.PoolConfig) (has [2]bool) {
	if p == nil {
		return has
	}
	for _, e := range p.Endpoints {
		if e.Weight == 0 {
			continue
		}
		if p.Name != "" {
			return [2]bool{true, true}
		}
		if e.Addr.Is4() {
			has[steer.V4] = true
		} else {
			has[steer.V6] = true
		}
	}
	return has
}

// canonical writes a value so that equal meanings, and only those, are equal:
// without the places in files it was written at, and without the named fields.
func canonical(v any, without ...string) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data of our own
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		panic(err)
	}
	strip(tree, without)
	out, err := json.Marshal(tree)
	if err != nil {
		panic(err)
	}
	return out
}

// strip removes the fields of config.Pos and the named ones.
func strip(v any, without []string) {
	switch v := v.(type) {
	case map[string]any:
		_, file := v["File"]
		_, line := v["Line"]
		if file && line {
			delete(v, "File")
			delete(v, "Line")
		}
		for _, name := range without {
			delete(v, name)
		}
		for _, e := range v {
			strip(e, without)
		}
	case []any:
		for _, e := range v {
			strip(e, without)
		}
	}
}

// digest is a hash of the meaning of a block. Where an instance keeps its files,
// whom it asks and what it is guarded by have none: what data files hold is in the
// topologies.
func digest(b *config.Block) uint64 {
	c := *b
	c.Warnings, c.State, c.Control, c.Resolvers, c.Guard = nil, nil, nil, nil, config.Guard{}
	c.Hosts = slices.Clone(b.Hosts)
	for i := range c.Hosts {
		if l := c.Hosts[i].Latency; l != nil {
			c.Hosts[i].Latency = &config.Latency{MaxAge: l.MaxAge}
		}
	}
	c.GeoIP, c.Nets = slices.Clone(b.GeoIP), slices.Clone(b.Nets)
	for i := range c.GeoIP {
		c.GeoIP[i].Path = ""
	}
	for i := range c.Nets {
		c.Nets[i].Path = ""
	}
	h := fnv.New64a()
	h.Write(canonical(&c, "File"))
	return h.Sum64()
}

func (p *Plan) digest() uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, p.Config, steer.HashVersion)
	for _, n := range p.Needs {
		fmt.Fprintln(h, n.Topology.Digest())
		h.Write(n.costs.appendKey(nil))
	}
	return h.Sum64()
}

// Pooled tells whether the host has a pool in a region.
func (h *Host) Pooled(r steer.Region) bool { return h.Need.Input.Regions[r].Pooled }
