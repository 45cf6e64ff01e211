package config_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// TestLevers sees each lever in the Block, written in a region and in a pool.
func TestLevers(t *testing.T) {
	load := func(l config.Levers) any {
		x := l.Load
		return fmt.Sprintf("%s %s%s%s%s%s%s%s %s", x.Kind, x.URL, x.Path, x.Metric, x.Query, x.Check, x.Header, x.File, x.Every)
	}
	tests := []struct {
		name, text string
		got        func(l config.Levers) any
		want       any
	}{
		{"nothing", "", func(l config.Levers) any { return reflect.DeepEqual(l, config.Levers{}) }, true},
		{"drain", "drain", func(l config.Levers) any { return l.Drain[0].When }, config.When{}},
		{"drain from", "drain from 2026-12-01T22:00:00Z", func(l config.Levers) any { return l.Drain[0].When }, config.When{From: at("22:00")}},
		{"drain until", "drain until 2026-12-01T22:00:00Z", func(l config.Levers) any { return l.Drain[0].When }, config.When{Until: at("22:00")}},
		{"drain daily", "drain daily 22:00-06:30 -01:00 Sun", func(l config.Levers) any { return *l.Drain[0].When.Daily },
			config.Daily{Start: 22 * time.Hour, End: 390 * time.Minute, Offset: -time.Hour, Days: [7]bool{0: true}}},
		{"two drains", "drain until 2026-12-01T22:00:00Z\ndrain from 2026-12-02T22:00:00Z", func(l config.Levers) any { return len(l.Drain) }, 2},
		{"dial", "dial 12.34%", func(l config.Levers) any { return l.Dial[0].Percent }, 12.34},
		{"dial zero", "dial 0%", func(l config.Levers) any { return l.Dial[0].Percent }, 0.0},
		{"dial when", "dial 5% until 2026-12-01T22:00:00Z", func(l config.Levers) any { return l.Dial[0].When.Until }, at("22:00")},
		{"share", "share 5%", func(l config.Levers) any { return l.Share[0].Percent }, 5.0},
		{"share off", "share off", func(l config.Levers) any { return l.Share[0].Off }, true},
		{"share area", "share 5% area x", func(l config.Levers) any { return l.Share[0].Area }, "x"},
		{"share area when", "share 5% area x from 2026-12-01T22:00:00Z", func(l config.Levers) any { return l.Share[0].When.From }, at("22:00")},
		{"trickle", "trickle 50%", func(l config.Levers) any { return l.Trickle.Value }, 50.0},
		{"ramp", "ramp 24h", func(l config.Levers) any { return l.Ramp.Value }, 24 * time.Hour},
		{"ramp off", "ramp 0", func(l config.Levers) any { return l.Ramp.Value }, time.Duration(0)},
		{"capacity", "capacity 36000", func(l config.Levers) any { return *l.Capacity }, config.Capacity{Value: 36000}},
		{"capacity fraction", "capacity 1.5e-3 growth 30%", func(l config.Levers) any { return *l.Capacity }, config.Capacity{Value: .0015, Growth: 30}},
		{"capacity target", "capacity 1 growth 100% target 85.5%", func(l config.Levers) any { return *l.Capacity }, config.Capacity{Value: 1, Target: 85.5, Growth: 100}},
		{"capacity score", "capacity score target 80%\nload file f", func(l config.Levers) any { return *l.Capacity }, config.Capacity{Score: true, Target: 80}},
		{"load json", "capacity 1\nload http https://u:p@h:81/x?y json .a[0].b", load, "http https://u:p@h:81/x?y.a[0].b 15s"},
		{"load metric", "capacity 1\nload http http://[::1]/ metric a_b:c every 1s", load, "http http://[::1]/a_b:c 1s"},
		{"load labels", "capacity 1\nload http http://h metric \"a{b=\\\"c d\\\",e=\\\"\\\"}\"", load, `http http://ha{b="c d",e=""} 15s`},
		{"load prometheus", "load prometheus http://h \"sum(a) / 2\" every 5m\ncapacity 1", load, "prometheus http://hsum(a) / 2 5m0s"},
		{"load every is a query", "load prometheus http://h every\ncapacity 1", load, "prometheus http://hevery 15s"},
		{"load header", "capacity 1\nload header web x-LOAD", load, "header webX-Load 20s"},
		{"load header every", "capacity 1\nload header web X every 1m", load, "header webX 1m0s"},
		{"load file", "capacity 1\nload file /run/load", load, "file /run/load 15s"},
		{"load file every", "capacity 1\nload file every every 2s", load, "file every 2s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const head = "area x file f\nregion us\ncheck web {\nhttp /\ninterval 20s\n}\ncheck web\n"
			region := mustParse(t, inBlock(head+"region eu {\n"+tt.text+"\n}\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}"))
			pool := mustParse(t, inBlock(head+"region eu\nhost a.example.com {\npool eu {\nendpoint 192.0.2.1\n"+tt.text+"\n}\npool us 192.0.2.2\n}"))
			for of, l := range map[string]config.Levers{"region": region.Regions[1].Levers, "pool": pool.Hosts[0].Pools[0].Levers} {
				if l.Capacity != nil {
					if l.Capacity.Line == 0 {
						t.Errorf("%s: a capacity without a place", of)
					}
					l.Capacity.Pos = config.Pos{}
				}
				if got := tt.got(l); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: got %v, want %v", of, got, tt.want)
				}
			}
		})
	}
}

