package config_test

import (
	"strings"
	"testing"

	"github.com/coredns/caddy/caddyfile"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// raw lexes text without imports and environment.
func raw(text string) []config.Token {
	var list []caddyfile.Token
	d := caddyfile.NewDispenser("Corefile", strings.NewReader(text))
	for d.Next() {
		list = append(list, caddyfile.Token{Line: d.Line(), Text: d.Val()})
	}
	return tokens("Corefile", list)
}

// TestTokens gives Parse what the server's own parser would not let through.
func TestTokens(t *testing.T) {
	zone := []string{"example.com."}
	tests := []struct {
		name, text string
		zones      []string
		want       string
	}{
		{"nothing", "", zone, ":0: no gslb statement"},
		{"no zone", "gslb {\n}", nil, "Corefile:1: no zone: name one after gslb or as the key of the server block"},
		{"no brace at all", "gslb", zone, "Corefile:1: gslb needs a block"},
		{"no closing brace", "gslb {\nregion eu", zone, `Corefile:1: the block of "gslb" is never closed: a } is missing`},
		{"no closing brace inside", "gslb {\nregion eu {\nclients rest\n", zone, `Corefile:2: the block of "region" is never closed: a } is missing`},
		{"two closing braces missing", "gslb {\nhost a.example.com {\npool eu {\nendpoint 192.0.2.1\nregion eu", zone,
			`Corefile:5: unknown word "region": expected one of endpoint, target, check, answers, min_healthy, keep, cname, drain, dial, share, trickle, ramp, capacity, load; or is a } missing before it?`},
		{"brace too many", "gslb {\n}\n}", zone, `Corefile:3: unexpected "}" after the gslb block: is there a } too many before?`},
		{"words after the block", "gslb {\n} region eu", zone, `Corefile:2: unexpected "region" after the gslb block`},
		{"second gslb", "gslb {\n}\ngslb {\n}", zone, "Corefile:3: a second gslb: one gslb block per server block; the first is at Corefile:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse(tt.zones, raw(tt.text))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestLines holds that a statement ends with its line or its file, nothing else.
func TestLines(t *testing.T) {
	at := func(file string, line int, words ...string) (list []config.Token) {
		for _, w := range words {
			list = append(list, config.Token{Text: w, Pos: config.Pos{File: file, Line: line}})
		}
		return list
	}
	var all []config.Token
	all = append(all, at("Corefile", 1, "gslb", "{")...)
	all = append(all, at("Corefile", 2, "region", "eu")...)
	all = append(all, at("regions", 2, "region", "us")...) // same line of another file
	all = append(all, at("Corefile", 3, "host", "a.example.com", "{", "order", "eu", "us")...)
	all = append(all, at("pools", 3, "pool", "eu", "192.0.2.1")...)
	all = append(all, at("pools", 4, "pool", "us", "{", "endpoint", "192.0.2.2", "}", "}", "}")...)
	b, err := config.Parse([]string{"Example.COM", "example.com."}, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Zones) != 1 || len(b.Regions) != 2 || len(b.Hosts[0].Pools) != 2 {
		t.Errorf("zones %v, regions %v, hosts %v", b.Zones, b.Regions, b.Hosts)
	}
	if got := b.Regions[1].Pos.String(); got != "regions:2" {
		t.Errorf("the place of region us is %s", got)
	}
}

// TestServerZones holds that the zones of the server block are used only when
// the statement names none.
func TestServerZones(t *testing.T) {
	for text, want := range map[string]string{
		"gslb {\n}":             "example.com. .",
		"gslb Example.org {\n}": "example.org.",
	} {
		b, err := config.Parse([]string{"example.com.", "."}, raw(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(b.Zones, " "); got != want || b.Inherited != (text == "gslb {\n}") {
			t.Errorf("%q: zones %s, inherited %t, want %s", text, got, b.Inherited, want)
		}
	}
}

// TestRoot holds that the root zone takes every name.
func TestRoot(t *testing.T) {
	b, err := config.Parse([]string{"."}, raw("gslb {\nregion eu\nhost . *. a.b *.c {\npool eu 192.0.2.1\n}\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.Hosts[0].Names, " "); got != ". *. a.b. *.c." {
		t.Errorf("names %s", got)
	}
}
