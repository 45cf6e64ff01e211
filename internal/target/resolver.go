package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/dns/dnsmessage"
)

const (
	// DefaultConcurrency is how many names are looked up at once if Options don't
	// say.
	DefaultConcurrency = 64
	// MaxServers is how many resolvers a target has at most.
	MaxServers = 8
	// coalesce is how long changes are gathered before they are told.
	coalesce = 10 * time.Millisecond
	// spreadShare of the time to the next round is how much later it begins at
	// most, so that many names, and many instances, don't ask in step.
	spreadShare = 10
)

// Options are what a Resolver is made with. Functions and Rand must be safe for use
// by any number of goroutines.
type Options struct {
	Now func() time.Time // the clock; nil: time.Now
	// Rand gives the ids of queries and must not be guessable: crypto/rand.Reader.
	// It must not be nil.
	Rand io.Reader
	// Dial opens a connection to a resolver; network is udp or tcp. nil: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Saved is what is known from before: Resolver.Saved of another process.
	Saved map[string]Saved
	// Changed, if not nil, is called from one goroutine, some milliseconds after
	// anything that a Change tells of. It may call the Resolver, except Close.
	Changed     func([]Change)
	Concurrency int // names looked up at once; 0: DefaultConcurrency
}

// Change is that of one target's State: its addresses, whether a family is
// failing, or that it was asked for the first time. They differ, or did in
// between.
type Change struct {
	Target   *Target
	Old, New *State
}

// Resolver looks names up when their TTLs are over: the least of the CNAMEs and
// addresses of both families, not below 5 seconds nor above an hour; for a family
// without addresses that of the SOA, not below 5 seconds nor above a minute. What
// fails is tried again after 5 seconds, and then after twice as long each time, a
// minute at most. All of that up to a tenth later, by name. A name that waits
// takes a timer and no goroutine. Its methods may be called by any number of
// goroutines.
type Resolver struct {
	opts    Options
	ctx     context.Context
	cancel  context.CancelFunc
	slots   chan struct{}
	dirty   chan struct{} // there is something to tell
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	targets map[string]*Target
	saved   map[string]Saved // not asked for yet
	changes []Change
	stats   Stats
}

// Stats are a Resolver's figures.
type Stats struct {
	Targets int    // acquired, each counted once
	Rounds  uint64 // in which a name was looked up, so far
	Failed  uint64 // those that left a family without a good answer
}

// New starts a Resolver. Close ends it.
func New(opts Options) *Resolver {
	if opts.Rand == nil {
		panic("target: Options.Rand is nil, expected crypto/rand.Reader")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Dial == nil {
		opts.Dial = new(net.Dialer).DialContext
	}
	r := &Resolver{
		opts:  opts,
		slots: make(chan struct{}, cmp.Or(opts.Concurrency, DefaultConcurrency)), dirty: make(chan struct{}, 1),
		targets: map[string]*Target{}, saved: maps.Clone(opts.Saved),
	}
	r.opts.Saved = nil
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if opts.Changed != nil {
		r.running.Go(r.notify)
	}
	return r
}

// Acquire has a name looked up for a user, which is a word for people, until
// every Acquire was met by Release. Servers are ADDRESS:PORT and are asked in
// their order; targets with equal names and servers are one. The first round
// begins at once. Until it ends the target has what was saved of it, else what is
// known of the name from other servers: a reload that changes them must not lose
// all addresses. The error says what of the name or servers can't be, or that the
// Resolver is closed.
func (r *Resolver) Acquire(servers []string, name, user string) (*Target, error) {
	name, err := parseName(name)
	if err != nil {
		return nil, err
	}
	addrs, err := parseServers(servers)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("the resolver of targets is closed")
	}
	key := keyOf(name, addrs)
	t := r.targets[key]
	if t == nil {
		t = r.add(key, name, addrs)
	}
	t.users = append(t.users, user)
	slices.Sort(t.users)
	return t, nil
}

func parseServers(servers []string) (all []netip.AddrPort, err error) {
	if len(servers) == 0 || len(servers) > MaxServers {
		return nil, fmt.Errorf("%d resolvers, expected 1 to %d", len(servers), MaxServers)
	}
	for _, s := range servers {
		at, err := netip.ParseAddrPort(s)
		if err != nil || at.Port() == 0 {
			return nil, fmt.Errorf("resolver %.80q: expected an address and a port, such as 10.0.0.53:53 or [2001:db8::53]:53", s)
		}
		all = append(all, at)
	}
	return all, nil
}

