package steer

import (
	"math"
	"math/bits"
)

// Levers are what operators, and the law that keeps regions within their
// capacity, hold back of one region or send to it. Every part is 0..1; what lies
// outside counts as the nearest end, and NaN as if it weren't written. They move
// clients by hash and threshold, each lever by one of its own: a change of p1 to p2
// moves exactly the clients between them, and conditional parts multiply.
//
// A drain is no lever here: it is the verdict [Drained] on every endpoint.
type Levers struct {
	// Dial is the part of what would come that the region takes; 1: all. A region
	// dialled to 0 is not drained: it serves whom no other candidate takes.
	Dial float64
	// Ramp is the part that it takes while it returns after an outage; 1: all.
	Ramp float64
	// Shared makes the region a soak: it gets the absolute part Share of the
	// resolutions whose list names it, never more, and no others, unless the list
	// has no other usable candidate. What holds the region back (availability, dial,
	// ramp) comes off the share; admission does not.
	Shared bool
	Share  float64
	// Mark confines Share to the lists that carry this mark, 0..63, see List.Marks;
	// -1: all lists. For the others the region is no candidate either.
	Mark int
	// Trickle is the part, 0..0.5, of what the region takes that goes to the next
	// candidate that takes it, to keep a standby proven.
	Trickle float64
	// Admission is the part of its clients that the capacity law admits, by list
	// id; nil, or too short, admits all of the lists that it doesn't reach.
	Admission []float64
	// Full: the law has taken in that all that is alive of the region is full, and
	// holds it back by Admission. So it gives up nothing for that by itself.
	Full bool
	Why  LeverWhy
}

// LeverWhy says for the trace who or what set each lever: a place in a file, an
// override, the law. Empty where nobody did.
type LeverWhy struct {
	Dial, Ramp, Share, Trickle, Admission string
}

// NoLevers is a region that nobody moves.
func NoLevers() Levers { return Levers{Dial: 1, Ramp: 1, Mark: -1} }

// maxTrickle is the greatest part that can trickle: more would make the standby the
// region.
const maxTrickle = 0.5

// clean brings every part into its range.
func (l Levers) clean() Levers {
	l.Dial = within(l.Dial, 1, 1)
	l.Ramp = within(l.Ramp, 1, 1)
	l.Share = within(l.Share, 1, 0)
	l.Trickle = within(l.Trickle, maxTrickle, 0)
	return l
}

// admits is the part of list's clients that the law admits.
func (l *Levers) admits(list int) float64 {
	if list >= len(l.Admission) {
		return 1
	}
	return within(l.Admission[list], 1, 1)
}

// carries says whether the clients of a list take part in the region's share.
func (l *Levers) carries(list *List) bool {
	return l.Mark < 0 || l.Mark < 64 && list.Marks>>l.Mark&1 == 1
}

// within is p between 0 and most, and otherwise for NaN.
func within(p, most, otherwise float64) float64 {
	if math.IsNaN(p) {
		return otherwise
	}
	return min(max(p, 0), most)
}

// threshold is a part of the clients: those whose hash, the point, lies below it.
// A greater threshold takes all that a smaller one does.
type threshold uint64

// everybody is the part 1. No other part has this threshold: the greatest number
// below 1 that a float64 holds is 2^11 away.
const everybody threshold = math.MaxUint64

// thresholdOf is the threshold of a part within 0..1.
func thresholdOf(part float64) threshold {
	if part >= 1 {
		return everybody
	}
	return threshold(math.Ldexp(part, 64))
}

// takes says whether the client at the point is below the threshold.
func (t threshold) takes(point uint64) bool { return point < uint64(t) || t == everybody }

// times is the product of two parts, rounded down.
func (t threshold) times(u threshold) threshold {
	switch {
	case t == everybody:
		return u
	case u == everybody:
		return t
	}
	hi, _ := bits.Mul64(uint64(t), uint64(u))
	return threshold(hi)
}

// part is the threshold as a part.
func (t threshold) part() float64 {
	if t == everybody {
		return 1
	}
	return math.Ldexp(float64(t), -64)
}

// stretch is where a point below the threshold lies in proportion to it, as a
// point of its own.
func (t threshold) stretch(point uint64) uint64 {
	if t == everybody {
		return point
	}
	p, _ := bits.Div64(point, 0, uint64(t))
	return p
}

// stretchAbove is the same for a point that is not below the threshold, which is
// not everybody.
func (t threshold) stretchAbove(point uint64) uint64 {
	if t == 0 {
		return point
	}
	p, _ := bits.Div64(point-uint64(t), 0, -uint64(t))
	return p
}

// pull applies levers to a snapshot in which health has had its say.
func (h *Host) pull(s *Snapshot, levers func(Region) Levers) {
	if levers != nil {
		h.collect(s, levers)
	}
	for r := range h.pools {
		whole := s.levers == nil || h.hold(s, Region(r))
		for f := range Family(families) {
			ps := &s.pools[f][r]
			ps.taken = ps.availability
			if s.levers != nil {
				if s.levers[r].Full {
					ps.taken = ps.whole
				}
				ps.taken = ps.taken.times(thresholdOf(s.levers[r].Dial)).times(thresholdOf(s.levers[r].Ramp))
			}
			if s.has(Region(r), usable.of(f)) && (ps.taken != everybody || !whole) {
				s.regions[r] |= partial.of(f)
			}
		}
	}
	if s.levers != nil {
		h.soak(s)
	}
}

// collect asks for the levers of every region; s.levers stays nil if none is moved.
func (h *Host) collect(s *Snapshot, levers func(Region) Levers) {
	all := make([]Levers, len(h.pools))
	moved := false
	for r := range all {
		l := levers(Region(r)).clean()
		moved = moved || l.Dial < 1 || l.Ramp < 1 || l.Shared || l.Trickle > 0 || l.Admission != nil || l.Full
		all[r] = l
	}
	if !moved {
		return
	}
	s.levers = all
	s.trickles = make([]threshold, len(all))
	s.admitted = make([][]threshold, len(all))
	for r := range all {
		s.trickles[r] = thresholdOf(all[r].Trickle)
	}
}

// hold works out what the law admits to region r, and says whether that leaves its
// cells whole: a host that sheds asks for it later, see [query.pass].
func (h *Host) hold(s *Snapshot, r Region) (whole bool) {
	l := &s.levers[r]
	if l.Admission == nil {
		return true
	}
	s.admitted[r] = make([]threshold, len(h.lists))
	whole = true
	for id := range h.lists {
		t := thresholdOf(l.admits(id))
		s.admitted[r][id] = t
		whole = whole && t == everybody
	}
	return whole || h.shed != ""
}

// cell is the part of the clients of a list that region r, where it is usable,
// takes in a choice between candidates.
func (h *Host) cell(s *Snapshot, list int, r Region, f Family) threshold {
	t := s.pools[f][r].taken
	if s.admitted == nil || s.admitted[r] == nil || h.shed != "" {
		return t
	}
	return t.times(s.admitted[r][list])
}

// dialled says whether region r is given clients as long as another could be.
func (s *Snapshot) dialled(r Region) bool { return s.levers == nil || s.levers[r].Dial > 0 }

// leversOf is the levers of region r.
func (s *Snapshot) leversOf(r Region) Levers {
	if s.levers == nil {
		return NoLevers()
	}
	return s.levers[r]
}
