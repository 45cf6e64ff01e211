package capacity

import (
	"math"
	"slices"
	"time"
)

// State is what the law remembers between steps. Its zero value remembers
// nothing. It is plain data for JSON, and immutable: a step makes a new one.
//
// Sinks are known by name, so the state of an older configuration serves a newer
// one; what can't be (a damaged copy) counts as forgotten.
type State struct {
	// Last is when the last step was made.
	Last time.Time `json:"last"`
	// Names and Sinks are by index, which History uses.
	Names   []string `json:"names,omitempty"`
	Sinks   []Memory `json:"sinks,omitempty"`
	History []Moment `json:"history,omitempty"`
	// Rows is the last admission by the names of the candidates.
	Rows map[string][]float64 `json:"rows,omitempty"`
	Loss Loss                 `json:"loss"`
}

// Loss is when availability was last lost, the demand of all sinks then, and until when resolvers
// follow. Its zero value is no loss.
type Loss struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	All   float64   `json:"all"`
}

// sane is l within its ranges.
func (l Loss) sane(now time.Time) Loss {
	if l.At.After(now) || l.Until.Sub(l.At) > 5*time.Hour || amount(l.All) != l.All {
		return Loss{}
	}
	return l
}

// Memory is what the state knows of one sink.
type Memory struct {
	Load     float64       `json:"load"`    // last good signal
	LoadAt   time.Time     `json:"load_at"` // when it was measured; zero: never
	Period   time.Duration `json:"period"`
	Doubt    time.Time     `json:"doubt"`           // since when the signal says what is doubted; zero: it doesn't
	Since    time.Time     `json:"since"`           // since when the signal says this very value
	Came     float64       `json:"came"`            // what parts of all demands came here then, in sum
	Comes    float64       `json:"comes"`           // and by the last step
	Stuck    bool          `json:"stuck,omitempty"` // it says so although other parts come
	Demand   float64       `json:"demand"`
	Recent   float64       `json:"recent"` // the highest demand, decaying to the present one
	Trim     float64       `json:"trim"`
	Plan     float64       `json:"plan"`           // the flow wanted by the last step
	Roof     float64       `json:"roof,omitempty"` // load at which it was full; 0: none
	Open     float64       `json:"open"`           // its availability at the last step
	Baseline float64       `json:"baseline"`
	Watched  time.Duration `json:"watched"`  // what Baseline is the mean of
	Capacity float64       `json:"capacity"` // what Swings and Jumps are parts of
	Swings   Swings        `json:"swings"`
	Jumps    Jumps         `json:"jumps"`
	Damping  Damping       `json:"damping"`
}

// Moment is which flows an admission made, from At until the next one.
type Moment struct {
	At     time.Time `json:"at"`
	Cells  []Cell    `json:"cells"`  // in order of From
	Demand []float64 `json:"demand"` // natural demand as estimated then, by sink
}

// Cell is the part of the natural demand of one sink that went to another, or to [nobody],
// by answers of one TTL.
type Cell struct {
	From int           `json:"f"`
	To   int           `json:"t"`
	Part float64       `json:"p"`
	TTL  time.Duration `json:"l,omitempty"` // 0: any
}

// sane says whether the cell's amounts are in range.
func (c *Cell) sane() bool { return c.Part > 0 && c.Part <= 1 && c.TTL >= 0 && c.TTL <= time.Hour }

// adopt is a copy of s for the sinks of in. What it shares with s is never
// written to.
func (s *State) adopt(sinks []Sink, now time.Time) *State {
	n := &State{Last: s.Last, Loss: s.Loss.sane(now), Names: make([]string, len(sinks)), Sinks: make([]Memory, len(sinks))}
	if n.Last.After(now) {
		n.Last = now
	}
	known := make(map[string]int, len(s.Names))
	for i := len(s.Names) - 1; i >= 0; i-- {
		if i < len(s.Sinks) {
			known[s.Names[i]] = i
		}
	}
	place := make([]int, len(s.Names)) // new index of an old one
	for i := range place {
		place[i] = -1
	}
	for i := range sinks {
		n.Names[i] = sinks[i].Name
		old, ok := known[sinks[i].Name]
		if !ok || place[old] >= 0 {
			n.Sinks[i] = Memory{Trim: 1, Open: -1}
			continue
		}
		place[old] = i
		n.Sinks[i] = s.Sinks[old].sane(now)
	}
	n.adoptHistory(s.History, place, slices.Equal(n.Names, s.Names), now)
	return n
}

// adoptHistory takes over the moments up to now whose sinks are still there.
func (s *State) adoptHistory(history []Moment, place []int, same bool, now time.Time) {
	s.History = make([]Moment, 0, min(len(history), maxMoments)+1)
	last := time.Time{}
	for _, m := range history[max(0, len(history)-maxMoments):] {
		if m.At.After(now) || m.At.Before(last) {
			continue
		}
		last = m.At
		if !same || !m.sane(len(s.Names)) {
			m.Cells, m.Demand = moved(m.Cells, place, len(s.Sinks)), s.remapped(m.Demand, place)
		}
		s.History = append(s.History, m)
	}
}

