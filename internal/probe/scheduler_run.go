package probe

import (
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// tick is the least time between two looks at the queue: probes due within
	// it begin together.
	tick = time.Millisecond
	// forever is when the loop looks again if nothing is due.
	forever = time.Hour
)

func hashOf(word string) uint64 { return xxhash.Sum64String(word) }

// loop begins probes when they are due and gives up those that are lost.
func (s *Scheduler) loop() {
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		s.mu.Lock()
		wait := s.look(s.now())
		s.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
	}
}

// look handles all that is due and gives the time until something is.
func (s *Scheduler) look(now time.Duration) time.Duration {
	if s.closed {
		return forever
	}
	for len(s.queue) > 0 && s.queue[0].due <= now {
		s.handle(s.queue[0], now)
	}
	for p := s.begin(); p != nil; p = s.begin() {
		go s.run(p)
	}
	if len(s.queue) == 0 {
		return forever
	}
	return max(s.queue[0].due-s.now(), tick)
}

// handle does what is due of one probe.
func (s *Scheduler) handle(p *Probe, now time.Duration) {
	switch {
	case p.stage == stageIdle:
		p.stage, p.slot = stageWaiting, p.due
		s.waiting = append(s.waiting, p)
		s.stats.Waiting++
		if s.stats.Running+s.stats.Waiting > s.opts.Concurrency {
			s.stats.Late++
		}
	case p.stage == stageRunning && now >= p.overdue:
		p.stage = stageLost
		s.stats.Running--
		s.stats.Lost++
		s.stats.Overran++
	}
	if !p.released && p.machine.Age(s.epoch.Add(now)) {
		s.publish(p)
	}
	s.watch(p, now)
}

// watch has the loop look again when a probe that is due or under way is lost,
// or its verdict gets too old.
func (s *Scheduler) watch(p *Probe, now time.Duration) {
	next := time.Duration(-1)
	if expires, ok := p.machine.Expires(); ok && !p.released {
		next = max(expires.Sub(s.epoch), now) + tick
	}
	if p.stage == stageRunning && (next < 0 || p.overdue < next) {
		next = p.overdue
	}
	if next < 0 {
		s.unschedule(p)
	} else {
		s.schedule(p, next)
	}
}

// begin takes a probe that waits, if there is one and a slot is free; run it.
func (s *Scheduler) begin() *Probe {
	for !s.closed && len(s.waiting) > 0 && s.stats.Running < s.opts.Concurrency {
		p := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		if p.released {
			continue
		}
		now := s.now()
		p.stage, p.overdue = stageRunning, now+p.machine.check.Timeout+overrun
		s.stats.Waiting--
		s.stats.Running++
		s.stats.Begun++
		s.watch(p, now)
		return p
	}
	return nil
}

// run runs a probe, and then others that wait for its slot.
func (s *Scheduler) run(p *Probe) {
	for p != nil {
		start := s.opts.Now()
		r := p.once()
		if s.opts.Observed != nil {
			s.opts.Observed(p, r, start.Sub(s.epoch)-p.slot)
		}
		p = s.finish(p, start, r)
	}
}

// once runs the prober. If it panics, that is its own fault and says nothing
// about the endpoint.
func (p *Probe) once() (r Result) {
	defer func() {
		if cause := recover(); cause != nil {
			r = Result{Status: Fail, Class: ClassInternal, Reason: boundedReason(fmt.Sprint("the prober panicked: ", cause))}
		}
	}()
	return p.runner.Probe(p.scheduler.ctx, p.target)
}

// finish takes in the result of a probe and gives the next one to run.
func (s *Scheduler) finish(p *Probe, start time.Time, r Result) *Probe {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := p.stage == stageLost
	if lost {
		s.stats.Lost--
	} else {
		s.stats.Running--
	}
	p.stage = stageIdle
	s.settle()
	switch now := s.now(); {
	case p.released || s.closed:
		s.unschedule(p)
	case lost: // the verdict's age has told what there is to tell
		s.schedule(p, p.nextSlot(now))
	case p.again(r):
		s.schedule(p, now+retryDelay)
	default:
		s.count(p, start, r, now)
	}
	return s.begin()
}

// again tells whether a failure is to be looked at again before it counts.
func (p *Probe) again(r Result) bool {
	p.retrying = p.machine.check.Retry && !p.retrying && r.Status == Fail && r.Class != ClassInternal
	return p.retrying
}

// count makes a verdict of a result.
func (s *Scheduler) count(p *Probe, start time.Time, r Result, now time.Duration) {
	if r.Class == ClassInternal {
		p.machine.Observe(start, r)
		s.publish(p)
		s.schedule(p, p.nextSlot(now))
		return
	}
	failed := r.Status == Fail
	excused := failed && s.guard.isolation.Isolated()
	s.guard.tally(p, failed)
	if excused {
		p.machine.Excuse(start, r)
	} else {
		p.machine.Observe(start, r)
	}
	old := s.publish(p)
	s.guardAgainst(p, old, now)
	if failed && !excused && p.machine.Verdict() == VerdictUnknown {
		// A process that just started must know soon what is dead: Fall such
		// failures decide.
		s.schedule(p, now+min(retryDelay, p.machine.check.Interval))
		return
	}
	s.schedule(p, p.nextSlot(now))
}
