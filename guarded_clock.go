package gslb

import (
	"time"

	"github.com/seed-945f90c5/gslb/internal/guard"
)

// schedulesPostponed tells whose schedules are postponed.
var schedulesPostponed = gauge("schedules_postponed", "1 while guards postpone what the clock would do to levers.", "zone", "server", "view")

// tick lets the levers that are written follow the clock, unless the guards usable and
// require are against it: what was written for another day may meet an outage. Then all
// of the block's schedules stand still until they can go on together. Without a state
// before, as at a start, they have their way. The registry's lock is held.
func (g *GSLB) tick(now time.Time) {
	p := g.live.Load().plan
	next := p.NextChange(g.clock)
	if g.clock.IsZero() || next.IsZero() || now.Before(next) {
		g.clock = now
		g.postpone(nil, now)
		return
	}
	m := g.moves(now)
	before := &guard.Side{Plan: p, Snapshots: p.Snapshots(g.verdict, m)}
	m.Now = now
	after := &guard.Side{Plan: p, Snapshots: p.Snapshots(g.verdict, m)}
	refusals := guard.Worse(&g.block.Guard, before, after)
	if g.postponed && len(refusals) > 0 {
		if _, accepted := guard.Accepted(&g.block.Guard, now); !accepted {
			return // it was said
		}
	}
	err := g.accept(refusals, now)
	if err == nil {
		g.clock = now
	}
	g.postpone(err, now)
}

// postpone notes whether schedules are postponed, and why.
func (g *GSLB) postpone(err error, now time.Time) {
	switch {
	case err != nil && !g.postponed:
		log.Errorf("%s: levers that the clock would move now are postponed until guards let them: %v, and reload", g.block.Pos, err)
	case err == nil && g.postponed:
		log.Infof("%s: levers follow the clock again", g.block.Pos)
	}
	if postponed := err != nil; postponed != g.postponed {
		g.postponed = postponed
		g.steering.registry.publish()
	}
}

// inherit takes over what an instance before a reload has postponed: a reload is no way
// past a guard. The registry's lock is held.
func (g *GSLB) inherit(old *GSLB, now time.Time) {
	if old.postponed {
		g.clock, g.postponed = old.clock, true
		g.refresh(now)
	}
}
