//go:build e2e

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// delv validates names in place of addresses.
func TestDelvNames(t *testing.T) {
	delv := tool(t, "delv", "-v")
	key, path := makeKey(t, t.TempDir(), "example.com")
	corefile := balancerFile(t, resolves(t, "elb.example.net 192.0.2.77").addr, "dnssec {\n key file "+path+"\n}")
	s := serve(t, strings.Replace(corefile, "198.51.96.0/20", "127.1.0.0/16", 1))
	eventually(t, "the target is resolved", func() bool { return metric(t, "coredns_gslb_endpoint_state", "endpoint", "192.0.2.77") > 0 })
	anchor := writeFile(t, t.TempDir(), "anchor", fmt.Sprintf("trust-anchors { \"example.com.\" static-key %d %d %d %q; };\n",
		key.Flags, key.Protocol, key.Algorithm, key.PublicKey))
	for _, c := range []struct{ from, question, want string }{
		{"127.1.0.1", "lb.example.com CNAME", "elb.example.net."},
		{"127.1.0.1", "x.balanced.example.com CNAME", "elb.example.net."},
		{"127.2.0.1", "lb.example.com A", "192.0.2.2"},
		{"127.2.0.1", "lb.example.com AAAA", "negative response, fully validated"},
		{"127.2.0.1", "lb.example.com CNAME", "negative response, fully validated"},
	} {
		args := append([]string{"-b", c.from, "-a", anchor, "+root=example.com"}, strings.Fields(c.question)...)
		if out := output(t, delv, s.addr, args...); !strings.Contains(out, "fully validated") || !strings.Contains(out, c.want) {
			t.Errorf("%s from %s: want it fully validated, and %q, in\n%s", c.question, c.from, c.want, out)
		}
	}
}

// unbound goes on from our name to the addresses that others serve, for each client
// as it should.
func TestUnboundFollowsNames(t *testing.T) {
	unbound := tool(t, "unbound", "-V")
	elsewhere := resolves(t, "elb.example.net 192.0.2.77 ttl=60")
	s := serve(t, balancerFile(t, elsewhere.addr, ""))
	eventually(t, "the target is resolved", func() bool { return metric(t, "coredns_gslb_endpoint_state", "endpoint", "192.0.2.77") > 0 })
	port, dir := freePort(t), t.TempDir()
	config := writeFile(t, dir, "unbound.conf", fmt.Sprintf(`server:
    interface: 127.0.0.1
    port: %[1]s
    do-daemonize: no
    username: ""
    chroot: ""
    directory: "%[2]s"
    pidfile: ""
    use-syslog: no
    num-threads: 1
    module-config: "subnetcache iterator"
    send-client-subnet: 127.0.0.1
    client-subnet-always-forward: yes
    do-not-query-localhost: no
    access-control: 127.0.0.0/8 allow
    qname-minimisation: no
    target-fetch-policy: "0 0 0 0 0"
stub-zone:
    name: "example.com"
    stub-addr: 127.0.0.1@%[3]s
stub-zone:
    name: "example.net"
    stub-addr: 127.0.0.1@%[4]s
remote-control:
    control-enable: no
`, port, dir, portOf(s.addr), portOf(elsewhere.addr)))
	resolver := "127.0.0.1:" + port
	daemon(t, resolver, unbound, "-d", "-p", "-c", config)
	const a, b = " +subnet=198.51.99.0/24", " +subnet=203.0.113.0/24"
	for range 2 { // from the authority, and from its cache
		for _, c := range []struct{ question, want string }{
			{"lb.example.com A" + a, "192.0.2.77 CNAME elb.example.net."},
			{"lb.example.com A" + b, "192.0.2.2"},
			{"front.example.com A" + a, "192.0.2.77 CNAME elb.example.net. CNAME lb.example.com."},
			{"front.example.com A" + b, "192.0.2.2 CNAME lb.example.com."},
			{"x.balanced.example.com A" + a, "192.0.2.77 CNAME elb.example.net."},
		} {
			q := parseQuery(t, c.question)
			m := q.msg(t)
			m.RecursionDesired = true
			r, err := q.exchange(m, resolver)
			if err != nil || r.Rcode != dns.RcodeSuccess {
				t.Fatalf("%s: %v %v", c.question, err, r)
			}
			r.Authoritative = true // a resolver isn't, and brief would say so
			if got, _, _ := strings.Cut(brief(r), " /"); got != c.want {
				t.Errorf("%s: got %s, want %s", c.question, got, c.want)
			}
		}
	}
}
