package plan

import (
	"fmt"
	"net/netip"

	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// Explanation is what a host answers one client, with everything that leads to
// it, in the order in which it is decided. Its JSON form is stable.
type Explanation struct {
	Host   string     `json:"host"`   // first name of the host statement
	At     string     `json:"at"`     // where that is written, as file:line
	Digest string     `json:"digest"` // of the plan, equal on every instance
	Client SeenClient `json:"client"`
	Facts  KnownFacts `json:"facts"`
	List   ListWhy    `json:"list"`
	// Levers are those of the host's regions that are moved, or that the clock will
	// move. What a return after an outage and the law of capacity hold back is in the
	// decisions alone.
	Levers  []LeverWhy  `json:"levers,omitempty"`
	Targets []TargetWhy `json:"targets,omitempty"`
	// Decisions are those of Decide with its trace, one for each family asked for.
	// Beside its words, a candidate can be passed over as unresolved: its pool has targets
	// and no address of them.
	Decisions []steer.Trace `json:"decisions"`
}

// SeenClient is whom the decision is made for.
type SeenClient struct {
	Subnet    netip.Prefix `json:"subnet,omitzero"` // the client subnet option; zero: none
	Transport netip.Addr   `json:"transport"`
	Source    string       `json:"source"` // which of them decided: ecs or transport
	// Ignored says why a client subnet didn't count: ecs_off, not_believed (the
	// transport is not in ecs from), source_zero or special_purpose.
	Ignored string       `json:"subnet_ignored,omitempty"`
	Special netip.Prefix `json:"special_block,omitzero"` // for special_purpose
	// Prefix is what was looked up: an IPv4 one if Embedded in IPv6.
	Prefix   netip.Prefix `json:"prefix"`
	Embedded bool         `json:"embedded,omitempty"`
	// Block around the client has one candidate list; what is larger has several.
	Block netip.Prefix `json:"block"`
}

// Explain tells what a host of the plan answers to a query and why. subnet is
// the client subnet option, the zero Prefix for none; its address may be longer
// than its length, then the facts are those of the whole address, though the
// server would see no more than the prefix. m are the moves that s was made with. It costs as much as compiling the
// host's topology: it is for people, not for queries.
func (p *Plan) Explain(h *Host, s *steer.Snapshot, m *Moves, subnet netip.Prefix, transport netip.Addr, families ...steer.Family) Explanation {
	e := Explanation{Host: h.Config.Names[0], At: h.Config.Pos.String(), Digest: fmt.Sprintf("%016x", p.Digest)}
	e.Client = SeenClient{Subnet: subnet.Masked(), Transport: transport}
	believed := subnet
	switch {
	case !subnet.IsValid():
	case p.Block.ECS.Off:
		e.Client.Ignored, believed = "ecs_off", netip.Prefix{}
	case !p.Believes(transport):
		e.Client.Ignored, believed = "not_believed", netip.Prefix{}
	case subnet.Bits() == 0:
		e.Client.Ignored = "source_zero"
	}
	c := h.Locate(believed, transport)
	found := h.Need.Topology.Locate(believed, transport)
	e.Client.see(&found, &c)
	addr := exactAddr(&found, believed)
	why := topology.WhyTransport(h.Need.Input, addr)
	if found.ECS {
		why = topology.Why(h.Need.Input, addr)
	}
	e.Facts = p.facts(addr, &why)
	e.List = h.listWhy(p, &found, addr, &why)
	e.Levers, e.Targets = p.leversWhy(h, m), h.targetsWhy()
	for _, f := range families {
		var tr steer.Trace
		h.Steer.Decide(s, &c, f, &tr)
		h.unresolved(tr.Candidates)
		e.Decisions = append(e.Decisions, tr)
	}
	return e
}

// see tells how the client was found.
func (s *SeenClient) see(found *topology.Client, c *steer.Client) {
	s.Source = c.Source.String()
	s.Prefix = netip.PrefixFrom(found.Addr, found.Bits)
	s.Block = netip.PrefixFrom(found.Addr, found.Match.Bits).Masked()
	s.Embedded = found.ECS && found.Base > 0 || !found.ECS && found.Addr != s.Transport
	if found.Special > 0 {
		s.Ignored = "special_purpose"
		s.Special = netip.PrefixFrom(s.Subnet.Addr(), found.Special+found.Base).Masked()
	}
}

// exactAddr is the address whose facts are told: the one looked up, but all of
// the subnet's address where the caller knows more than the option holds.
func exactAddr(found *topology.Client, subnet netip.Prefix) netip.Addr {
	if !found.ECS || subnet == subnet.Masked() {
		return found.Addr
	}
	addr := topology.Unembed(subnet.Addr())
	if addr.Is4() != found.Addr.Is4() { // the option is too short to tell of the IPv4 address
		return found.Addr
	}
	return addr
}
