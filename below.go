package gslb

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"

	"github.com/miekg/dns"
)

// role is what a name is to us when the plugins below are asked for it.
type role int

const (
	foreign role = iota // in none of our zones
	unknown             // in a zone of ours, but not known to us
	present             // it exists: NXDOMAIN from below must not stand
)

// ask has the plugins below answer, through a writer that mends their reply.
func (g *GSLB) ask(ctx context.Context, w dns.ResponseWriter, q *query, as role) (int, error) {
	b := &belowWriter{ResponseWriter: w, g: g, q: q, role: as}
	rcode, err := plugin.NextOrFailure(name, g.Next, ctx, b, q.req)
	if as == foreign || plugin.ClientWrite(rcode) || b.wrote {
		return rcode, err
	}
	if rcode == dns.RcodeServerFailure && g.below.get(ctx, g, q.zone) == nil {
		// Nobody below knows the zone, so what we know is all there is.
		if as == present {
			return g.negative(ctx, w, q, dns.RcodeSuccess)
		}
		return g.negative(ctx, w, q, dns.RcodeNameError)
	}
	if _, werr := g.write(w, q.rcode(rcode)); werr != nil {
		return dns.RcodeSuccess, werr
	}
	return dns.RcodeSuccess, err
}

// belowWriter mends the replies of plugins below us: it adds the client subnet,
// keeps names that exist from being denied, and cuts what a CNAME into a
// steered host brought along.
type belowWriter struct {
	dns.ResponseWriter
	g     *GSLB
	q     *query
	role  role
	wrote bool
}

// WriteMsg implements dns.ResponseWriter.
func (b *belowWriter) WriteMsg(reply *dns.Msg) error {
	b.wrote = true
	m := *reply // plugins may keep what they hand over
	if b.role == present && m.Rcode == dns.RcodeNameError {
		m.Rcode = dns.RcodeSuccess
	}
	b.cut(&m)
	b.clamp(&m)
	b.setOPT(&m)
	return b.ResponseWriter.WriteMsg(&m)
}

// cut ends the answer at the first CNAME into a steered host. The rest was made
// for this client, and a cache above would give it to all; the resolver asks
// for the target itself. No SOA may stand beside a CNAME: it would deny it.
func (b *belowWriter) cut(m *dns.Msg) {
	p := b.g.live.Load().plan
	for i, rr := range m.Answer {
		c, ok := rr.(*dns.CNAME)
		if !ok {
			continue
		}
		target := strings.ToLower(c.Target)
		zone := b.g.zoneOf(target)
		if zone == "" {
			continue
		}
		if h, _ := p.Find(zone, target); h == nil {
			continue
		}
		kept := make([]dns.RR, 0, i+2)
		kept = append(kept, m.Answer[:i+1]...)
		for _, rr := range m.Answer[i+1:] {
			if sig, ok := rr.(*dns.RRSIG); ok && sig.TypeCovered == dns.TypeCNAME && strings.EqualFold(sig.Hdr.Name, c.Hdr.Name) {
				kept = append(kept, sig)
			}
		}
		m.Answer, m.Ns, m.Rcode = kept, nil, dns.RcodeSuccess
		m.Extra = nil
		return
	}
}

// clamp lowers the SOA's TTL of a negative to its MINIMUM (RFC 2308, section 5),
// as in our own negatives: one zone has one negative TTL.
func (b *belowWriter) clamp(m *dns.Msg) {
	if len(m.Answer) > 0 || b.role == foreign {
		return
	}
	for i, rr := range m.Ns {
		soa, ok := rr.(*dns.SOA)
		if ok && soa.Hdr.Ttl > soa.Minttl {
			m.Ns = slices.Clone(m.Ns)
			soa = dns.Copy(soa).(*dns.SOA)
			soa.Hdr.Ttl = soa.Minttl
			m.Ns[i] = soa
		}
	}
}

// setOPT replaces the reply's OPT record by one of ours. An option for this
// very client subnet is kept, with its scope: another plugin may tailor, too.
func (b *belowWriter) setOPT(m *dns.Msg) {
	scope := 0
	if len(m.Answer) > 0 {
		scope = b.q.scope
	}
	extra := make([]dns.RR, 0, len(m.Extra)+1)
	var options []dns.EDNS0
	for _, rr := range m.Extra {
		opt, ok := rr.(*dns.OPT)
		if !ok {
			extra = append(extra, rr)
			continue
		}
		for _, o := range opt.Option {
			e, subnet := o.(*dns.EDNS0_SUBNET)
			switch {
			case !subnet:
				options = append(options, o)
			case b.q.subnet.present && b.q.subnet.matches(e):
				scope = max(scope, int(e.SourceScope))
			}
		}
	}
	m.Extra = extra
	b.q.addOPT(m, scope)
	if opt := m.IsEdns0(); opt != nil {
		opt.Option = append(opt.Option, options...)
	}
}

// soaBelow knows the SOA records that plugins below us serve for our zones.
type soaBelow struct {
	mu    sync.Mutex
	zones atomic.Pointer[map[string]*keptSOA]
}

type keptSOA struct {
	soa   *dns.SOA // nil: nobody below serves it
	until time.Time
}

// soaKept is how long the SOA of a plugin below is taken for current. Its zone
// may be loaded anew at any time; our negatives follow within this.
const soaKept = 5 * time.Second

// get gives a copy of the SOA that a plugin below serves, nil without one. A
// plugin that fails keeps the SOA it served last.
func (b *soaBelow) get(ctx context.Context, g *GSLB, zone string) *dns.SOA {
	now := time.Now()
	k := b.kept(zone)
	if k == nil || now.After(k.until) {
		b.mu.Lock()
		if k = b.kept(zone); k == nil || now.After(k.until) {
			k = b.renew(ctx, g, zone, now.Add(soaKept))
		}
		b.mu.Unlock()
	}
	if k.soa == nil {
		return nil
	}
	return dns.Copy(k.soa).(*dns.SOA)
}

func (b *soaBelow) kept(zone string) *keptSOA {
	if zones := b.zones.Load(); zones != nil {
		return (*zones)[zone]
	}
	return nil
}

// renew asks below; b.mu is held.
func (b *soaBelow) renew(ctx context.Context, g *GSLB, zone string, until time.Time) *keptSOA {
	next := make(map[string]*keptSOA)
	if zones := b.zones.Load(); zones != nil {
		for z, k := range *zones {
			next[z] = k
		}
	}
	k := &keptSOA{soa: lookupSOA(ctx, g.Next, zone), until: until}
	if k.soa == nil && next[zone] != nil {
		k.soa = next[zone].soa
	}
	next[zone] = k
	b.zones.Store(&next)
	return k
}

// lookupSOA asks a chain of plugins for the SOA of a zone.
func lookupSOA(ctx context.Context, next plugin.Handler, zone string) *dns.SOA {
	r := new(dns.Msg)
	r.SetQuestion(zone, dns.TypeSOA)
	w := nonwriter.New(loopbackWriter{})
	if _, err := plugin.NextOrFailure(name, next, ctx, w, r); err != nil || w.Msg == nil || !w.Msg.Authoritative {
		return nil
	}
	for _, rr := range w.Msg.Answer {
		if soa, ok := rr.(*dns.SOA); ok && strings.EqualFold(soa.Hdr.Name, zone) {
			return dns.Copy(soa).(*dns.SOA)
		}
	}
	return nil
}

// loopbackWriter stands for the client of a look-up of our own.
type loopbackWriter struct{ dns.ResponseWriter }

func (loopbackWriter) LocalAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 53} }
func (loopbackWriter) RemoteAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 53}
}
