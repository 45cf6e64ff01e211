package gslb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

func init() { plugin.Register(name, setup) }

// setup reads the block and compiles its plan. It takes nothing that would have
// to be given back: a block further down may fail, and nobody would tell us.
func setup(c *caddy.Controller) error {
	g, err := parse(c)
	if err != nil {
		return plugin.Error(name, err)
	}
	gen := generationOf(c)
	server := dnsserver.GetConfig(c)

	// Handlers of the whole block are known only now, and so is the view.
	c.OnStartup(func() error {
		g.files.view = server.ViewName
		if err := g.checkNeighbours(server); err != nil {
			return plugin.Error(name, err)
		}
		running.start(gen, g)
		p := g.live.Load().plan
		log.Infof("Zone %s: %s", g.zones, describe(p, g.files.took))
		return nil
	})
	// A later Corefile failed to load, and whatever it started is over; or it is
	// in service, and another plugin failed to end: then we are over.
	c.OnRestartFailed(func() error {
		running.onlyLive(serving)
		return nil
	})
	// Queries may still come: only what runs beside them ends.
	c.OnShutdown(func() error {
		running.stop(gen)
		return nil
	})

	server.AddPlugin(func(next plugin.Handler) plugin.Handler {
		g.Next = next
		return g
	})
	return nil
}

// parse makes the plugin of a server block.
func parse(c *caddy.Controller) (*GSLB, error) {
	var tokens []config.Token
	for c.Next() {
		tokens = append(tokens, config.Token{Text: c.Val(), Pos: config.Pos{File: c.File(), Line: c.Line()}})
	}
	zones := plugin.OriginsFromArgsOrServerBlock(nil, c.ServerBlockKeys)
	block, err := config.Parse(zones, tokens)
	if err != nil {
		return nil, err
	}
	return newGSLB(block, dnsserver.GetConfig(c).Root)
}

// newGSLB compiles a block.
func newGSLB(block *config.Block, root string) (*GSLB, error) {
	g := &GSLB{zones: block.Zones, block: block, options: plan.Options{Root: root, Prepare: prepare}}
	g.files.failing = make(map[string]bool)
	began := time.Now()
	p, err := plan.Build(block, g.options)
	if err != nil {
		return nil, err
	}
	g.use(p, began, time.Since(began))
	for _, w := range p.Warnings {
		log.Warningf("%s: %s", w.Pos, w.Text)
	}
	return g, nil
}

// generationKey is where a caddy instance keeps its generation.
type generationKey struct{}

func generationOf(c *caddy.Controller) *generation {
	if gen, ok := c.Get(generationKey{}).(*generation); ok {
		return gen
	}
	gen := &generation{}
	c.Set(generationKey{}, gen)
	return gen
}

// serving tells whether caddy has a generation in service. It forgets those that
// failed to load or were stopped.
func serving(gen *generation) bool {
	return slices.ContainsFunc(caddy.Instances(), func(i *caddy.Instance) bool {
		return i.Storage[generationKey{}] == gen
	})
}

// checkNeighbours refuses what can't work together with the other plugins of
// the server block, and warns of what works badly.
func (g *GSLB) checkNeighbours(server *dnsserver.Config) error {
	has := func(plugin string) bool { return server.Handler(plugin) != nil }
	if err := checkOrder(dnsserver.Directives, has); err != nil {
		return err
	}
	if err := g.block.CheckNeighbours(has); err != nil {
		return err
	}
	if g.block.Fallthrough != nil && g.Next == nil {
		log.Warningf("%s: no plugin follows that fallthrough could ask", g.block.Fallthrough.Pos)
	}
	if sets := 3 * g.live.Load().plan.MaxSets(); has("dnssec") && sets > dnssecCapacity {
		log.Warningf("Up to %d signed answers are possible, more than the %d signatures that dnssec keeps: set its cache_capacity to at least %d",
			sets, dnssecCapacity, sets)
	}
	for _, zone := range g.zones {
		if !g.falls(zone) || g.below.get(context.Background(), g, zone) == nil {
			continue
		}
		if pos, word, written := g.block.Authority(); written {
			return fmt.Errorf("%s: %s is written, but a plugin below answers the SOA of %s: remove one of them", pos, word, zone)
		}
	}
	return nil
}

// dnssecCapacity is how many signatures dnssec keeps unless told otherwise.
const dnssecCapacity = 10000

// checkOrder holds the place of our directive in the build, as far as the
// plugins of this server block depend on it.
func checkOrder(directives []string, has func(string) bool) error {
	ours := slices.Index(directives, name)
	for i, d := range directives {
		if !has(d) {
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
