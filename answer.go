package gslb

import (
	"context"
	"net"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"

	"github.com/miekg/dns"
)

// Times of the SOA that we make ourselves, in seconds. Nobody transfers a
// steered zone; they are the customary ones.
const (
	soaTTL     = 3600
	soaRefresh = 7200
	soaRetry   = 1800
	soaExpire  = 86400
	anyTTL     = 3600
	nsTTL      = 3600
)

// addresses is the form in which an answer is kept for the query path.
type addresses []net.IP

// prepare makes the addresses of an answer, once per answer. An answer that is a
// name has none.
func prepare(_ *config.Host, a *steer.Answer) any {
	ips := make(addresses, len(a.Addrs))
	for i, addr := range a.Addrs {
		ips[i] = addr.AsSlice()
	}
	return ips
}

// message starts a reply: authoritative, with our own OPT record when the query
// had one, and in it the client subnet with scope 0 but for what differs. Our own OPT also keeps the
// server from sending back whatever the client's held.
func (q *query) message() *dns.Msg { return q.scoped(dns.RcodeSuccess, q.scope) }

func (q *query) rcode(rcode int) *dns.Msg { return q.scoped(rcode, 0) }

func (q *query) scoped(rcode, scope int) *dns.Msg {
	m := new(dns.Msg)
	m.SetRcode(q.req, rcode)
	m.Authoritative = rcode != dns.RcodeRefused && rcode != dns.RcodeServerFailure
	q.addOPT(m, scope)
	return m
}

// addOPT gives the reply an OPT record if the query had one (RFC 6891, section
// 7), and the client subnet if there was one to answer.
func (q *query) addOPT(m *dns.Msg, scope int) {
	if !q.edns {
		return
	}
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	if q.do {
		opt.SetDo()
	}
	if q.subnet.present {
		opt.Option = []dns.EDNS0{q.subnet.reply(scope)}
	}
	m.Extra = append(m.Extra, opt)
}

// owner is the owner name of our records: as asked, for resolvers that mix its
// case to be hard to spoof, but in lower case for signers, which keep a
// signature for each spelling.
func (q *query) owner() string {
	if q.do {
		return q.name
	}
	return q.req.Question[0].Name
}

// answer is the reply that gives a decision's addresses.
func (g *GSLB) answer(q *query, d *steer.Decision) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q.req)
	m.Authoritative = true
	q.addOPT(m, d.Scope)
	hdr := dns.RR_Header{Name: q.owner(), Rrtype: q.qtype, Class: dns.ClassINET, Ttl: d.TTL}
	if d.Answer.Name != "" {
		hdr.Rrtype = dns.TypeCNAME
		m.Answer = []dns.RR{&dns.CNAME{Hdr: hdr, Target: d.Answer.Name}}
		return m
	}
	ips := d.Answer.Prepared.(addresses)
	m.Answer = make([]dns.RR, len(ips))
	if q.qtype == dns.TypeA {
		rrs := make([]dns.A, len(ips))
		for i, ip := range ips {
			rrs[i] = dns.A{Hdr: hdr, A: ip}
			m.Answer[i] = &rrs[i]
		}
		return m
	}
	rrs := make([]dns.AAAA, len(ips))
	for i, ip := range ips {
		rrs[i] = dns.AAAA{Hdr: hdr, AAAA: ip}
		m.Answer[i] = &rrs[i]
	}
	return m
}

// failure is SERVFAIL with the reason (RFC 8914). Its scope is the decision's:
// a failure for some clients must not be kept for others.
func (g *GSLB) failure(q *query, host *plan.Host, d *steer.Decision) *dns.Msg {
	m := new(dns.Msg)
	m.SetRcode(q.req, dns.RcodeServerFailure)
	q.addOPT(m, d.Scope)
	if opt := m.IsEdns0(); opt != nil {
		text := failureTexts[d.Reason]
		if host.Unknown() {
			text = "the host's targets can't be resolved"
		}
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeOther, ExtraText: text})
	}
	return m
}

var failureTexts = map[steer.Reason]string{
	steer.ReasonClosed:      "no endpoint is healthy and last_resort is closed",
	steer.ReasonAllDrained:  "every endpoint is drained",
	steer.ReasonNothingLeft: "the last resort has no endpoint for this client",
}

// negative is NODATA or NXDOMAIN: the zone's SOA with TTL min(TTL, MINIMUM)
// (RFC 2308, section 5), and scope 0, since resolvers share negatives between
// clients whatever the scope (RFC 7871, section 7.4).
func (g *GSLB) negative(ctx context.Context, w dns.ResponseWriter, q *query, rcode int) (int, error) {
	m := q.rcode(rcode)
	soa := g.soa(ctx, w, q.zone)
	soa.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl)
	m.Ns = []dns.RR{soa}
	return g.write(w, m)
}

// soa is a copy of the zone's SOA: that of a plugin below if one serves it.
func (g *GSLB) soa(ctx context.Context, w dns.ResponseWriter, zone string) *dns.SOA {
	if g.falls(zone) {
		if soa := g.below.get(ctx, g, zone); soa != nil {
			return soa
		}
	}
	return g.ownSOA(zone)
}

// ownSOA is the SOA that we make. Its serial is a digest of the configuration,
// the same on every instance.
func (g *GSLB) ownSOA(zone string) *dns.SOA {
	soa := &dns.SOA{
		Hdr:     dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: soaTTL},
		Ns:      zone,
		Mbox:    "hostmaster." + zone,
		Serial:  uint32(g.live.Load().plan.Config),
		Refresh: soaRefresh, Retry: soaRetry, Expire: soaExpire,
		Minttl: 10,
	}
	if zone == "." {
		soa.Mbox = "hostmaster."
	}
	if len(g.block.NS) > 0 {
		soa.Ns = g.block.NS[0]
	}
	if s := g.block.SOA; s != nil {
		soa.Ns, soa.Mbox, soa.Minttl = s.MName, s.RName, uint32(s.Minimum.Seconds())
	}
	return soa
}

func (g *GSLB) apexSOA(q *query) *dns.Msg {
	m := q.message()
	m.Answer = []dns.RR{g.ownSOA(q.zone)}
	return m
}

func (g *GSLB) apexNS(q *query) *dns.Msg {
	m := q.message()
	for _, ns := range g.block.NS {
		m.Answer = append(m.Answer, &dns.NS{
			Hdr: dns.RR_Header{Name: q.zone, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: nsTTL},
			Ns:  ns,
		})
	}
	return m
}

// minimalAny answers ANY as RFC 8482, section 4.2, has it.
func (g *GSLB) minimalAny(q *query) *dns.Msg {
	m := q.message()
	m.Answer = []dns.RR{&dns.HINFO{
		Hdr: dns.RR_Header{Name: q.owner(), Rrtype: dns.TypeHINFO, Class: dns.ClassINET, Ttl: anyTTL},
		Cpu: "RFC8482",
	}}
	return m
}
