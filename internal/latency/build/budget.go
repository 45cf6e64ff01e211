package build

import (
	"cmp"
	"math"
	"slices"
)

// spent is demand that changes regions, in measurements.
type spent struct {
	total             uint64 // demand of all leaves
	silent            int    // entries that would have expired
	normal, emergency uint64 // that changes
	deferred          []int  // leaves that would have changed, those with most gain first
	changed           []int  // leaves that do
}

// budget has the changes with the largest gains be made and the others wait.
// Emergencies come first and have a budget of their own.
func (c *chooser) budget() (s spent) {
	var moving, quiet []int
	for at := range c.leaves {
		l := &c.leaves[at]
		s.total += uint64(l.demand)
		if l.entry >= 0 {
			quiet = append(quiet, at)
		} else if l.moves {
			moving = append(moving, at)
		}
	}
	slices.SortFunc(moving, c.rank)
	normal, emergency := c.limits(c.measured())
	for _, at := range moving {
		l := &c.leaves[at]
		d := uint64(l.demand)
		switch {
		case l.why == urgent && s.emergency+d <= emergency:
			s.emergency += d
		case s.normal+d <= normal:
			s.normal += d
		default:
			s.deferred = append(s.deferred, at)
			l.set, l.spread, l.moves = l.stay, 0, false
			continue
		}
		s.changed = append(s.changed, at)
	}
	c.expire(&s, quiet, normal)
	return s
}

func (c *chooser) limits(total uint64) (normal, emergency uint64) {
	if c.o.Force {
		return math.MaxUint64, math.MaxUint64
	}
	return uint64(c.o.Budget * float64(total)), uint64(c.o.Emergency * float64(total))
}

// rank puts emergencies first, then what gains most for each user: so a budget of demand
// buys the most, and prefixes that were decided together change together.
func (c *chooser) rank(a, b int) int {
	l, m := &c.leaves[a], &c.leaves[b]
	urgency := func(l *leaf) int {
		if l.why == urgent {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(urgency(l), urgency(m)), cmp.Compare(m.gain, l.gain), cmp.Compare(l.key, m.key))
}
