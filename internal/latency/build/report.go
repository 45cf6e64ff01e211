package build

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report tells how a map came to be. Its JSON form is stable.
type Report struct {
	From     time.Time  `json:"from"` // of the measurements
	Until    time.Time  `json:"until"`
	Lines    int64      `json:"lines"` // of all inputs; a cell of a sketch is one
	Bad      int64      `json:"bad"`   // of them
	FirstBad []string   `json:"first_bad,omitempty"`
	Rejected []Rejected `json:"rejected,omitempty"` // lines by reason
	// Capped is measurements that didn't count since their source had enough, of
	// clients and of resolvers.
	Capped    [2]uint64 `json:"capped"`
	Clients   *Side     `json:"clients"`
	Resolvers *Side     `json:"resolvers"`
}

// Side is one half of a map. Shares are parts of Demand.
type Side struct {
	Prefixes  int     `json:"prefixes"` // with measurements
	Demand    uint64  `json:"demand"`   // measurements of them, weighed by age, and of Kept those of the previous map
	Entries   int     `json:"entries"`
	Overrides float64 `json:"overrides"` // share that gets another region than without the map
	Moved     float64 `json:"moved"`     // share that gets another region than now
	Emergency float64 `json:"emergency"` // of Moved, what was urgent
	Deferred  float64 `json:"deferred"`  // share that would have moved, beyond the budget
	// Gain is how much lower the p75 is with the map than without it, in
	// milliseconds: the mean over all demand. Of OverrideGain it is the mean over Overrides.
	Gain         float64 `json:"gain_ms"`
	OverrideGain float64 `json:"override_gain_ms"`
	// OverrideFailed is how much fewer measurements fail with the map, as a part of them: the
	// mean over Overrides.
	OverrideFailed float64 `json:"override_failed"`
	// Expired is entries of the previous map that nothing was measured of, Kept those
	// of them that stay since more is not allowed to change.
	Expired int      `json:"expired"`
	Kept    int      `json:"kept"`
	Why     []Why    `json:"why"`
	Changes []Change `json:"changes,omitempty"` // those with most gain
	Waiting []Change `json:"waiting,omitempty"` // the same of Deferred
}

// Why is how much was decided for a reason.
type Why struct {
	Reason   string  `json:"reason"`
	Prefixes int     `json:"prefixes"`
	Share    float64 `json:"share"`
}

// Change is a prefix that gets another region. From and To are empty for none, To
// also while it waits.
type Change struct {
	Prefix string  `json:"prefix"`
	From   string  `json:"from"`
	To     string  `json:"to"`
	Gain   float64 `json:"gain_ms"` // with a failure as 1000 ms
	Share  float64 `json:"share"`
	Reason string  `json:"reason"`
}

// shownChanges is how many changes are listed.
const shownChanges = 10

func (b *Builder) report(capped [2]uint64) *Report {
	r := &Report{
		From: utc(b.o.Until.Add(-b.o.Window)), Until: utc(b.o.Until),
		Lines: b.lines, Bad: b.bad.faults(), Rejected: b.bad.rejected(), Capped: capped,
	}
	for _, l := range b.bad.first {
		r.FirstBad = append(r.FirstBad, l.String())
	}
	return r
}

// side sums up the decisions of one kind.
func (c *chooser) side(s *spent, pieces []piece, entries int) *Side {
	side := &Side{Demand: s.total, Entries: entries, Expired: c.expired, Kept: s.silent, Why: []Why{}}
	share := func(d uint64) float64 { return float64(d) / float64(max(s.total, 1)) }
	var count [numReasons]int
	var demand [numReasons]uint64
	var moved, overrides, deferred uint64
	gain, failed, of := 0.0, 0.0, make(map[int]*piece)
	for _, at := range s.changed[:min(len(s.changed), shownChanges)] {
		of[at] = nil
	}
	for i := range pieces {
		p := &pieces[i]
		for at := p.from; at < p.to; at++ {
			l := &c.leaves[at]
			if l.entry < 0 {
				side.Prefixes++
			}
			count[l.why]++
			demand[l.why] += uint64(l.demand)
			after := l.after(p)
			if cur := l.current(); cur != none && cur != after {
				moved += uint64(l.demand)
			}
			if l.geo != none && l.geo != after {
				overrides += uint64(l.demand)
				ms, part := c.gain(l, after)
				gain += float64(l.demand) * ms
				failed += float64(l.demand) * part
			}
			if _, ok := of[at]; ok {
				of[at] = p
			}
		}
	}
	for _, at := range s.deferred {
		deferred += uint64(c.leaves[at].demand)
	}
	side.Moved, side.Emergency, side.Overrides, side.Deferred = share(moved), share(s.emergency), share(overrides), share(deferred)
	side.Gain, side.OverrideGain = gain/float64(max(s.total, 1)), gain/float64(max(overrides, 1))
	side.OverrideFailed = failed / float64(max(overrides, 1))
	for r := range numReasons {
		if count[r] > 0 {
			side.Why = append(side.Why, Why{reasonNames[r], count[r], share(demand[r])})
		}
	}
	slices.SortStableFunc(side.Why, func(a, b Why) int { return cmp.Compare(b.Share, a.Share) })
	for _, at := range s.changed[:min(len(s.changed), shownChanges)] {
		side.Changes = append(side.Changes, c.change(at, c.leaves[at].after(of[at]), share))
	}
	for _, at := range s.deferred[:min(len(s.deferred), shownChanges)] {
		side.Waiting = append(side.Waiting, c.change(at, none, share))
	}
	return side
}

