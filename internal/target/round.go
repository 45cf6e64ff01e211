package target

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

const (
	minTTL = 5 * time.Second // of answers with addresses and of those without
	maxTTL = time.Hour       // of answers with addresses
	// maxNegative is the longest TTL of answers without addresses (RFC 2308,
	// section 5, is content with 3 hours; an endpoint that appears is worth more),
	// and of those that don't say.
	maxNegative = time.Minute
	minRetry    = 5 * time.Second // after a failure; twice as long after each one more
	maxRetry    = time.Minute
)

// finding is what was found out about one family in a round: addresses, that
// there are none, or an error.
type finding struct {
	addrs []netip.Addr  // sorted, each once
	none  bool          // the name, or its addresses of this family, don't exist
	ttl   time.Duration // within its bounds; 0 with an error alone
	err   error         // with addresses: what was left out of them
}

func (f *finding) good() bool { return len(f.addrs) > 0 }

// after makes the state that follows a round of questions. A family without
// addresses is believed to be gone only if the other has some in the same round:
// a name that loses everything at once is more often a broken zone or resolver
// than the end of a service, so that is a failure, and what was there is kept.
func (s *State) after(v4, v6 finding, now time.Time) *State {
	next := &State{Asked: now, V4: s.V4.after(v4, v6.good(), now), V6: s.V6.after(v6, v4.good(), now)}
	switch {
	case v4.none && v6.none:
		next.Err = errNothing
	case v4.err != nil && v6.err != nil:
		next.Err = fmt.Errorf("type A: %w; type AAAA: %w", v4.err, v6.err)
	case v4.err != nil:
		next.Err = fmt.Errorf("type A: %w", v4.err)
	case v6.err != nil:
		next.Err = fmt.Errorf("type AAAA: %w", v6.err)
	}
	if next.V4.Failing || next.V6.Failing {
		next.Failures = s.Failures + 1
	}
	return next
}

var errNothing = errors.New("the name has no addresses, neither A nor AAAA: that is taken for a failure, what was there is kept")

func (f *Family) after(found finding, otherGood bool, now time.Time) Family {
	if found.good() || found.none && otherGood {
		return Family{Addrs: found.addrs, At: now, TTL: found.ttl}
	}
	kept := *f
	kept.Failing = true
	return kept
}

// wait is how long after a round the next one is to begin.
func (s *State) wait(v4, v6 finding) time.Duration {
	wait := maxTTL
	if s.Failures > 0 {
		wait = min(maxRetry, minRetry<<min(s.Failures-1, 10))
	}
	for _, f := range []finding{v4, v6} {
		if f.good() || f.none && s.Failures == 0 {
			wait = min(wait, f.ttl)
		}
	}
	return wait
}

// clampTTL keeps a TTL within its bounds.
func clampTTL(seconds uint32, longest time.Duration) time.Duration {
	return min(max(time.Duration(seconds)*time.Second, minTTL), longest)
}
