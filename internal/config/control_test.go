package config_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// TestControlOptions sees resolvers, guards and the control API in the Block.
func TestControlOptions(t *testing.T) {
	control := func(b *config.Block) any {
		c := b.Control
		return fmt.Sprintf("%s %s %s %s%s%s", c.Network, c.Address, c.Token, c.Cert, c.Key, c.ClientCA)
	}
	guard := func(b *config.Block) any { return b.Guard }
	tests := []struct {
		name, text string
		got        func(b *config.Block) any
		want       any
	}{
		{"no resolvers", "", func(b *config.Block) any { return b.Resolvers == nil }, true},
		{"resolvers", "resolvers 10.0.0.2 10.0.0.3:5353 ::1 [::1]:54", func(b *config.Block) any { return b.Resolvers.Servers },
			[]string{"10.0.0.2:53", "10.0.0.3:5353", "[::1]:53", "[::1]:54"}},
		{"no guard", "", guard, config.Guard{Hosts: 1, MaxMove: 50}},
		{"guard hosts", "guard hosts 20", guard, config.Guard{Hosts: 20, MaxMove: 50}},
		{"guard hosts none", "guard hosts 0", guard, config.Guard{MaxMove: 50}},
		{"guard max_move", "guard max_move 0%", guard, config.Guard{Hosts: 1}},
		{"guard max_use", "guard max_use 85.5%", guard, config.Guard{Hosts: 1, MaxMove: 50, MaxUse: 85.5}},
		{"guard require", "guard require 1 of eu us\nguard require 1 of eu", func(b *config.Block) any {
			return fmt.Sprint(b.Guard.Require[0].Count, b.Guard.Require[0].Regions, b.Guard.Require[1].Regions)
		}, "1 [eu us] [eu]"},
		{"guard accept", "guard accept \"CHG {12}\" until 2026-12-01T23:00:00+01:00", func(b *config.Block) any {
			return b.Guard.Accepted[0].Reason + b.Guard.Accepted[0].Until.Format(time.RFC3339)
		}, "CHG {12}2026-12-01T22:00:00Z"},
		{"two accepts", "guard accept x until 2026-12-01T23:00:00+01:00\nguard accept y until 2026-12-01T23:00:00+01:00", func(b *config.Block) any { return len(b.Guard.Accepted) }, 2},
		{"no control", "", func(b *config.Block) any { return b.Control == nil }, true},
		{"control", "control unix:/run/gslb.sock token f", control, "unix /run/gslb.sock f "},
		{"control relative", "control unix:run/gslb.sock token f", control, "unix run/gslb.sock f "},
		{"control address", "control 127.1.2.3:8053 token f", control, "tcp 127.1.2.3:8053 f "},
		{"control IPv6", "control [::1]:8053 token f { tls a b }", control, "tcp [::1]:8053 f ab"},
		{"control client_ca", "control 127.0.0.1:1 token f {\nclient_ca c\ntls a b\n}", control, "tcp 127.0.0.1:1 f abc"},
		{"control elsewhere", "control 0.0.0.0:8053 token f {\ntls a b\nclient_ca c\n}", control, "tcp 0.0.0.0:8053 f abc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustParse(t, inBlock("region eu us\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"+tt.text))
			if got := tt.got(b); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestTargets sees each word of a target in the Block.
func TestTargets(t *testing.T) {
	type target = config.Target
	tests := []struct {
		text  string
		want  []target
		keep  time.Duration
		cname bool
	}{
		{"endpoint 192.0.2.1", nil, 0, false},
		{"target LB.example.net", []target{{Name: "lb.example.net.", Weight: 1}}, time.Hour, false},
		{"target lb.example.net.\nkeep 0", []target{{Name: "lb.example.net.", Weight: 1}}, 0, false},
		{"target lb.\nkeep 24h", []target{{Name: "lb.", Weight: 1}}, 24 * time.Hour, false},
		{"target a.example.net\ncname", []target{{Name: "a.example.net.", Weight: 1}}, time.Hour, true},
		{"answers 1\ntarget a.example.net weight 3 probe :8080\nendpoint 192.0.2.1\ntarget b.example.net drain weight 0",
			[]target{{Name: "a.example.net.", Weight: 3, Probe: 8080}, {Name: "b.example.net.", State: config.StateDrain}}, time.Hour, false},
		{"target a.example.net up\ntarget b.example.net down", []target{{Name: "a.example.net.", Weight: 1, State: config.StateUp}, {Name: "b.example.net.", Weight: 1, State: config.StateDown}}, time.Hour, false},
	}
	for _, tt := range tests {
		b := mustParse(t, inBlock("resolvers ::1\nregion eu\nhost a.example.com {\npool eu {\n"+tt.text+"\n}\n}"))
		p := b.Hosts[0].Pools[0]
		for i := range p.Targets {
			if p.Targets[i].Line == 0 {
				t.Errorf("%q: a target without a place", tt.text)
			}
			p.Targets[i].Pos = config.Pos{}
		}
		if !reflect.DeepEqual(p.Targets, tt.want) || p.Keep != tt.keep || p.CName != tt.cname {
			t.Errorf("%q: got %v, keep %s, cname %t", tt.text, p.Targets, p.Keep, p.CName)
		}
	}
}

// TestTargetsFit holds what is fine for pools with targets, whose families
// nobody knows at load, and what isn't for their neighbours.
func TestTargetsFit(t *testing.T) {
	const lb, v4, v6 = "pool eu { target lb.example.net }\n", "pool us 192.0.2.2\n", "pool ap 2001:db8::3\n"
	tests := []struct{ name, head, host, want string }{
		{"beside one family", "", lb + v4, ""},
		{"beside two families", "", lb + v4 + v6, "no IPv6 address, but other pools"},
		{"families v6", "", "families v6\n" + lb + v6, ""},
		{"families v4, a pool without", "", "families v4\n" + lb + v6, "has no IPv4 address"},
		{"a list with the target alone", "", lb + v4 + "clients rest { order us eu }\nclients file f { order eu }", ""},
		{"a list without it, other family", "", "families mixed\n" + lb + v4 + v6 + "clients rest { order us eu ap }\nclients file f { order ap }", "leads to no A address"},
		{"a fence round it", "area x file f\nfence x eu\n", "families mixed\n" + lb + v4 + v6, ""},
		{"a fence without a pool", "area x file f\nfence x us\n", lb, "leaves host a.example.com. no A address: give the host a pool in us"},
		{"last resort of any family", "", lb + v4 + "last_resort addresses 192.0.2.9 2001:db8::9", ""},
		{"a weight 0 beside a target", "", "pool eu {\ntarget lb.example.net\nendpoint 192.0.2.1 weight 0\n}", ""},
		{"a target of weight 0 beside one family", "", "pool eu {\ntarget lb.example.net weight 0\nendpoint 192.0.2.1\nanswers 1\n}", ""},
		{"unequal weights of a target and an endpoint", "", "pool eu {\ntarget lb.example.net weight 3\nendpoint 192.0.2.1\n}", "unequal weights where all are answered"},
		{"and answers 1", "", "pool eu {\ntarget lb.example.net weight 3\nendpoint 192.0.2.1\nanswers 1\n}", ""},
		{"min_healthy beyond one", "", "pool eu {\ntarget lb.example.net\nmin_healthy 4\n}", ""},
		{"cname of a wildcard", "", "name *.example.com\npool eu {\ntarget lb.example.net\ncname\n}", ""},
		{"an address at an apex", "", "name example.com\n" + lb, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := "resolvers ::1\nregion eu us ap\n" + tt.head + "host a.example.com {\n" + tt.host + "\n}\nhost z.example.com {\npool eu 192.0.2.7\npool us 192.0.2.8\npool ap 192.0.2.9\n}"
			_, err := parse(t, inBlock(text))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	wildcard := "check web {\nhttp /\nauthority each\n}\nresolvers ::1\nregion eu\nhost *.example.com {\ncheck web\npool eu {\ntarget lb.example.net\nTEXT\n}\n}"
	if _, err := parse(t, inBlock(strings.Replace(wildcard, "TEXT", "", 1))); err != nil {
		t.Error(err)
	}
	if _, err := parse(t, inBlock(strings.Replace(wildcard, "TEXT", "endpoint 192.0.2.1", 1))); err == nil || !strings.Contains(err.Error(), "authority each") {
		t.Errorf("an endpoint of a wildcard: %v", err)
	}
}

// TestTargetsOfHosts holds that hosts of one policy have targets of their own.
func TestTargetsOfHosts(t *testing.T) {
	b := mustParse(t, inBlock("resolvers ::1\nregion eu\npolicy x {\npool eu { target lb.example.net }\n}\nhost a.example.com { policy x }\nhost b.example.com { policy x }"))
	if &b.Hosts[0].Pools[0].Targets[0] == &b.Hosts[1].Pools[0].Targets[0] {
		t.Error("two hosts share a target in memory")
	}
}
