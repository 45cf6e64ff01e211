// Package gslb is a CoreDNS plugin for global server load balancing: an
// authoritative name server that decides, for each resolution, which region's
// addresses a client gets.
package gslb

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/target"
	"github.com/seed-945f90c5/gslb/internal/topology"

	"github.com/miekg/dns"
)

const name = "gslb"

// GSLB answers for the hosts of one gslb block. Its methods may be called by
// any number of goroutines.
type GSLB struct {
	Next plugin.Handler

	zones   []string
	block   *config.Block
	live    atomic.Pointer[state]
	below   soaBelow
	labels  labels
	options plan.Options
	files   dataFiles
	health  health
	writing sync.Mutex // held by those who replace live
	find    func()     // says where the instance serves; nil: nobody knows

	// What follows is guarded by the registry's lock.
	steering    *steering // nil: not started
	ledger      *ledger   // nil: nobody controls it
	targets     map[string]*target.Target
	clock       time.Time   // the time that written levers are at; zero: now
	postponed   bool        // guards have stopped the clock
	due         time.Time   // when snapshots are to be made anew; zero: never
	targetsLate time.Time   // when addresses get too old; zero: never
	admitted    admissions  // what the law admits
	loads       [][]float64 // natural demand by host and list, in the unit of capacity
}

var (
	_ plugin.Handler     = (*GSLB)(nil)
	_ cache.ZoneBypasser = (*GSLB)(nil)
)

// state is what queries are answered from: a plan, and the snapshot of each of
// its hosts. It is replaced as a whole and never changed.
type state struct {
	plan      *plan.Plan
	snapshots []*steer.Snapshot // by plan.Host.Index
	demand    *demand           // of queries for the plan's hosts; the only thing in it that changes
	foreseen  *foreseen         // what the law admits from the moment on in which this is in service; nil: as before
}

// Name implements plugin.Handler.
func (g *GSLB) Name() string { return name }

// CacheBypassZones implements cache.ZoneBypasser: the cache plugin keys on the
// name and never on the client, so it must leave our zones alone.
func (g *GSLB) CacheBypassZones() []string { return g.zones }

// ServeDNS implements plugin.Handler.
func (g *GSLB) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	var q query
	if rcode := g.readQuery(w, r, &q); rcode != dns.RcodeSuccess {
		return rcode, nil
	}
	if r.Opcode != dns.OpcodeQuery && g.Next == nil {
		return dns.RcodeNotImplemented, nil
	}
	if q.zone == "" && g.Next == nil {
		return dns.RcodeRefused, nil
	}
	if q.zone == "" || r.Opcode != dns.OpcodeQuery || r.Question[0].Qclass != dns.ClassINET {
		return g.ask(ctx, w, &q, foreign)
	}
	s := g.live.Load()
	host, exists := s.plan.Find(q.zone, q.name)
	address := q.qtype == dns.TypeA || q.qtype == dns.TypeAAAA
	switch {
	case host != nil && (address || host.Aliases()) && chased(ctx):
		// A plugin follows its own CNAME into us through the server: refuse, so
		// that it answers the CNAME alone and nobody keeps one client's addresses
		// under a foreign name (RFC 7871, section 7.2.1). No data would not do: it
		// would put an SOA beside the CNAME, and deny that the target has any.
		return g.write(w, q.rcode(dns.RcodeRefused))
	case host != nil && address && !(host.Aliases() && !host.Steer.Offers(familyOf(q.qtype))):
		return g.steered(ctx, w, &q, s, host)
	case host != nil && host.Aliases() && q.qtype != dns.TypeAXFR && q.qtype != dns.TypeIXFR:
		return g.aliased(ctx, w, &q, s, host)
	case q.name == g.block.WhoAmI && q.qtype == dns.TypeTXT:
		return g.whoami(w, &q, s)
	case q.qtype == dns.TypeAXFR || q.qtype == dns.TypeIXFR:
		return g.transfer(ctx, w, &q)
	}
	known := exists || q.name == q.zone || q.name == g.block.WhoAmI
	return g.other(ctx, w, &q, known)
}

// steered answers A and AAAA of a host.
func (g *GSLB) steered(ctx context.Context, w dns.ResponseWriter, q *query, s *state, host *plan.Host) (int, error) {
	var client steer.Client
	var d steer.Decision
	by := g.decide(q, s, host, familyOf(q.qtype), nil, &client, &d)
	given := d.Region
	if d.Shed {
		given = steer.NoRegion // it is the name's, not the region's
	}
	s.demand.count(host.Index, &client, given)
	g.observe(ctx, q, host, &client, by, &d)
	switch d.Outcome {
	case steer.OutcomeAnswer, steer.OutcomeLastResort:
		return g.write(w, g.answer(q, &d))
	case steer.OutcomeFailed:
		return g.write(w, g.failure(q, host, &d))
	}
	return g.negative(ctx, w, q, dns.RcodeSuccess)
}

