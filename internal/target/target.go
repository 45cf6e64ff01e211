// Package target resolves the names that stand for endpoints, through resolvers
// that the operator names. A name that can't be resolved any more keeps what it
// had for as long as its user wants. That holds for a name that no resolver
// answers for, and as well for one that is said not to exist or to have no
// addresses at all: a whole service rarely ends that way, but zones and resolvers
// break. Only where one family has addresses is it believed that the other has
// none any more.
package target

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// MaxAddrs is how many addresses of one family a target has at most. If there
// are more in an answer the lowest are taken, so that every instance takes the
// same.
const MaxAddrs = 64

// Target is a name that a Resolver looks up. Its methods may be called by any
// number of goroutines.
type Target struct {
	resolver *Resolver
	key      string
	name     string // lower case, fully qualified
	servers  []netip.AddrPort
	hash     uint64
	state    atomic.Pointer[State]

	// The rest is guarded by the resolver's mutex.
	users  []string // sorted; one for each Acquire
	timer  *time.Timer
	cancel func()
	round  uint64
}

// State is what is known of a target at one moment. It never changes.
type State struct {
	V4, V6 Family
	// Asked is when the last round of questions ended; zero: none has yet.
	Asked time.Time
	// Err is what the last round found wrong; nil: nothing. It doesn't mean that
	// there are no addresses, or that they are old: see Family.
	Err error
	// Failures is how many rounds in a row left a family without a good answer.
	Failures int
}

// Family is what is known of a target's addresses of one IP version.
type Family struct {
	Addrs []netip.Addr  `json:"addrs"` // sorted, each once, MaxAddrs at most
	At    time.Time     `json:"at"`    // when they, or that there are none, were last confirmed; zero: never
	TTL   time.Duration `json:"ttl"`   // of that answer, within its bounds; see Resolver
	// Failing: what was asked since was not answered, or not in a way that is
	// believed; or nothing was asked since the process started.
	Failing bool `json:"-"`
}

// Name is the target's name, in lower case and fully qualified.
func (t *Target) Name() string { return t.name }

// Servers are the resolvers that are asked, in their order.
func (t *Target) Servers() []netip.AddrPort { return slices.Clone(t.servers) }

// Users are those who acquired the target and have not released it, each once.
func (t *Target) Users() []string {
	t.resolver.mu.Lock()
	defer t.resolver.mu.Unlock()
	return slices.Compact(slices.Clone(t.users))
}

// State gives the state of now, without waiting for anything.
func (t *Target) State() *State { return t.state.Load() }

// Release ends what one Acquire of the user began. A user without one is
// ignored. With the last the name is looked up no more, and what is known of it
// is forgotten.
func (t *Target) Release(user string) { t.resolver.release(t, user) }

// Addresses are those to use: IPv4 before IPv6, sorted. A family that is failing
// counts until its addresses are older than keep, or than their TTL if that is
// longer.
func (s *State) Addresses(now time.Time, keep time.Duration) []netip.Addr {
	var all []netip.Addr
	for _, f := range []*Family{&s.V4, &s.V6} {
		if ends, limited := f.ends(keep); !limited || now.Before(ends) {
			all = append(all, f.Addrs...)
		}
	}
	return all
}

// Expires is when Addresses next gives fewer if nothing is heard until then, and
// whether it ever does. Nobody is told when that happens.
func (s *State) Expires(now time.Time, keep time.Duration) (at time.Time, ok bool) {
	for _, f := range []*Family{&s.V4, &s.V6} {
		if ends, limited := f.ends(keep); limited && now.Before(ends) && (!ok || ends.Before(at)) {
			at, ok = ends, true
		}
	}
	return at, ok
}

// ends is when a family's addresses are too old, if they get older at all.
func (f *Family) ends(keep time.Duration) (at time.Time, limited bool) {
	return f.At.Add(max(keep, f.TTL)), f.Failing && len(f.Addrs) > 0
}

// looksLike tells whether two states are the same to those who use them.
func (s *State) looksLike(o *State) bool {
	return s.V4.looksLike(&o.V4) && s.V6.looksLike(&o.V6) && s.Asked.IsZero() == o.Asked.IsZero()
}

func (f *Family) looksLike(o *Family) bool {
	return f.Failing == o.Failing && slices.Equal(f.Addrs, o.Addrs)
}
