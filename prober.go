package gslb

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
)

// prober is the scheduler that all instances of a generation share, and with
// the generation before if their settings are the same: so a reload changes
// nothing for an endpoint that stays.
type prober struct {
	scheduler *probe.Scheduler
	settings  proberSettings
	users     int // generations; guarded by the registry
	store     *probe.Store
	changed   atomic.Bool // there is news to save
	cancel    context.CancelFunc
	saver     sync.WaitGroup
	isolated  atomic.Bool
	beacons   []probe.Target
	answered  atomic.Pointer[[]bool] // by beacon, when they were last asked; nil: not yet
}

// proberSettings are what a scheduler can't change later.
type proberSettings struct {
	beacons string
	dir     string // state directory; empty: none
}

// How verdicts are saved: soon after they change, and now and then for their age.
const (
	saveCheck = time.Second
	saveAtAll = 30 * time.Second
	// savedAge is the oldest record that is read back. A check's own limit for a
	// verdict is far lower; this keeps holds for an operator's word.
	savedAge = 7 * 24 * time.Hour
)

// settingsOf are the settings that the instances of a generation ask for, and
// whether there is anything to probe.
func settingsOf(instances []*GSLB) (s proberSettings, beacons []probe.Target, checks bool, err error) {
	var where config.Pos
	for _, g := range instances {
		b := g.block
		checks = checks || len(b.Checks) > 0
		for _, beacon := range b.Beacons {
			t := probe.Target{Addr: beacon.Addr(), Port: beacon.Port()}
			if !slices.Contains(beacons, t) {
				beacons = append(beacons, t)
			}
		}
		if b.State == nil {
			continue
		}
		dir := g.stateDir()
		if s.dir != "" && s.dir != dir {
			return s, nil, false, fmt.Errorf("%s: state %s, but %s says another directory: one process keeps its state in one", b.State.Pos, b.State.Path, where)
		}
		s.dir, where = dir, b.State.Pos
	}
	slices.SortFunc(beacons, func(a, b probe.Target) int { return cmp.Or(a.Addr.Compare(b.Addr), int(a.Port)-int(b.Port)) })
	s.beacons = fmt.Sprint(beacons)
	return s, beacons, checks, nil
}

// stateDir is the state directory of a block; empty: none.
func (g *GSLB) stateDir() string {
	if g.block.State == nil {
		return ""
	}
	return plan.Join(g.options.Root, g.block.State.Path)
}

// newProber starts a scheduler. known is what another one knows; without it
// the state directory is read.
func newProber(r *registry, s proberSettings, beacons []probe.Target, known map[string]probe.Saved) (*prober, error) {
	p := &prober{settings: s, beacons: beacons}
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o750); err != nil {
			return nil, fmt.Errorf("state directory: %w: expected one that this process can write to", err)
		}
		p.store = probe.NewStore(s.dir)
		if known == nil {
			var err error
			if known, err = p.store.Load(time.Now(), savedAge); err != nil {
				log.Errorf("Saved verdicts can't be read: %v", err)
			}
		}
	}
	options := r.probing
	options.Saved, options.Beacons = known, beacons
	options.Changed = func(n probe.Notice) { p.tell(r, n) }
	options.Observed = func(p *probe.Probe, r probe.Result, late time.Duration) {
		observeProbe(p, r, late)
		heard.note(p.Key(), r.Reported, time.Now())
	}
	p.scheduler = probe.NewScheduler(options)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if p.store != nil {
		p.saver.Go(func() { p.keepSaving(ctx) })
	}
	if len(beacons) > 0 {
		p.saver.Go(func() { p.keepAsking(ctx) })
	}
	return p, nil
}

