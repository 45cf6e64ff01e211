package capacity

import (
	"math"
	"slices"
	"time"
)

// Swings are how one sink's utilisation goes up and down: the marks of a law that
// has met its match. The zero value has seen nothing.
type Swings struct {
	Up     bool `json:"up,omitempty"`
	From   Mark `json:"from"`   // where the latest swing began
	Latest Mark `json:"latest"` // its farthest point so far
	Seen   bool `json:"seen,omitempty"`
	// Turns are the latest ends of swings, oldest first.
	Turns []Turn `json:"turns,omitempty"`
}

// Mark is a utilisation, and the load that admissions alone would have brought then.
type Mark struct {
	Use float64 `json:"use"`
	Way float64 `json:"way"`
}

// Turn is the end of a swing.
type Turn struct {
	At   time.Time `json:"at"`
	Size float64   `json:"size"` // from peak to trough, as a part of the capacity
	// Jump: the load went much farther than what was admitted.
	Jump bool `json:"jump,omitempty"`
}

// watch takes in what is known now. A swing ends where the utilisation has come back by more
// than twice SwingSize from its farthest point; smaller ups and downs are noise.
func (s Swings) watch(is Mark, now time.Time, span time.Duration) Swings {
	const size = 2 * SwingSize
	if !s.Seen {
		return Swings{Seen: true, From: is, Latest: is}
	}
	if (is.Use > s.Latest.Use) == s.Up && is.Use != s.Latest.Use {
		s.Latest = is
	} else if math.Abs(is.Use-s.Latest.Use) > size {
		turns := slices.Clone(s.Turns)
		if swing := math.Abs(s.Latest.Use - s.From.Use); swing > size {
			jump := ratio(s.Latest.Use, s.From.Use) > mul(3, ratio(s.Latest.Way, s.From.Way))
			turns = append(turns, Turn{now, swing, jump})
		}
		s.Turns = turns[max(0, len(turns)-2*SwingCount):]
		s.Up, s.From, s.Latest = is.Use > s.Latest.Use, s.Latest, is
	}
	for len(s.Turns) > 0 && now.Sub(s.Turns[0].At) > span {
		s.Turns = s.Turns[1:]
	}
	return s
}

// ratio is by which part of the smaller two amounts differ.
func ratio(a, b float64) float64 { return math.Abs(a-b) / max(min(a, b), tiny) }

// jumps is how many of the turns end jumps, after a time.
func (s *Swings) jumps(after time.Time) (n int) {
	for _, t := range s.Turns {
		if t.Jump && t.At.After(after) {
			n++
		}
	}
	return n
}

// verdict says whether the sink oscillates, and half of its mean latest swing.
func (s *Swings) verdict() (bool, float64) {
	if len(s.Turns) == 0 {
		return false, 0
	}
	sum := 0.0
	for _, t := range s.Turns {
		sum += t.Size
	}
	return len(s.Turns) >= SwingCount, sum / float64(2*len(s.Turns))
}

// sane is s within its ranges.
func (s Swings) sane() Swings {
	ok := s.From.sane() && s.Latest.sane() && len(s.Turns) <= 2*SwingCount
	for _, t := range s.Turns {
		ok = ok && amount(t.Size) == t.Size
	}
	if !ok {
		return Swings{}
	}
	return s
}

func (m Mark) sane() bool { return amount(m.Use) == m.Use && amount(m.Way) == m.Way }

// watchSwings takes in what was newly heard, and calms the gains where a sink
// oscillates. But no gain helps where one resolver is a large part of a demand: it is there
// or not, and its region too full or too empty, for ever. A load that jumps again and
// again while what is admitted hardly changes tells of that, and the sink is held.
func (w *work) watchSwings() {
	span := time.Duration(mul(SwingSpan*1e9, w.tau()))
	for r := range w.sinks { // whoever went or came back: what the others' loads do follows from that
		if m := &w.state.Sinks[r]; m.Open >= 0 && math.Abs(m.Open-w.sinks[r].open) >= UrgentLoss {
			w.forgetSwings()
		}
	}
	for r := range w.sinks {
		k, m := &w.sinks[r], &w.state.Sinks[r]
		if k.cap == 0 || math.Abs(m.Open-k.open) >= UrgentLoss {
			m.Swings, m.Hold, m.Held = Swings{}, 0, time.Time{} // not of the law's making
			continue
		}
		if k.fade == 1 {
			m.Swings = m.Swings.watch(Mark{m.Load / k.cap, m.Way}, w.in.Now, span)
		}
		if yes, _ := m.Swings.verdict(); yes {
			w.calm = 0.5
		}
	}
	w.hold()
}

// hold sets which sinks are held. One that was held before is held again at the
// first jump after its release, and forgiven when it has been free for as long. Only one
// is held at a time, the one that jumped most: the others jump because it does, and show by
// themselves if they don't.
func (w *work) hold() {
	worst, most := -1, 0
	for r := range w.sinks {
		m := &w.state.Sinks[r]
		if w.sinks[r].held = w.in.Now.Before(m.Held); w.sinks[r].held {
			continue
		}
		again := m.Hold > 0 && w.in.Now.Sub(m.Held) <= m.Hold
		if !again {
			m.Hold = 0
		}
		n := m.Swings.jumps(time.Time{})
		if n > most && (n >= HoldJumps || again && m.Swings.jumps(m.Held) > 0) {
			worst, most = r, n
		}
	}
	if worst < 0 {
		return
	}
	m := &w.state.Sinks[worst]
	m.Hold = min(max(MinHold, 2*m.Hold), MaxHold)
	m.Held = w.in.Now.Add(m.Hold)
	w.sinks[worst].held = true
	for r := range w.sinks {
		w.state.Sinks[r].Swings.Turns = nil
	}
}

// forgetSwings begins to watch anew. Who is held stays so.
func (w *work) forgetSwings() {
	for r := range w.sinks {
		w.state.Sinks[r].Swings = Swings{}
	}
}

// Release is s without holds and swings: an operator has done something, so what was
// seen before says nothing of what comes. nil stays nil.
func (s *State) Release() *State {
	if s == nil {
		return nil
	}
	n := *s
	n.Sinks = slices.Clone(s.Sinks)
	for i := range n.Sinks {
		n.Sinks[i].Swings, n.Sinks[i].Hold, n.Sinks[i].Held = Swings{}, 0, time.Time{}
	}
	return &n
}
