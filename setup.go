package gslb

import (
	"slices"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

func init() {
	plugin.Register(name, setup)
	caddy.RegisterParsingCallback("dns", name, afterSetup)
}

// afterSetup runs in every load of a Corefile, once setup was called for each gslb block
// in it: where there is none, nobody else can hold the load against guards.
func afterSetup(caddy.Context) error {
	all := caddy.Instances() // the one that is being loaded is the last
	if len(all) == 0 || all[len(all)-1].Storage[generationKey{}] != nil {
		return nil
	}
	if err := running.guardLast(time.Now()); err != nil {
		return plugin.Error(name, err)
	}
	return nil
}

// setup reads the block and compiles its plan. It takes nothing that would have
// to be given back: a block further down may fail, and nobody would tell us.
func setup(c *caddy.Controller) error {
	g, err := parse(c)
	if err != nil {
		return plugin.Error(name, err)
	}
	gen := generationOf(c)
	gen.loaded = append(gen.loaded, g)
	server := dnsserver.GetConfig(c)
	g.find = func() {
		if g.files.server == "" {
			g.files.view, g.files.server = server.ViewName, serverName(server)
		}
	}

	// Handlers of the whole block are known only now, and so is the view.
	c.OnStartup(func() error {
		for _, one := range gen.loaded { // guards look at all blocks
			one.find()
		}
		words := siblings(gen, g.block)
		if words == nil { // no Corefile to read them from: what can be seen without
			words = handlersOf(server)
		}
		if err := checkOrder(dnsserver.Directives, words); err != nil {
			return plugin.Error(name, err)
		}
		if err := g.checkNeighbours(words); err != nil {
			return plugin.Error(name, err)
		}
		size := describe(g.live.Load().plan, g.files.took)
		if err := running.start(gen, g); err != nil {
			return plugin.Error(name, err)
		}
		patiently(func() { g.keepData(time.Now()) })
		log.Infof("Zone %s: %s", g.zones, size)
		return nil
	})
	// Guards hold what starts now against what we have in service.
	c.OnRestart(func() error {
		running.leave(gen, true)
		return nil
	})
	// A later Corefile failed to load, and whatever it started is over; or it is
	// in service, and another plugin failed to end: then we are over.
	c.OnRestartFailed(func() error {
		running.leave(gen, false)
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
	began := time.Now()
	g := &GSLB{zones: block.Zones, block: block, options: plan.Options{Root: root, Prepare: prepare}}
	g.options.LastGood = plan.LastGood{InService: running.data(), Dir: g.stateDir(), Now: began}
	g.options.Resolve = g.resolve
	g.files.failing = make(map[string]bool)
	o := g.options
	o.Now = began
	p, err := plan.Build(block, o)
	if err != nil {
		return nil, err
	}
	if err := g.accept(guard.Hosts(p), began); err != nil {
		return nil, err
	}
	g.options.LastGood = plan.LastGood{}
	for path := range p.Data.Stale {
		g.files.failing[path] = true
	}
	g.use(p, began, time.Since(began))
	for _, w := range slices.Concat(p.Warnings, block.WarningsAt(began)) {
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
