package probe

import (
	"container/heap"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

const (
	// DefaultConcurrency is how many probes run at once if Options don't say.
	DefaultConcurrency = 4096
	// DefaultWindow is Options.Window if they don't say.
	DefaultWindow = 10 * time.Second
	// overrun is how much longer than its timeout a probe may take before it is
	// given up for lost.
	overrun = time.Second
)

// Options are what a Scheduler is made with. All functions must be safe for
// use by any number of goroutines, and must not call back into the Scheduler
// unless it is said that they may.
type Options struct {
	Now func() time.Time                    // the clock; nil: time.Now
	New func(*check.Check) (*Runner, error) // prepares a check; nil: New
	// Concurrency is how many probes run at once; 0: DefaultConcurrency. Probes
	// are never late while it is at least the number of endpoints times the
	// time a probe takes, at worst the timeout, divided by the interval.
	Concurrency int
	// Saved is what is known from before, by Key.String.
	Saved map[string]Saved
	// Changed, if not nil, is called from one goroutine, some milliseconds after
	// anything that a Notice tells of. It may call the Scheduler, except Close.
	Changed func(Notice)
	// Observed, if not nil, is called after every probe with its result and how
	// long after it was due it began. It may call State and Check of the Probe.
	Observed func(p *Probe, r Result, late time.Duration)

	// Beacons are things outside that should always answer; see Isolation. If
	// there are none the Scheduler never takes itself for isolated.
	Beacons []Target
	// Beacon probes a beacon; nil: it answers if a TCP connection opens.
	Beacon Prober
	// Window is the time between two probes of a beacon. 0: DefaultWindow.
	Window time.Duration
}

// Scheduler probes endpoints at the intervals of their checks and keeps the
// verdicts on them. One goroutine waits for all; one more is there for each
// probe that runs. Its methods may be called by any number of goroutines.
type Scheduler struct {
	opts   Options
	epoch  time.Time // times within are durations since
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // the loop must look at the queue again
	dirty  chan struct{} // there is something to notify of
	quiet  chan struct{} // closed once nothing runs after Close
	still  sync.Once     // closes quiet
	own    sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	probes  map[Key]*Probe
	kin     map[kinship]*Probe
	checks  map[uint64]*prepared
	digests digestCache
	saved   map[string]Saved // not asked for yet
	queue   dueQueue
	waiting []*Probe // due, but no slot is free; some may be released by now
	longest time.Duration
	stats   Stats
	notice  pendingNotice
	guard   isolationGuard
}

// prepared is the runner of one check and the number of its probes.
type prepared struct {
	runner *Runner
	probes int
}

// digestCache spares the digest of a check that is asked for many times in a
// row, as it is when the endpoints of a pool are set up.
type digestCache struct {
	check  *check.Check
	digest uint64
}

// Stats are a Scheduler's figures.
type Stats struct {
	Endpoints int    // probes acquired, each counted once
	Running   int    // probes under way, without the lost
	Lost      int    // probes that did not return in time and have not yet
	Waiting   int    // probes that are due and wait for a slot
	Begun     uint64 // probes begun so far
	Late      uint64 // those that had to wait for a slot
	Overran   uint64 // those that did not return in time
	Isolated  bool
}

// NewScheduler starts a Scheduler. Close ends it.
func NewScheduler(opts Options) *Scheduler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.New == nil {
		opts.New = New
	}
	if opts.Concurrency == 0 {
		opts.Concurrency = DefaultConcurrency
	}
	if opts.Window == 0 {
		opts.Window = DefaultWindow
	}
	if opts.Beacon == nil {
		opts.Beacon = connectBeacon
	}
	s := &Scheduler{
		opts: opts, epoch: opts.Now(),
		wake: make(chan struct{}, 1), dirty: make(chan struct{}, 1), quiet: make(chan struct{}),
		probes: map[Key]*Probe{}, checks: map[uint64]*prepared{}, saved: maps.Clone(opts.Saved),
		notice: pendingNotice{places: map[*Probe]int{}},
		guard:  isolationGuard{turned: map[time.Duration][]turn{}},
		kin:    map[kinship]*Probe{},
	}
	s.opts.Saved = nil
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.own.Go(s.loop)
	if opts.Changed != nil {
		s.own.Go(s.notify)
	}
	return s
}

// Acquire has a target probed for a user, which is a word for people: who asks.
// Probes of equal Key are one; it goes on until every Acquire has been met by
// Release. The first probe begins within an interval, 10 s at most, at a time
// that depends on the Key alone. The check must be valid (see Validate) and not
// change any more. The error is that of Options.New, or that s is closed.
func (s *Scheduler) Acquire(c *check.Check, t Target, user string) (*Probe, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("check %s: the scheduler is closed", c.Name)
	}
	if s.digests.check != c {
		s.digests = digestCache{c, checkDigest(c)}
	}
	key := keyWith(s.digests.digest, c, t)
	p := s.probes[key]
	if p == nil {
		runner, err := s.prepare(key.Check, c)
		if err != nil {
			return nil, err
		}
		p = s.add(key, c, runner)
	}
	p.check.Store(c)
	p.users = append(p.users, user)
	slices.Sort(p.users)
	p.publish()
	return p, nil
}

