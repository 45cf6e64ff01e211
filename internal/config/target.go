package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// maxTargets is how many targets one pool may have.
const maxTargets = 64

// target reads a host name that is resolved to endpoints.
func (b *poolBlock) target(s *statement) error {
	name := s.args[0]
	if a, err := netip.ParseAddr(strings.Trim(name.Text, "[]")); err == nil {
		return name.errorf("%q is an address: write `endpoint %s`", name.Text, a)
	}
	n, err := fullName(name)
	if err != nil {
		return err
	}
	t := Target{Pos: s.Pos, Name: n, Weight: 1}
	err = options(s.args[1:], ":PORT", &t.State, func(word string, value Token) (err error) {
		if word == "weight" {
			t.Weight, err = number(value, 0, 10000)
		} else {
			t.Probe, err = port(value)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, other := range b.Targets {
		if other.Name == n {
			return twice(s.Pos, "target "+n+" of this pool", other.Pos)
		}
	}
	if len(b.Targets) == maxTargets {
		return s.errorf("too many targets: at most %d in a pool", maxTargets)
	}
	b.Targets = append(b.Targets, t)
	return nil
}

// fullName reads a name that must not be relative to anything.
func fullName(t Token) (string, error) {
	if _, err := netip.ParseAddr(strings.Trim(t.Text, "[]")); err == nil {
		return "", t.errorf("%q is an address: expected a full name like lb-1.example.net", t.Text)
	}
	n, err := domain(t)
	if err == nil && (n == "." || strings.Count(t.Text, ".") == 0) {
		err = t.errorf("%q: expected a full name like lb-1.example.net", t.Text)
	}
	return n, err
}

func (b *poolBlock) keep(s *statement) (err error) {
	b.Keep, err = span(s.args[0], 0, 24*time.Hour)
	return err
}

func (b *poolBlock) cname(*statement) error {
	b.CName = true
	return nil
}

// settle holds that a pool has something to answer, and words that fit it.
func (b *poolBlock) settle() error {
	if len(b.Targets) == 0 {
		for _, word := range []string{"keep", "cname"} {
			if at, written := b.said[word]; written {
				return at.errorf("%q is for pools with a target, and this one has none: write `target NAME`, or remove it", word)
			}
		}
		if len(b.Endpoints) == 0 {
			return b.errorf("the pool of region %q has no endpoint and no target", b.Region)
		}
		return nil
	}
	if b.CName && (len(b.Targets) > 1 || len(b.Endpoints) > 0) {
		return b.said["cname"].errorf("cname answers one name in place of addresses, so its pool has exactly one target and no endpoint: this one has %d and %d", len(b.Targets), len(b.Endpoints))
	}
	if _, written := b.said["keep"]; !written {
		b.Keep = time.Hour
	}
	return nil
}

// checkTargets holds that the targets of a host can be resolved and answered.
func (b *Block) checkTargets(h *Host) error {
	for i := range h.Pools {
		p := &h.Pools[i]
		for _, t := range p.Targets {
			switch own := b.steered(t.Name); {
			case b.Resolvers == nil:
				return t.errorf("target %s needs resolvers to look it up at: write `resolvers ADDRESS…` in the gslb block", t.Name)
			case own != "":
				return t.errorf("target %s is what host %s of this block answers for: it would be resolved to itself; name a load balancer outside of it", t.Name, own)
			}
		}
		if apex := h.apex(b.Zones); p.CName && apex != "" {
			return p.errorf("cname in a pool of host %s, which is the apex of a zone and has other records: a CNAME can't stand beside them (RFC 1034 section 3.6.2); leave cname out, so that the target's addresses are answered", apex)
		}
	}
	return nil
}

// apex gives a name of the host that is the name of a zone; empty: none is.
func (h *Host) apex(zones []string) string {
	if i := slices.IndexFunc(h.Names, func(n string) bool { return slices.Contains(zones, n) }); i >= 0 {
		return h.Names[i]
	}
	return ""
}

// steered gives the name of a host of the block that answers for n, if only by
// its wildcard; empty: none does.
func (b *Block) steered(n string) string {
	if _, is := b.own[n]; is {
		return n
	}
	for rest := n; rest != "" && rest != "."; {
		_, rest, _ = strings.Cut(rest, ".")
		if _, is := b.own["*."+rest]; is {
			return "*." + rest
		}
	}
	return ""
}

// checkShed holds that clients can be sent to the other name.
func (b *Block) checkShed(h *Host) error {
	if h.Shed == nil {
		return nil
	}
	if apex := h.apex(b.Zones); apex != "" {
		return h.Shed.errorf("shed to %s answers a CNAME, which can't stand beside the other records of %s, the apex of a zone (RFC 1034 section 3.6.2): give the host a name below it", h.Shed.Name, apex)
	}
	if own := b.steered(h.Shed.Name); own != "" {
		return h.Shed.errorf("shed to %s, which host %s of this block answers for: shed to a name of another layer", h.Shed.Name, own)
	}
	return nil
}
