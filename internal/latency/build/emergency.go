package build

import "math"

// waiter is a leaf that waits for the prefixes around it: for evidence, or, once it is decided,
// for what they show of the newest days, of which its own measurements are too few.
type waiter struct {
	at      int
	allowed uint64 // regions that it may get
	decided bool
	own     [recentDays]denial
	open    uint8 // days, newest first, of which nothing is known yet

	stopgap   bool   // it is an emergency by all days, as long as no day is known
	otherwise reason // that it has without that
}

// denial is what a leaf's own measurements of a day say against an emergency around it.
type denial struct {
	notSlower uint64  // regions than which the one in use surely isn't slower by emergencyGap
	failed    float32 // the most that the one in use fails there, as a part of all
}

// What chance does to a day. It must neither hide an emergency nor make one up, so margin is about
// three standard errors as a multiple of the 95 % interval. Of fewer than fewest samples the p75 has
// no such interval: its upper rank would be beyond them.
const (
	margin       = 1.5
	fewest       = 12
	failedErrors = 3 // standard errors of a failed part
)

// newWaiter makes a waiter of a leaf, while its node has its measurements.
func (c *chooser) newWaiter(at int, n *node) waiter {
	l := &c.leaves[at]
	w := waiter{at: at, allowed: l.spread, open: uint8(c.views - c.first)}
	cur := l.current()
	if cur == none {
		return w
	}
	for i := range w.open {
		stats := n.stats[c.first+int(i)]
		slow, own := &stats[cur], &w.own[i]
		own.failed = float32(slow.mostFailed())
		for r := range stats {
			fast := &stats[r]
			if slow.n >= fewest && fast.n >= fewest && !muchSlower(slow, fast) {
				own.notSlower |= 1 << r
			}
		}
	}
	return w
}

// mostFailed is the upper bound of the failed part (Wilson, 1927).
func (s *stat) mostFailed() float64 {
	n, z := s.n+s.failed, float64(failedErrors*failedErrors)
	if n == 0 {
		return 1
	}
	p := s.failed / n
	return (p + z/(2*n) + math.Sqrt(z*(p*(1-p)/n+z/(4*n*n)))) / (1 + z/n)
}

// gap is how much slower a region is than another, in milliseconds, and how much less and more
// that may be by chance (95 %).
func gap(slow, fast *stat) (ms, less, more float64) {
	return slow.p75 - fast.p75, math.Hypot(slow.p75-slow.low, fast.high-fast.p75), math.Hypot(slow.high-slow.p75, fast.p75-fast.low)
}

// muchSlower tells whether a region may be slower than another by emergencyGap.
func muchSlower(slow, fast *stat) bool {
	ms, _, more := gap(slow, fast)
	sketched := Accuracy * (slow.p75 + fast.p75)
	return ms+margin*more+sketched >= max(emergencyGap, tolerance(fast.p75))
}

// muchWorse tells whether a region fails, or is slower than the best by emergencyGap.
func (e *evidence) muchWorse(cur uint8) bool {
	fast := e.stats[e.best].p75
	return e.failing>>cur&1 == 1 || e.stats[cur].p75-fast >= max(emergencyGap, tolerance(fast))
}

// isUrgent tells whether a region must be left at once for what a node shows of a day: it fails,
// it is slower than the best by emergencyGap, or may be so and surely has become slower, by more
// than tolerance: what was always there is left to the usual choice and its budget.
func (c *chooser) isUrgent(cur uint8, e *evidence, n *node, view int) bool {
	slow, fast := &e.stats[cur], &e.stats[e.best]
	ms, less, _ := gap(slow, fast)
	return e.muchWorse(cur) || muchSlower(slow, fast) && ms-less > tolerance(fast.p75) && c.rose(cur, e, n, view)
}

// rose tells whether a gap to the best is larger by more than margin than on all days, or on a day
// before it.
func (c *chooser) rose(cur uint8, e *evidence, n *node, view int) bool {
	ms, less, _ := gap(&e.stats[cur], &e.stats[e.best])
	for v := range c.views {
		slow, fast := &n.stats[v][cur], &n.stats[v][e.best]
		if v != allDays && v <= view || min(slow.n, fast.n) < fewest {
			continue
		}
		if before, _, more := gap(slow, fast); ms-before > margin*math.Hypot(less, more) {
			return true
		}
	}
	return false
}

// denies tells whether a leaf's own measurements contradict the urgency of what is around it.
func (d *denial) denies(e *evidence, cur uint8) bool {
	if s := &e.stats[cur]; e.failing>>cur&1 == 1 {
		return float64(d.failed) < s.failed/(s.n+s.failed)
	}
	return d.notSlower>>e.best&1 == 1
}

// stopgap makes an emergency of what all days show, until a day is known; calmDown ends that.
func (c *chooser) stopgap(w *waiter, e *evidence) {
	l := &c.leaves[w.at]
	if cur := l.current(); cur != none && e.enough>>cur&1 == 1 && e.muchWorse(cur) {
		w.stopgap, w.otherwise, l.why = true, l.why, urgent
		c.move(l, e)
	}
}

func (c *chooser) calmDown(w *waiter) {
	l := &c.leaves[w.at]
	if w.stopgap = false; w.otherwise != better {
		c.keep(l)
	}
	l.why = w.otherwise
}

// emergency looks in a node for the newest of a waiter's open days that has enough samples of
// the region in use and of another. It tells of that day if the region must be left for what it
// shows. Days before it are not looked at any more; those after it stay open.
func (c *chooser) emergency(w *waiter, n *node) (e evidence, view int, urgent bool) {
	cur := c.leaves[w.at].current()
	if cur == none {
		w.open = 0
	}
	for i := range w.open {
		view = c.first + int(i)
		if several(n.sure[view]) {
			continue // parts of it are unlike on that day
		}
		e = c.weigh(n.stats[view], w.allowed)
		if e.best >= 0 && e.enough>>cur&1 == 1 && several(e.enough) {
			urgent = c.isUrgent(cur, &e, n, view) && !w.own[i].denies(&e, cur)
			w.open = i
			return e, view, urgent
		}
	}
	return e, view, false
}
