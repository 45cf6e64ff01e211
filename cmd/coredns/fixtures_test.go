package main

import (
	"strings"
	"testing"
)

// steeredBlock has a rule of each kind that matters for scopes: a network with
// another one inside of it, one that stands alone, and everything else, for
// both families. Region a answers 192.0.2.1, b .2, and so on.
const steeredBlock = `
    gslb {
        spread resolver
        region a { clients prefix 198.51.96.0/20 2001:db8::/32 }
        region b { clients prefix 198.51.99.0/24 2001:db8:1::/48 }
        region c { clients prefix 203.0.113.0/24 }
        region d { clients rest }
        whoami whoami.example.com
        host www.example.com deep.ent.example.com *.wild.example.com _443._tcp.svc.example.com {
            pool a 192.0.2.1 2001:db8:a::1
            pool b 192.0.2.2 2001:db8:b::1
            pool c 192.0.2.3 2001:db8:c::1
            pool d 192.0.2.4 2001:db8:d::1
        }
        host v4.example.com {
            pool a 192.0.2.1
            pool b 192.0.2.2
            pool c 192.0.2.3
            pool d 192.0.2.4
        }
        host failing.example.com {
            pool a { endpoint 192.0.2.1 down }
            pool b 192.0.2.2
            pool c 192.0.2.3
            pool d 192.0.2.4
        }
        FALLTHROUGH
    }`

// alone is the steered zone and nothing else.
var alone = "example.com:53 {" + strings.Replace(steeredBlock, "FALLTHROUGH", "", 1) + "\n}\n"

// zoneText is the unsteered part of example.com, and some records under steered
// names that must not be seen as addresses of theirs.
const zoneText = `$ORIGIN example.com.
$TTL 300
@        IN SOA ns1 hostmaster 2026113001 7200 900 1209600 60
         IN NS  ns1
         IN NS  ns2
         IN MX  10 www
         IN TXT "from file"
ns1      IN A   192.0.2.53
ns2      IN A   192.0.2.54
static   IN A   192.0.2.80
www      IN TXT "beside the addresses"
www      IN A   192.0.2.99
alias    IN CNAME www
chain    IN CNAME alias
out      IN CNAME www.example.net.
child    IN NS  ns.child
ns.child IN A   192.0.2.55
`

// withFile is the steered zone above a zone file, with more plugins if wanted.
func withFile(t *testing.T, plugins ...string) string {
	t.Helper()
	file := writeFile(t, t.TempDir(), "db.example.com", zoneText)
	return "example.com:53 {\n" + strings.Join(plugins, "\n") +
		strings.Replace(steeredBlock, "FALLTHROUGH", "fallthrough", 1) + "\n    file " + file + "\n}\n"
}
