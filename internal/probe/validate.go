package probe

import (
	"fmt"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// Validate tells what is impossible about the times and counts of a check: what
// could never come true, or not in the time there is. The error says what to
// change; the check's name and place are the caller's to add.
func Validate(c *check.Check) error {
	switch {
	case c.Interval <= 0:
		return fmt.Errorf("interval %s: expected a time above 0", c.Interval)
	case c.Timeout <= 0 || c.Timeout > c.Interval:
		return fmt.Errorf("timeout %s: expected above 0 and at most the interval of %s", c.Timeout, c.Interval)
	case c.Fall < 1 || c.Fall > maxCount:
		return fmt.Errorf("fall %d: expected 1 to %d", c.Fall, maxCount)
	case c.Rise < 1 || c.Rise > maxCount:
		return fmt.Errorf("rise %d: expected 1 to %d", c.Rise, maxCount)
	case c.FallWithin < 0 || c.RiseOver < 0:
		return fmt.Errorf("within %s, over %s: expected neither below 0", c.FallWithin, c.RiseOver)
	case c.HoldFlips < 0 || c.HoldFlips > maxFlips:
		return fmt.Errorf("hold %d flips: expected 1 to %d, or 0 for none", c.HoldFlips, maxFlips)
	case c.Initial != check.InitialLast && c.Initial != check.InitialUp && c.Initial != check.InitialDown:
		return fmt.Errorf("initial %q: expected last, up or down", c.Initial)
	case c.Initial == check.InitialLast && c.InitialAge <= 0:
		return fmt.Errorf("initial last %s: expected an age above 0; write initial up to forget what was last", c.InitialAge)
	}
	return validateTogether(c)
}

const (
	maxCount = 20  // the most a Fall or Rise can be
	maxFlips = 100 // the most HoldFlips can be
)

func validateTogether(c *check.Check) error {
	if c.FallWithin > 0 && c.Accumulate {
		return fmt.Errorf("fall %d within %s and accumulate: failures are counted either within a time or without end; leave one out", c.Fall, c.FallWithin)
	}
	if need := time.Duration(c.Fall-1) * c.Interval; c.FallWithin > 0 && need > c.FallWithin {
		return fmt.Errorf("fall %d within %s can't come true with an interval of %s: %d failures take %s; lengthen the time, or shorten the interval",
			c.Fall, c.FallWithin, c.Interval, c.Fall, need)
	}
	if need := 2*c.Timeout + retryDelay; c.Retry && need > c.Interval {
		return fmt.Errorf("retry does not fit the interval of %s: two probes of up to %s and %s between take %s; shorten the timeout, or lengthen the interval",
			c.Interval, c.Timeout, retryDelay, need)
	}
	if need := flipsTake(c); c.HoldFlips > 0 && need >= flipWindow {
		return fmt.Errorf("hold %d flips can't come true: with fall %d, rise %d and an interval of %s so many take %s, and those of an hour count; write fewer",
			c.HoldFlips, c.Fall, c.Rise, c.Interval, need)
	}
	return nil
}

// flipsTake is the shortest time HoldFlips turns can take, from the first to
// the last.
func flipsTake(c *check.Check) time.Duration {
	fall := time.Duration(c.Fall) * c.Interval
	rise := max(time.Duration(c.Rise)*c.Interval, c.Interval+c.RiseOver)
	gaps := time.Duration(c.HoldFlips - 1)
	return gaps/2*(fall+rise) + gaps%2*min(fall, rise)
}
