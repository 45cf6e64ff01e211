package gslb

import (
	"errors"
	"net"
	"net/netip"

	"github.com/miekg/dns"
)

// clientSubnet is the EDNS Client Subnet option of a query (RFC 7871). The zero
// value means that the query had none.
type clientSubnet struct {
	present bool
	family  uint16 // 1 IPv4, 2 IPv6, 0 only with SOURCE 0
	source  uint8
	// prefix is what the option says of the client; invalid for SOURCE 0.
	prefix netip.Prefix
	addr   net.IP // ADDRESS as received, for the reply
}

// Errors of readSubnet; each is answered FORMERR.
var (
	errScope    = errors.New("client subnet with a SCOPE other than 0 in a query")
	errFamily   = errors.New("client subnet of an unknown FAMILY")
	errTrailing = errors.New("client subnet with bits set past SOURCE")
)

// readSubnet reads the first client subnet option of a query's OPT record and
// holds it to RFC 7871, section 6. What the DNS library refuses or mends while
// unpacking (lengths) can't be seen here.
func readSubnet(opt *dns.OPT) (clientSubnet, error) {
	for _, o := range opt.Option {
		if e, ok := o.(*dns.EDNS0_SUBNET); ok {
			return parseSubnet(e)
		}
	}
	return clientSubnet{}, nil
}

func parseSubnet(e *dns.EDNS0_SUBNET) (clientSubnet, error) {
	s := clientSubnet{present: true, family: e.Family, source: e.SourceNetmask}
	if e.SourceScope != 0 {
		return s, errScope
	}
	var width int
	switch e.Family {
	case 0: // old stubs opt out like this
		if e.SourceNetmask != 0 {
			return s, errFamily
		}
		return s, nil
	case 1:
		width = 32
		s.addr = e.Address.To4()
	case 2:
		width = 128
		s.addr = e.Address.To16()
	default:
		return s, errFamily
	}
	if s.addr == nil { // nothing was sent: SOURCE 0
		s.addr = make(net.IP, width/8)
	}
	addr, ok := netip.AddrFromSlice(s.addr)
	if !ok || int(e.SourceNetmask) > width {
		return s, errFamily
	}
	p := netip.PrefixFrom(addr, int(e.SourceNetmask))
	if p.Masked().Addr() != addr {
		return s, errTrailing
	}
	if e.SourceNetmask > 0 {
		s.prefix = p
	}
	return s, nil
}

// reply is the option for the reply: FAMILY, SOURCE and ADDRESS as received
// (RFC 7871, section 7.2.1), and the scope. SOURCE 0 gets scope 0.
func (s *clientSubnet) reply(scope int) *dns.EDNS0_SUBNET {
	if s.source == 0 {
		scope = 0
	}
	return &dns.EDNS0_SUBNET{
		Code:          dns.EDNS0SUBNET,
		Family:        s.family,
		SourceNetmask: s.source,
		SourceScope:   uint8(scope),
		Address:       s.addr,
	}
}

// matches tells whether an option in a reply answers this one.
func (s *clientSubnet) matches(e *dns.EDNS0_SUBNET) bool {
	return e.Family == s.family && e.SourceNetmask == s.source && e.Address.Equal(s.addr)
}
