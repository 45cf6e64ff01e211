package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/miekg/dns"
)

// nameServer is the resolver that targets are resolved through. It says that it is
// authoritative, so that resolvers can go on from it as well.
type nameServer struct {
	addr string
	mu   sync.Mutex
	says map[string]string // by name without final dot: addresses and a TTL as "ttl=N", or a response code
}

// resolves starts a resolver that knows names: "NAME ADDRESS…".
func resolves(t *testing.T, names ...string) *nameServer {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{addr: addr, says: make(map[string]string)}
	for _, text := range names {
		name, says, _ := strings.Cut(text, " ")
		n.set(name, says)
	}
	for _, network := range []string{"udp", "tcp"} {
		ready := make(chan struct{})
		s := &dns.Server{Addr: addr, Net: network, Handler: n, NotifyStartedFunc: func() { close(ready) }}
		done := make(chan error, 1)
		go func() { done <- s.ListenAndServe() }()
		select {
		case <-ready:
		case err := <-done:
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Shutdown(); <-done })
	}
	return n
}

func (n *nameServer) set(name, says string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.says[name] = says
}

// ServeDNS implements dns.Handler.
func (n *nameServer) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	q := r.Question[0]
	n.mu.Lock()
	says, known := n.says[strings.ToLower(strings.TrimSuffix(q.Name, "."))]
	n.mu.Unlock()
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	ttl := 5
	for word := range strings.FieldsSeq(says) {
		if code, ok := dns.StringToRcode[word]; ok {
			m.Rcode = code
			continue
		}
		if _, err := fmt.Sscanf(word, "ttl=%d", &ttl); err == nil {
			continue
		}
		a := netip.MustParseAddr(word)
		hdr := dns.RR_Header{Name: q.Name, Class: dns.ClassINET, Ttl: uint32(ttl), Rrtype: dns.TypeAAAA}
		switch {
		case a.Is4() && q.Qtype == dns.TypeA:
			hdr.Rrtype = dns.TypeA
			m.Answer = append(m.Answer, &dns.A{Hdr: hdr, A: a.AsSlice()})
		case a.Is6() && q.Qtype == dns.TypeAAAA:
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: hdr, AAAA: a.AsSlice()})
		}
	}
	if !known {
		m.Rcode = dns.RcodeNameError
	}
	if len(m.Answer) == 0 && m.Rcode != dns.RcodeServerFailure {
		soa, _ := dns.NewRR("example.net. 5 IN SOA ns.example.net. host.example.net. 1 5 5 5 5")
		m.Ns = []dns.RR{soa}
	}
	w.WriteMsg(m)
}

// Targets over real sockets: their addresses are probed by the target's name, and
// followed through changes, failures and a restart.
func TestTargets(t *testing.T) {
	t.Parallel()
	port := commonPort(t)
	secure, ca := certify(t, "lb.example.net")
	var asked sync.Map
	secure.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		asked.Store("SNI "+hello.ServerName, true)
		return nil, nil
	}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		asked.Store("Host "+host, true)
	})
	serves := func(n int) service {
		return listening(t, net.JoinHostPort(loopback(n), port), func(l net.Listener) func() {
			s := &http.Server{Handler: handler}
			go s.Serve(tls.NewListener(l, secure))
			return func() { s.Close() }
		})
	}
	first := serves(151)
	serves(152)
	names := resolves(t, "lb.example.net "+loopback(151)+" "+loopback(152))
	p := run(t, fmt.Sprintf(`example.com:53 {
    errors
    gslb {
        region a b
        clients rest { order a b }
        resolvers %s
        state %s
        check web {
            https :%s /healthz
            authority each
            ca %s
            interval 1s
            timeout 1s
            fall 2
            rise 2
        }
        host www.example.com {
            pool a {
                check web
                target lb.example.net
                keep 1h
            }
            pool b 192.0.2.9
        }
        host only.example.com {
            order a
            pool a { target missing.example.net }
        }
    }
}
`, names.addr, t.TempDir(), port, ca))
	is := func(what, want string) {
		t.Helper()
		got := ""
		eventually(t, fmt.Sprintf("%s: got %s, want %s\n%s", what, got, want, p.out), func() bool {
			got = brief(ask(t, p.addr, "www.example.com A"))
			return got == want
		})
	}
	is("resolved", loopback(151)+" "+loopback(152))
	for _, want := range []string{"SNI lb.example.net", "Host lb.example.net"} {
		eventually(t, want, func() bool { _, ok := asked.Load(want); return ok })
	}
	for _, qtype := range []string{"A", "AAAA"} {
		if got := brief(ask(t, p.addr, "only.example.com "+qtype)); got != "SERVFAIL" {
			t.Errorf("a name that can't be resolved: %s is %s", qtype, got)
		}
	}
	first.breaks()
	is("one is dead", loopback(152))
	names.set("lb.example.net", "SERVFAIL")
	p.end(t, syscall.SIGTERM)
	p.begin(t)
	if got := brief(ask(t, p.addr, "www.example.com A")); got != loopback(152) {
		t.Errorf("after a restart without a resolver: %s", got)
	}
	names.set("lb.example.net", "127.0.3.153 127.0.3.154")
	is("two that nobody listens on come, and are found dead", "192.0.2.9")
	asked.Range(func(key, _ any) bool {
		if key != "SNI lb.example.net" && key != "Host lb.example.net" {
			t.Errorf("a probe asked for %s", key)
		}
		return true
	})
}

