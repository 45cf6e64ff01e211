// Package plan turns a block and its data files into what decides: a topology
// for each distinct need, and a steer.Host for each host. The server and the
// command line use the same plan, so neither can know better than the other.
//
// A Plan is immutable; any number of goroutines may use it at once.
package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// Plan is all that one block decides by.
type Plan struct {
	Block    *config.Block
	Data     *Data
	Hosts    []*Host // as the block's hosts
	Needs    []*Need // the distinct topologies
	Warnings []config.Warning
	Config   uint64 // digest of the configuration
	Digest   uint64 // of configuration, topologies, costs and hash version; equal on every instance

	// Expires is when the first of the latency maps in use gets too old, so that the
	// plan must be compiled again; zero: none does.
	Expires time.Time
	TooOld  map[string]bool // latency maps that are left out for their age, by path

	byName map[string]*Host // exact names
	wild   map[string]*Host // wildcard names without "*."
	above  map[string]bool  // names in the zones that have a host below them
	anyone *Host            // stands for a host with a pool in every region
}

// Host is one steered host.
type Host struct {
	Config *config.Host
	Steer  *steer.Host
	Need   *Need
	Index  int      // in Plan.Hosts
	pools  []int    // by region: index into Config.Pools
	rules  *ruleSet // where each of Need.Input.Rules is written for this host

	without []string // targets that have no address
	unknown bool     // so that nobody can say which families there are
}

// Need is a topology with what it was compiled from. Hosts with the same rules
// and pools in the same regions share one.
type Need struct {
	Input    *topology.Input
	Topology *topology.Topology
	lists    []steer.List
	measured *latencyMap // nil: none
	costs    costs
}

// Options are how a plan is built.
type Options struct {
	Root     string // relative paths are under it; empty: the working directory
	LastGood LastGood
	Now      time.Time // what ages are counted to; zero: no file is too old
	// Resolve gives the addresses of targets; nil: none is known.
	Resolve Resolve
	// Prepare makes the caller's own form of an answer, see steer.HostConfig.
	Prepare func(*config.Host, *steer.Answer) any
}

// Build loads the data files of a block and compiles the plan.
func Build(b *config.Block, o Options) (*Plan, error) {
	if err := prepareChecks(b, o.Root); err != nil {
		return nil, err
	}
	data, err := load(b, o.Root, &o.LastGood, o.Now)
	if err != nil {
		return nil, err
	}
	return Compile(b, data, o)
}

// Compile makes the plan of a block for data that is loaded already.
func Compile(b *config.Block, data *Data, o Options) (*Plan, error) {
	p := &Plan{
		Block: b, Data: data, Warnings: slices.Concat(b.Warnings, data.warnings(b)),
		TooOld: make(map[string]bool), byName: make(map[string]*Host), wild: make(map[string]*Host), above: make(map[string]bool),
	}
	c, err := newCompiler(b, data, p, o.Now)
	if err != nil {
		return nil, err
	}
	for i := range b.Hosts {
		cfg := &b.Hosts[i]
		h, err := c.host(cfg, &o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Pos, err)
		}
		h.Index = len(p.Hosts)
		p.Hosts = append(p.Hosts, h)
		for _, name := range cfg.Names {
			p.addName(name, h)
		}
	}
	if p.anyone, err = c.anyone(); err != nil {
		return nil, fmt.Errorf("%s: %w", b.Pos, err)
	}
	p.Config = digest(b)
	p.Digest = p.digest()
	return p, nil
}

// Find gives the host that steers a name (lower case, fully qualified) of a
// zone: by its own name, or by a wildcard at the closest encloser (RFC 4592).
// Without a host, exists tells whether the name is there all the same, above
// one (an empty non-terminal). Names of other plugins are unknown here.
func (p *Plan) Find(zone, name string) (h *Host, exists bool) {
	if h := p.byName[name]; h != nil {
		return h, true
	}
	if p.above[name] {
		return nil, true
	}
	for len(name) > len(zone) {
		name = parent(name)
		if h := p.wild[name]; h != nil {
			return h, true
		}
		if under, ok := strings.CutPrefix(name, "*."); ok && p.wild[under] != nil { // below a wildcard's own name (RFC 4592, section 2.2.1)
			return nil, false
		}
		if p.byName[name] != nil || p.above[name] { // the closest encloser has no wildcard
			return nil, false
		}
	}
	return nil, false
}

