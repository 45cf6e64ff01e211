package gslb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/seed-945f90c5/gslb/internal/config"
)

// siblings gives the words of every directive in the server block of a gslb
// block, from the Corefile that its generation was loaded from; nil if that
// can't be found.
func siblings(gen *generation, b *config.Block) map[string][]string {
	for _, i := range caddy.Instances() {
		if i.Storage[generationKey{}] != gen || i.Caddyfile() == nil {
			continue
		}
		in := i.Caddyfile()
		blocks, err := caddyfile.Parse(in.Path(), bytes.NewReader(in.Body()), nil)
		if err != nil {
			return nil
		}
		for _, sb := range blocks {
			ours := sb.Tokens[name]
			if len(ours) == 0 || ours[0].Line != b.Line || ours[0].File != "" && ours[0].File != b.File {
				continue
			}
			words := make(map[string][]string)
			for directive, tokens := range sb.Tokens {
				for _, t := range tokens {
					words[directive] = append(words[directive], t.Text)
				}
			}
			return words
		}
	}
	return nil
}

// handlersOf gives the plugins of a server block, without their words.
func handlersOf(server *dnsserver.Config) map[string][]string {
	words := make(map[string][]string)
	for _, h := range server.Handlers() {
		words[h.Name()] = []string{h.Name()}
	}
	return words
}

// serverName is how metrics name the server that a block is part of.
func serverName(server *dnsserver.Config) string {
	host := ""
	if len(server.ListenHosts) > 0 {
		host = server.ListenHosts[0]
	}
	return server.Transport + "://" + host + ":" + server.Port
}

// checkNeighbours refuses what can't work together with the other plugins of
// the server block, and warns of what works badly.
func (g *GSLB) checkNeighbours(words map[string][]string) error {
	if err := g.block.CheckNeighbours(words); err != nil {
		return err
	}
	for _, w := range g.block.NeighbourWarnings(words, g.live.Load().plan.Signed()) {
		log.Warningf("%s: %s", w.Pos, w.Text)
	}
	if g.block.Fallthrough == nil || g.Next == nil {
		return nil
	}
	for _, zone := range g.zones {
		if !g.falls(zone) {
			if lookupSOA(context.Background(), g.Next, zone) != nil {
				log.Warningf("%s: a plugin below serves %s, but is asked for %s only: names there get another SOA than the zone",
					g.block.Fallthrough.Pos, zone, strings.Join(g.block.Fallthrough.Zones, " "))
			}
			continue
		}
		if g.below.get(context.Background(), g, zone) == nil {
			continue
		}
		if pos, word, written := g.block.Authority(); written {
			return fmt.Errorf("%s: %s is written, but a plugin below answers the SOA of %s: remove one of them", pos, word, zone)
		}
	}
	return nil
}

// checkOrder holds the place of our directive in the build, as far as the
// plugins of this server block depend on it.
func checkOrder(directives []string, words map[string][]string) error {
	ours := slices.Index(directives, name)
	for i, d := range directives {
		if len(words[d]) == 0 {
			continue
		}
		switch d {
		case "cache", "dnssec", "loadbalance", "rewrite", "acl":
			if i > ours {
				return fmt.Errorf("this build runs %s before %s, expected after it: in plugin.cfg, put %s right after dnssec", name, d, name)
			}
		case "minimal", "template", "hosts", "file", "auto", "secondary", "etcd", "forward", "whoami":
			if i < ours {
				return fmt.Errorf("this build runs %s after %s, expected before it: in plugin.cfg, put %s right after dnssec", name, d, name)
			}
		}
	}
	return nil
}
