package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// brief tells a reply in a few words: the addresses, other records as "TYPE
// DATA", or else NODATA, NXDOMAIN (both with the zone's SOA), DELEGATED (to its
// name servers), or the response code; then "/SCOPE" if there is a client subnet.
func brief(r *dns.Msg) string {
	var words []string
	for _, rr := range r.Answer {
		words = append(words, data(rr))
	}
	slices.Sort(words)
	soa := slices.ContainsFunc(r.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeSOA })
	ns := slices.ContainsFunc(r.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeNS })
	switch {
	case r.Rcode == dns.RcodeSuccess && len(words) == 0 && soa && r.Authoritative:
		words = []string{"NODATA"}
	case r.Rcode == dns.RcodeSuccess && len(words) == 0 && ns && !r.Authoritative:
		words = []string{"DELEGATED"}
	case r.Rcode == dns.RcodeSuccess && len(words) == 0:
		words = []string{"EMPTY"}
	case r.Rcode == dns.RcodeNameError && !(soa && r.Authoritative):
		words = append(words, "NXDOMAIN without SOA")
	case r.Rcode != dns.RcodeSuccess:
		words = append(words, dns.RcodeToString[r.Rcode])
	case !r.Authoritative:
		words = append(words, "not authoritative")
	case soa:
		words = append(words, "and SOA")
	}
	if s := subnets(r); len(s) == 1 {
		words = append(words, fmt.Sprintf("/%d", s[0].SourceScope))
	}
	return strings.Join(words, " ")
}

// data is a record without owner and TTL.
func data(rr dns.RR) string {
	switch rr := rr.(type) {
	case *dns.A:
		return rr.A.String()
	case *dns.AAAA:
		return rr.AAAA.String()
	case *dns.RRSIG:
		return "RRSIG(" + dns.TypeToString[rr.TypeCovered] + ")"
	case *dns.SOA:
		return "SOA " + rr.Ns
	}
	return dns.TypeToString[rr.Header().Rrtype] + " " + strings.TrimPrefix(rr.String(), rr.Header().String())
}

// exchangeCase is a question and what brief makes of the reply.
type exchangeCase struct{ name, query, want string }

func (s *server) check(t *testing.T, cases []exchangeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := brief(s.exchange(t, c.query)); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.query, got, c.want)
			}
		})
	}
}
