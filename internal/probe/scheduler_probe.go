package probe

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// Probe is what a Scheduler knows of one endpoint under one check. Its methods
// may be called by any number of goroutines.
type Probe struct {
	scheduler *Scheduler
	key       Key
	target    Target
	runner    *Runner
	hash      uint64
	kin       kinship
	check     atomic.Pointer[check.Check] // the newest of those of equal definition
	state     atomic.Pointer[State]

	// The rest is guarded by the scheduler's mutex.
	machine  Machine
	users    []string // sorted; one for each Acquire
	released bool
	retrying bool // a failure waits for its second look
	failing  bool // the last result that counted was a failure
	passing  bool // it was none
	stage    stage

	base    time.Duration // of the slots
	round   int64         // of the last slot given out
	slot    time.Duration // when the probe is, or was, to begin
	overdue time.Duration // when the probe under way is lost
	due     time.Duration // when the loop looks at it next
	queued  int           // place in the queue; -1: none
}

// stage is where a probe is between one slot and the next.
type stage uint8

const (
	stageIdle    stage = iota
	stageWaiting       // due, no slot is free
	stageRunning
	stageLost // running, but given up
)

// State is what is known of an endpoint at one moment. It never changes.
type State struct {
	Verdict Verdict
	Assumed Verdict // what to take the endpoint for: Verdict, if that is not VerdictUnknown
	Streak  bool    // see Machine.Streak
	Held    bool    // see Machine.Held
	Waiting bool    // see Machine.Waiting
	Probed  bool    // there was a result in this process
	Since   time.Time
	LastAt  time.Time // of the last result that counted; zero: there is none
	Notes   []Note    // newest first
	Users   []string  // sorted, each once
}

// Key is the identity of the probe.
func (p *Probe) Key() Key { return p.key }

// Target is what is probed.
func (p *Probe) Target() Target { return p.target }

// Check is the check of the last Acquire.
func (p *Probe) Check() *check.Check { return p.check.Load() }

// State gives the state of now, without waiting for anything.
func (p *Probe) State() *State { return p.state.Load() }

// Release ends what one Acquire of the user began. A user without one is
// ignored. With the last the probe ends, and what is known is forgotten; one
// that runs may still finish, without effect.
func (p *Probe) Release(user string) { p.scheduler.release(p, user) }

// Return is Machine.Return: an operator's word that the endpoint may come up.
func (p *Probe) Return() {
	s := p.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	p.machine.Return(s.opts.Now())
	s.publish(p)
}

// publish makes the state of what is known now and gives the old one.
func (p *Probe) publish() (old *State) {
	m := &p.machine
	old = p.state.Load()
	users := []string(nil)
	if old != nil {
		users = old.Users
	}
	if !sameUsers(p.users, users) {
		users = slices.Compact(slices.Clone(p.users))
	}
	p.state.Store(&State{
		Verdict: m.Verdict(), Assumed: m.Assumed(), Streak: m.Streak(), Held: m.Held(), Waiting: m.Waiting(),
		Probed: m.Probed(), Since: m.Since(), LastAt: m.LastAt(), Notes: m.Notes(), Users: users,
	})
	return old
}

// sameUsers tells whether a sorted list that may hold words twice holds the
// words of another that doesn't.
func sameUsers(all, distinct []string) bool {
	n := 0
	for i, user := range all {
		if i > 0 && user == all[i-1] {
			continue
		}
		if n == len(distinct) || user != distinct[n] {
			return false
		}
		n++
	}
	return n == len(distinct)
}

// slotAt is when the probe of a round is to begin. Round 0 has no jitter, so a
// start is spread the same each time.
func (p *Probe) slotAt(round int64) time.Duration {
	interval := p.machine.check.Interval
	at := p.base + spreadWithin(p.hash, interval) + time.Duration(round)*interval
	if round > 0 {
		at += spreadJitter(p.hash, round, interval)
	}
	return at
}

// nextSlot goes to the next round and gives its slot. Of slots that passed
// meanwhile the last is made up for at once.
func (p *Probe) nextSlot(now time.Duration) time.Duration {
	interval := p.machine.check.Interval
	passed := int64((now - p.base - spreadWithin(p.hash, interval)) / interval)
	p.round = max(p.round+1, passed)
	return max(now, p.slotAt(p.round))
}

// dueQueue is a heap of probes by when they are due.
type dueQueue []*Probe

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].due < q[j].due }

func (q dueQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].queued, q[j].queued = i, j
}

func (q *dueQueue) Push(x any) {
	p := x.(*Probe)
	p.queued = len(*q)
	*q = append(*q, p)
}

func (q *dueQueue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	p.queued = -1
	return p
}
