package gslb

import (
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// query is a request as the plugin reads it, once, before anything is written:
// the server may change the request's OPT record when it writes a reply.
type query struct {
	req       *dns.Msg
	name      string // lower case
	qtype     uint16
	edns      bool // the request had an OPT record
	do        bool // and it asked for DNSSEC records
	subnet    clientSubnet
	unheeded  bool // it had a client subnet, but the block says ecs off
	transport netip.Addr
	zone      string // the longest zone of ours that holds the name; empty: none
	scope     int    // of records that aren't steered, but that others get a name for
}

// readQuery reads a request. The result is a response code: other than success,
// nothing may be done but return it.
func (g *GSLB) readQuery(w dns.ResponseWriter, r *dns.Msg, q *query) (rcode int) {
	q.req = r
	if len(r.Question) != 1 { // RFC 9619
		return dns.RcodeFormatError
	}
	q.name = strings.ToLower(r.Question[0].Name)
	q.qtype = r.Question[0].Qtype
	q.zone = g.zoneOf(q.name)
	var opt *dns.OPT
	for _, rr := range r.Extra {
		if o, ok := rr.(*dns.OPT); ok {
			if opt != nil && q.zone != "" { // RFC 6891, section 6.1.1
				return dns.RcodeFormatError
			}
			opt = o
		}
	}
	if opt != nil {
		q.edns, q.do = true, opt.Do()
		subnet, err := readSubnet(opt)
		switch {
		case g.block.ECS.Off: // as if the option were unknown to us
			q.unheeded = subnet.present || err != nil
		case err == nil:
			q.subnet = subnet
		case q.zone != "":
			return dns.RcodeFormatError
		}
	}
	q.transport = addrOf(w.RemoteAddr())
	return dns.RcodeSuccess
}

// zoneOf is the longest zone of the block that holds a name, by label.
func (g *GSLB) zoneOf(name string) string {
	best := ""
	for _, z := range g.zones {
		if len(z) > len(best) && dns.IsSubDomain(z, name) {
			best = z
		}
	}
	return best
}

// addrOf is the address a query came from; invalid when there is none.
func addrOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	case nil:
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
