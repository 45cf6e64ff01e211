package probe

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/failover"
)

// TestFailoverTakesWhatIsWorkedOut has many endpoints, whose probes lie anywhere in the
// interval, fail and recover at one moment, and compares when the verdicts turn with what
// package failover works out of the check.
func TestFailoverTakesWhatIsWorkedOut(t *testing.T) {
	for name, change := range map[string]func(*check.Check){
		"refused":    func(c *check.Check) { c.Timeout = 0 },
		"silent":     func(*check.Check) {},
		"one":        func(c *check.Check) { c.Fall, c.Rise = 1, 1 },
		"four":       func(c *check.Check) { c.Interval, c.Fall, c.Rise = 4*time.Second, 3, 2 },
		"to the end": func(c *check.Check) { c.Timeout = c.Interval - time.Second },
		"retry":      func(c *check.Check) { c.Retry = true },
		"within":     func(c *check.Check) { c.FallWithin = 2 * c.Interval },
	} {
		t.Run(name, func(t *testing.T) {
			c := rules(change)
			fails := failover.Model{Interval: c.Interval, Fall: c.Fall, Timeout: c.Timeout, Retry: c.Retry, Phase: true}
			_, after := failover.Recovery(c.Rise, c.Interval, c.RiseOver)
			if c.Retry { // the second look is the first to pass, and the slots go on
				after -= c.Timeout + retryDelay
			}
			recovers := failover.Spread{Fixed: after, Even: []time.Duration{c.Interval}}
			down, up := turns(t, c)
			sameSpread(t, "down", down, fails.Spread(0, 0, 0), c.Interval)
			sameSpread(t, "up", up, &recovers, c.Interval)
		})
	}
}

// turns has endpoints fail, each probe for the whole timeout of the check, and later
// pass again, and gives the seconds until each was down and up.
func turns(t *testing.T, c *check.Check) (down, up []float64) {
	const n = 1000
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		opts := f.options()
		opts.Concurrency = n
		s := NewScheduler(opts)
		defer s.Close()
		timeout := c.Timeout
		own := *c
		own.Timeout = max(own.Timeout, 1)
		for i := range n {
			acquire(t, s, &own, i)
		}
		after(5*c.Interval + c.Interval/3)
		for i := range n {
			f.slow(i, timeout)
		}
		f.setAll(n, Result{Status: Fail, Class: ClassTimeout})
		down = told(f, VerdictDown, time.Duration(c.Fall+2)*c.Interval)
		for i := range n {
			f.slow(i, 0)
		}
		f.setAll(n, Result{Class: ClassOK})
		up = told(f, VerdictUp, time.Duration(c.Rise+3)*c.Interval)
	})
	if len(down) != n || len(up) != n {
		t.Fatalf("%d went down, %d came up, of %d", len(down), len(up), n)
	}
	return down, up
}

// told waits and gives the seconds until each endpoint had a verdict, sorted.
func told(f *fleet, v Verdict, wait time.Duration) (seconds []float64) {
	begin, before := time.Now(), len(f.notices())
	after(wait)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, n := range f.changes[before:] {
		for _, c := range n.Changes {
			if c.New.Verdict == v && c.Old.Verdict != v {
				seconds = append(seconds, f.told[before+i].Sub(begin).Seconds())
			}
		}
	}
	slices.Sort(seconds)
	return seconds
}

// sameSpread compares times with a distribution, tenth by tenth and end by end. Probes
// begin up to a twentieth of an interval early or late, and two of them bear on an end.
func sameSpread(t *testing.T, what string, seconds []float64, s *failover.Spread, interval time.Duration) {
	t.Helper()
	slack := 2.0 / jitterShare * interval.Seconds()
	for i := 1; i < 10; i++ {
		p := float64(i) / 10
		if got, want := failover.Drawn(seconds, p), s.Percentile(p); math.Abs(got-want) > slack/2 {
			t.Errorf("%s: %g%% after %.2fs, worked out %.2fs", what, 100*p, got, want)
		}
	}
	low, high := s.Range()
	first, last := seconds[0], seconds[len(seconds)-1]
	t.Logf("%s: from %vs to %vs, half of them after %vs", what, first, last, failover.Drawn(seconds, 0.5))
	if math.Abs(first-low) > slack || math.Abs(last-high) > slack {
		t.Errorf("%s: from %.2fs to %.2fs, worked out %.2fs to %.2fs", what, first, last, low, high)
	}
}
