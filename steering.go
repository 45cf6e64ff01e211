package gslb

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// steering is what moves clients besides their health: the clock, operators, the
// return after an outage, and the law of capacity. There is one for the process,
// as levers and loads go by a region's name; it outlives reloads and ends with the
// last generation. All of it is guarded by the registry's lock.
type steering struct {
	registry  *registry
	ramps     map[rampKey]time.Time // since when a region has been coming back
	rough     map[rampKey]bool      // shares that resolvers are too few or too unequal for
	law       law
	targets   targets
	confirmed time.Time     // when copies of data files were last dated
	hurried   chan struct{} // the law is not to wait for the next beat
	saver     saver
	cancel    context.CancelFunc
	beating   sync.WaitGroup
	saving    sync.WaitGroup
}

// rampKey is a pool: its view, the first name of its host, and its region.
type rampKey struct{ view, host, region string }

// rampKeyOf names the pool of a host in a region.
func (g *GSLB) rampKeyOf(h *plan.Host, region string) rampKey {
	return rampKey{g.files.view, h.Config.Names[0], region}
}

// beat is how often the clock is looked at. Whatever follows the clock is at most
// that late.
const beat = time.Second

// newSteering starts one.
func newSteering(r *registry) *steering {
	s := &steering{registry: r, ramps: make(map[rampKey]time.Time), confirmed: time.Now(), hurried: make(chan struct{}, 1), saver: saver{work: make(chan []func(), 1)}}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.beating.Go(func() { s.run(ctx) })
	s.saving.Go(s.save)
	return s
}

// close ends it. The registry's lock must not be held.
func (s *steering) close() {
	s.cancel()
	s.beating.Wait()
	close(s.saver.work)
	saves := patiently(s.saving.Wait)
	s.targets.close(saves)
	s.law.close(saves)
}

func (s *steering) run(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.round(now)
		case <-s.hurried:
			s.round(time.Now())
		}
	}
}

// round makes a step of the law, does what is due, and has saved what is to be saved.
func (s *steering) round(now time.Time) {
	stepped := s.stepAside(now)
	s.registry.mu.Lock()
	s.turn(now, stepped)
	if s.saver.free(now) {
		work := []func(){s.targetsToSave(now), s.registry.toKeep(now), s.toConfirm(now), s.law.memory.toSave(&s.law, now)}
		s.saver.give(slices.DeleteFunc(work, func(do func()) bool { return do == nil }), now)
	}
	s.registry.mu.Unlock()
}

// hurry has the law step at once, as who can take what has changed; the registry's lock is
// held. Right after a step that waits for the next beat: many verdicts that change one after
// the other must not make as many steps.
func (s *steering) hurry(now time.Time) {
	s.law.next = now
	if now.Sub(s.law.stepped) < lawRest {
		return
	}
	select {
	case s.hurried <- struct{}{}:
	default:
	}
}

// turn does what is due; stepped says that the law has just made a step.
func (s *steering) turn(now time.Time, stepped bool) {
	if stepped {
		s.warnShares()
	}
	for _, g := range s.registry.instances() {
		p := g.live.Load().plan
		due := !g.due.IsZero() && !now.Before(g.due)
		switch {
		case !p.Expires.IsZero() && !now.Before(p.Expires):
			g.recompile(now)
		case !g.targetsLate.IsZero() && !now.Before(g.targetsLate):
			g.resolveAgain(now)
		case due || stepped && g.lawful():
			g.refresh(now)
			if due && g.lawful() && !g.postponed { // a step just made doesn't know of it
				s.hurry(now)
			}
		}
	}
}

// moves are what moves the clients of an instance now.
func (g *GSLB) moves(now time.Time) *plan.Moves {
	m := &plan.Moves{Now: now}
	if !g.clock.IsZero() {
		m.Now = g.clock
	}
	if g.ledger != nil {
		m.Overrides = g.ledger.inService
	}
	if s := g.steering; s != nil {
		m.Ramp = func(h *plan.Host, r steer.Region) float64 { part, _ := s.ramp(g, h, r, now); return part }
		g.admitted.move(m)
	}
	return m
}