func (s *Scheduler) prepare(digest uint64, c *check.Check) (*Runner, error) {
	if s.checks[digest] == nil {
		runner, err := s.opts.New(c)
		if err != nil {
			return nil, err
		}
		s.checks[digest] = &prepared{runner: runner}
	}
	s.checks[digest].probes++
	return s.checks[digest].runner, nil
}

func (s *Scheduler) add(key Key, c *check.Check, runner *Runner) *Probe {
	word := key.String()
	p := &Probe{
		scheduler: s, key: key, runner: runner, hash: hashOf(word), queued: -1, round: -1,
		kin: kinship{c.Name, key.Addr, key.Port, key.Name},
	}
	p.machine = NewMachine(c, s.known(p, word), s.opts.Now())
	delete(s.saved, word)
	s.kin[p.kin] = p
	p.target = Target{Addr: key.Addr, Port: key.Port, Name: key.Name}
	p.base = s.now()
	if c.Interval <= firstRound {
		p.round = 0
	}
	s.probes[key] = p
	s.longest = max(s.longest, c.Timeout)
	s.stats.Endpoints++
	s.schedule(p, p.base+spreadWithin(p.hash, min(c.Interval, firstRound)))
	return p
}

// kinship is what stays the same of a probe when its check is edited.
type kinship struct {
	check string
	addr  netip.Addr
	port  uint16
	name  string
}

// known is what is known of a new probe's endpoint: what was saved of it, else
// what the probe says that the check had before it was edited. An edit in the
// middle of an outage must not make dead endpoints look alive.
func (s *Scheduler) known(p *Probe, word string) Saved {
	saved, ok := s.saved[word]
	if old := s.kin[p.kin]; old != nil && !ok {
		saved, _ = old.machine.Saved()
	}
	return saved
}

// release takes one user off a probe, and the probe away with the last.
func (s *Scheduler) release(p *Probe, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := slices.BinarySearch(p.users, user)
	if !ok {
		return
	}
	p.users = slices.Delete(p.users, i, i+1)
	p.publish()
	if len(p.users) > 0 {
		return
	}
	p.released = true
	delete(s.probes, p.key)
	if s.kin[p.kin] == p {
		delete(s.kin, p.kin)
	}
	s.stats.Endpoints--
	s.guard.forget(p)
	switch p.stage {
	case stageIdle:
		s.unschedule(p)
	case stageWaiting:
		s.stats.Waiting--
		s.unschedule(p)
	}
	if used := s.checks[p.key.Check]; used.probes > 1 {
		used.probes--
	} else {
		delete(s.checks, p.key.Check)
		used.runner.Close()
	}
}

// Saved is what is to be kept for the next process: Options.Saved of its
// Scheduler. What was not acquired since the start is in it too.
func (s *Scheduler) Saved() map[string]Saved {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Saved, len(s.probes)+len(s.saved))
	maps.Copy(all, s.saved)
	for key, p := range s.probes {
		if saved, ok := p.machine.Saved(); ok {
			all[key.String()] = saved
		}
	}
	return all
}

// Stats gives the figures of now.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Isolated = s.guard.isolation.Isolated()
	return stats
}

// Close stops probing and waits for the probes that run: until they return, at
// most for the longest timeout and a second. What comes to light meanwhile is
// told nobody. States stay as they are. A second call does nothing.
func (s *Scheduler) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.settle()
	limit := s.longest + overrun
	runners := slices.Collect(maps.Values(s.checks))
	s.mu.Unlock()

	s.cancel()
	s.own.Wait()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.quiet:
	case <-timer.C:
	}
	for _, used := range runners {
		used.runner.Close()
	}
}

// settle tells Close when nothing runs any more.
func (s *Scheduler) settle() {
	if s.closed && s.stats.Running == 0 && !s.guard.asking {
		s.still.Do(func() { close(s.quiet) })
	}
}

// now is the time within the Scheduler.
func (s *Scheduler) now() time.Duration { return s.opts.Now().Sub(s.epoch) }

// schedule sets when the loop is to look at a probe next.
func (s *Scheduler) schedule(p *Probe, due time.Duration) {
	p.due = due
	if p.queued < 0 {
		heap.Push(&s.queue, p)
	} else {
		heap.Fix(&s.queue, p.queued)
	}
	if p.queued == 0 {
		signal(s.wake)
	}
}

func (s *Scheduler) unschedule(p *Probe) {
	if p.queued >= 0 {
		heap.Remove(&s.queue, p.queued)
	}
}

// signal sets a flag that is a channel of capacity 1.
func signal(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}
