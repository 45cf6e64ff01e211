package load

import (
	"errors"
	"math"
	"time"
)

// SilentPeriods is after how many periods without a number an endpoint no longer
// counts in the total of its region or pool.
const SilentPeriods = 10

// Total is the reading of a region or pool, made of those of its endpoints.
type Total struct {
	// Reading: At is that of the oldest number in it; Err the first that any
	// endpoint has; Failures the most.
	Reading
	Counted int // endpoints in it
	Silent  int // endpoints that were never heard, or not for SilentPeriods
}

// Sum is the load of a region or pool: what its endpoints bear together. There
// must be one reading for each endpoint, however many probes it has; the period
// is the time between two. An endpoint that is silent is left out, for one that
// is dead bears nothing; as long as it is not silent it makes the total as old
// as its own number. If none counts, or the sum is beyond all numbers, there is
// no total, which is not the same as 0.
func Sum(all []Reading, period time.Duration, now time.Time) Total {
	t, sum := total(all, period, now)
	if math.IsInf(sum, 0) {
		t.At, t.Err = time.Time{}, errors.New("the sum over the endpoints is beyond all numbers")
		return t
	}
	t.Value = sum
	return t
}

// Mean is the score of a region or pool: the mean of those of its endpoints. The
// rest is as with Sum.
func Mean(all []Reading, period time.Duration, now time.Time) Total {
	t, sum := total(all, period, now)
	if t.Counted > 0 {
		t.Value = sum / float64(t.Counted)
	}
	return t
}

func total(all []Reading, period time.Duration, now time.Time) (t Total, sum float64) {
	for _, r := range all {
		if t.Err == nil {
			t.Err = r.Err
		}
		t.Failures = max(t.Failures, r.Failures)
		if age, ok := r.Age(now); !ok || age > SilentPeriods*period {
			t.Silent++
			continue
		}
		if t.Counted == 0 || r.At.Before(t.At) {
			t.At = r.At
		}
		sum += r.Value
		t.Counted++
	}
	if t.Counted == 0 && t.Err == nil {
		t.Err = errors.New("no endpoint reports a number")
	}
	return t, sum
}