// tell brings changed verdicts to the instances, the log and the metrics.
func (p *prober) tell(r *registry, n probe.Notice) {
	r.mu.Lock()
	for _, gen := range r.generations {
		if gen.prober == p {
			for _, g := range gen.instances {
				g.healthChanged(n.Changes)
			}
		}
	}
	r.mu.Unlock()
	for _, c := range n.Changes {
		if c.Old.Verdict == c.New.Verdict {
			continue
		}
		p.changed.Store(true)
		transitionCount.WithLabelValues(c.Probe.Check().Name, c.New.Verdict.String()).Inc()
		logTransition(c, n.Isolated)
	}
	if was := p.isolated.Swap(n.Isolated); was != n.Isolated {
		if n.Isolated {
			log.Errorf("Isolated: most endpoints fail and no beacon answers, so it must be us; the last verdicts are held")
		} else {
			log.Warningf("No longer isolated: verdicts follow the probes again")
		}
	}
}

// logTransition tells of a changed verdict, but for the first one if it is that
// the endpoint is up, as it was taken for: after a start that is true of most.
func logTransition(c probe.Change, isolated bool) {
	if c.New.Verdict == probe.VerdictUp && c.Old.Assumed == probe.VerdictUp && !c.Old.Probed {
		return
	}
	level := log.Infof
	if c.New.Verdict != probe.VerdictUp {
		level = log.Warningf
	}
	was, is := c.Old.Verdict.String(), "is"
	if c.Old.Verdict == probe.VerdictUnknown {
		was = "taken for " + c.Old.Assumed.String()
	}
	if c.Old.Assumed == c.New.Verdict {
		is = "is indeed"
	}
	level("Check %s of %s was %s and %s %s%s (%s)", c.Probe.Check().Name, placeOf(c.Probe.Target()), was, is, c.New.Verdict, because(c.New, isolated),
		strings.Join(c.New.Users, ", "))
}

// placeOf is where a probe goes, as a person would write it.
func placeOf(t probe.Target) string {
	if t.Port == 0 {
		return t.Addr.String()
	}
	return netip.AddrPortFrom(t.Addr, t.Port).String()
}

// because says why a verdict is what it has turned to.
func because(s *probe.State, isolated bool) string {
	noted := len(s.Notes) > 0
	switch {
	case isolated && s.Verdict != probe.VerdictDown && noted && !s.Notes[0].At.Before(s.LastAt): // its last probe failed
		return ": taken back, since this vantage is isolated"
	case s.Verdict == probe.VerdictUnknown && !(noted && s.Notes[0].At.After(s.LastAt)):
		return ": no result since " + s.LastAt.UTC().Format(time.RFC3339)
	case s.Verdict == probe.VerdictUp || !noted:
		return ""
	}
	return ": " + s.Notes[0].Reason
}

// keepSaving saves until ctx is done.
func (p *prober) keepSaving(ctx context.Context) {
	tick := time.NewTicker(saveCheck)
	defer tick.Stop()
	saved := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if p.changed.Swap(false) || now.Sub(saved) >= saveAtAll {
				p.save()
				saved = now
			}
		}
	}
}

// askEvery is how often beacons are asked for people to see whether they answer:
// one that is wrong must be known before it is needed.
const askEvery = time.Minute

// keepAsking tells of beacons that don't answer, until ctx is done.
func (p *prober) keepAsking(ctx context.Context) {
	silent := make([]bool, len(p.beacons))
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		answered := p.scheduler.AskBeacons(ctx)
		if ctx.Err() != nil {
			return
		}
		p.answered.Store(&answered)
		for i, ok := range answered {
			if !ok && !silent[i] {
				log.Warningf("Beacon %s doesn't answer: if it never does, it can't tell that this instance is cut off", placeOf(p.beacons[i]))
			}
			silent[i] = !ok
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// save writes the verdicts to the state directory.
func (p *prober) save() {
	all := p.scheduler.Saved() // now: when others are done, the endpoints may have been given back
	writeState(p.settings.dir, "Verdicts", func() error { return p.store.Save(all) })
}

// close ends the scheduler, and saves what it knew.
func (p *prober) close() {
	p.cancel()
	saves := patiently(p.saver.Wait)
	p.scheduler.Close()
	if saves && p.store != nil {
		patiently(p.save)
	}
}
