package config_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
)

// mustCheck parses the body of a check block.
func mustCheck(t *testing.T, body string) config.Check {
	t.Helper()
	b := mustParse(t, inBlock("check web {\n"+body+"\n}\nregion eu\nhost a.example.com {\ncheck web\npool eu 192.0.2.1\n}"))
	return b.Checks[0]
}

// TestCheckOptions sees each word of a check in the Block.
func TestCheckOptions(t *testing.T) {
	tests := []struct {
		name, body string
		got        func(c config.Check) any
		want       any
	}{
		{"name", "icmp", func(c config.Check) any { return c.Name }, "web"},
		{"place", "icmp", func(c config.Check) any { return c.Pos.Line }, 3},
		{"http", "http /a?b", func(c config.Check) any { return string(c.Kind) + " " + c.Path }, "http /a?b"},
		{"port of the kind", "http /", func(c config.Check) any { return c.Port }, 0},
		{"port", "http :8080 /", func(c config.Check) any { return c.Port }, 8080},
		{"https", "authority each\nhttps :8443 /", func(c config.Check) any { return c.Kind }, check.HTTPS},
		{"tcp", "tcp :65535", func(c config.Check) any { return c.Port }, 65535},
		{"tcp plain", "tcp :1", func(c config.Check) any { return c.TLS }, false},
		{"tcp tls", "tcp :1 tls", func(c config.Check) any { return c.TLS }, true},
		{"grpc", "grpc :1", func(c config.Check) any { return c.Service }, ""},
		{"grpc service", "grpc :1 a.B", func(c config.Check) any { return c.Service }, "a.B"},
		{"grpc tls", "grpc :1 tls", func(c config.Check) any { return c.TLS }, true},
		{"grpc tls service", "grpc :1 tls a.B", func(c config.Check) any { return c.Service }, "a.B"},
		{"dns", "dns A.example aaaa", func(c config.Check) any { return c.QName + " " + c.QType }, "a.example. AAAA"},
		{"dns by number", "dns a.example type65", func(c config.Check) any { return c.QType }, "TYPE65"},
		{"icmp", "icmp", func(c config.Check) any { return c.Kind }, check.ICMP},
		{"exec", `exec /bin/x "a b" {c}`, func(c config.Check) any { return c.Command }, []string{"/bin/x", "a b", "{c}"}},
		{"no authority", "http /", func(c config.Check) any { return c.Authority }, ""},
		{"authority", "http /\nauthority A.example.", func(c config.Check) any { return c.Authority }, "a.example"},
		{"authority each", "http /\nauthority each", func(c config.Check) any { return c.Each }, true},
		{"authority of grpc", "grpc :1\nauthority a.example", func(c config.Check) any { return c.Authority }, "a.example"},
		{"method", "http /", func(c config.Check) any { return c.Method }, "GET"},
		{"method written", "http /\nmethod HEAD", func(c config.Check) any { return c.Method }, "HEAD"},
		{"headers", "http /\nheader A b\nheader A \"c d\"", func(c config.Check) any { return c.Headers }, []check.Header{{Name: "A", Value: "b"}, {Name: "A", Value: "c d"}}},
		{"ca", "tcp :1 tls\nca ca.pem", func(c config.Check) any { return c.CA }, "ca.pem"},
		{"cert", "grpc :1 tls\ncert a b", func(c config.Check) any { return c.Cert + c.Key }, "ab"},
		{"insecure", "tcp :1 tls\ninsecure", func(c config.Check) any { return c.Insecure }, true},
		{"follow", "http /\nfollow", func(c config.Check) any { return c.Follow }, true},
		{"keepalive", "http /\nkeepalive", func(c config.Check) any { return c.KeepAlive }, true},
		{"send", `tcp :1` + "\n" + `send "HELO \"x\"\r\n\x00\\ü"`, func(c config.Check) any { return c.Send }, "HELO \"x\"\r\n\x00\\ü"},
		{"interval", "icmp", func(c config.Check) any { return c.Interval }, 10 * time.Second},
		{"interval written", "icmp\ninterval 1h", func(c config.Check) any { return c.Interval }, time.Hour},
		{"timeout", "icmp", func(c config.Check) any { return c.Timeout }, 3 * time.Second},
		{"timeout of a short interval", "icmp\ninterval 1s", func(c config.Check) any { return c.Timeout }, 500 * time.Millisecond},
		{"timeout written", "icmp\ntimeout 10s", func(c config.Check) any { return c.Timeout }, 10 * time.Second},
		{"retry", "icmp\nretry", func(c config.Check) any { return c.Retry }, true},
		{"retry just fits", "icmp\nretry\ninterval 7s\ntimeout 3s", func(c config.Check) any { return c.Retry }, true},
		{"fall", "icmp", func(c config.Check) any { return c.Fall }, 3},
		{"fall written", "icmp\nfall 20", func(c config.Check) any { return c.Fall }, 20},
		{"fall within just fits", "icmp\nfall 4 within 30s", func(c config.Check) any { return c.FallWithin }, 30 * time.Second},
		{"rise", "icmp", func(c config.Check) any { return c.Rise }, 5},
		{"rise over", "icmp\nrise 1 over 24h", func(c config.Check) any { return c.RiseOver }, 24 * time.Hour},
		{"accumulate", "icmp\naccumulate", func(c config.Check) any { return c.Accumulate }, true},
		{"hold", "icmp\nhold 90 flips", func(c config.Check) any { return c.HoldFlips }, 90},
		{"return auto", "icmp\nreturn auto", func(c config.Check) any { return c.Manual }, false},
		{"return manual", "icmp\nreturn manual", func(c config.Check) any { return c.Manual }, true},
		{"initial", "icmp", func(c config.Check) any { return c.Initial }, check.InitialLast},
		{"initial age", "icmp\ninitial last", func(c config.Check) any { return c.InitialAge }, 10 * time.Minute},
		{"initial age written", "icmp\ninitial last 1h", func(c config.Check) any { return c.InitialAge }, time.Hour},
		{"initial up", "icmp\ninitial up", func(c config.Check) any { return c.Initial }, check.InitialUp},
		{"initial down", "icmp\ninitial down", func(c config.Check) any { return c.Initial }, check.InitialDown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.got(mustCheck(t, tt.body)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestConditions sees each condition, in expect and in full.
func TestConditions(t *testing.T) {
	addrs := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("0.0.0.0")}
	tests := []struct {
		name, kind, text string
		want             check.Condition
	}{
		{"one status", "http /", "status 200", check.Condition{Kind: check.Status, Ranges: [][2]int{{200, 200}}}},
		{"several", "http /", "status 200-299,301", check.Condition{Kind: check.Status, Ranges: [][2]int{{200, 299}, {301, 301}}}},
		{"body", "http /", `body contains "a \"b\" {c}"`, check.Condition{Kind: check.BodyText, Text: `a "b" {c}`}},
		{"regexp", "tcp :1", `body matches "^a b\d{1,3}$"`, check.Condition{Kind: check.BodyMatch, Text: `^a b\d{1,3}$`}},
		{"output", "exec true", "body contains fine", check.Condition{Kind: check.BodyText, Text: "fine"}},
		{"json number", "http /", "json .a[0].b-c <= -1.5e3", check.Condition{Kind: check.JSON, Field: ".a[0].b-c", Op: "<=", Value: "-1.5e3"}},
		{"json text", "http /", `json .a != "b c"`, check.Condition{Kind: check.JSON, Field: ".a", Op: "!=", Value: "b c"}},
		{"json document", "http /", "json . == true", check.Condition{Kind: check.JSON, Field: ".", Op: "==", Value: "true"}},
		{"header", "http /", "header X-Load", check.Condition{Kind: check.HeaderField, Field: "X-Load"}},
		{"header value", "http /", `header X-Load "very high"`, check.Condition{Kind: check.HeaderField, Field: "X-Load", Text: "very high"}},
		{"rcode", "dns a.example A", "rcode nxdomain", check.Condition{Kind: check.RCode, Field: "NXDOMAIN"}},
		{"address", "dns a.example A", "address 192.0.2.1 0.0.0.0", check.Condition{Kind: check.Address, Addresses: addrs}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := mustCheck(t, tt.kind+"\nexpect "+tt.text+"\nfull "+tt.text)
			want := []check.Condition{tt.want}
			if !reflect.DeepEqual(c.Expect, want) || !reflect.DeepEqual(c.Full, want) {
				t.Errorf("got %+v and %+v, want %+v", c.Expect, c.Full, want)
			}
		})
	}
	c := mustCheck(t, "http /\nexpect body contains a\nexpect body contains b\nfull status 429\nfull status 503")
	if len(c.Expect) != 2 || len(c.Full) != 2 {
		t.Errorf("%d and %d conditions, want 2 and 2", len(c.Expect), len(c.Full))
	}
}

// TestProbe sees where the probes of an endpoint go.
func TestProbe(t *testing.T) {
	for text, want := range map[string]netip.AddrPort{
		"":                          {},
		"probe 10.0.0.1":            netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), 0),
		"probe 10.0.0.1:80":         netip.MustParseAddrPort("10.0.0.1:80"),
		"probe ::1":                 netip.AddrPortFrom(netip.MustParseAddr("::1"), 0),
		"up probe [::1]:1 weight 2": netip.MustParseAddrPort("[::1]:1"),
	} {
		b := mustParse(t, inBlock("region eu\nhost a.example.com {\npool eu {\nendpoint 192.0.2.1 "+text+"\n}\n}"))
		if got := b.Hosts[0].Pools[0].Endpoints[0].Probe; got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
