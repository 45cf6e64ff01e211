package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/parse"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/target"
)

// serverBlock is a server block of a Corefile, as far as it concerns us.
type serverBlock struct {
	keys   []key
	view   string              // name of its view; empty: it takes every query
	words  map[string][]string // of every directive
	tokens []config.Token      // of gslb; empty: it has none
	// stateElsewhere: another block names the state directory of the process.
	stateElsewhere bool
	root           string

	targetsError error // why the saved addresses of targets can't be read, once it is built
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
	for i := range blocks {
		for j := range blocks {
			blocks[i].stateElsewhere = blocks[i].stateElsewhere || i != j && slices.ContainsFunc(blocks[j].tokens, func(t config.Token) bool { return t.Text == "state" })
		}
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

// parse reads the words of the block's gslb alone; nil: it has none.
func (s *serverBlock) parse() (*config.Block, error) {
	if len(s.tokens) == 0 {
		return nil, nil
	}
	zones := make([]string, len(s.keys))
	for i, k := range s.keys {
		zones[i] = k.zone
	}
	b, err := config.Parse(zones, s.tokens)
	if err != nil {
		return nil, plugin.Error("gslb", err)
	}
	return b, nil
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
	options := plan.Options{Root: s.root, Now: now, LastGood: plan.LastGood{Dir: s.stateDir(block), Now: now}}
	if block.Resolvers != nil {
		options.Resolve, s.targetsError = s.resolve(block, now)
	}
	p, err := plan.Build(block, options)
	if err != nil {
		return nil, plugin.Error("gslb", err)
	}
	if refused := guard.Hosts(p); len(refused) > 0 {
		if _, accepted := guard.Accepted(&block.Guard, now); !accepted {
			return nil, plugin.Error("gslb", guard.Error(block, refused, now))
		}
	}
	if err := block.CheckNeighbours(s.words); err != nil {
		return nil, plugin.Error("gslb", err)
	}
	p.Warnings = slices.Concat(p.Warnings, block.WarningsAt(now), block.NeighbourWarnings(s.words, p.Signed()))
	return p, nil
}

// unresolved says which targets have no address here, and why; empty: all have one.
func (s *serverBlock) unresolved(p *plan.Plan, names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names, " ") + ": unresolved here, "
	switch {
	case s.targetsError != nil:
		return text + "as what the server saved can't be read: " + s.targetsError.Error()
	case p.Block.State == nil:
		return text + "as the block has no state directory that the server would save their addresses in"
	}
	return text + "as the server has saved no address of them that is young enough"
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

// savedAge is the age of the oldest verdict or address that is looked at, as in the server.
const savedAge = 7 * 24 * time.Hour

// stateDir is the state directory of a block; empty: it has none.
func (s *serverBlock) stateDir(b *config.Block) string {
	if b.State == nil {
		return ""
	}
	return plan.Join(s.root, b.State.Path)
}

// verdicts gives the state of endpoints: what the server last saved, if it has
// a state directory, and else what is written. It is never nil.
func (s *serverBlock) verdicts(p *plan.Plan) (func(*config.Endpoint) steer.EndpointState, error) {
	if p.Block.State == nil {
		return p.Remembered(nil, time.Now()), nil
	}
	now := time.Now()
	saved, err := probe.NewStore(s.stateDir(p.Block)).Peek(now, savedAge)
	return p.Remembered(saved, now), err
}

// moves are what moves clients now, as far as it can be known without the server:
// the levers of the Corefile, and the overrides that it keeps.
func (s *serverBlock) moves(b *config.Block) (*plan.Moves, error) {
	m := &plan.Moves{Now: time.Now()}
	if b.Control == nil || b.State == nil {
		return m, nil
	}
	var err error
	m.Overrides, err = control.Peek(s.stateDir(b), m.Now)
	return m, err
}

// resolve gives the addresses of targets that the server last saved. It is never nil.
func (s *serverBlock) resolve(b *config.Block, now time.Time) (plan.Resolve, error) {
	var saved map[string]target.Saved
	var err error
	if dir := s.stateDir(b); dir != "" {
		saved, err = target.Peek(dir, now, savedAge)
	}
	return func(name string, keep time.Duration) ([]netip.Addr, bool) {
		st := target.Lookup(saved, b.Resolvers.Servers, name, now)
		if st == nil {
			return nil, false
		}
		return st.Addresses(now, keep), false
	}, err
}

// checkControl holds what a control statement needs: a state directory, and a file of
// tokens that can be used.
func (s *serverBlock) checkControl(b *config.Block) error {
	c := b.Control
	if c == nil {
		return nil
	}
	if b.State == nil && !s.stateElsewhere {
		return fmt.Errorf("%s: control needs `state DIR`: overrides and the audit log are kept there", c.Pos)
	}
	if _, err := control.OpenTokens(plan.Join(s.root, c.Token), time.Now); err != nil {
		return fmt.Errorf("%s: %w", c.Pos, err)
	}
	return nil
}