// gain is how much faster a region is than the one without a map, and how much less it fails, as
// far as measured.
func (c *chooser) gain(l *leaf, after uint8) (ms, failed float64) {
	cells := c.evidence(l)
	if cells == nil || after == none {
		return 0, 0
	}
	without, with := &cells[l.geo], &cells[after]
	if without.Samples > 0 && with.Samples > 0 {
		ms = float64(without.P75) - float64(with.P75)
	}
	if without.Samples > 0 || without.Failed > 0 { // else it has no measurements
		failed = float64(without.Failed) - float64(with.Failed)
	}
	return ms, failed
}

func (c *chooser) change(at int, to uint8, share func(uint64) float64) Change {
	name := func(r uint8) string {
		if r == none {
			return ""
		}
		return c.o.Regions[r]
	}
	l := &c.leaves[at]
	return Change{
		Prefix: l.key.prefix(int(l.bits)).String(), From: name(l.current()), To: name(to),
		Gain: float64(l.gain), Share: share(uint64(l.demand)), Reason: reasonNames[l.why],
	}
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "measured from %s until %s\n", r.From.Format(time.RFC3339), r.Until.Format(time.RFC3339))
	fmt.Fprintf(&b, "lines %d, bad %d\n", r.Lines, r.Bad)
	for _, x := range r.Rejected {
		fmt.Fprintf(&b, "  %d  %s\n", x.Lines, x.Reason)
	}
	for _, x := range r.FirstBad {
		fmt.Fprintf(&b, "  %s\n", x)
	}
	if r.Capped != [2]uint64{} {
		fmt.Fprintf(&b, "beyond the share of their source: %d measurements for clients, %d for resolvers\n", r.Capped[Clients], r.Capped[Resolvers])
	}
	for k, s := range []*Side{r.Clients, r.Resolvers} {
		if s != nil && (s.Prefixes > 0 || s.Expired > 0 || Kind(k) == Clients) {
			s.writeText(&b, Kind(k))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Side) writeText(b *strings.Builder, k Kind) {
	fmt.Fprintf(b, "\n%s: %d prefixes, %d measurements, %d entries\n", k, s.Prefixes, s.Demand, s.Entries)
	fmt.Fprintf(b, "  moved %s of the demand (emergencies %s), deferred %s\n", percent(s.Moved), percent(s.Emergency), percent(s.Deferred))
	fmt.Fprintf(b, "  overrides %s of the demand, p75 there %s; of all %s\n",
		percent(s.Overrides), lower(s.OverrideGain, "%.1f ms"), lower(s.Gain, "%.2f ms"))
	if s.OverrideFailed != 0 {
		fmt.Fprintf(b, "  failures there %s of the measurements\n", lower(100*s.OverrideFailed, "%.2f %%"))
	}
	if s.Expired > 0 {
		fmt.Fprintf(b, "  expired %d entries, of which nothing was measured\n", s.Expired)
	}
	if s.Kept > 0 {
		fmt.Fprintf(b, "  kept %d entries, of which nothing was measured either: more change than the budget allows\n", s.Kept)
	}
	for _, y := range s.Why {
		fmt.Fprintf(b, "  %7s  %s (%d prefixes)\n", percent(y.Share), y.Reason, y.Prefixes)
	}
	list := func(title string, changes []Change) {
		if len(changes) == 0 {
			return
		}
		fmt.Fprintf(b, "  %s:\n", title)
		for _, c := range changes {
			from, to := cmp.Or(c.From, "none"), cmp.Or(c.To, "none")
			if title == waiting {
				to = "…"
			}
			fmt.Fprintf(b, "    %-20s %s -> %s  %.1f ms, %s of the demand, %s\n", c.Prefix, from, to, c.Gain, percent(c.Share), c.Reason)
		}
	}
	list("changes that gain most", s.Changes)
	list(waiting, s.Waiting)
}

// lower says by how much something is less, or more.
func lower(by float64, format string) string {
	if by < 0 {
		return fmt.Sprintf("higher by "+format, -by)
	}
	return fmt.Sprintf("lower by "+format, by)
}

const waiting = "waiting for the next build, or -force"

func percent(part float64) string { return fmt.Sprintf("%.2f %%", 100*part) }
