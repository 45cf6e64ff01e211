package steer

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// check refuses what NewHost can't make sense of.
func (cfg *HostConfig) check() error {
	if len(cfg.Regions) > MaxRegions {
		return fmt.Errorf("%d regions; at most %d are possible", len(cfg.Regions), MaxRegions)
	}
	if len(cfg.Pools) != len(cfg.Regions) {
		return fmt.Errorf("%d pools for %d regions; expected one, or nil, for each", len(cfg.Pools), len(cfg.Regions))
	}
	names := make(map[string]bool)
	for r, name := range cfg.Regions {
		if names[name] {
			return fmt.Errorf("region %q twice", name)
		}
		names[name] = true
		if err := cfg.Pools[r].check(); err != nil {
			return fmt.Errorf("pool %s: %w", name, err)
		}
	}
	for id := range cfg.Lists {
		if err := cfg.Lists[id].check(len(cfg.Regions)); err != nil {
			return fmt.Errorf("list %d: %w", id, err)
		}
	}
	if g := cfg.Grain; g[V4] < 0 || g[V4] > 32 || g[V6] < 0 || g[V6] > 128 {
		return fmt.Errorf("grain %d %d; expected 0..32 and 0..128", g[V4], g[V6])
	}
	if !(cfg.SpillBelow >= 0 && cfg.SpillBelow <= 100) || !(cfg.MaxDown >= 0 && cfg.MaxDown <= 100) {
		return fmt.Errorf("spill below %v, max down %v; expected 0..100 percent", cfg.SpillBelow, cfg.MaxDown)
	}
	if err := checkName(cfg.Shed); err != nil {
		return fmt.Errorf("shed: %w", err)
	}
	if err := cfg.LastResort.check(len(cfg.Regions)); err != nil {
		return fmt.Errorf("last resort: %w", err)
	}
	return nil
}

func (p *PoolConfig) check() error {
	if p == nil {
		return nil
	}
	if p.Answers < 0 || p.MinHealthy < 0 || !(p.MinHealthyPct >= 0 && p.MinHealthyPct <= 100) {
		return errors.New("answers, minimum healthy or its percentage out of range")
	}
	if err := checkName(p.Name); err != nil {
		return err
	}
	seen := make(map[netip.Addr]bool)
	weight := uint64(0)
	for _, e := range p.Endpoints {
		if err := checkAddr(e.Addr); err != nil {
			return err
		}
		if seen[e.Addr] {
			return fmt.Errorf("endpoint %s twice", e.Addr)
		}
		seen[e.Addr] = true
		if e.Weight > MaxWeight {
			return fmt.Errorf("endpoint %s: weight %d; at most %d is possible", e.Addr, e.Weight, MaxWeight)
		}
		weight += uint64(e.Weight)
	}
	if weight == 0 {
		return errors.New("no endpoint with a weight above 0")
	}
	return nil
}

// checkAddr refuses what no A or AAAA record can hold.
func checkAddr(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
		return fmt.Errorf("address %q; expected a plain IPv4 or IPv6 address", a)
	}
	return nil
}

// maxName is the greatest length of a domain name as text (RFC 1035, section 2.3.4).
const maxName = 254

// checkName refuses what can't be a name in full; empty is none.
func checkName(name string) error {
	if name != "" && (len(name) > maxName || !strings.HasSuffix(name, ".") || strings.ContainsAny(name, " \t\r\n")) {
		return fmt.Errorf("name %q; expected a fully qualified domain name, with its final dot", name)
	}
	return nil
}

func (l *List) check(regions int) error {
	if l.Allowed != nil && len(l.Allowed) != regions {
		return fmt.Errorf("%d allowed flags for %d regions", len(l.Allowed), regions)
	}
	seen := make(map[Region]bool)
	for _, w := range l.Split {
		if int(w.Region) >= regions || seen[w.Region] {
			return fmt.Errorf("split region %d out of range or twice", w.Region)
		}
		if w.Weight > MaxWeight {
			return fmt.Errorf("split weight %d; at most %d is possible", w.Weight, MaxWeight)
		}
		seen[w.Region] = true
	}
	for _, r := range l.Order {
		if int(r) >= regions {
			return fmt.Errorf("region %d out of range", r)
		}
	}
	return nil
}

func (l *LastResort) check(regions int) error {
	for _, r := range l.Regions {
		if int(r) >= regions {
			return fmt.Errorf("region %d out of range", r)
		}
	}
	for _, a := range l.Addresses {
		if err := checkAddr(a); err != nil {
			return err
		}
	}
	return nil
}
