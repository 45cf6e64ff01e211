// Package capacity is the control law that keeps what takes traffic within its
// capacity: from what every region can take and takes now, it computes which part
// of the clients that come to a region the region takes, and so what spills to the
// next candidate.
//
// The law is one pure function, [Step]: explicit state in, explicit state out, no
// clock, and the same result on every machine (products are rounded before they
// are added, and powers are made of square roots, which IEEE 754 rounds exactly).
// Each step
//
//  1. takes in the load signals, refuses those that can't be (signal.go), and watches for
//     loads that swing or jump (swings.go, jumps.go);
//  2. estimates the natural demand of every sink: what would come to it if every
//     sink took everything (demand.go);
//  3. sets limits: target, growth, fullness, and a slow trim (limit.go);
//  4. places the demand by deferred acceptance (place.go), and what no limit
//     admits at equal utilisation (residue.go);
//  5. moves a bounded part of the traffic towards that (admit.go).
//
// Speed comes from the estimate and the placement, which know at once where demand
// belongs; feedback only trims. Resolvers follow over a TTL or far longer, and signals
// are late, so a law that answers to utilisation alone goes round in circles: package
// sim shows both.
package capacity

import "time"

// Sink is a thing with a limit that takes traffic: a region, or a pool of one host that
// has a capacity of its own. The state knows it by its name, which must be unique
// in an input; of two equal names the state keeps the first.
type Sink struct {
	Name string
	// Capacity is what it can take, in the unit of its load. 0, and what is no
	// capacity (negative, infinite, NaN): none known, so it takes everything.
	Capacity float64
	// Target is the part of the capacity that placing aims at, 0..1; 0 is [DefaultTarget].
	Target float64
	// Growth is by how much, as a part of its own long-term natural demand, what
	// others spill may raise its flow: 0.3 for 30 %. 0: as far as the target.
	Growth float64
	Signal Signal
	// Health is the part of what comes that its health lets it take, 0..1; 0: down.
	Health float64
	// Dial is the operator's part of what comes, 0..1, with any ramp after an
	// outage multiplied in.
	Dial float64
	// Drained takes nothing, whatever its dial.
	Drained bool
	// Soak: it gets an absolute share of the resolutions before any candidate is asked, so
	// it is no candidate here and no floor holds for it. Its load is all its own.
	Soak bool
	// Full: alive, and says it can take no more. Its capacity is then at most its
	// present load, however much less than Capacity that is.
	Full bool
}

// Signal is a measured load, in the unit of the capacity.
type Signal struct {
	Value float64
	// Age is the time since it was measured.
	Age time.Duration
	// Period is the time between measurements; 0 and less is [DefaultPeriod].
	Period time.Duration
	// Valid: there is a reading. Without one the last good one grows older.
	Valid bool
}

// Group is the clients of one host and candidate list.
type Group struct {
	// Weight is how many of this instance's own answers resolvers hold for it of late. It only splits the
	// natural demand of a sink among the groups whose first candidate the sink is: an instance
	// sees its own clients alone, so its counts set no totals. 0 is the smallest part.
	Weight float64
	// Sinks are its candidates in order of preference, as indexes of Input.Sinks.
	Sinks []int
	// Cost is what each candidate costs the group's clients, such as a mean round
	// trip or a distance, in any one unit; nil: the position in the list.
	Cost []float64
	// Open is the part, 0..1, of those who reach each candidate that it takes of this
	// group by its health and dial: a region's pool of one host may be down alone. nil:
	// as open as the sink, by [Sink.Health] and the rest, as a whole.
	Open []float64
	// TTL is how long resolvers keep its answers, 1 s to 1 h; 0: Input.TTL.
	TTL time.Duration
	// Forced: no candidate is fit to take anybody, and the one that is open must as a last
	// resort. All of its demand is deficit, as that of a group of which no candidate is open.
	Forced bool
}

// Input is all that a step looks at beside its state.
type Input struct {
	Now time.Time
	// TTL is how long it takes until resolvers have followed: the longest of the TTLs of
	// hosts that matter; 1 s to 1 h, else the nearer of the two.
	TTL time.Duration
	// Delay is how much older a load is than its signal's Age says: half of the
	// time it is averaged over, and what aggregation adds.
	Delay  time.Duration
	Sinks  []Sink
	Groups []Group
	// Settled asks what the end of it will be: all that is to be moved moves in this
	// step. It is for forecasts.
	Settled bool
}

// Reading says what became of a sink's signal.
type Reading int

// The readings.
const (
	Never    Reading = iota // no good signal so far
	Fresh                   // at most FreshPeriods old
	Fading                  // loses its say
	Absent                  // older than AbsentPeriods: says nothing, least of all that there is no load
	numReads                //
)

// String is the reading as metrics and explanations call it.
func (r Reading) String() string {
	return [numReads]string{"never", "fresh", "fading", "absent"}[r]
}

// Output is what a step decides, and why.
type Output struct {
	// Admission is, by group and candidate, the part 0..1 that the candidate takes of those
	// who reach it, over and above dial and health: its threshold is dial x health x
	// admission. Those that it does not take go on to the next. Groups with equal candidates,
	// costs and TTLs share one row: don't write to it.
	Admission [][]float64
	// Sinks are by Input.Sinks.
	Sinks []SinkOutput
	// Demand is the natural demand of all sinks, in the unit of the capacities.
	Demand float64
	// Deficit is what the sinks are to take above their limits because nobody else
	// can: DNS moves traffic and can't refuse it. With it goes the demand of groups that
	// nobody takes, or only as a last resort.
	Deficit float64
	// Moved is the part 0..1 of all demand that this step moves, once resolvers
	// follow; Left is what remains to be moved.
	Moved, Left float64
	// Delay is the mean time until a step shows in the loads.
	Delay time.Duration
	// Urgent: a sink went down, was drained or lost a tenth of its availability, so everything
	// moves at once.
	Urgent bool
}

// SinkOutput is the state of one sink after a step. Loads and flows are in the
// unit of its capacity.
type SinkOutput struct {
	Demand float64 // natural demand: what would come if every sink took everything
	Load   float64 // last good load; where there is none, or it is absent, the estimate
	Limit  float64 // what placing fills it to; +Inf: unlimited
	// Wanted is the flow that placing gives it, Expected the flow once resolvers
	// have followed this step.
	Wanted, Expected float64
	Utilisation      float64 // Load of its capacity; 0 where none is known
	Trim             float64 // the feedback's factor on its limit, TrimFloor..1
	Fade             float64 // the say of its signal: 1 fresh, 0 absent
	Reading          Reading
	// Refused: this step's signal can't be (NaN, infinite, negative or absurdly
	// large), or says something doubtful for the first time, and is not taken for a reading.
	Refused bool
	// Stuck: the signal goes on with the very same value although what comes to the
	// sink has changed; its age counts from when the value first came.
	Stuck bool
	// Oscillating: its utilisation went up and down again and again; Amplitude is
	// half of its latest swings, as a part of the capacity. Damped: its load jumped by Lump
	// again and again by itself, so what left it stays away until there is room for that.
	Oscillating, Damped bool
	Lump                float64 // 0 where it is not damped
	Amplitude           float64
}