// refresh makes the snapshots of all hosts anew, and notes when that is due next;
// the registry's lock is held.
func (g *GSLB) refresh(now time.Time) {
	g.tick(now)
	g.writing.Lock()
	old := g.live.Load()
	next := &state{plan: old.plan, demand: old.demand, snapshots: old.plan.Snapshots(g.verdict, g.moves(now))}
	g.live.Store(next)
	g.writing.Unlock()
	for i, h := range old.plan.Hosts {
		logLastResort(h, h, old.snapshots[i], next.snapshots[i])
	}
	g.due = time.Time{}
	g.schedule(now)
}

// schedule works out when the snapshots are due next. If they are due already, they
// stay so: only refresh makes those of all hosts.
func (g *GSLB) schedule(now time.Time) {
	p := g.live.Load().plan
	g.targetsLate = g.targetsDue(now)
	if !g.due.IsZero() && !now.Before(g.due) {
		return
	}
	g.due = p.NextChange(now)
	if g.postponed { // to be tried again
		g.due = now.Add(beat)
	}
	if g.steering == nil {
		return
	}
	for _, h := range p.Hosts {
		for r := range p.Block.Regions {
			if _, at := g.steering.ramp(g, h, steer.Region(r), now); !at.IsZero() && (g.due.IsZero() || at.Before(g.due)) {
				g.due = at
			}
		}
	}
}

// A region comes back in ten parts, the first at once.
const rampParts = 10

// ramp is the part, 0..1, that a region takes of a host's clients while it comes
// back, and when that changes; zero: it is not coming back.
func (s *steering) ramp(g *GSLB, h *plan.Host, r steer.Region, now time.Time) (part float64, next time.Time) {
	pool := h.Pool(r)
	if pool == nil {
		return 1, next
	}
	key := g.rampKeyOf(h, pool.Region)
	since, ok := s.ramps[key]
	if !ok {
		return 1, next
	}
	n, step := rampParts, g.live.Load().plan.RampOf(h, pool)/(rampParts-1)
	if step > 0 {
		n = int(max(0, now.Sub(since)) / step)
	}
	if n >= rampParts-1 {
		delete(s.ramps, key) // for good: a reload with a longer one must not begin again
		return 1, next
	}
	return float64(n+1) / rampParts, since.Add(time.Duration(n+1) * step)
}

// returned notes which regions of a host are back after an outage: health had taken
// them out, and gives them back. It tells whether there are any. A family that was
// lost alone, and comes back, moves nobody but its own clients, and at once.
func (s *steering) returned(g *GSLB, h *plan.Host, before, after *steer.Snapshot, now time.Time) (any bool) {
	for r := range h.Need.Input.Regions {
		region := steer.Region(r)
		pool := h.Pool(region)
		if pool == nil {
			continue
		}
		key := g.rampKeyOf(h, pool.Region)
		failed, _ := standing(h, before, region)
		out, back := standing(h, after, region)
		switch {
		case failed && back:
			s.ramps[key], any = now, true
		case out:
			delete(s.ramps, key)
		}
	}
	return any
}

// standing tells whether health has taken a region of a host out, in all families, or
// has it in service in one, and not only because of max_down.
func standing(h *plan.Host, s *steer.Snapshot, r steer.Region) (out, in bool) {
	usable := false
	for f := steer.V4; f <= steer.V6; f++ {
		if st := s.Region(r, f); h.Steer.Offers(f) {
			out, in, usable = out || st.Failed, in || st.Usable && !st.HeldUp, usable || st.Usable
		}
	}
	return out && !usable, in
}

// enough is how many resolutions it takes to tell how uneven resolvers are.
const enough = 1000

// warnShares tells, once, of shares that resolvers are too few or too unequal for: by
// chance, they are off by more than half of themselves every third time.
func (s *steering) warnShares() {
	all := make(map[rampKey]bool)
	for _, g := range s.registry.latest() {
		live := g.live.Load()
		for i, h := range live.plan.Hosts {
			hhi, n := live.demand.hosts[i].concentration()
			for r := range g.block.Regions {
				st := live.snapshots[i].Region(steer.Region(r), family(h))
				key := g.rampKeyOf(h, g.block.Regions[r].Name)
				all[key] = st.Shared && st.Share > 0 && n >= enough && st.Share < 2*deviation(st.Share, hhi)
				if all[key] && !s.rough[key] {
					log.Warningf("Host %s: the share of %g%% for region %s is less than twice the deviation of %.2g points that its resolvers make, which are as uneven as %.0f equal ones: what it gets may be far off",
						key.host, 100*st.Share, key.region, 100*deviation(st.Share, hhi), 1/hhi)
				}
			}
		}
	}
	s.rough = all
}
