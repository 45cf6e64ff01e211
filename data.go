package gslb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/seed-945f90c5/gslb/internal/geodb"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

var log = clog.NewWithPlugin(name)

// watchEvery is how often data files are looked at. A change counts when two
// looks in a row found the file the same.
const watchEvery = 5 * time.Second

// dataFiles is what an instance keeps of its data files, besides their content.
type dataFiles struct {
	server  string
	view    string
	cancel  context.CancelFunc
	done    sync.WaitGroup
	mu      sync.Mutex
	loaded  time.Time       // when the plan in use was made
	took    time.Duration   // and how long that took
	failing map[string]bool // files whose newest content can't be used
	unkept  atomic.Bool     // copies could not be made
}

// use takes a plan into service.
func (g *GSLB) use(p *plan.Plan, loaded time.Time, took time.Duration) {
	g.writing.Lock()
	g.live.Store(g.next(p, time.Now()))
	g.writing.Unlock()
	g.files.mu.Lock()
	g.files.loaded, g.files.took = loaded, took
	g.files.mu.Unlock()
}

// startWatch follows changes of the data files until stopWatch.
func (g *GSLB) startWatch() {
	ctx, cancel := context.WithCancel(context.Background())
	g.files.cancel = cancel
	data := g.live.Load().plan.Data
	files := data.Files()
	if len(files) == 0 {
		return
	}
	for i := range files {
		if data.Stale[files[i].Path] != nil {
			files[i].Loaded = false // what it holds next is news, even if that is in use
		}
	}
	w := geodb.NewWatcher(watchEvery, files...)
	g.files.done.Go(func() { w.Run(ctx, g.reload) })
}

// stopWatch ends it and waits. It may be called more than once.
func (g *GSLB) stopWatch() {
	if g.files.cancel != nil {
		g.files.cancel()
	}
	g.files.done.Wait()
}

// reload takes changed data files into service, each by itself. What can't be
// used is logged once, and the plan in use stays.
func (g *GSLB) reload(changes []geodb.Change) {
	for _, c := range changes {
		err := c.Err
		if err == nil {
			err = g.reloadFile(c.Path)
		}
		result := "success"
		if err != nil {
			result = "error"
			log.Errorf("Data file %s can't be used, its last good content stays in use: %v", c.Path, err)
		}
		fileReloads.WithLabelValues(c.Path, result).Inc()
		g.files.mu.Lock()
		g.files.failing[c.Path] = err != nil
		g.files.mu.Unlock()
	}
	running.mu.Lock()
	running.publish()
	running.mu.Unlock()
}

func (g *GSLB) reloadFile(path string) error {
	began := time.Now()
	data, err := g.live.Load().plan.Data.Reload(path, began)
	if err != nil {
		return err
	}
	o := g.options
	o.Now = began
	o.Resolve = nil // replace does, under the lock
	p, err := plan.Compile(g.block, data, o)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if err := g.replace(p, began, took); err != nil {
		return err
	}
	patiently(func() { g.keepData(began) })
	log.Infof("Data file %s has changed and is in use: %s", path, describe(p, took))
	return nil
}

// replace puts a plan into the place of the one in service, if guards let it.
func (g *GSLB) replace(p *plan.Plan, loaded time.Time, took time.Duration) error {
	running.mu.Lock()
	defer running.mu.Unlock()
	now := time.Now()
	old := g.live.Load()
	if len(p.Targets()) > 0 {
		if g.targets == nil { // the instance is over: what it has stays
			return nil
		}
		var err error
		if p, err = p.Resolved(g.options); err != nil {
			return err
		}
	}
	next, err := g.foretell(p, now)
	if err != nil {
		return err
	}
	if err := g.allowed([]*GSLB{g}, next, now); err != nil {
		return fmt.Errorf("%w, and reload", err)
	}
	running.keepSoon(now)
	logWarnings(old.plan, p)
	g.files.mu.Lock()
	g.files.loaded, g.files.took = loaded, took
	g.files.mu.Unlock()
	g.take(p, next, now)
	return nil
}

// logWarnings tells of what a plan warns of that the one before it didn't.
func logWarnings(old, p *plan.Plan) {
	for _, w := range p.Warnings {
		if !slices.Contains(old.Warnings, w) {
			log.Warningf("%s: %s", w.Pos, w.Text)
		}
	}
}

