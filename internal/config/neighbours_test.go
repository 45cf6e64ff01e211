package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// beside makes the siblings of a block of statements, one on each line.
func beside(statements string) map[string][]string {
	siblings := map[string][]string{}
	directive := ""
	for line := range strings.Lines(statements) {
		words := strings.Fields(line)
		if directive == "" || !strings.HasPrefix(line, " ") {
			directive = words[0]
		}
		siblings[directive] = append(siblings[directive], words...)
	}
	return siblings
}

// TestCheckNeighbours holds which plugins a block refuses beside it.
func TestCheckNeighbours(t *testing.T) {
	const subnet = "Corefile:1: rewrite edns0 subnet changes the client subnet before gslb sees it"
	tests := []struct {
		name, zone, gslb, siblings, want string
	}{
		{"nothing", ".", "gslb", "", ""},
		{"others", "example.com.", "gslb", "cache 30\nrewrite name a.example.com b.example.com\nfile db", ""},
		{"cache and the root inherited", ".", "gslb", "cache", "Corefile:1: gslb without zones answers for everything (.), so cache"},
		{"cache and the root written", ".", "gslb .", "cache", ""},
		{"subnet set", "example.com.", "gslb", "rewrite edns0 subnet set 24 56", subnet},
		{"subnet replace", "example.com.", "gslb", "rewrite stop edns0 subnet replace 24 56 revert", subnet},
		{"subnet append", "example.com.", "gslb", "rewrite continue edns0 subnet append 24 56", subnet},
		{"subnet in other letters", "example.com.", "gslb", "rewrite EDNS0 Subnet SET 24 56", subnet},
		{"subnet in a later statement", "example.com.", "gslb", "rewrite type ANY HINFO\nrewrite edns0 subnet set 24 56", subnet},
		{"subnet in a block", "example.com.", "gslb", "rewrite continue {\n edns0 local set 0xffee 1\n edns0 subnet set 24 56\n }", subnet},
		{"subnet unset", "example.com.", "gslb", "rewrite edns0 subnet unset", ""},
		{"another option", "example.com.", "gslb", "rewrite edns0 local set 0xffee subnet\nrewrite edns0 nsid set", ""},
		{"cut short", "example.com.", "gslb", "rewrite edns0 subnet", ""},
		{"of another plugin", "example.com.", "gslb", "other edns0 subnet set", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := config.Parse([]string{tt.zone}, raw(tt.gslb+" {\n}"))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := b.CheckNeighbours(beside(tt.siblings)); err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestNeighbourWarnings holds what a block says of plugins that work badly
// beside it.
func TestNeighbourWarnings(t *testing.T) {
	at := func(line int, text string) []config.Warning {
		return []config.Warning{{Pos: config.Pos{File: "Corefile", Line: line}, Text: text}}
	}
	signed := func(sets, kept string) []config.Warning {
		return at(1, "Up to "+sets+" signed answers are possible, more than the "+kept+" signatures that dnssec keeps: set its cache_capacity to at least "+sets)
	}
	const keys = "dnssec {\n key file K\n "
	nobody := at(2, "no plugin here that fallthrough could ask")
	tests := []struct {
		name, gslb, siblings string
		sets                 int
		want                 []config.Warning
	}{
		{"nothing", "", "", 20000, nil},
		{"dnssec has room", "", "dnssec", 10000, nil},
		{"dnssec has none", "", "dnssec", 10001, signed("10001", "10000")},
		{"capacity is enough", "", keys + "cache_capacity 20000\n }", 20000, nil},
		{"capacity is not enough", "", keys + "cache_capacity 20000\n }", 20001, signed("20001", "20000")},
		{"capacity is small", "", keys + "cache_capacity 10\n }", 11, signed("11", "10")},
		{"capacity is no number", "", keys + "cache_capacity x\n }", 10001, signed("10001", "10000")},
		{"capacity is missing", "", keys + "cache_capacity", 10001, signed("10001", "10000")},
		{"fallthrough to file", "fallthrough", "file db.example.com", 0, nil},
		{"fallthrough to forward", "fallthrough", "errors\nforward . 192.0.2.1", 0, nil},
		{"fallthrough to nobody", "fallthrough example.com", "", 0, nobody},
		{"fallthrough past who can't answer", "fallthrough", "errors\ncache\nsign db\ntransfer", 0, nobody},
		{"nobody and no fallthrough", "", "errors", 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := config.Parse([]string{"example.com."}, raw("gslb {\n"+tt.gslb+"\n}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := b.NeighbourWarnings(beside(tt.siblings), tt.sets); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
	b, err := config.Parse([]string{"example.com."}, raw("gslb {\nfallthrough\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.NeighbourWarnings(beside("dnssec"), 10001); len(got) != 2 {
		t.Errorf("%d warnings, want both: %v", len(got), got)
	}
}
