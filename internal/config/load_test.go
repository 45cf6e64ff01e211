package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/caddy/caddyfile"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// statement is what a server block hands to Parse.
type statement struct {
	zones  []string
	tokens []config.Token
}

func (s statement) parse() (*config.Block, error) { return config.Parse(s.zones, s.tokens) }

// lex reads a Corefile as the server does, imports and environment included,
// and gives the gslb statements of its server blocks.
func lex(t testing.TB, file, text string) []statement {
	t.Helper()
	blocks, err := caddyfile.Parse(file, strings.NewReader(text), nil)
	if err != nil {
		t.Fatalf("the server's own parser: %v", err)
	}
	var list []statement
	for _, b := range blocks {
		var s statement
		for _, key := range b.Keys {
			zone, _, _ := strings.Cut(key, ":")
			s.zones = append(s.zones, zone)
		}
		s.tokens = tokens(file, b.Tokens["gslb"])
		list = append(list, s)
	}
	return list
}

// tokens makes the lexer's tokens ours.
func tokens(file string, from []caddyfile.Token) []config.Token {
	var list []config.Token
	for _, t := range from {
		name := file
		if t.File != "" {
			name = filepath.Base(t.File)
		}
		list = append(list, config.Token{Text: t.Text, Pos: config.Pos{File: name, Line: t.Line}})
	}
	return list
}

// inBlock puts statements into the block of a gslb statement of example.com.
func inBlock(text string) string { return "example.com {\ngslb {\n" + text + "\n}\n}\n" }

// parse parses the only gslb statement of a Corefile.
func parse(t testing.TB, text string) (*config.Block, error) {
	t.Helper()
	list := lex(t, "Corefile", text)
	if len(list) != 1 {
		t.Fatalf("%d server blocks", len(list))
	}
	return list[0].parse()
}

func mustParse(t testing.TB, text string) *config.Block {
	t.Helper()
	b, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