// moved is the sane ones of cells, under the sinks' new indexes. What is lost of a
// sink's demand stays with it.
func moved(cells []Cell, place []int, sinks int) []Cell {
	in := func(i int) bool { return i >= 0 && i < len(place) && place[i] >= 0 }
	f := make(flows, sinks)
	for _, c := range cells {
		if !in(c.From) || !c.sane() {
			continue
		}
		if c.To == nobody {
			f.add(place[c.From], part{nobody, c.Part, c.TTL})
		} else if in(c.To) {
			f.add(place[c.From], part{place[c.To], c.Part, c.TTL})
		}
	}
	return f.cells()
}

// cells is f for the history: every sink's parts in sum are 1, and what f does not
// say of a sink's demand stays with it.
func (f flows) cells() []Cell {
	var out []Cell
	for c := range f {
		sum := 0.0
		for _, p := range f[c] {
			sum += p.part
		}
		if sum < 1 {
			f.add(c, part{to: c, part: 1 - sum})
			sum = 1
		}
		for _, p := range f[c] {
			out = append(out, Cell{c, p.to, min(1, p.part/sum), p.ttl})
		}
	}
	return out
}

// remapped is old demands under the sinks' new indexes; one that had none then has the
// present one.
func (s *State) remapped(old []float64, place []int) []float64 {
	out := make([]float64, len(s.Sinks))
	for r := range out {
		out[r] = s.Sinks[r].Demand
	}
	for i, d := range old {
		if i < len(place) && place[i] >= 0 && amount(d) == d {
			out[place[i]] = d
		}
	}
	return out
}

// rewind sets all demands to the estimate at a time, as far as the history goes
// back: what was concluded since is worthless.
func (s *State) rewind(at time.Time) {
	for i := len(s.History) - 1; i >= 0; i-- {
		if m := &s.History[i]; i == 0 || !m.At.After(at) {
			for r, d := range m.Demand {
				s.Sinks[r].Demand = d
			}
			return
		}
	}
}

// sane says whether the moment is in order and in range.
func (m *Moment) sane(sinks int) bool {
	sums := make([]float64, sinks)
	last := 0
	for _, c := range m.Cells {
		if c.From < last || c.From >= sinks || c.To < nobody || c.To >= sinks || !c.sane() {
			return false
		}
		last = c.From
		sums[c.From] += c.Part
	}
	for _, sum := range sums {
		if math.Abs(sum-1) > 1e-6 {
			return false
		}
	}
	for _, d := range m.Demand {
		if amount(d) != d {
			return false
		}
	}
	return len(m.Demand) == sinks
}

// sane is m within its ranges.
func (m Memory) sane(now time.Time) Memory {
	if m.LoadAt.After(now) || amount(m.Load) != m.Load {
		m.LoadAt, m.Load = time.Time{}, 0
	}
	if m.Doubt.After(now) {
		m.Doubt = time.Time{}
	}
	m.Period = period(m.Period)
	m.Demand, m.Recent, m.Plan = amount(m.Demand), amount(m.Recent), amount(m.Plan)
	m.Roof, m.Baseline, m.Capacity = amount(m.Roof), amount(m.Baseline), amount(m.Capacity)
	if !(m.Trim > 0) {
		m.Trim = 1
	}
	m.Trim = clamp(m.Trim, TrimFloor, 1)
	m.Open = clamp(m.Open, -1, 1)
	m.Watched = max(0, min(m.Watched, BaselineSpan))
	m.Swings = m.Swings.sane()
	m.Came, m.Comes = amount(m.Came), amount(m.Comes)
	m.Jumps, m.Damping = m.Jumps.sane(now), m.Damping.sane(now)
	return m
}

// remember adds the flows that hold from now on. It keeps what windows of the
// given span can reach, at most one moment for each 1/maxMoments of it, and the
// moment before, whose flows held until then.
func (s *State) remember(now time.Time, cells []Cell, span time.Duration) {
	h := s.History
	if n := len(h); n > 0 && slices.Equal(h[n-1].Cells, cells) {
		return
	}
	// Moments that crowd together (urgent steps) give way to the newest.
	for n := len(h); n > 1 && now.Sub(h[n-2].At) < span/maxMoments; n-- {
		h = h[:n-1]
	}
	if n := len(h); n > 0 && h[n-1].At.Equal(now) {
		h = h[:n-1]
	}
	demand := make([]float64, len(s.Sinks))
	for r := range demand {
		demand[r] = s.Sinks[r].Demand
	}
	h = append(h, Moment{now, cells, demand})
	first := 0
	for first+1 < len(h) && now.Sub(h[first+1].At) >= span {
		first++
	}
	s.History = h[max(first, len(h)-maxMoments):]
}
