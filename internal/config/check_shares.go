package config

import (
	"slices"
	"time"
)

// Limits of what is held against each other for one host.
const (
	maxHostLines = 128 // of one lever, in its regions and pools
	maxSharesAt  = 12  // at one time, if they are more than 100% together
)

// shareCheck holds the shares of one host against each other.
type shareCheck struct {
	b     *Block
	h     *Host
	pools map[string]Levers // by region; only their shares
	lists []shareList
	meets map[[2]string]bool // whether a client can be in both areas
}

// shareList is the regions, with a pool of the host, that some clients get.
type shareList struct {
	regions []string
	of      string // whose it is, for errors
}

// checkShares holds that the shares of a host leave every client a candidate,
// and that no client can be in shares of more than 100%, at any time.
func (b *Block) checkShares(h *Host) error {
	c := &shareCheck{b: b, h: h, pools: map[string]Levers{}, meets: map[[2]string]bool{}}
	var lines []When
	most := 0.0
	for i := range h.Pools {
		l := Levers{Share: b.LeversOf(&h.Pools[i]).Share}
		c.pools[h.Pools[i].Region] = l
		top := 0.0
		for _, s := range l.Share {
			lines = append(lines, s.When)
			top = max(top, s.Percent)
		}
		most += top
	}
	c.gather()
	shared := func(n string) bool { return len(c.pools[n].Share) > 0 }
	crowded := func(l shareList) bool { return all(l.regions, shared) }
	if most <= 100 && !slices.ContainsFunc(c.lists, crowded) {
		return nil
	}
	if len(lines) > maxHostLines {
		return h.errorf("host %s has %d lines of share in its regions and pools: at most %d can be held against each other", h.title(), len(lines), maxHostLines)
	}
	for _, t := range moments(lines, beginning) {
		if err := c.at(t); err != nil {
			return err
		}
	}
	return nil
}

func all[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !is(v) })
}

// gather collects everything a client can be left with.
func (c *shareCheck) gather() {
	add := func(regions []string, of string) {
		pooled := slices.DeleteFunc(slices.Clone(regions), func(n string) bool { return c.h.poolOf(n) == nil })
		c.lists = append(c.lists, shareList{pooled, of})
	}
	add(c.b.regionNames(), "host "+c.h.title())
	rules := c.b.rulesOf(c.h)
	for i := range rules {
		add(c.b.candidates(&rules[i]), "the list at "+rules[i].String()+" for host "+c.h.title())
	}
	for _, f := range c.b.Fences {
		add(f.Regions, "the fence at "+f.String()+" for host "+c.h.title())
	}
}

// at checks the shares in force at t.
func (c *shareCheck) at(t time.Time) error {
	inForce := map[string]*Share{}
	var list []*Share
	for _, p := range c.h.Pools {
		l := c.pools[p.Region]
		if s := l.shareAt(t); s != nil {
			inForce[p.Region] = s
			list = append(list, s)
		}
	}
	for _, l := range c.lists {
		if len(l.regions) > 0 && all(l.regions, func(n string) bool { return inForce[n] != nil }) {
			return c.leavesNothing(inForce[l.regions[0]], l, since(list, t))
		}
	}
	return c.sum(list, since(list, t))
}

// leavesNothing is the error about a list without an ordinary candidate.
func (c *shareCheck) leavesNothing(s *Share, l shareList, since string) error {
	if len(c.h.Pools) == 1 {
		return s.errorf("a share of region %q, the only one with a pool of host %s: the clients it leaves would get nothing; give the host another pool, or write `share off` in this one",
			l.regions[0], c.h.title())
	}
	return s.errorf("every region of %s (%s) has a share%s, so the clients that shares leave would get nothing: leave one without a share", l.of, oneOf(l.regions), since)
}

// sum holds that no client can be in shares of more than 100%.
func (c *shareCheck) sum(list []*Share, since string) error {
	sum := 0.0
	for _, s := range list {
		sum += s.Percent
	}
	if sum < 100.005 { // what two decimals can't be
		return nil
	}
	if len(list) > maxSharesAt {
		return list[maxSharesAt].errorf("host %s has %d shares of together %.6g%%%s: at most %d such can be held against each other", c.h.title(), len(list), sum, since, maxSharesAt)
	}
	sum, which := c.heaviest(list)
	if sum < 100.005 {
		return nil
	}
	var others []string
	for _, s := range which[1:] {
		others = append(others, s.String())
	}
	return which[0].errorf("the shares of host %s add up to %.6g%%%s, with those at %s: at most 100%% can be given", c.h.title(), sum, since, oneOf(others))
}

// heaviest gives the shares of the greatest sum that one client can be in.
func (c *shareCheck) heaviest(list []*Share) (sum float64, which []*Share) {
	if len(list) == 0 {
		return 0, nil
	}
	first := list[0]
	with := slices.DeleteFunc(slices.Clone(list[1:]), func(s *Share) bool { return !c.meet(first.Area, s.Area) })
	sum, which = c.heaviest(with)
	sum, which = sum+first.Percent, append([]*Share{first}, which...)
	if len(with) < len(list)-1 { // else leaving the first out gains nothing
		if other, without := c.heaviest(list[1:]); other > sum {
			return other, without
		}
	}
	return sum, which
}

// meet reports whether a client can be in both areas; empty is everywhere.
// What only data can tell is taken as possible, and so is what takes too long.
func (c *shareCheck) meet(x, y string) bool {
	if x == y || x == "" || y == "" {
		return true
	}
	key := [2]string{x, y}
	is, known := c.meets[key]
	if !known {
		xs, _ := c.b.lines([]string{x}, maxConjunctions) // known to be within the limit
		ys, _ := c.b.lines([]string{y}, maxConjunctions)
		is = len(xs)*len(ys) > maxConjunctions || slices.ContainsFunc(xs, func(m Match) bool {
			return slices.ContainsFunc(ys, m.meets)
		})
		c.meets[key] = is
	}
	return is
}

// meets reports whether a client can match both m and other.
func (m Match) meets(other Match) bool {
	return all(m.Alts, func(a Alt) bool {
		return all(other.Alts, func(c Alt) bool { return !disjoint(a, c) })
	})
}

// beginning is before every time that can be written.
var beginning = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// since says when the shares are in force together, t being one such time; empty
// if always.
func since(list []*Share, t time.Time) string {
	var until time.Time
	open, recurs := true, false
	for _, s := range list {
		open = open && s.When == When{}
		recurs = recurs || s.When.Daily != nil
		until = earlier(until, s.When.Until)
	}
	switch {
	case open:
		return ""
	case recurs && t.Before(beginning.Add(2*week)):
		return t.Format(" on Mon at 15:04Z")
	case t.Equal(beginning):
		return " until " + until.Format(time.RFC3339)
	}
	return " at " + t.Format(time.RFC3339)
}

// moments gives an instant of every state from first on that the schedules can
// be in together: first, and each change in the eight days after a beginning
// or an end.
func moments(list []When, first time.Time) []time.Time {
	bases := []time.Time{first}
	for _, w := range list {
		for _, t := range []time.Time{w.From, w.Until} {
			if t.After(first) {
				bases = append(bases, t)
			}
		}
	}
	all := slices.Clone(bases)
	for _, w := range list {
		if w.Daily == nil {
			continue
		}
		for _, base := range bases {
			for t := w.Next(base); !t.IsZero() && t.Before(base.Add(week+day)); t = w.Next(t) {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}