// parent cuts the first label off a name.
func parent(name string) string {
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '\\': // the next character is no separator
			i++
		case '.':
			if i+1 < len(name) {
				return name[i+1:]
			}
		}
	}
	return "."
}

// addName makes a host known by one of its names.
func (p *Plan) addName(name string, h *Host) {
	if strings.HasPrefix(name, "*.") {
		p.wild[parent(name)] = h
	} else {
		p.byName[name] = h
	}
	for name = parent(name); !p.above[name] && slices.ContainsFunc(p.Block.Zones, func(zone string) bool { return within(zone, name) }); {
		p.above[name] = true
		name = parent(name)
	}
}

// within tells whether a name lies in a zone, by label.
func within(zone, name string) bool {
	return zone == "." || name == zone || strings.HasSuffix(name, "."+zone)
}

// Locate finds the client that a decision for the host is made for. subnet is
// the client subnet option, invalid or of length 0 when there is none to use.
func (h *Host) Locate(subnet netip.Prefix, transport netip.Addr) steer.Client {
	c, _ := h.Find(subnet, transport)
	return c
}

// Find is Locate, and tells what gave the client its candidate list.
func (h *Host) Find(subnet netip.Prefix, transport netip.Addr) (c steer.Client, by topology.Kind) {
	by = h.Place(&c, subnet, transport)
	return c, by
}

// Place is Find, and fills in the client.
func (h *Host) Place(s *steer.Client, subnet netip.Prefix, transport netip.Addr) topology.Kind {
	c := h.Need.Topology.Locate(subnet, transport)
	*s = steer.Client{
		Addr: c.Addr, Bits: c.Bits, Transport: topology.Unembed(transport), List: c.List, Block: c.Match.Bits,
	}
	switch {
	case c.ECS:
		s.Source, s.ScopeBase = steer.ECS, c.Base
	case c.Special > 0:
		s.Fixed, s.Block, s.ScopeBase = true, c.Special, c.Base
	}
	return c.Decided
}

// Aliases tells whether the host may answer with a name.
func (h *Host) Aliases() bool {
	return h.Config.Shed != nil || h.Named()
}

// Believes tells whether the client subnet options of a transport address count.
func (p *Plan) Believes(transport netip.Addr) bool {
	if p.Block.ECS.Off {
		return false
	}
	if len(p.Block.ECS.From) == 0 {
		return true
	}
	transport = transport.Unmap()
	for _, from := range p.Block.ECS.From {
		if from.Contains(transport) {
			return true
		}
	}
	return false
}

// Anyone stands for a host that has a pool in every region and no rules of its
// own. It is what a diagnostic name tells regions by.
func (p *Plan) Anyone() *Host { return p.anyone }

// First names the region that a candidate list starts with; of a split, the one
// of most weight. It is "none" for clients that are refused.
func (h *Host) First(list int) string {
	l := &h.Need.Topology.Lists[list]
	best, weight := -1, uint32(0)
	for _, w := range l.Split {
		if best < 0 || w.Weight > weight {
			best, weight = int(w.Region), w.Weight
		}
	}
	if best < 0 && len(l.Order) > 0 {
		best = int(l.Order[0])
	}
	if best < 0 {
		return "none"
	}
	return h.Need.Input.Regions[best].Name
}

// Signed is how many distinct RRsets a signer may meet: every set of addresses
// has one of three TTLs.
func (p *Plan) Signed() int { return 3 * p.MaxSets() }

// MaxSets is how many distinct sets of addresses the hosts may answer at a time, over
// all names and both families. A target counts as 64 addresses of each family, which
// is the most that it can have.
func (p *Plan) MaxSets() int {
	n := 0
	for _, h := range p.Hosts {
		sets := h.Steer.MaxSets()
		for i := range h.Config.Pools {
			sets += setsToCome(&h.Config.Pools[i])
		}
		n += sets * len(h.Config.Names)
	}
	return n
}
