package target

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// read has an answer read that f makes of a query.
func read(t testing.TB, qtype dnsmessage.Type, f func(message) message) (finding, error) {
	t.Helper()
	query, err := newQuery(7, "lb.test.", qtype)
	if err != nil {
		t.Fatal(err)
	}
	all := replies(t, query, func(m message) []message { return []message{f(m)} })
	return readAnswer(all[0], query)
}

func TestAnswers(t *testing.T) {
	chain := func(n int) (records []string) {
		name := "lb.test."
		for i := range n {
			next := fmt.Sprintf("c%d.test.", i)
			records = append(records, fmt.Sprintf("%s 60 CNAME %s", name, next))
			name = next
		}
		return append(records, name+" 60 A 192.0.2.1")
	}
	many := func(n int) (records []string) {
		for i := range n {
			records = append(records, fmt.Sprintf("lb.test. 60 A 10.0.0.%d", 200-i))
		}
		return records
	}
	const a, aaaa = dnsmessage.TypeA, dnsmessage.TypeAAAA
	for _, tc := range []struct {
		name    string
		qtype   dnsmessage.Type
		rcode   dnsmessage.RCode
		records []string
		want    string
	}{
		{"sorted", a, 0, []string{"lb.test. 60 A 192.0.2.9", "lb.test. 30 A 10.0.0.1", "lb.test. 60 A 127.0.0.1"}, "10.0.0.1 127.0.0.1 192.0.2.9 for 30s"},
		{"twice", a, 0, []string{"lb.test. 60 A 192.0.2.9", "lb.test. 60 A 192.0.2.9"}, "192.0.2.9 for 1m0s"},
		{"ipv6", aaaa, 0, []string{"lb.test. 60 AAAA fe80::1", "lb.test. 60 AAAA ::1"}, "::1 fe80::1 for 1m0s"},
		{"short", a, 0, []string{"lb.test. 0 A 192.0.2.9"}, "192.0.2.9 for 5s"},
		{"long", a, 0, []string{"lb.test. 86400 A 192.0.2.9"}, "192.0.2.9 for 1h0m0s"},
		{"longer than can be", a, 0, []string{"lb.test. 2147483648 A 192.0.2.9"}, "192.0.2.9 for 5s"},
		{"chain", a, 0, []string{"b.test. 9 CNAME c.test.", "c.test. 60 A 192.0.2.1", "LB.test. 60 CNAME B.test."}, "192.0.2.1 for 9s"},
		{"long chain", a, 0, chain(maxChain), "192.0.2.1 for 1m0s"},
		{"too long a chain", a, 0, chain(maxChain + 1), "the answer is a chain of more than 16 CNAMEs, or a loop"},
		{"loop", a, 0, []string{"lb.test. 60 CNAME b.test.", "b.test. 60 CNAME lb.test."}, "the answer is a chain of more than 16 CNAMEs, or a loop"},
		{"loop of one", a, 0, []string{"lb.test. 60 CNAME lb.test."}, "the answer is a chain of more than 16 CNAMEs, or a loop"},
		{"same CNAME twice", a, 0, []string{"lb.test. 60 CNAME b.test.", "lb.test. 60 CNAME B.test.", "b.test. 60 A 192.0.2.1"}, "192.0.2.1 for 1m0s"},
		{"two CNAMEs", a, 0, []string{"lb.test. 60 CNAME b.test.", "lb.test. 60 CNAME c.test."}, "a name in the answer has two different CNAMEs"},
		{"CNAME and address", a, 0, []string{"lb.test. 60 CNAME b.test.", "lb.test. 60 A 192.0.2.1"}, "a name in the answer has a CNAME and addresses"},
		{"records of others", a, 0, []string{"lb.test. 60 A 192.0.2.1", "other.test. 1 A 203.0.113.66", "lb.test. 1 AAAA 2001:db8::66", "lb.test. 1 TXT x"}, "192.0.2.1 for 1m0s"},
		{"records of others only", a, 0, []string{"other.test. 1 A 203.0.113.66"}, "nothing for 1m0s"},
		{"other type only", a, 0, []string{"lb.test. 60 AAAA 2001:db8::66", "test. 60 SOA 20"}, "nothing for 20s"},
		{"nothing", a, 0, nil, "nothing for 1m0s"},
		{"nothing, by its SOA", a, 0, []string{"test. 30 SOA 90"}, "nothing for 30s"},
		{"nothing, for long", a, 0, []string{"test. 86400 SOA 3600"}, "nothing for 1m0s"},
		{"nothing, for short", a, 0, []string{"test. 60 SOA 0"}, "nothing for 5s"},
		{"nothing behind a chain", a, 0, []string{"lb.test. 7 CNAME b.test.", "test. 60 SOA 60"}, "nothing for 7s"},
		{"nxdomain", a, 3, []string{"test. 60 SOA 60"}, "nothing for 1m0s"},
		{"nxdomain behind a chain", a, 3, []string{"lb.test. 60 CNAME b.test."}, "nothing for 1m0s"},
		{"nxdomain and addresses", a, 3, []string{"lb.test. 60 A 192.0.2.1"}, "the resolver says NXDOMAIN, yet there are addresses"},
		{"referral", a, 0, []string{"test. 60 NS ns.test."}, "the resolver refers to others: it doesn't resolve names for us"},
		{"nothing, and who said so", a, 0, []string{"test. 60 NS ns.test.", "test. 60 SOA 60"}, "nothing for 1m0s"},
		{"servfail", a, 2, nil, "the resolver says SERVFAIL"},
		{"odd code", a, 14, []string{"lb.test. 60 A 192.0.2.1"}, "the resolver says response code 14"},
		{"unspecified", a, 0, []string{"lb.test. 60 A 0.0.0.0"}, "address 0.0.0.0 is unspecified, it is not used"},
		{"broadcast", a, 0, []string{"lb.test. 60 A 255.255.255.255"}, "address 255.255.255.255 is multicast or broadcast, it is not used"},
		{"multicast", aaaa, 0, []string{"lb.test. 60 AAAA ff02::1"}, "address ff02::1 is multicast or broadcast, it is not used"},
		{"mapped", aaaa, 0, []string{"lb.test. 60 AAAA ::ffff:192.0.2.1"}, "address ::ffff:192.0.2.1 is an IPv4 address mapped to IPv6, it is not used: it belongs into an A record"},
		{"one of them usable", aaaa, 0, []string{"lb.test. 60 AAAA ::", "lb.test. 60 AAAA 2001:db8::1"}, "2001:db8::1 for 1m0s but address :: is unspecified, it is not used"},
		{"as many as may be", a, 0, many(MaxAddrs), words(addrs("10.0.0.", 137, 200)) + " for 1m0s"},
		{"too many", a, 0, many(MaxAddrs + 3), words(addrs("10.0.0.", 134, 197)) + " for 1m0s but the answer holds 67 addresses, only the lowest 64 are used"},
	} {
		f, err := read(t, tc.qtype, func(m message) message { return with(code(m, tc.rcode), tc.records...) })
		got := fmt.Sprintf("%s for %v", words(f.addrs), f.ttl)
		switch {
		case err != nil:
			got = err.Error()
		case f.none:
			got = fmt.Sprintf("nothing for %v", f.ttl)
		case f.err != nil:
			got += " but " + f.err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
		if err != nil && (f.good() || f.none) {
			t.Errorf("%s: a finding with an error", tc.name)
		}
	}
}

func addrs(net string, from, to int) (all []netip.Addr) {
	for i := from; i <= to; i++ {
		all = append(all, netip.MustParseAddr(fmt.Sprint(net, i)))
	}
	return all
}

func TestOtherClassesDontCount(t *testing.T) {
	f, err := read(t, dnsmessage.TypeA, func(m message) message {
		m = with(m, "lb.test. 60 A 203.0.113.66", "lb.test. 60 A 192.0.2.1")
		m.Answers[0].Header.Class = dnsmessage.ClassCHAOS
		return m
	})
	if err != nil || words(f.addrs) != "192.0.2.1" {
		t.Errorf("%v %v", f, err)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 62)+".", 4) // 252 characters
	for text, want := range map[string]string{
		"LB-1.Example.NET":      "lb-1.example.net.",
		"lb.test.":              "lb.test.",
		"_x.test":               "_x.test.",
		long + "a":              long + "a.",
		long + "ab":             "",
		strings.Repeat("a", 64): "",
		"":                      "",
		".":                     "",
		"a..b":                  "",
		".a":                    "",
		"a b":                   "",
		"a.*.b":                 "",
		"192.0.2.1:53":          "",
		"ü.test":                "",
		"aüb.test":              "",
		"\u212a.test":           "", // the Kelvin sign, which is k in lower case
		"a\x00b":                "",
	} {
		got, err := parseName(text)
		if (err == nil) != (want != "") || got != want {
			t.Errorf("%q: got %q %v, want %q", text, got, err, want)
		}
		if err == nil {
			if _, err := newQuery(0, got, dnsmessage.TypeA); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for _, list := range [][]string{nil, {"192.0.2.1"}, {"192.0.2.1:0"}, {"dns.test:53"}, {""}, slices.Repeat([]string{"192.0.2.1:53"}, MaxServers+1)} {
		if _, err := parseServers(list); err == nil {
			t.Errorf("%q: no error", list)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	query, err := newQuery(7, "lb.test.", dnsmessage.TypeA)
	if err != nil {
		f.Fatal(err)
	}
	for _, records := range [][]string{
		{"lb.test. 60 A 192.0.2.1", "lb.test. 0 A 0.0.0.0"}, {"lb.test. 60 CNAME b.test.", "b.test. 60 A 192.0.2.1"},
		{"lb.test. 60 CNAME lb.test."}, {"test. 60 SOA 60"}, {"test. 60 NS ns.test."}, {"lb.test. 60 AAAA ::ffff:1.2.3.4"},
	} {
		f.Add(replies(f, query, func(m message) []message { return []message{with(m, records...)} })[0])
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		found, err := readAnswer(answer, query)
		if err != nil {
			if found.good() || found.none || found.ttl != 0 || found.err != nil {
				t.Errorf("%v and %v", found, err)
			}
			return
		}
		longest := maxTTL
		if found.none {
			longest = maxNegative
		}
		if found.good() == found.none || found.ttl < minTTL || found.ttl > longest || len(found.addrs) > MaxAddrs {
			t.Errorf("%+v", found)
		}
		for i, a := range found.addrs {
			if !a.Is4() || unusable(a) != nil || i > 0 && !found.addrs[i-1].Less(a) {
				t.Errorf("%v", found.addrs)
			}
		}
	})
}
