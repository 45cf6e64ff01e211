package gslb

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/guard"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// settling is how long a load must have been in service before it is remembered as
// accepted: a later server block may still fail, and end all of it.
const settling = 10 * time.Second

// guardStart holds the plan of a process that starts against the last one that was
// accepted, if a state directory remembers that. Health, levers and loads are left
// out of it: they are of another time. The registry's lock is held.
func (r *registry) guardStart(gen *generation, i int, now time.Time) error {
	g := gen.loaded[i]
	dir := g.stateDir()
	if dir == "" {
		return nil
	}
	memories, err := guard.LoadMemories(dir)
	if err != nil {
		log.Warningf("%s: what was last accepted can't be read, so this start is not held against it: %v", g.block.Pos, err)
		return nil
	}
	var olds, news []place
	for _, m := range memories {
		names := m.Names()
		olds = append(olds, place{m.Server, m.View, m.Zones, names, func(name string) bool { return slices.Contains(names, name) }})
	}
	for _, one := range gen.loaded {
		news = append(news, one.place())
	}
	err = gen.guardNames(olds, news, i, now)
	for _, j := range follows(olds, news, i) {
		if err == nil {
			err = g.accept(memories[j].Refusals(&g.block.Guard, g.live.Load().plan.Assumed()), now)
		}
	}
	if err != nil {
		return fmt.Errorf("%w, and start again. It is held against what was last in service, which %s tells", err, filepath.Join(dir, guard.MemoryFile))
	}
	return nil
}

// keepSoon has what is in service remembered with the next beat; the registry's lock is
// held.
func (r *registry) keepSoon(now time.Time) {
	if r.keepAt.IsZero() || now.Before(r.keepAt) {
		r.keepAt = now
	}
}

// toKeep gives what keeps in mind what is in service, if that is due, to be called when
// the registry's lock isn't held. The lock is held.
func (r *registry) toKeep(now time.Time) (keep func()) {
	if r.keepAt.IsZero() || now.Before(r.keepAt) {
		return nil
	}
	r.keepAt = time.Time{}
	instances := slices.Clone(r.latest())
	plans := make([]*plan.Plan, len(instances))
	for i, g := range instances {
		plans[i] = g.live.Load().plan
	}
	return func() {
		dirs := make(map[string][]*guard.Memory)
		for i, g := range instances {
			if dir := g.stateDir(); dir != "" {
				m := guard.Remember(plans[i].Assumed())
				m.Server, m.View = g.files.server, g.files.view
				dirs[dir] = append(dirs[dir], m)
			}
		}
		for dir, list := range dirs {
			if writeState(dir, "What was accepted", func() error { return guard.SaveMemories(dir, list) }) != nil {
				r.mu.Lock()
				r.keepSoon(now.Add(saveAtAll))
				r.mu.Unlock()
			}
		}
	}
}

// memoryName tells the blocks of one process apart.
func (g *GSLB) memoryName() string {
	return fmt.Sprintf("%s %s %s", g.files.server, g.files.view, strings.Join(g.zones, " "))
}