// confirmEvery is how often the copies of data files are told that their content is still
// in service: their age counts from then.
const confirmEvery = 24 * time.Hour

// keepAgain is how long after copies could not be made it is tried again.
const keepAgain = 10 * time.Minute

// toConfirm gives what does that, if it is due, to be called when the registry's lock, which
// is held, isn't.
func (s *steering) toConfirm(now time.Time) (confirm func()) {
	wait, instances := confirmEvery, s.registry.instances()
	if slices.ContainsFunc(instances, func(g *GSLB) bool { return g.files.unkept.Load() }) {
		wait = keepAgain
	}
	if now.Sub(s.confirmed) < wait {
		return nil
	}
	s.confirmed = now
	return func() {
		for _, g := range instances {
			g.keepData(now)
		}
	}
}

// keepData has the state directory hold copies of the data files in use.
func (g *GSLB) keepData(now time.Time) {
	dir := g.stateDir()
	if dir == "" {
		return
	}
	writingState.Lock()
	defer writingState.Unlock()
	err := g.live.Load().plan.Data.Keep(dir, now)
	switch was := g.files.unkept.Swap(err != nil); {
	case err != nil && !was:
		log.Errorf("Data files can't be copied to the state directory: %v. It is tried again every %s", err, keepAgain)
	case err == nil && was:
		log.Infof("Data files are copied to the state directory again")
	}
}

// describe tells the size of a plan.
func describe(p *plan.Plan, took time.Duration) string {
	v4, v6, lists := 0, 0, 0
	for _, n := range p.Needs {
		s := n.Topology.Stats()
		v4, v6, lists = v4+s.ECS4, v6+s.ECS6, lists+s.Lists
	}
	return fmt.Sprintf("%d hosts, %d regions, %d IPv4 and %d IPv6 blocks, %d candidate lists, digest %016x, compiled in %.2fs",
		len(p.Hosts), len(p.Block.Regions), v4, v6, lists, p.Digest, took.Seconds())
}

// publish sets the metrics that describe all running instances; r.mu is held.
func (r *registry) publish() {
	for _, v := range []interface{ Reset() }{
		planInfo, topologyBlocks, topologyLists, topologySeconds,
		databaseBuilt, databaseLoaded, databaseSize, databaseNetworks, fileFailing, schedulesPostponed,
	} {
		v.Reset()
	}
	for _, g := range r.instances() {
		g.publish()
	}
}

func (g *GSLB) publish() {
	g.files.mu.Lock()
	defer g.files.mu.Unlock()
	p := g.live.Load().plan
	zone, server, view := strings.Join(g.zones, " "), g.files.server, g.files.view
	schedulesPostponed.WithLabelValues(zone, server, view).Set(oneIf(g.postponed))
	planInfo.WithLabelValues(zone, server, view, fmt.Sprintf("%016x", p.Digest)).Set(1)
	topologySeconds.WithLabelValues(zone, server, view).Set(g.files.took.Seconds())
	lists := 0
	for _, n := range p.Needs {
		s := n.Topology.Stats()
		lists += s.Lists
		topologyBlocks.WithLabelValues(zone, server, view, "v4", "client_subnet").Add(float64(s.ECS4))
		topologyBlocks.WithLabelValues(zone, server, view, "v6", "client_subnet").Add(float64(s.ECS6))
		topologyBlocks.WithLabelValues(zone, server, view, "v4", "transport").Add(float64(s.Full4))
		topologyBlocks.WithLabelValues(zone, server, view, "v6", "transport").Add(float64(s.Full6))
	}
	topologyLists.WithLabelValues(zone, server, view).Set(float64(lists))
	for kind, info := range p.Data.Databases() {
		databaseBuilt.WithLabelValues(kind, info.Path).Set(float64(info.BuildTime.Unix()))
		databaseLoaded.WithLabelValues(kind, info.Path).Set(float64(g.files.loaded.Unix()))
		databaseSize.WithLabelValues(kind, info.Path).Set(float64(info.Size))
		databaseNetworks.WithLabelValues(kind, info.Path).Set(float64(info.Networks))
	}
	for _, f := range p.Data.Files() {
		for _, result := range []string{"success", "error"} {
			fileReloads.WithLabelValues(f.Path, result)
		}
		failing := 0.0
		if g.files.failing[f.Path] {
			failing = 1
		}
		fileFailing.WithLabelValues(f.Path).Set(failing)
	}
}
