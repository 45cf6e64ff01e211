package capacity

import (
	"math"
	"slices"
	"time"
)

// One resolver may be a large part of a demand. It is there or not, and its region too
// full or too empty, whatever the gains. A load that jumps again and again while what
// is admitted hardly changes tells of that, and its sink is damped: what left it stays away.

// Jumps are the changes of one sink's load that came at once and that no admission
// explains. The zero value has seen nothing.
type Jumps struct {
	Marks []Mark `json:"marks,omitempty"` // the latest readings, oldest first
	Seen  []Jump `json:"seen,omitempty"`  // the latest jumps, oldest first
}

// Mark is a reading.
type Mark struct {
	At  time.Time `json:"at"`
	Use float64   `json:"use"` // utilisation
}

// Jump is a change of the utilisation.
type Jump struct {
	At   time.Time `json:"at"`
	Low  float64   `json:"low"`  // the lower one
	Size float64   `json:"size"` // below 0: down
}

// mark takes in a reading. A load is a mean, so a jump may take two periods to show; what takes
// longer is what resolvers do together.
func (j Jumps) mark(is Mark, period time.Duration) Jumps {
	if n := len(j.Marks); n > 0 && !is.At.After(j.Marks[n-1].At) {
		return j
	}
	marks := append(slices.Clone(j.Marks), is)
	for is.At.Sub(marks[0].At) > 2*period+period/2 || len(marks) > maxMarks {
		marks = marks[1:]
	}
	j.Marks = marks
	return j
}

// change is the oldest reading and the latest, and whether they are so far apart that it may be a
// jump.
func (j *Jumps) change() (was, is Mark, far bool) {
	if n := len(j.Marks); n > 0 {
		was, is = j.Marks[0], j.Marks[n-1]
	}
	return was, is, math.Abs(is.Use-was.Use) > swing(max(was.Use, is.Use))
}

// watch takes a large change for a jump where admissions alone would have made one by a far smaller
// part, explained, and forgets jumps that are older than span.
func (j Jumps) watch(explained float64, period, span time.Duration) Jumps {
	was, is, far := j.change()
	if far && ratio(is.Use, was.Use) > mul(3, explained) {
		size := is.Use - was.Use
		jump, seen := Jump{is.At, min(is.Use, was.Use), size}, slices.Clone(j.Seen)
		if n := len(seen) - 1; n >= 0 && is.At.Sub(seen[n].At) <= 3*period && (seen[n].Size > 0) == (size > 0) {
			jump.Low, jump.Size = min(jump.Low, seen[n].Low), size+seen[n].Size // the rest of it
			seen = seen[:n]
		}
		seen = append(seen, jump)
		j.Marks, j.Seen = []Mark{is}, seen[max(0, len(seen)-2*DampJumps):]
	}
	for len(j.Seen) > 0 && is.At.Sub(j.Seen[0].At) > span {
		j.Seen = j.Seen[1:]
	}
	return j
}

// explained is, by sink, the part by which admissions alone would have changed its load from the
// oldest of its marks to the latest: what they sent there of the demands known now. Demands must be the
// same for both, or a demand that changes would pass for an admission, and one of those for a jump.
func (w *work) explained() []float64 {
	n := len(w.sinks)
	demand, out := make([]float64, n), make([]float64, n)
	was, is := make([]time.Duration, n), make([]time.Duration, n)
	delay, some := max(0, min(w.in.Delay, time.Hour)), false
	for r := range w.sinks {
		m := &w.state.Sinks[r]
		demand[r] = m.Demand
		if len(m.Jumps.Marks) > 0 {
			from, to, far := m.Jumps.change()
			was[r], is[r] = w.in.Now.Sub(from.At)+delay, w.in.Now.Sub(to.At)+delay
			some = some || far
		}
	}
	if some {
		then, now := w.state.past(was, w.ttl, w.in.Now).loads(demand), w.state.past(is, w.ttl, w.in.Now).loads(demand)
		for r := range out {
			out[r] = ratio(now[r], then[r])
		}
	}
	return out
}

// ratio is by which part of the smaller two amounts differ.
func ratio(a, b float64) float64 { return math.Abs(a-b) / max(min(a, b), tiny) }

