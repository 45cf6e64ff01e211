package capacity

import "time"

// The law's constants. The simulator's scenarios hold with these; docs/capacity.md
// says where each comes from.
const (
	// DefaultTarget is the part of a capacity that placing aims at.
	DefaultTarget = 0.9
	// DefaultPeriod is the time between measurements of a signal that names none.
	DefaultPeriod = 15 * time.Second

	// FreshPeriods is how many periods a signal has its full say; from there to
	// AbsentPeriods that fades in a straight line.
	FreshPeriods  = 3
	AbsentPeriods = 10
	// AbsurdLoad, in capacities, is what no load is: beyond it a signal is refused.
	AbsurdLoad = 1e6
	// DoubtfulLoad, in capacities, is what a signal has to say for a period, when it
	// said less before.
	DoubtfulLoad = 3
	// MaxLoad bounds loads and capacities in any unit, so that sums stay finite.
	MaxLoad = 1e15

	// DemandRounds is how many rounds of estimation a step makes.
	DemandRounds = 20
	// Droop is the part of a sink's clients that the estimate takes to stay there
	// whatever is answered. Instances that share a load are integrators in parallel:
	// nothing in the load tells how they should split it. As with generators on
	// one grid, a slight droop lets them forget what only one of them remembers. It lifts a
	// sink that keeps a part p of its own by Droop x (1/p - 1), until the trim sees it.
	Droop = 0.10

	// DeadBand is the deviation of a utilisation that the trim leaves alone.
	DeadBand = 0.05
	// TrimFloor is the smallest trim: who is alive keeps that part of the limit.
	TrimFloor = 0.10
	// TrimStep is the largest change of a trim in one step.
	TrimStep = 0.10
	// GainDown and GainUp are the trim's gains when it sheds and restores, for a whole
	// loop delay. The loop is stable below pi/2; 1/e is critical damping.
	GainDown = 0.5
	GainUp   = 0.2

	// TrimLeak is the part of a trim that is forgotten in a loop delay, in its logarithm.
	TrimLeak = 0.10

	// FullKeep is the part of its present load that a full sink is to keep, and
	// RoofGrowth how fast, per loop delay, it is trusted with more afterwards.
	FullKeep   = 0.9
	RoofGrowth = 0.1

	// MaxMove is the part of all demand that one step moves at most, unless
	// availability was lost; steps that follow within MoveEvery share it.
	MaxMove   = 0.10
	MoveEvery = 5 * time.Second
	// UrgentLoss is the loss of availability that moves everything at once.
	UrgentLoss = 0.10

	// RecentSpan is how long a natural demand is remembered that was higher: who goes down
	// serves and counts less and less before it is known to, and what comes to others then is
	// what came before.
	RecentSpan = 10 * time.Minute
	// LeastKept is the part of its own demand that a sink has to take for that to be known from its
	// load.
	LeastKept = 0.01
	// BaselineSpan is the time constant of a sink's long-term natural demand.
	BaselineSpan = 24 * time.Hour

	// A sink oscillates with at least SwingCount swings from peak to trough of more
	// than twice SwingSize of its capacity (of its load, where that is more) within SwingSpan loop delays. All gains
	// are halved while it does.
	SwingSize  = 0.05
	SwingCount = 4
	SwingSpan  = 20
	// With DampJumps jumps that no admission explains a sink is damped: what left it stays
	// away. That ends when nothing has jumped for DampCalm loop delays and there is room for such a
	// jump, or all demand has fallen by half of it and by DampFall, or MaxDamp is over.
	DampJumps = 3
	DampCalm  = 10
	DampFall  = 0.10
	MaxDamp   = 12 * time.Hour

	// maxMarks bounds the readings of two periods.
	maxMarks = 8
	// maxMoments bounds the history of flows.
	maxMoments = 64
	// placeRounds bounds deferred acceptance, levelSweeps the levelling of the residue.
	placeRounds = 200
	levelSweeps = 40
	// augmentRounds bounds the chains of moves that make room for residue.
	augmentRounds = 64
	// tiny is the part of all demand that counts as nothing.
	tiny = 1e-9
)
