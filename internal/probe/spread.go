package probe

import (
	"math/bits"
	"time"
)

const (
	// jitterShare of an interval is how early or late a probe begins at most.
	jitterShare = 20
	// firstRound is the time within which every endpoint is probed first.
	firstRound = 10 * time.Second
	// retryDelay is how long after a failure it is looked whether it was one.
	retryDelay = time.Second
)

// spreadWithin gives the hash's place in a span of time: the same for the same
// hash, and even over the span for hashes that are.
func spreadWithin(hash uint64, span time.Duration) time.Duration {
	place, _ := bits.Mul64(hash, uint64(span))
	return time.Duration(place)
}

// spreadJitter is how much later (or, below 0, earlier) than its slot a probe
// begins in a round. It differs from round to round, so that the probes of many
// endpoints, or of many vantages, don't march in step.
func spreadJitter(hash uint64, round int64, interval time.Duration) time.Duration {
	return spreadWithin(scramble(hash+uint64(round)), jitterSpan(interval)) - interval/jitterShare
}

// jitterSpan is how much the time between two probes may be off the interval.
func jitterSpan(interval time.Duration) time.Duration { return 2 * (interval / jitterShare) }

// scramble is the finalizer of splitmix64: every bit of the input stirs every
// bit of the output.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
