package capacity

import (
	"math"
	"slices"
	"time"
)

// Swings are how one sink's utilisation goes up and down: the marks of a law that
// has met its match. The zero value has seen nothing.
type Swings struct {
	Up     bool    `json:"up,omitempty"`
	From   float64 `json:"began"`    // utilisation where the latest swing began
	Latest float64 `json:"farthest"` // and at its farthest point so far
	Seen   bool    `json:"seen,omitempty"`
	// Turns are the latest ends of swings, oldest first.
	Turns []Turn `json:"turns,omitempty"`
}

// Turn is the end of a swing.
type Turn struct {
	At   time.Time `json:"at"`
	Size float64   `json:"size"` // from peak to trough, as a part of the capacity
}

// swing is from which size on a change to or from a utilisation is more than noise, which is in
// proportion to the load.
func swing(use float64) float64 { return mul(2*SwingSize, max(1, use)) }

// watch takes in what is known now. A swing ends where the utilisation has come back by more
// than a [swing] from its farthest point; smaller ups and downs are noise.
func (s Swings) watch(use float64, now time.Time, span time.Duration) Swings {
	size := swing(max(use, s.Latest))
	if !s.Seen {
		return Swings{Seen: true, From: use, Latest: use}
	}
	if (use > s.Latest) == s.Up && use != s.Latest {
		s.Latest = use
	} else if math.Abs(use-s.Latest) > size {
		turns := slices.Clone(s.Turns)
		if swing := math.Abs(s.Latest - s.From); swing > size {
			turns = append(turns, Turn{now, swing})
		}
		s.Turns = turns[max(0, len(turns)-2*SwingCount):]
		s.Up, s.From, s.Latest = use > s.Latest, s.Latest, use
	}
	for len(s.Turns) > 0 && now.Sub(s.Turns[0].At) > span {
		s.Turns = s.Turns[1:]
	}
	return s
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
	ok := amount(s.From) == s.From && amount(s.Latest) == s.Latest && len(s.Turns) <= 2*SwingCount
	for _, t := range s.Turns {
		ok = ok && amount(t.Size) == t.Size
	}
	if !ok {
		return Swings{}
	}
	return s
}

// watchSwings takes in what was newly heard, and calms the gains where a sink
// oscillates.
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
			m.forget() // not of the law's making
			continue
		}
		if k.cap != m.Capacity { // utilisations before are of another one
			m.Capacity, m.Swings, m.Jumps = k.cap, Swings{}, Jumps{}
		}
		if k.fade == 1 {
			m.Swings = m.Swings.watch(m.Load/k.cap, w.in.Now, span)
			m.Jumps = m.Jumps.mark(Mark{m.LoadAt, m.Load / k.cap}, m.Period)
		}
		if yes, _ := m.Swings.verdict(); yes {
			w.calm = 0.5
		}
	}
	explained := w.explained()
	for r := range w.sinks {
		if k, m := &w.sinks[r], &w.state.Sinks[r]; k.fade == 1 {
			m.Jumps = m.Jumps.watch(explained[r], m.Period, span)
		}
	}
	w.damp()
}

// forgetSwings begins to watch anew. Who is damped stays so.
func (w *work) forgetSwings() {
	for r := range w.sinks {
		w.state.Sinks[r].Swings, w.state.Sinks[r].Jumps = Swings{}, Jumps{}
	}
}