// TestLeversOfHosts holds that hosts with the same policy share its levers and
// that each may say otherwise.
func TestLeversOfHosts(t *testing.T) {
	b := mustParse(t, inBlock(`
		region eu us
		policy x {
			pool eu {
				endpoint 192.0.2.1
				dial 20%
			}
			pool us 192.0.2.2
		}
		host a.example.com { policy x }
		host b.example.com {
			policy x
			pool eu 192.0.2.3
		}`))
	if got := b.Hosts[0].Pools[0].Levers.Dial; len(got) != 1 || got[0].Percent != 20 {
		t.Errorf("the dial of the policy is %v", got)
	}
	for _, p := range b.Hosts[1].Pools {
		if len(p.Levers.Dial) > 0 {
			t.Errorf("the pool of %s, which replaces that of the policy, has its dial", p.Region)
		}
	}
}

// TestPlainData holds that a block is plain data, and that what the same words
// mean doesn't depend on the offset that times are written in.
func TestPlainData(t *testing.T) {
	digest := func(lines string) string {
		b, err := parseLevers(t, lines)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	// The ends of what can be written, in years that JSON has.
	if got := digest("drain from 2000-01-01T00:00:00+23:59 until 2199-12-31T23:59:59-23:59"); !strings.Contains(got, `"From":"1999-12-31T00:01:00Z","Until":"2200-01-01T23:58:59Z"`) {
		t.Errorf("got %s", got)
	}
	if x, y := digest("dial 5% from 2026-12-01T12:00:00+01:00"), digest("dial 5% from 2026-12-01T11:00:00Z"); x != y {
		t.Errorf("%s\nand\n%s\ndiffer", x, y)
	}
}

// TestSecrets holds that errors don't repeat users and passwords of URLs.
func TestSecrets(t *testing.T) {
	for _, line := range []string{
		"load http http://me:secret@h/ json", "load http http://me:secret@h/ json .a .b", "load http ftp://me:secret@h/ json .a",
		"load http http://me:secret@h:99999/ json .a", "load http http://me:secret@h/%zz json .a", "load http http://me:sec/ret@h/ jsn .a",
		"load http://me:secret@h/ json .a", "load http http://me:secret@h/ metric 1", "load prometheus \"http://me:secret@h/ \" up",
		"load prometheus http://me:secret@h/ up every 1h", "load prometheus http://me:secret@h/ up down", "load prometheus \"http://me:secret@h/\r\" up",
		"load header http://me:secret@h/ X", "load file http://me:secret@h/{x} every 5s", "load prometheus http://me:secret@h/#x up", "load prometheus http://me:secret@ up",
	} {
		_, err := parseLevers(t, line)
		if err == nil {
			t.Errorf("%s: no error", line)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec/ret") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
