package config

import (
	"net/netip"
	"slices"
)

// validate holds everything that can be judged without opening a data file and
// that needs more than one statement to judge.
func (b *Block) validate() error {
	if err := b.checkAreas(); err != nil {
		return err
	}
	if err := b.checkRules(b.Rules); err != nil {
		return err
	}
	if err := b.checkFacts(); err != nil {
		return err
	}
	if err := b.checkOrders(); err != nil {
		return err
	}
	if err := b.checkLoads(); err != nil {
		return err
	}
	for i := range b.Hosts {
		if err := b.checkHost(&b.Hosts[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkFacts holds that a database is there for every fact asked for.
func (b *Block) checkFacts() error {
	for _, m := range b.matches() {
		for _, a := range m.Alts {
			switch a.Kind {
			case AltContinent, AltCountry:
				if !b.hasFile(Country) && !b.hasFile(City) {
					return m.errorf("%q needs a location database: write `geoip country FILE` or `geoip city FILE`", a.Kind)
				}
			case AltSubdivision:
				if !b.hasFile(City) {
					return m.errorf("%q needs a city database: write `geoip city FILE`", a.Kind)
				}
			case AltASN:
				if !b.hasFile(ASN) {
					return m.errorf("%q needs a database of autonomous systems: write `geoip asn FILE`", a.Kind)
				}
			}
		}
	}
	return nil
}

// hasFile reports whether there is a database of a kind.
func (b *Block) hasFile(kind GeoKind) bool {
	return slices.ContainsFunc(b.GeoIP, func(g GeoFile) bool { return g.Kind == kind })
}

// matches gives every match in the block, areas first.
func (b *Block) matches() []Match {
	var list []Match
	for _, a := range b.Areas {
		list = append(list, a.Lines...)
	}
	for _, r := range b.allRules() {
		list = append(list, r.Match)
	}
	return list
}

// allRules gives the rules of the block and of every host.
func (b *Block) allRules() []Rule {
	list := slices.Clone(b.Rules)
	for _, h := range b.Hosts {
		list = append(list, h.Rules...)
	}
	return list
}

// checkOrders holds that the clients whom no rule of the block matches have a
// sensible order, if a host depends on it.
func (b *Block) checkOrders() error {
	if !b.sharesRules() {
		return nil
	}
	located := b.firstLocated()
	switch {
	case located != nil && b.hasFile(City):
		return nil
	case located != nil && len(b.Rules) == 0 && b.hasFile(Country):
		return located.errorf("the locations of regions need `geoip city`: a country database can't give distances; or write clients")
	case slices.ContainsFunc(b.Rules, func(r Rule) bool { return r.Rest }):
		return nil
	}
	reason := "none has a location"
	if located != nil {
		reason = "a location decides only with `geoip city`"
	}
	for _, r := range b.Rules {
		if r.Region != "" {
			return r.errorf("some regions have clients, %s, and there is no rest: most of the world would get the order written; write `clients rest` in one region, or locations and `geoip city`", reason)
		}
	}
	return nil
}

// firstLocated gives the first region with a location; nil: none has one.
func (b *Block) firstLocated() *Region {
	for i := range b.Regions {
		if b.Regions[i].Location != nil {
			return &b.Regions[i]
		}
	}
	return nil
}

// sharesRules reports whether a host follows the rules of the block.
func (b *Block) sharesRules() bool {
	return slices.ContainsFunc(b.Hosts, func(h Host) bool { return !h.OwnRules })
}

// checkHost checks one host against itself and the block.
func (b *Block) checkHost(h *Host) error {
	if len(h.Pools) == 0 {
		return h.errorf("host %s has no pool", h.title())
	}
	if slices.Contains(h.Names, b.WhoAmI) {
		return h.errorf("%s is the name of a host and of whoami: give whoami a name of its own", b.WhoAmI)
	}
	if h.TTLFloor > h.TTL {
		return h.places["ttl_floor"].errorf("ttl_floor %d is above the ttl %d of host %s", h.TTLFloor, h.TTL, h.title())
	}
	if !b.ECS.Off && (h.Grain4 > b.ECS.Max4 || h.Grain6 > b.ECS.Max6) {
		return h.places["spread"].errorf("spread sticky %d %d of host %s is longer than ecs max %d %d", h.Grain4, h.Grain6, h.title(), b.ECS.Max4, b.ECS.Max6)
	}
	for _, check := range []func(*Host) error{
		b.checkPools, b.checkTargets, b.checkShed, b.checkAuthority, b.checkLastResort, b.checkReach, b.checkFences, b.checkShares,
	} {
		if err := check(h); err != nil {
			return err
		}
	}
	if h.OwnRules {
		return b.checkRules(h.Rules)
	}
	return nil
}

// title is the first name of the host, for errors.
func (h *Host) title() string { return h.Names[0] }

// family is 4 or 6.
type family int

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return 4
	}
	return 6
}

// version names the family's protocol.
func (f family) version() string {
	if f == 4 {
		return "IPv4"
	}
	return "IPv6"
}

// record is the type of the family's addresses in DNS.
func (f family) record() string {
	if f == 4 {
		return "A"
	}
	return "AAAA"
}

// offered gives the families that the host is known to answer for: what its
// targets add to them is seen when they are resolved.
func (h *Host) offered() []family {
	switch h.Families {
	case FamiliesV4:
		return []family{4}
	case FamiliesV6:
		return []family{6}
	}
	var list []family
	for _, f := range []family{4, 6} {
		if slices.ContainsFunc(h.Pools, func(p Pool) bool { return p.has(f) }) {
			list = append(list, f)
		}
	}
	return list
}

// has reports whether an endpoint of the pool is of a family.
func (p *Pool) has(f family) bool {
	return slices.ContainsFunc(p.Endpoints, func(e Endpoint) bool { return familyOf(e.Addr) == f })
}

// may reports whether the pool can answer for a family, as far as is known.
func (p *Pool) may(f family) bool { return len(p.Targets) > 0 || p.has(f) }

// targeted reports whether a pool of the host has targets.
func (h *Host) targeted() bool {
	return slices.ContainsFunc(h.Pools, func(p Pool) bool { return len(p.Targets) > 0 })
}
