package gslb

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func counter(metric, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: name, Name: metric, Help: help,
	}, labels)
}

func gauge(metric, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: name, Name: metric, Help: help,
	}, labels)
}

// Metrics of queries. Every label value comes from the configuration.
var (
	requestCount = counter("requests_total",
		"Queries for addresses of a host, by what the client was known by and the region given.",
		"server", "view", "host", "source", "region")
	decisionCount = counter("decisions_total",
		"Decisions by outcome.",
		"server", "view", "host", "outcome")
	locatedCount = counter("located_total",
		"Decisions by what gave the client its candidate list.",
		"server", "view", "host", "by")
	chosenCount = counter("chosen_total",
		"Decisions by what decided on the region: the order, a spill, a lever, or that nobody else takes the client.",
		"server", "view", "host", "by")
	familyMovedCount = counter("family_moved_total",
		"Decisions for which a region was passed over in one address family only.",
		"server", "view", "host")
	subnetCount = counter("client_subnets_total",
		"Queries for addresses of a host, by whether they held a client subnet that counts.",
		"server", "view", "subnet")
)

// Metrics of the state of a block.
var (
	planInfo = gauge("plan_info",
		"Always 1; digest is equal on all instances that decide alike.",
		"zone", "server", "view", "digest")
	topologyBlocks = gauge("topology_blocks",
		"Blocks that clients are told apart by.",
		"zone", "server", "view", "family", "lookup")
	topologyLists = gauge("topology_lists",
		"Distinct candidate lists.",
		"zone", "server", "view")
	topologySeconds = gauge("topology_build_seconds",
		"Time the last compilation of the topology took.",
		"zone", "server", "view")
	databaseBuilt = gauge("database_build_timestamp_seconds",
		"When the maker of the location database in use built it.",
		"kind", "file")
	databaseLoaded = gauge("database_load_timestamp_seconds",
		"When the location database in use was loaded.",
		"kind", "file")
	databaseSize = gauge("database_size_bytes",
		"Size of the location database in use.",
		"kind", "file")
	databaseNetworks = gauge("database_networks",
		"Networks of the location database in use.",
		"kind", "file")
	fileFailing = gauge("file_failing",
		"1 while the newest content of a data file can't be used and an older one stays in use.",
		"file")
	fileReloads = counter("file_reloads_total",
		"Reloads of changed data files by result.",
		"file", "result")
)

// labels keeps the counters of a block's hosts, so that a query looks up none.
type labels struct {
	mu    sync.Mutex
	known atomic.Pointer[map[string]*serverCounters] // by server
}

type serverCounters struct {
	hosts   []hostCounters // by plan.Host.Index
	subnets [subnetStates]prometheus.Counter
}

type hostCounters struct {
	requests    [2][]prometheus.Counter // by source and region; the last one is for none
	decisions   [5]prometheus.Counter   // by outcome
	familyMoved prometheus.Counter
	located     [topology.Kinds]prometheus.Counter // by what gave the list
	chosen      [steer.Bys]prometheus.Counter      // by what decided on the region
}

// What a query's client subnet was.
const (
	subnetAbsent = iota
	subnetUsed
	subnetIgnored // SOURCE 0, special-purpose space, not believed, or ecs off
	subnetStates
)

var subnetWords = [subnetStates]string{"absent", "used", "ignored"}

// of gives the counters for the server that a query came in by.
func (l *labels) of(ctx context.Context, b *config.Block) *serverCounters {
	server := metrics.WithServer(ctx)
	if known := l.known.Load(); known != nil {
		if c := (*known)[server]; c != nil {
			return c
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[string]*serverCounters{server: newServerCounters(b, server, metrics.WithView(ctx))}
	if known := l.known.Load(); known != nil {
		for s, c := range *known {
			next[s] = c
		}
	}
	l.known.Store(&next)
	return next[server]
}

func newServerCounters(b *config.Block, server, view string) *serverCounters {
	c := &serverCounters{hosts: make([]hostCounters, len(b.Hosts))}
	for i, word := range subnetWords {
		c.subnets[i] = subnetCount.WithLabelValues(server, view, word)
	}
	for i := range b.Hosts {
		host := b.Hosts[i].Names[0]
		h := &c.hosts[i]
		h.familyMoved = familyMovedCount.WithLabelValues(server, view, host)
		for o := range h.decisions {
			h.decisions[o] = decisionCount.WithLabelValues(server, view, host, steer.Outcome(o).String())
		}
		for by := range h.located {
			h.located[by] = locatedCount.WithLabelValues(server, view, host, topology.Kind(by).String())
		}
		for by := steer.ByChoice; by < steer.Bys; by++ {
			h.chosen[by] = chosenCount.WithLabelValues(server, view, host, by.String())
		}
		pooled := make(map[string]bool)
		for _, p := range b.Hosts[i].Pools {
			pooled[p.Region] = true
		}
		for source := range h.requests {
			h.requests[source] = make([]prometheus.Counter, len(b.Regions)+1)
			word := steer.Source(source).String()
			for r, region := range b.Regions {
				if pooled[region.Name] {
					h.requests[source][r] = requestCount.WithLabelValues(server, view, host, word, region.Name)
				}
			}
			h.requests[source][len(b.Regions)] = requestCount.WithLabelValues(server, view, host, word, "none")
		}
	}
	return c
}

// observe counts a decision and gives it to the metadata of the query.
func (g *GSLB) observe(ctx context.Context, q *query, h *plan.Host, c *steer.Client, by topology.Kind, d *steer.Decision) {
	counters := g.labels.of(ctx, g.block)
	host := &counters.hosts[h.Index]
	regions := host.requests[c.Source]
	region := len(regions) - 1
	if d.Region != steer.NoRegion {
		region = int(d.Region)
	}
	regions[region].Inc()
	host.decisions[d.Outcome].Inc()
	host.located[by].Inc()
	if d.By != steer.ByNone {
		host.chosen[d.By].Inc()
	}
	if d.FamilyMoved {
		host.familyMoved.Inc()
	}
	switch {
	case !q.subnet.present && !q.unheeded:
		counters.subnets[subnetAbsent].Inc()
	case c.Source == steer.ECS:
		counters.subnets[subnetUsed].Inc()
	default:
		counters.subnets[subnetIgnored].Inc()
	}
	g.setMetadata(ctx, h, c, by, d)
}

// setMetadata lets other plugins, such as log, see the decision.
func (g *GSLB) setMetadata(ctx context.Context, h *plan.Host, c *steer.Client, by topology.Kind, d *steer.Decision) {
	source := c.Source
	if !metadata.SetValueFunc(ctx, "gslb/source", source.String) {
		return // nobody asked for metadata
	}
	decision, client := *d, *c
	region := ""
	if d.Region != steer.NoRegion {
		region = g.block.Regions[d.Region].Name
	}
	metadata.SetValueFunc(ctx, "gslb/host", func() string { return h.Config.Names[0] })
	metadata.SetValueFunc(ctx, "gslb/region", func() string { return region })
	metadata.SetValueFunc(ctx, "gslb/scope", func() string { return strconv.Itoa(decision.Scope) })
	metadata.SetValueFunc(ctx, "gslb/by", func() string { return decision.By.String() })
	metadata.SetValueFunc(ctx, "gslb/located", by.String)
	metadata.SetValueFunc(ctx, "gslb/outcome", func() string { return decision.Outcome.String() })
	metadata.SetValueFunc(ctx, "gslb/client", func() string { return fmt.Sprintf("%s/%d", client.Addr, client.Bits) })
}
