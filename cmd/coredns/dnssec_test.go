package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// makeKey makes a DNSSEC key of a zone in dir and gives the path of its files
// without the suffix.
func makeKey(t *testing.T, dir, zone string) (*dns.DNSKEY, string) {
	t.Helper()
	key := &dns.DNSKEY{
		Hdr:   dns.RR_Header{Name: dns.Fqdn(zone), Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600},
		Flags: dns.ZONE | dns.SEP, Protocol: 3, Algorithm: dns.ECDSAP256SHA256,
	}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	base := fmt.Sprintf("K%s+%03d+%05d", key.Hdr.Name, key.Algorithm, key.KeyTag())
	writeFile(t, dir, base+".key", key.String()+"\n")
	writeFile(t, dir, base+".private", key.PrivateKeyString(private))
	return key, filepath.Join(dir, base)
}

// signed is the steered zone with its file, signed on the fly.
func signed(t *testing.T) (*dns.DNSKEY, string) {
	t.Helper()
	key, path := makeKey(t, t.TempDir(), "example.com")
	return key, withFile(t, "dnssec {\n key file "+path+"\n}")
}

// Every variant is signed: each set of records has a signature that holds.
func TestDNSSECSignsEverything(t *testing.T) {
	key, corefile := signed(t)
	s := serve(t, corefile)
	clients := []string{"198.51.96.0/24", "198.51.99.0/24", "203.0.113.0/24", "8.8.8.0/24", "2001:db8:1::/56"}
	for _, c := range []struct {
		name, question string
		answer, denial bool
	}{
		{"positive", "www.example.com A", true, false},
		{"positive AAAA", "www.example.com AAAA", true, false},
		{"wildcard", "x.wild.example.com A", true, false},
		{"mixed case", "wWw.eXAmple.Com A", true, false},
		{"apex SOA", "example.com SOA", true, false},
		{"apex NS", "example.com NS", true, false},
		{"apex DNSKEY", "example.com DNSKEY", true, false},
		{"from the file", "static.example.com A", true, false},
		{"CNAME into a steered name", "alias.example.com A", true, false},
		{"NODATA, steered", "v4.example.com AAAA", false, true},
		{"NODATA, another type", "www.example.com HTTPS", false, true},
		{"NODATA, empty non-terminal", "ent.example.com A", false, true},
		{"NODATA, mixed case", "wWw.eXAmple.Com MX", false, true},
		{"NXDOMAIN", "missing.example.com A", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, subnet := range clients {
				q := c.question + " +do +subnet=" + subnet
				r := s.exchange(t, q)
				if r.Rcode != dns.RcodeSuccess || !r.Authoritative || (len(r.Answer) > 0) != c.answer {
					t.Errorf("%s: %s", q, brief(r))
				}
				types := verify(t, q, key, r)
				if c.denial && (!types[dns.TypeNSEC] || !types[dns.TypeSOA]) {
					t.Errorf("%s: a denial without NSEC or SOA:\n%s", q, r)
				}
			}
			if r := s.exchange(t, c.question+" +subnet=8.8.8.0/24"); strings.Contains(r.String(), "RRSIG") || strings.Contains(r.String(), "NSEC") {
				t.Errorf("signatures that were not asked for:\n%s", r)
			}
		})
	}
}

// verify checks that each set of records has a valid signature, and gives the
// types that were signed.
func verify(t *testing.T, what string, key *dns.DNSKEY, r *dns.Msg) map[uint16]bool {
	t.Helper()
	signed := make(map[uint16]bool)
	for _, section := range [][]dns.RR{r.Answer, r.Ns} {
		sets := make(map[string][]dns.RR)
		var sigs []*dns.RRSIG
		for _, rr := range section {
			if sig, ok := rr.(*dns.RRSIG); ok {
				sigs = append(sigs, sig)
				continue
			}
			sets[setKey(rr.Header().Name, rr.Header().Rrtype)] = append(sets[setKey(rr.Header().Name, rr.Header().Rrtype)], rr)
		}
		for _, sig := range sigs {
			k := setKey(sig.Hdr.Name, sig.TypeCovered)
			if err := sig.Verify(key, sets[k]); err != nil || !sig.ValidityPeriod(time.Now()) {
				t.Errorf("%s: signature of %s: %v\n%s", what, k, err, r)
			}
			signed[sig.TypeCovered] = true
			delete(sets, k)
		}
		for k := range sets {
			t.Errorf("%s: no signature of %s in\n%s", what, k, r)
		}
	}
	return signed
}

func setKey(name string, qtype uint16) string {
	return strings.ToLower(name) + " " + dns.TypeToString[qtype]
}

// b90: there are few distinct answers, so that signatures are made once. A
// resolver that mixes the case of names, in each query anew, costs none.
func TestDNSSECSignaturesAreKept(t *testing.T) {
	_, corefile := signed(t)
	s := serve(t, corefile)
	random := rand.New(rand.NewPCG(1, 2))
	ask := func() {
		for _, subnet := range []string{"198.51.96.0/24", "198.51.99.0/24", "203.0.113.0/24", "8.8.8.0/24"} {
			for _, name := range []string{"www.example.com", "deep.ent.example.com"} {
				for _, qtype := range []string{"A", "AAAA"} {
					s.exchange(t, mixCase(random, name)+" "+qtype+" +do +subnet="+subnet)
				}
			}
		}
	}
	count := func(what string) float64 {
		return metric(t, "coredns_dnssec_cache_"+what+"_total", "server", "dns://"+s.addr)
	}
	ask()
	misses, hits := count("misses"), count("hits")
	const rounds = 20
	for range rounds {
		ask()
	}
	if n := count("misses") - misses; n != 0 {
		t.Errorf("%v signatures were made in the steady state, want none", n)
	}
	if n := count("hits") - hits; n != rounds*16 {
		t.Errorf("%v signatures were found, want %d", n, rounds*16)
	}
}

// mixCase is a name as resolvers write it that want to be hard to spoof.
func mixCase(random *rand.Rand, name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'a' <= c && c <= 'z' && random.IntN(2) == 0 {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}
