//go:build e2e

package main

import (
	"fmt"
	"testing"
)

// scopes are what any resolver that keeps answers by scope does in front of us.
var scopes = []resolverCase{
	{"one client", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2", 1},
	{"again", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2", 0},
	{"another network in another scope", "www.example.com A +subnet=203.0.113.0/24", "192.0.2.3", 1},
	{"a network in a wide scope", "www.example.com A +subnet=198.51.104.0/24", "192.0.2.1", 1},
	{"another one in the same scope", "www.example.com A +subnet=198.51.110.0/24", "192.0.2.1", 0},
	{"one beside it", "www.example.com A +subnet=198.51.112.0/24", "192.0.2.4", 1},
	{"the other family of the address", "www.example.com A +subnet=2001:db8:1::/56", "192.0.2.2", 1},
	{"again", "www.example.com A +subnet=2001:db8:1::/56", "192.0.2.2", 0},
	{"the other type", "www.example.com AAAA +subnet=198.51.99.0/24", "2001:db8:b::1", 1},
	{"no data is shared", "v4.example.com AAAA +subnet=198.51.99.0/24", "NODATA", 1},
	{"by all", "v4.example.com AAAA +subnet=203.0.113.0/24", "NODATA", 0},
	{"so is a missing name", "missing.example.com A +subnet=198.51.99.0/24", "NXDOMAIN", 1},
	{"by all", "missing.example.com A +subnet=203.0.113.0/24", "NXDOMAIN", 0},
	{"and what isn't steered", "static.example.com A +subnet=198.51.99.0/24", "192.0.2.80", 1},
	{"by all", "static.example.com A +subnet=203.0.113.0/24", "192.0.2.80", 0},
	{"nothing has leaked", "www.example.com A +subnet=198.51.99.0/24", "192.0.2.2", 0},
	{"to anybody", "www.example.com A +subnet=203.0.113.0/24", "192.0.2.3", 0},
}

// chains are names that lead into the steered one. Resolvers differ in how often
// they ask on the way, and must agree on where it ends.
var chains = []resolverCase{
	{"alias", "alias.example.com A +subnet=198.51.99.0/24", "192.0.2.2 CNAME www.example.com.", whatever},
	{"another client", "alias.example.com A +subnet=203.0.113.0/24", "192.0.2.3 CNAME www.example.com.", whatever},
	{"a chain", "chain.example.com A +subnet=198.51.104.0/24", "192.0.2.1 CNAME alias.example.com. CNAME www.example.com.", whatever},
	{"another client", "chain.example.com A +subnet=203.0.113.0/24", "192.0.2.3 CNAME alias.example.com. CNAME www.example.com.", whatever},
	{"foreign alias", "cdn.example.net A +subnet=198.51.99.0/24", "192.0.2.2 CNAME www.example.com.", whatever},
	{"another client", "cdn.example.net A +subnet=203.0.113.0/24", "192.0.2.3 CNAME www.example.com.", whatever},
	{"again", "cdn.example.net A +subnet=198.51.99.0/24", "192.0.2.2 CNAME www.example.com.", whatever},
}

// Both resolvers are patient, so that neither asks again because the machine is busy.
func TestUnbound(t *testing.T) {
	unbound := tool(t, "unbound", "-V")
	a := serveAuthority(t)
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
    unknown-server-time-limit: 60000
    infra-cache-min-rtt: 60000
    target-fetch-policy: "0 0 0 0 0"
stub-zone:
    name: "example.com"
    stub-addr: 127.0.0.1@%[3]s
stub-zone:
    name: "example.net"
    stub-addr: 127.0.0.1@%[3]s
remote-control:
    control-enable: no
`, port, dir, portOf(a.addr)))
	resolver := "127.0.0.1:" + port
	daemon(t, resolver, unbound, "-d", "-p", "-c", config)
	a.checkResolver(t, resolver, scopes)
	a.checkResolver(t, resolver, []resolverCase{
		{"a longer network is cut to the resolver's limit", "deep.ent.example.com A +subnet=198.51.99.7/32", "192.0.2.2", 1},
		{"and shared in it", "deep.ent.example.com A +subnet=198.51.99.200/32", "192.0.2.2", 0},
	})
	a.checkResolver(t, resolver, chains)
}

func TestRecursor(t *testing.T) {
	recursor := tool(t, "pdns_recursor", "--version")
	a := serveAuthority(t)
	port, dir := freePort(t), t.TempDir()
	writeFile(t, dir, "recursor.conf", fmt.Sprintf(`local-address=127.0.0.1
local-port=%[1]s
daemon=no
write-pid=no
socket-dir=%[2]s
allow-from=127.0.0.0/8
dont-query=
forward-zones=example.com=127.0.0.1:%[3]s,example.net=127.0.0.1:%[3]s
use-incoming-edns-subnet=yes
edns-subnet-allow-list=127.0.0.1
disable-packetcache=yes
dnssec=off
threads=1
network-timeout=60000
max-total-msec=120000
security-poll-suffix=
`, port, dir, portOf(a.addr)))
	resolver := "127.0.0.1:" + port
	daemon(t, resolver, recursor, "--config-dir="+dir)
	a.checkResolver(t, resolver, scopes)
	a.checkResolver(t, resolver, chains)
}
