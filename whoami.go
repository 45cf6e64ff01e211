package gslb

import (
	"fmt"
	"net/netip"

	"github.com/miekg/dns"
)

// whoami answers the diagnostic name with what the server sees of the client,
// and the region that a host with pools everywhere would try first. The answer
// is this client's alone: TTL 0, and the scope is all that was sent.
func (g *GSLB) whoami(w dns.ResponseWriter, q *query, s *state) (int, error) {
	var subnet netip.Prefix
	ecs := "none"
	scope := 0
	if q.unheeded {
		ecs = "ignored (ecs off)"
	}
	if q.subnet.present {
		ecs = fmt.Sprintf("%s/%d", q.subnet.addr, q.subnet.source)
		if q.subnet.addr == nil {
			ecs = "/0"
		}
		if s.plan.Believes(q.transport) {
			subnet = q.subnet.prefix
			scope = int(q.subnet.source)
		} else {
			ecs += " (not believed)"
		}
	}
	anyone := s.plan.Anyone()
	c := anyone.Locate(subnet, q.transport)
	held := c.Block + c.ScopeBase
	m := q.message()
	m.Extra = nil
	q.addOPT(m, scope)
	m.Answer = []dns.RR{&dns.TXT{
		Hdr: dns.RR_Header{Name: q.owner(), Rrtype: dns.TypeTXT, Class: dns.ClassINET},
		Txt: []string{
			"transport=" + q.transport.String(),
			"ecs=" + ecs,
			"source=" + c.Source.String(),
			fmt.Sprintf("scope=%d", held),
			"region=" + anyone.First(c.List),
		},
	}}
	return g.write(w, m)
}
