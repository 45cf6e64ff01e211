package probe

import (
	"context"
	"iter"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"
)

// beaconTimeout is how long a beacon may take to answer.
const beaconTimeout = 2 * time.Second

// isolationGuard holds verdicts while the Scheduler is isolated. It is guarded
// by the scheduler's mutex.
type isolationGuard struct {
	isolation        Isolation
	failing, passing int // endpoints by their last result
	// turned are those within one interval of their check, by that interval,
	// oldest first.
	turned           map[time.Duration][]turn
	asking           bool // beacons are being probed
	asked, heard     bool // they have been once; and that has ended
	askedAt, heardAt time.Duration
	answered         bool // the last time
}

// turn is the turn of an endpoint to down.
type turn struct {
	probe  *Probe
	before *State
	since  time.Time // of the verdict down
	at     time.Duration
}

// tally counts endpoints by their last result.
func (g *isolationGuard) tally(p *Probe, failing bool) {
	g.forget(p)
	p.failing, p.passing = failing, !failing
	if failing {
		g.failing++
	} else {
		g.passing++
	}
}

// forget takes an endpoint out of the count.
func (g *isolationGuard) forget(p *Probe) {
	if p.failing {
		g.failing--
	}
	if p.passing {
		g.passing--
	}
	p.failing, p.passing = false, false
}

// guardAgainst looks at what a result did to an endpoint that was in the state
// old, and asks the beacons if too many fail.
func (s *Scheduler) guardAgainst(p *Probe, old *State, now time.Duration) {
	if len(s.opts.Beacons) == 0 {
		return
	}
	g := &s.guard
	if old.Assumed != VerdictDown && p.machine.Assumed() == VerdictDown {
		interval := p.machine.check.Interval
		g.turned[interval] = append(g.turned[interval], turn{p, old, p.machine.Since(), now})
	}
	suspicious := 2*g.failing > s.stats.Endpoints || g.isolation.Isolated()
	if suspicious && !g.asking && (!g.asked || now-g.askedAt >= s.opts.Window) {
		g.asking, g.asked, g.askedAt = true, true, now
		go s.askBeacons()
	}
	s.judge(now)
}

// judge decides whether we are isolated. If that begins, the turns that led to
// it are undone.
func (s *Scheduler) judge(now time.Duration) {
	g := &s.guard
	v := Vantage{Endpoints: s.stats.Endpoints, Turned: g.recent(now), Passing: g.passing}
	if g.heard && now-g.heardAt <= s.opts.Window+jitterSpan(s.opts.Window)+beaconTimeout {
		v.Beacons = BeaconsSilent
		if g.answered {
			v.Beacons = BeaconsAnswer
		}
	}
	if !g.isolation.Observe(v) {
		return
	}
	if g.isolation.Isolated() {
		for _, interval := range slices.Sorted(maps.Keys(g.turned)) { // told in the same order by all
			for _, t := range g.turned[interval] {
				if !t.probe.released {
					t.probe.machine.Recall(t.since, t.before.Verdict, t.before.Assumed, t.before.Since)
					s.publish(t.probe)
				}
			}
		}
		clear(g.turned)
	}
	signal(s.dirty)
}

// recent forgets turns that are older than an interval, and counts the others.
func (g *isolationGuard) recent(now time.Duration) (count int) {
	for interval, turns := range g.turned {
		n := 0
		for n < len(turns) && (now-turns[n].at > interval+jitterSpan(interval) || turns[n].probe.released) {
			n++
		}
		g.turned[interval] = turns[n:]
		count += len(turns) - n
	}
	return count
}

// askBeacons probes the beacons and judges by what they say.
func (s *Scheduler) askBeacons() {
	answered := s.anyBeacon()
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.guard
	g.asking, g.heard, g.heardAt, g.answered = false, true, s.now(), answered
	s.settle()
	if !s.closed {
		s.judge(g.heardAt)
	}
}

// anyBeacon probes all beacons at once, until one answers or the time is up. It
// doesn't wait for probers that don't return.
func (s *Scheduler) anyBeacon() bool {
	for _, ok := range s.beacons(s.ctx) {
		if ok {
			return true
		}
	}
	return false
}

// AskBeacons probes every beacon once, for people to see, and says which answered,
// in the order of Options.Beacons. It waits for up to two seconds, or until ctx ends,
// and judges nothing by it.
func (s *Scheduler) AskBeacons(ctx context.Context) []bool {
	answered := make([]bool, len(s.opts.Beacons))
	for i, ok := range s.beacons(ctx) {
		answered[i] = ok
	}
	return answered
}

// beacons probes all beacons at once, and gives whether each answered as they do, until
// the time is up.
func (s *Scheduler) beacons(ctx context.Context) iter.Seq2[int, bool] {
	return func(yield func(int, bool) bool) {
		ctx, cancel := context.WithTimeout(ctx, beaconTimeout)
		defer cancel()
		type answer struct {
			beacon int
			ok     bool
		}
		answers := make(chan answer, len(s.opts.Beacons))
		for i, b := range s.opts.Beacons {
			go func() { answers <- answer{i, s.opts.Beacon(ctx, b).Status != Fail} }()
		}
		for range s.opts.Beacons {
			select {
			case a := <-answers:
				if !yield(a.beacon, a.ok) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// connectBeacon passes if a TCP connection opens.
func connectBeacon(ctx context.Context, t Target) Result {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(t.Addr, t.Port).String())
	if err != nil {
		return Result{Status: Fail, Class: ClassConnect, Reason: boundedReason(err.Error())}
	}
	conn.Close()
	return Result{Status: Pass, Class: ClassOK}
}
