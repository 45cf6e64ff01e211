package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// soundControl checks the levers, targets and guards of a block.
func soundControl(b *config.Block, regions, areas, checks map[string]bool) error {
	if _, err := json.Marshal(b); err != nil {
		return err
	}
	for _, r := range b.Regions {
		if err := soundLevers(r.Levers, areas, checks); err != nil {
			return fmt.Errorf("region %s: %w", r.Name, err)
		}
	}
	for _, h := range b.Hosts {
		for _, p := range h.Pools {
			if err := soundTargets(b, p); err != nil {
				return fmt.Errorf("pool %v: %w", p, err)
			}
			if err := soundLevers(p.Levers, areas, checks); err != nil {
				return fmt.Errorf("pool %v: %w", p, err)
			}
			if err := soundState(b, p); err != nil {
				return fmt.Errorf("pool %v: %w", p, err)
			}
		}
		if m := h.Latency; m != nil && (m.Path == "" || m.MaxAge < time.Minute) {
			return fmt.Errorf("latency %v", *m)
		}
		if s := h.Shed; s != nil && !strings.HasSuffix(s.Name, ".") {
			return fmt.Errorf("shed %v", *s)
		}
	}
	g := b.Guard
	if g.Hosts < 0 || !part(g.MaxMove) || !part(g.MaxUse) {
		return fmt.Errorf("guard %v", g)
	}
	for _, r := range g.Require {
		if r.Count < 1 || r.Count > len(r.Regions) || !all(regions, r.Regions) {
			return fmt.Errorf("require %v", r)
		}
	}
	b.WarningsAt(time.Date(2026, 12, 1, 22, 0, 0, 0, time.UTC))
	return nil
}

func part(percent float64) bool { return percent >= 0 && percent <= 100 }

func soundTargets(b *config.Block, p config.Pool) error {
	switch n := len(p.Targets); {
	case n == 0 && (p.Keep != 0 || p.CName), n > 0 && b.Resolvers == nil, p.CName && n+len(p.Endpoints) != 1, p.Keep < 0 || p.Keep > 24*time.Hour:
		return fmt.Errorf("%d targets, keep %s, cname %t", n, p.Keep, p.CName)
	}
	for _, t := range p.Targets {
		if !strings.HasSuffix(t.Name, ".") || t.Weight < 0 || t.Weight > 10000 || t.Probe < 0 || t.Probe > 65535 {
			return fmt.Errorf("target %v", t)
		}
	}
	return nil
}

func soundLevers(l config.Levers, areas, checks map[string]bool) error {
	for _, d := range l.Dial {
		if !part(d.Percent) {
			return fmt.Errorf("dial %v", d)
		}
	}
	for _, s := range l.Share {
		if !part(s.Percent) || s.Area != "" && !areas[s.Area] || s.Off && s.Percent+float64(len(s.Area)) > 0 {
			return fmt.Errorf("share %v", s)
		}
	}
	if t := l.Trickle; t != nil && !(t.Value >= 0 && t.Value <= 50) {
		return fmt.Errorf("trickle %v", *t)
	}
	if c := l.Capacity; c != nil && ((c.Value > 0) == c.Score || c.Value*0 != 0 || !part(c.Target) || !part(c.Growth)) {
		return fmt.Errorf("capacity %v", *c)
	}
	if l.Load == nil {
		return nil
	}
	if l.Capacity == nil || l.Load.Every < time.Second || l.Load.Every > time.Hour || l.Load.Kind == config.LoadHeader && !checks[l.Load.Check] {
		return fmt.Errorf("load %v", *l.Load)
	}
	return nil
}

// soundState walks the next changes of the levers that hold for a pool.
func soundState(b *config.Block, p config.Pool) error {
	l := b.LeversOf(&p)
	t := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 20 {
		_, next := l.At(t)
		if next.IsZero() {
			return nil
		}
		if !next.After(t) {
			return fmt.Errorf("the next change after %s is at %s", t, next)
		}
		t = next
	}
	return nil
}