// keyOf is the identity of a target, and the same in every process.
func keyOf(name string, servers []netip.AddrPort) string {
	words := []string{name}
	for _, s := range servers {
		words = append(words, s.String())
	}
	return strings.Join(words, " ")
}

func (r *Resolver) add(key, name string, servers []netip.AddrPort) *Target {
	t := &Target{resolver: r, key: key, name: name, servers: servers, hash: xxhash.Sum64String(key)}
	t.state.Store(r.known(key, name))
	delete(r.saved, key)
	ctx, cancel := context.WithCancel(r.ctx)
	t.cancel = cancel
	t.timer = time.AfterFunc(0, func() { r.round(ctx, t) })
	r.targets[key] = t
	r.stats.Targets++
	return t
}

// known is what is known of a name that is asked for the first time.
func (r *Resolver) known(key, name string) *State {
	saved, ok := r.saved[key]
	if !ok {
		for _, other := range slices.Sorted(maps.Keys(r.targets)) {
			if t := r.targets[other]; t.name == name {
				saved = Saved{t.State().V4, t.State().V6}
				break
			}
		}
	}
	return saved.state(r.opts.Now())
}

// release takes one user off a target, and the target away with the last.
func (r *Resolver) release(t *Target, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := slices.BinarySearch(t.users, user)
	if !ok {
		return
	}
	if t.users = slices.Delete(t.users, i, i+1); len(t.users) > 0 {
		return
	}
	t.timer.Stop()
	t.cancel()
	delete(r.targets, t.key)
	r.stats.Targets--
}

// round looks a name up once.
func (r *Resolver) round(ctx context.Context, t *Target) {
	r.mu.Lock()
	if r.closed || len(t.users) == 0 {
		r.mu.Unlock()
		return
	}
	r.running.Add(1)
	r.mu.Unlock()
	defer r.running.Done()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return
	}
	var (
		v4, v6 finding
		both   sync.WaitGroup
	)
	both.Go(func() { v6 = r.ask(ctx, t, dnsmessage.TypeAAAA) })
	v4 = r.ask(ctx, t, dnsmessage.TypeA)
	both.Wait()
	r.finish(t, v4, v6)
}

// finish takes in what a round found, and sets the time of the next one.
func (r *Resolver) finish(t *Target, v4, v6 finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(t.users) == 0 {
		return
	}
	old := t.State()
	state := old.after(v4, v6, r.opts.Now())
	t.state.Store(state)
	r.stats.Rounds++
	if state.Failures > 0 {
		r.stats.Failed++
	}
	wait := state.wait(v4, v6)
	t.round++
	t.timer.Reset(wait + spreadWithin(scramble(t.hash+t.round), wait/spreadShare))
	if r.opts.Changed == nil || old.looksLike(state) {
		return
	}
	if i := slices.IndexFunc(r.changes, func(c Change) bool { return c.Target == t }); i >= 0 {
		r.changes[i].New = state
		return
	}
	r.changes = append(r.changes, Change{t, old, state})
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// notify tells changes.
func (r *Resolver) notify() {
	timer := time.NewTimer(coalesce)
	defer timer.Stop()
	for {
		select {
		case <-r.dirty:
		case <-r.ctx.Done():
			return
		}
		timer.Reset(coalesce)
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			return
		}
		r.mu.Lock()
		changes := slices.DeleteFunc(r.changes, func(c Change) bool { return len(c.Target.users) == 0 })
		r.changes = nil
		r.mu.Unlock()
		if len(changes) > 0 {
			r.opts.Changed(changes)
		}
	}
}

// Stats gives the figures of now.
func (r *Resolver) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Close stops looking names up and waits for what is under way, which ends at
// once, and for Changed. States stay as they are. A second call does nothing.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.closed = true
	for _, t := range r.targets {
		t.timer.Stop()
	}
	r.mu.Unlock()
	r.cancel()
	r.running.Wait()
}

// spreadWithin gives the hash's place in a span of time, even over the span for
// hashes that are.
func spreadWithin(hash uint64, span time.Duration) time.Duration {
	place, _ := bits.Mul64(hash, uint64(span))
	return time.Duration(place)
}

// scramble is the finalizer of splitmix64: every bit of the input stirs every
// bit of the output.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
