package probe

import "time"

// coalesce is how long changes are gathered before they are told: short enough
// to reach queries within 10 ms, long enough that an outage of everything
// doesn't make thousands of snapshots.
const coalesce = 4 * time.Millisecond

// Notice tells what changed since the one before.
type Notice struct {
	Changes  []Change // at most one for a probe; in the order in which they began to differ
	Isolated bool     // whether the Scheduler takes itself for isolated; see Isolation
}

// Change is that of one probe's State. They differ in Verdict, Assumed, Streak,
// Held or Waiting, or did in between.
type Change struct {
	Probe    *Probe
	Old, New *State
}

// pendingNotice is what is still to be told.
type pendingNotice struct {
	changes []Change
	places  map[*Probe]int // in changes
}

// publish makes a probe's state public and has it told if it differs. It gives
// the state before.
func (s *Scheduler) publish(p *Probe) (old *State) {
	old = p.publish()
	state := p.state.Load()
	if s.opts.Changed == nil || old.looksLike(state) {
		return old
	}
	if i, ok := s.notice.places[p]; ok {
		s.notice.changes[i].New = state
		return old
	}
	s.notice.places[p] = len(s.notice.changes)
	s.notice.changes = append(s.notice.changes, Change{p, old, state})
	signal(s.dirty)
	return old
}

// looksLike tells whether two states are the same to those who use them.
func (a *State) looksLike(b *State) bool {
	return a.Verdict == b.Verdict && a.Assumed == b.Assumed && a.Streak == b.Streak && a.Held == b.Held && a.Waiting == b.Waiting
}

// notify tells changes.
func (s *Scheduler) notify() {
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		select {
		case <-s.dirty:
		case <-s.ctx.Done():
			return
		}
		timer.Reset(coalesce)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		n := Notice{s.notice.changes, s.guard.isolation.Isolated()}
		s.notice = pendingNotice{places: map[*Probe]int{}}
		s.mu.Unlock()
		s.opts.Changed(n)
	}
}