// familyOf is the family of addresses that a type holds.
func familyOf(qtype uint16) steer.Family {
	if qtype == dns.TypeAAAA {
		return steer.V6
	}
	return steer.V4
}

// decide makes the decision for a query, and tells what gave its candidate list. It fills
// in the client and the decision: the server has a goroutine for each query, whose small
// stack has to be copied to a larger one once this gets too deep.
func (g *GSLB) decide(q *query, s *state, host *plan.Host, family steer.Family, tr *steer.Trace, client *steer.Client, d *steer.Decision) topology.Kind {
	var subnet netip.Prefix
	believed := q.subnet.present && s.plan.Believes(q.transport)
	if believed {
		subnet = q.subnet.prefix
	}
	by := host.Place(client, subnet, q.transport)
	*d = host.Steer.Decide(s.snapshots[host.Index], client, family, tr)
	if !believed {
		d.Scope = 0
	}
	return by
}

// aliased answers what else is asked of a host that may answer with a name: for whom
// it does, there is a CNAME and nothing else (RFC 1034, section 3.6.2), not even for
// ANY (RFC 8482, section 4.2). It looks at what A would be answered, and takes no turn
// of it. While a target's name may be all that there is, nothing is denied.
func (g *GSLB) aliased(ctx context.Context, w dns.ResponseWriter, q *query, s *state, host *plan.Host) (int, error) {
	var trace *steer.Trace
	if host.Config.Spread == config.Balanced {
		trace = new(steer.Trace)
	}
	var client steer.Client
	var d steer.Decision
	g.decide(q, s, host, family(host), trace, &client, &d)
	switch {
	case d.Answer != nil && d.Answer.Name != "":
		return g.write(w, g.answer(q, &d))
	case d.Outcome == steer.OutcomeFailed && host.Named():
		return g.write(w, g.failure(q, host, &d))
	case q.qtype == dns.TypeA || q.qtype == dns.TypeAAAA: // which the host has not
		return g.negative(ctx, w, q, dns.RcodeSuccess)
	}
	q.scope = d.Scope
	return g.other(ctx, w, q, true)
}

// other answers all that is not steered: from the plugins below when they are
// asked for this name, else ourselves.
func (g *GSLB) other(ctx context.Context, w dns.ResponseWriter, q *query, known bool) (int, error) {
	apex := q.name == q.zone
	through := g.falls(q.name)
	address := q.qtype == dns.TypeA || q.qtype == dns.TypeAAAA
	switch {
	case q.qtype == dns.TypeANY && (known || !through):
		if !known {
			return g.negative(ctx, w, q, dns.RcodeNameError)
		}
		return g.write(w, g.minimalAny(q))
	case apex && q.qtype == dns.TypeSOA && !(through && g.below.get(ctx, g, q.zone) != nil):
		return g.write(w, g.apexSOA(q))
	case apex && q.qtype == dns.TypeNS && len(g.block.NS) > 0:
		return g.write(w, g.apexNS(q))
	case through && !(q.name == g.block.WhoAmI && address):
		role := unknown
		if known {
			role = present
		}
		return g.ask(ctx, w, q, role)
	case known:
		return g.negative(ctx, w, q, dns.RcodeSuccess)
	}
	return g.negative(ctx, w, q, dns.RcodeNameError)
}

// transfer leaves zone transfers to the plugins below: what is steered has no
// one content to transfer.
func (g *GSLB) transfer(ctx context.Context, w dns.ResponseWriter, q *query) (int, error) {
	if g.Next == nil || !g.falls(q.name) {
		return g.write(w, q.rcode(dns.RcodeRefused))
	}
	return plugin.NextOrFailure(name, g.Next, ctx, w, q.req)
}

// falls tells whether the plugins below are asked for a name.
func (g *GSLB) falls(name string) bool {
	f := g.block.Fallthrough
	if f == nil || g.Next == nil {
		return false
	}
	if len(f.Zones) == 0 {
		return true
	}
	return plugin.Zones(f.Zones).Matches(name) != ""
}

// chased tells whether the query is a look-up of the server's own, made while
// it follows a CNAME for another query.
func chased(ctx context.Context) bool {
	depth, _ := ctx.Value(dnsserver.LoopKey{}).(int)
	return depth > 0
}

// write writes a reply: from there on the plugin has answered, whatever it says.
func (g *GSLB) write(w dns.ResponseWriter, m *dns.Msg) (int, error) {
	return dns.RcodeSuccess, w.WriteMsg(m)
}
