package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/parse"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// serverBlock is a server block of a Corefile, as far as it concerns us.
type serverBlock struct {
	keys   []key
	view   string              // name of its view; empty: it takes every query
	words  map[string][]string // of every directive
	tokens []config.Token      // of gslb; empty: it has none
	root   string
}

// key is one of the addresses that a server block serves.
type key struct {
	zone   string // lower case, fully qualified
	listen string // transport and port
}

// readCorefile reads the server blocks of a Corefile with the server's own
// parser: imports, snippets and the environment are replaced.
func readCorefile(path string) ([]serverBlock, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parsed, err := caddyfile.Parse(path, file, nil)
	if err != nil {
		return nil, err
	}
	var blocks []serverBlock
	found := false
	for _, b := range parsed {
		s := serverBlock{
			words:  wordsOf(b.Tokens),
			view:   argument(b.Tokens["view"], 1),
			root:   argument(b.Tokens["root"], -1), // of several lines the last counts,
			tokens: tokensOf(path, b.Tokens["gslb"]),
		}
		found = found || len(s.tokens) > 0
		if s.keys, err = keysOf(b.Keys); err != nil {
			return nil, err
		}
		blocks = append(blocks, s)
	}
	if !found {
		return nil, fmt.Errorf("%s: no server block has a gslb block: expected `gslb { … }` in one of them", path)
	}
	return blocks, nil
}

// argument is word i after a directive, counted from 1; negative: the last.
func argument(tokens []caddyfile.Token, i int) string {
	if i < 0 {
		i = len(tokens) - 1
	}
	if i < 1 || i >= len(tokens) {
		return ""
	}
	return tokens[i].Text
}

func wordsOf(tokens map[string][]caddyfile.Token) map[string][]string {
	words := make(map[string][]string, len(tokens))
	for directive, ts := range tokens {
		for _, t := range ts {
			words[directive] = append(words[directive], t.Text)
		}
	}
	return words
}

func tokensOf(path string, from []caddyfile.Token) []config.Token {
	var list []config.Token
	for _, t := range from {
		file := path
		if t.File != "" { // it was imported from there
			file = t.File
		}
		list = append(list, config.Token{Text: t.Text, Pos: config.Pos{File: file, Line: t.Line}})
	}
	return list
}

// keysOf reads the keys of a server block in the server's order: zones that a
// reverse network adds come last.
func keysOf(words []string) (keys []key, err error) {
	var more []key
	for _, word := range words {
		transport, rest := parse.Transport(word)
		_, port, err := plugin.SplitHostPort(rest)
		if err != nil {
			return nil, err
		}
		for i, zone := range plugin.Host(word).NormalizeExact() {
			k := key{zone, transport + "://:" + port}
			if i == 0 {
				keys = append(keys, k)
			} else {
				more = append(more, k)
			}
		}
	}
	return append(keys, more...), nil
}

// build makes the plan of the block's gslb, held to the other plugins of the
// block, by the steps of the server.
func (s *serverBlock) build() (*plan.Plan, error) {
	zones := make([]string, len(s.keys))
	for i, k := range s.keys {
		zones[i] = k.zone
	}
	block, err := config.Parse(zones, s.tokens)
	if err != nil {
		return nil, plugin.Error("gslb", err)
	}
	now := time.Now()
	options := plan.Options{Root: s.root, Now: now}
	if block.State != nil {
		options.LastGood = plan.LastGood{Dir: plan.Join(s.root, block.State.Path), Now: now}
	}
	p, err := plan.Build(block, options)
	if err != nil {
		return nil, plugin.Error("gslb", err)
	}
	if refused := guard.Hosts(p); len(refused) > 0 {
		if _, accepted := guard.Accepted(&block.Guard, now); !accepted {
			return nil, plugin.Error("gslb", guard.Error(block.Pos, refused))
		}
	}
	if err := block.CheckNeighbours(s.words); err != nil {
		return nil, plugin.Error("gslb", err)
	}
	p.Warnings = slices.Concat(p.Warnings, block.WarningsAt(now), block.NeighbourWarnings(s.words, p.Signed()))
	return p, nil
}

// name is what to call the block in front of a person.
func (s *serverBlock) name() string {
	if s.view == "" {
		return ""
	}
	return " in view " + s.view
}

// within tells whether a name lies in a zone, by label.
func within(zone, name string) bool { return plugin.Name(zone).Matches(name) }

// nameOf makes what was typed a name: lower case, fully qualified.
func nameOf(word string) string { return strings.ToLower(strings.TrimSuffix(word, ".")) + "." }

// savedAge is the oldest verdict that is looked at, as in the server.
const savedAge = 7 * 24 * time.Hour

// verdicts gives the state of endpoints: what the server last saved, if it has
// a state directory, and else what is written. It is never nil.
func (s *serverBlock) verdicts(p *plan.Plan) (func(*config.Endpoint) steer.EndpointState, error) {
	if p.Block.State == nil {
		return p.Remembered(nil, time.Now()), nil
	}
	now := time.Now()
	saved, err := probe.NewStore(plan.Join(s.root, p.Block.State.Path)).Peek(now, savedAge)
	return p.Remembered(saved, now), err
}