// balancerFile is a zone with a host that answers a name to clients of 198.51.96.0/20,
// and addresses to all others.
func balancerFile(t *testing.T, resolver, plugins string) string {
	t.Helper()
	file := writeFile(t, t.TempDir(), "db.example.com", zoneText+"lb IN TXT \"beside it\"\nfront IN CNAME lb\n")
	return fmt.Sprintf(`example.com:53 {
    %s
    gslb {
        spread resolver
        resolvers %s
        region a { clients prefix 198.51.96.0/20 }
        region b { clients rest }
        host lb.example.com *.balanced.example.com {
            pool a {
                target elb.example.net
                cname
            }
            pool b 192.0.2.2
        }
        fallthrough
    }
    file %s
}
`, plugins, resolver, file)
}

// serveBalancer starts it, and waits until the target is resolved.
func serveBalancer(t *testing.T, plugins string) *server {
	t.Helper()
	s := serve(t, balancerFile(t, resolves(t, "elb.example.net 192.0.2.77").addr, plugins))
	eventually(t, "the target is resolved", func() bool { return metric(t, "coredns_gslb_endpoint_state", "endpoint", "192.0.2.77") > 0 })
	if n := metric(t, "coredns_gslb_target_addresses"); n != 1 {
		t.Errorf("targets have %v addresses", n)
	}
	return s
}

// d10, d29: names in place of addresses, beside a zone file.
func TestBalancerNames(t *testing.T) {
	const a, b = " +subnet=198.51.99.0/24", " +subnet=203.0.113.0/24"
	serveBalancer(t, "").check(t, []exchangeCase{
		{"A", "lb.example.com A" + a, "CNAME elb.example.net. /20"},
		{"AAAA", "lb.example.com AAAA" + a, "CNAME elb.example.net. /20"},
		{"HTTPS", "lb.example.com HTTPS" + a, "CNAME elb.example.net. /20"},
		{"CNAME", "lb.example.com CNAME" + a, "CNAME elb.example.net. /20"},
		{"ANY", "lb.example.com ANY" + a, "CNAME elb.example.net. /20"},
		{"what the file has beside it", "lb.example.com TXT" + a, "CNAME elb.example.net. /20"},
		{"wildcard", "x.balanced.example.com MX" + a, "CNAME elb.example.net. /20"},
		{"without subnet", "lb.example.com A", "192.0.2.2"},
		{"over TCP", "lb.example.com A +tcp" + a, "CNAME elb.example.net. /20"},
		{"another client", "lb.example.com A" + b, "192.0.2.2 /5"},
		{"another client, AAAA", "lb.example.com AAAA" + b, "NODATA /0"},
		{"another client, HTTPS", "lb.example.com HTTPS" + b, "NODATA /0"},
		{"another client, file", "lb.example.com TXT" + b, `TXT "beside it" /5`},
		{"another client, ANY", "lb.example.com ANY" + b, `HINFO "RFC8482" "" /5`},
		{"an alias of the file", "front.example.com A" + a, "CNAME lb.example.com. /0"},
		{"the same for others", "front.example.com A" + b, "CNAME lb.example.com. /0"},
		{"another type", "front.example.com TXT" + a, "CNAME lb.example.com. /0"},
		{"another type for others", "front.example.com TXT" + b, "CNAME lb.example.com. /0"},
	})
	if n := metric(t, "coredns_gslb_target_failing"); n != 0 {
		t.Errorf("%v targets are failing", n)
	}
}

// Names are signed as addresses are.
func TestBalancerNamesSigned(t *testing.T) {
	key, path := makeKey(t, t.TempDir(), "example.com")
	s := serveBalancer(t, "dnssec {\n key file "+path+"\n}")
	for _, question := range []string{
		"lb.example.com A", "lb.example.com AAAA", "lb.example.com TXT", "lb.example.com HTTPS", "lB.eXample.com A", "x.balanced.example.com A", "front.example.com A",
	} {
		for _, subnet := range []string{"198.51.99.0/24", "203.0.113.0/24"} {
			q := question + " +do +subnet=" + subnet
			r := s.exchange(t, q)
			types := verify(t, q, key, r)
			if len(types) == 0 || r.Rcode != dns.RcodeSuccess {
				t.Errorf("%s: nothing is signed in\n%s", q, r)
			}
			if want := strings.HasPrefix(subnet, "198") || strings.HasPrefix(question, "front"); types[dns.TypeCNAME] != want {
				t.Errorf("%s: a CNAME is signed: %v in\n%s", q, types[dns.TypeCNAME], r)
			}
		}
	}
}
