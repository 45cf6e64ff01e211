package failover

import (
	"fmt"
	"math"
	"time"
)

// Queries is the rate, in queries per second, at which so many caches ask for a
// name again: each once per TTL. A TTL of 0 has no bound, +Inf.
func Queries(caches float64, ttl time.Duration) float64 {
	if ttl <= 0 {
		return math.Inf(1)
	}
	return caches / ttl.Seconds()
}

// Month is the length of a month in a bill.
const Month = 30 * 24 * time.Hour

// Cost is what a rate of queries costs in a month at a price for a million.
func Cost(queries, perMillion float64) float64 {
	return queries * Month.Seconds() / 1e6 * perMillion
}

// Headroom is the part, 1/(n-1), by which the load of each of n equal regions
// grows when one of them is gone. For one region there is no headroom that would
// do: +Inf.
func Headroom(n int) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	return 1 / float64(n-1)
}

// Bearable is the utilisation, 0..1, of all regions alike, up to which the others
// have room for what a region bears that is lost: for n equal regions 1-1/n. There must
// be another region; capacities are above 0.
func Bearable(regions []Region, lost int) float64 {
	others := 0.0
	for i, r := range regions {
		if i != lost {
			others += r.Capacity
		}
	}
	return others / (others + regions[lost].Capacity)
}

// Placed works out an outage of the first region where the others share its load by
// what they have room for: free is that room, short the load that has none, and use
// the utilisation, as a part of their capacity, that they come to together. There must be
// another region; capacities are above 0, but that of the first doesn't count.
func Placed(regions []Region) (free, short, use float64) {
	load, capacity := 0.0, 0.0
	for _, r := range regions[1:] {
		load += r.Load
		capacity += r.Capacity
		free += max(0, r.Capacity-r.Load)
	}
	lost := regions[0].Load
	return free, max(0, lost-free), (load + lost) / capacity
}

// Budget is the time that a target of availability, 0..1, leaves for failure in a
// period.
func Budget(target float64, period time.Duration) time.Duration {
	return time.Duration((1 - target) * float64(period))
}

// Window says whether fall failures, interval apart, can come together within a
// window: they span (fall-1) intervals. A window of 0 sets no bound.
func Window(fall int, interval, window time.Duration) error {
	if span := time.Duration(fall-1) * interval; window > 0 && span > window {
		return fmt.Errorf("%d failures %s apart span %s, longer than the window of %s: they can never come together within it", fall, interval, span, window)
	}
	return nil
}

// Recovery is how many good probes in a row it takes until a region is up again, and the
// time from where the first of them begins to the last: there must be rise, and they must
// span a time over. The first begins up to an interval after the region recovered.
func Recovery(rise int, interval, over time.Duration) (probes int, after time.Duration) {
	probes = rise
	if more := int(math.Ceil(float64(over)/float64(interval))) + 1; more > probes {
		probes = more
	}
	return probes, time.Duration(probes-1) * interval
}

// OldAnswers is how long after a cutover some cache may still give the old
// record, if its TTL was lowered from old to lowered some time before: the worst
// cache was filled just before the lowering.
func OldAnswers(old, lowered, before time.Duration) time.Duration {
	return max(0, old-before, lowered)
}

// Step is one thing that happens in a cascade.
type Step struct {
	Region string  `json:"region"` // that goes down
	Load   float64 `json:"load"`   // it had when it did
}

// Region is a region in a cascade.
type Region struct {
	Name     string  `json:"region"`
	Load     float64 `json:"load"`
	Capacity float64 `json:"capacity,omitempty"`
}

// Cascade follows an outage where each region's whole load goes to the next one in
// the order given, and a region with more than its capacity goes down, too. left is
// the load that the last region standing has; 0 when none is. The load of all never
// exceeds what there was at the start: nothing that moves is counted twice.
func Cascade(regions []Region) (steps []Step, left float64) {
	moved := 0.0
	for i, r := range regions {
		load := r.Load + moved
		if i > 0 && load <= r.Capacity {
			return steps, load
		}
		steps = append(steps, Step{r.Name, load})
		moved = load
	}
	return steps, 0
}