// largest is the size of the largest jump that went beyond full; 0: none did.
func (j *Jumps) largest(full float64) (size float64) {
	for _, one := range j.Seen {
		if one.Low+math.Abs(one.Size) > full {
			size = max(size, math.Abs(one.Size))
		}
	}
	return size
}

// last is when the last jump came, or since if there was none after that.
func (j *Jumps) last(since time.Time) time.Time {
	if n := len(j.Seen); n > 0 && j.Seen[n-1].At.After(since) {
		return j.Seen[n-1].At
	}
	return since
}

// sane is j within its ranges.
func (j Jumps) sane(now time.Time) Jumps {
	ok := len(j.Marks) <= maxMarks && len(j.Seen) <= 2*DampJumps
	for _, m := range j.Marks {
		ok = ok && !m.At.After(now) && amount(m.Use) == m.Use
	}
	for _, one := range j.Seen {
		ok = ok && amount(one.Low) == one.Low && amount(math.Abs(one.Size)) == math.Abs(one.Size)
	}
	if !ok {
		return Jumps{}
	}
	return j
}

// Damping is why and since when what left a sink stays away.
type Damping struct {
	On bool `json:"on,omitempty"`
	// Since is when it last began; zero: never.
	Since time.Time `json:"since"`
	// Lump is what jumps, as a part of all demand, and All the demand when it began.
	Lump float64 `json:"lump,omitempty"`
	All  float64 `json:"all,omitempty"`
}

// over says whether there is nothing to damp any more: the lump has room, or all demand has
// fallen so far that it may be gone. While neither is so, to try would be to have it
// jump once more.
func (d *Damping) over(room, all float64, now time.Time) bool {
	return room >= mul(all, d.Lump) || all < mul(d.All, 1-max(d.Lump/2, DampFall)) || now.Sub(d.Since) >= MaxDamp
}

// sane is d within its ranges.
func (d Damping) sane(now time.Time) Damping {
	if d.Since.After(now) || !(d.Lump >= 0 && d.Lump <= 1) || amount(d.All) != d.All {
		return Damping{}
	}
	return d
}

// damp sets which sinks are damped. One that was damped of late is damped again at its
// first jump. Only one begins at a time, the one that jumped most often: the others jump because it
// does, and show by themselves if they don't.
func (w *work) damp() {
	all := 0.0
	for r := range w.sinks {
		all += w.state.Sinks[r].Demand
	}
	worst, most, size := -1, 0, 0.0
	calm := time.Duration(mul(DampCalm*1e9, w.tau()))
	for r := range w.sinks {
		k, m := &w.sinks[r], &w.state.Sinks[r]
		d := &m.Damping
		room := math.Inf(-1) // where the load isn't known
		if k.fade == 1 {
			room = mul(k.cap, k.target) - m.Load
		}
		if d.On && w.in.Now.Sub(m.Jumps.last(d.Since)) >= calm && d.over(room, all, w.in.Now) {
			d.On = false
		}
		again := !d.Since.IsZero() && w.in.Now.Sub(d.Since) < 2*MaxDamp
		n, largest := len(m.Jumps.Seen), m.Jumps.largest(k.target)
		if !d.On && largest > 0 && n > most && (n >= DampJumps || again) {
			worst, most, size = r, n, mul(largest, k.cap)
		}
	}
	if worst >= 0 && all > 0 {
		w.state.Sinks[worst].Damping = Damping{true, w.in.Now, min(1, size/all), all}
		for r := range w.sinks {
			w.state.Sinks[r].Jumps.Seen = nil
		}
	}
	for r := range w.sinks {
		k, d := &w.sinks[r], &w.state.Sinks[r].Damping
		if k.damped = d.On; d.On {
			k.lump = mul(d.Lump, all)
		}
	}
}

// forget forgets what a sink's load did, and what was concluded from it.
func (m *Memory) forget() { m.Swings, m.Jumps, m.Damping = Swings{}, Jumps{}, Damping{} }

// Release is s without damping and swings: an operator has done something, so what was
// seen before says nothing of what comes. nil stays nil.
func (s *State) Release() *State {
	if s == nil {
		return nil
	}
	n := *s
	n.Sinks = slices.Clone(s.Sinks)
	for i := range n.Sinks {
		n.Sinks[i].forget()
	}
	return &n
}
