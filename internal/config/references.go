package config

import "slices"

// references holds that every name used is declared, and every region used.
func (p *parser) references() error {
	for _, t := range slices.Concat(p.regions, p.guarded) {
		if !p.hasRegion(t.Text) {
			return t.errorf("region %q is not declared: write `region %s`%s", t.Text, t.Text, DidYouMean(t.Text, p.regionNames()))
		}
	}
	areas := make([]string, len(p.Areas))
	for i, a := range p.Areas {
		areas[i] = a.Name
	}
	for _, t := range p.areas {
		if p.areaOf(t.Text) == nil {
			return t.errorf("area %q is not declared: write `area %s MATCH`%s", t.Text, t.Text, DidYouMean(t.Text, areas))
		}
	}
	for _, l := range append(p.hosts, p.common) {
		for _, t := range l.policies {
			if p.policyOf(t.Text) == nil {
				return t.errorf("policy %q is not declared: write `policy %s { … }`%s", t.Text, t.Text, DidYouMean(t.Text, p.policyNames()))
			}
		}
	}
	for _, t := range p.checks {
		if p.checkOf(t.Text) == nil {
			return t.errorf("check %q is not declared: write `check %s { … }`%s", t.Text, t.Text, DidYouMean(t.Text, p.checkTitles()))
		}
	}
	return p.unusedRegion()
}

// unusedRegion finds a region that nothing names. Files of nets may name any.
func (p *parser) unusedRegion() error {
	used := map[string]bool{}
	for _, t := range p.regions {
		used[t.Text] = true
	}
	for _, r := range p.Rules {
		used[r.Region] = true
	}
	for _, r := range p.Regions {
		if !used[r.Name] && len(p.Nets) == 0 {
			return r.errorf("region %q has no pool in any host and is not named anywhere: give it a pool or remove it", r.Name)
		}
	}
	return nil
}

func (p *parser) policyNames() []string {
	list := make([]string, len(p.policies))
	for i, l := range p.policies {
		list[i] = l.title
	}
	return list
}

func (p *parser) checkTitles() []string {
	list := make([]string, len(p.Checks))
	for i, c := range p.Checks {
		list[i] = c.Name
	}
	return list
}

// regionNames gives the names of all regions in the order written.
func (b *Block) regionNames() []string {
	list := make([]string, len(b.Regions))
	for i, r := range b.Regions {
		list[i] = r.Name
	}
	return list
}

func (b *Block) hasRegion(name string) bool { return b.regionOf(name) != nil }

func (b *Block) regionOf(name string) *Region {
	for i := range b.Regions {
		if b.Regions[i].Name == name {
			return &b.Regions[i]
		}
	}
	return nil
}

func (b *Block) areaOf(name string) *Area {
	for i := range b.Areas {
		if b.Areas[i].Name == name {
			return &b.Areas[i]
		}
	}
	return nil
}

func (b *Block) checkOf(name string) *Check {
	for i := range b.Checks {
		if b.Checks[i].Name == name {
			return &b.Checks[i]
		}
	}
	return nil
}
