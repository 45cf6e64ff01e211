package config

import (
	"maps"
	"slices"
)

// policy reads a policy, or at the block the policies of every host that
// names none.
func (p *parser) policy(s *statement) error {
	if !s.opened {
		return p.common.use(s)
	}
	t := s.args[0]
	if len(s.args) > 1 {
		return s.args[1].errorf("too many values for \"policy\": expected `policy NAME { … }`")
	}
	if err := name(t, "a policy"); err != nil {
		return err
	}
	if other := p.policyOf(t.Text); other != nil {
		return twice(s.Pos, quoted("policy", t.Text), other.Pos)
	}
	l := &layer{Pos: s.Pos, p: p, title: t.Text}
	p.policies = append(p.policies, l)
	return l.read(s)
}

func (p *parser) policyOf(title string) *layer {
	for _, l := range p.policies {
		if l.title == title {
			return l
		}
	}
	return nil
}

func (p *parser) hostBlock(s *statement) error {
	l := &layer{Pos: s.Pos, p: p, owners: s.args}
	p.hosts = append(p.hosts, l)
	return l.read(s)
}

// host makes a host of its layers: what it says itself wins over its
// policies, and they over the block.
func (p *parser) host(l *layer) (Host, error) {
	used := l.policies
	if used == nil {
		used = p.common.policies
	}
	policies, err := p.combine(used)
	if err != nil {
		return Host{}, err
	}
	all := l.over(policies.over(p.common))
	d := &draft{answers: 8, minHealthy: Threshold{Count: 1}}
	d.Host = Host{
		Pos: l.Pos, OwnRules: len(all.rules) > 0, Rules: all.rules, Pools: ownPools(all.pools),
		TTL: 30, TTLFloor: 5, Spread: Sticky, Grain4: unsaid, Grain6: unsaid,
		Families: FamiliesSame, LastResort: LastResort{Kind: LastOpen}, SpillBelow: 50, MaxDown: 100,
		places: map[string]Pos{},
	}
	for _, s := range all.settings {
		s.apply(d)
		d.places[s.word] = s.Pos
	}
	d.settle(p.ECS)
	if d.Names, err = p.ownersOf(all.owners); err != nil {
		return Host{}, err
	}
	if d.Latency != nil && d.Latency.Pos == p.common.said()["latency"] {
		p.warnReordered(&d.Host)
	}
	return d.Host, nil
}

// ownPools copies pools: those of a policy are many hosts', and each host has
// endpoints and targets of its own, told apart by their address in memory.
func ownPools(pools []Pool) []Pool {
	own := slices.Clone(pools)
	for i := range own {
		own[i].Endpoints = slices.Clone(own[i].Endpoints)
		own[i].Targets = slices.Clone(own[i].Targets)
	}
	return own
}

// settle fills in the values that depend on others.
func (d *draft) settle(ecs ECS) {
	if _, written := d.places["ttl_floor"]; !written {
		d.TTLFloor = min(d.TTLFloor, d.TTL)
	}
	if d.Grain4 == unsaid {
		d.Grain4, d.Grain6 = 16, 32
		if !ecs.Off {
			d.Grain4, d.Grain6 = min(16, ecs.Max4), min(32, ecs.Max6)
		}
	}
	for i := range d.Pools {
		pool := &d.Pools[i]
		if pool.Answers == unsaid {
			pool.Answers = d.answers
		}
		if pool.MinHealthy == (Threshold{}) {
			pool.MinHealthy = d.minHealthy
		}
		if pool.Checks == nil {
			pool.Checks = d.checks
		}
	}
}

// ownersOf reads the names of one host.
func (p *parser) ownersOf(words []Token) ([]string, error) {
	var list []string
	for _, t := range words {
		n, err := owner(t, p.Zones)
		if err != nil {
			return nil, err
		}
		if first, taken := p.owners[n]; taken {
			return nil, twice(t.Pos, "host "+n, first)
		}
		p.owners[n] = t.Pos
		list = append(list, n)
	}
	return list, nil
}

// combine puts policies side by side; two of them must not say the same.
func (p *parser) combine(titles []Token) (*layer, error) {
	sum := &layer{p: p}
	said := map[string]*layer{}
	for _, t := range titles {
		l := p.policyOf(t.Text)
		for _, word := range slices.Sorted(maps.Keys(l.said())) {
			if other := said[word]; other != nil {
				return nil, t.errorf("policies %q (%s) and %q (%s) both set %s", other.title, other.said()[word], t.Text, l.said()[word], word)
			}
			said[word] = l
		}
		sum = l.over(sum)
	}
	return sum, nil
}

// said gives what a layer sets and where.
func (l *layer) said() map[string]Pos {
	said := map[string]Pos{}
	for _, s := range l.settings {
		said[s.word] = s.Pos
	}
	for _, pool := range l.pools {
		said["pool "+pool.Region] = pool.Pos
	}
	if len(l.rules) > 0 {
		said["clients"] = l.rules[0].Pos
	}
	return said
}

// over gives a layer that says what l says, and else what under says.
func (l *layer) over(under *layer) *layer {
	sum := &layer{p: l.p, owners: slices.Concat(l.owners, under.owners), rules: l.rules}
	sum.settings = slices.Concat(under.settings, l.settings)
	if len(l.rules) == 0 {
		sum.rules = under.rules
	}
	sum.pools = slices.Clone(under.pools)
	for _, pool := range l.pools {
		same := func(other Pool) bool { return other.Region == pool.Region }
		if i := slices.IndexFunc(sum.pools, same); i >= 0 {
			sum.pools[i] = pool
		} else {
			sum.pools = append(sum.pools, pool)
		}
	}
	return sum
}
