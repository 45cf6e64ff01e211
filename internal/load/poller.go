package load

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// DefaultConcurrency is how many sources are read at once if Options don't say.
	DefaultConcurrency = 32
	// firstRound is the time within which a new signal is read first: a process
	// that just started must know soon what is full.
	firstRound = time.Second
	// tick is the least time between two readings of a signal.
	tick = 10 * time.Millisecond
)

// Options are what a Poller is made with.
type Options struct {
	Now         func() time.Time  // the clock; nil: time.Now
	Transport   http.RoundTripper // asks for pages; nil: one of the Poller's own
	Concurrency int               // sources read at once; 0: DefaultConcurrency
}

// Poller reads sources at their times and keeps what they gave. A signal that is
// between two readings takes a timer and no goroutine. Its methods may be called
// by any number of goroutines.
type Poller struct {
	opts    Options
	own     *http.Transport // nil: Options.Transport is used
	ctx     context.Context
	cancel  context.CancelFunc
	slots   chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	signals map[Source]*Signal
}

// Signal is a source that a Poller reads. Its methods may be called by any number
// of goroutines; none but Release waits for anything.
type Signal struct {
	cell
	poller *Poller
	source Source
	read   reader
	ctx    context.Context // ends with the last user
	cancel context.CancelFunc
	base   time.Time // of the slots

	// The rest is guarded by the poller's mutex.
	users int
	timer *time.Timer
}

// NewPoller makes a Poller. Close ends it.
func NewPoller(opts Options) *Poller {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Concurrency == 0 {
		opts.Concurrency = DefaultConcurrency
	}
	p := &Poller{slots: make(chan struct{}, opts.Concurrency), signals: map[Source]*Signal{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if opts.Transport == nil {
		p.own = newTransport(p.ctx)
		opts.Transport = p.own
	}
	p.opts = opts
	return p
}

// Acquire has a source read until every Acquire of it was met by Release. Equal
// sources are one Signal, so that a reload changes nothing for those that stay:
// acquire the new before the old are released. The first reading begins within a
// second, and the others at a place in Every that depends on the source alone.
// The error is that of Source.Validate, or that the Poller is closed.
func (p *Poller) Acquire(source Source) (*Signal, error) {
	if err := source.Validate(); err != nil {
		return nil, err
	}
	read, err := source.reader(p.opts)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the poller of load signals is closed")
	}
	g := p.signals[source]
	if g == nil {
		g = &Signal{poller: p, source: source, read: read, base: p.opts.Now()}
		g.ctx, g.cancel = context.WithCancel(p.ctx)
		g.timer = time.AfterFunc(g.spread(min(firstRound, source.Every)), g.poll)
		p.signals[source] = g
	}
	g.users++
	return g, nil
}

// Close stops reading and waits for what is being read, which ends at once but
// for files on a disk that hangs: for those it waits 5 seconds. Readings stay as
// they are. A second call does nothing.
func (p *Poller) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	for _, g := range p.signals {
		g.timer.Stop()
	}
	p.mu.Unlock()

	p.cancel()
	done := make(chan struct{})
	go func() { p.running.Wait(); close(done) }()
	timer := time.NewTimer(maxTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// Source is what is read.
func (g *Signal) Source() Source { return g.source }

// Release ends what one Acquire began; more of them than there were are ignored.
// With the last the signal is read no more.
func (g *Signal) Release() {
	p := g.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.users == 0 {
		return
	}
	if g.users--; g.users == 0 {
		g.timer.Stop()
		g.cancel()
		delete(p.signals, g.source)
	}
}

// poll reads the source once.
func (g *Signal) poll() {
	p := g.poller
	if !g.enter() {
		return
	}
	defer p.running.Done()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-g.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(g.ctx, g.source.timeout())
	defer cancel()
	m, err := g.read(ctx)
	if err != nil {
		err = g.source.readable(err)
	}
	g.leave(m, err)
}

// enter tells whether the signal is still to be read.
func (g *Signal) enter() bool {
	p := g.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || g.users == 0 {
		return false
	}
	p.running.Add(1)
	return true
}

// leave takes in what was read, and sets the time of the next reading.
func (g *Signal) leave(m measure, err error) {
	p := g.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || g.users == 0 {
		return
	}
	now := p.opts.Now()
	g.take(m, err, g.source.Score, now)
	g.timer.Reset(max(tick, g.next(now).Sub(now)))
}

// next is the first slot after a time. Those missed are left out.
func (g *Signal) next(now time.Time) time.Time {
	every := g.source.Every
	first := g.base.Add(g.spread(every))
	if now.Before(first) {
		return first
	}
	return first.Add((now.Sub(first)/every + 1) * every)
}

// spread is the signal's place in a span of time: the same in every process, and
// even over the span for many signals.
func (g *Signal) spread(span time.Duration) time.Duration {
	s := g.source
	word := fmt.Sprintf("%q", []string{string(s.Kind), s.URL, s.Path, s.Metric, s.Query, s.File})
	place, _ := bits.Mul64(xxhash.Sum64String(word), uint64(span))
	return time.Duration(place)
}
