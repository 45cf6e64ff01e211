package gslb

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/control"
)

// saidOfLoad is what the log has said of loads and of the law, so that each thing is said
// once when it begins and once when it ends.
type saidOfLoad struct {
	unread map[sinkKey]time.Time // their load can't be read, and when that was so last
	damped map[sinkKey]bool
	over   bool      // there is a deficit
	since  time.Time // since when there is, said or not; zero: there is none
}

// tell logs what has changed with the last step: loads that can't be read, regions that
// are damped, and a deficit.
func (l *law) tell(now time.Time) {
	if l.out == nil {
		return
	}
	unread, damped := make(map[sinkKey]time.Time), make(map[sinkKey]bool) // whatever is gone is forgotten
	for i := range l.sinks.list {
		key, o := l.sinks.keys[i], &l.out.Sinks[i]
		err := l.unreadable(i, now)
		last, known := l.said.unread[key]
		switch {
		case err != nil:
			unread[key] = now
			if !known {
				log.Warningf("Load of %s can't be read: %v; the last good one counts for less as it gets old, and is never taken for no load", key, err)
			}
		case known && now.Sub(last) < l.steady(i):
			unread[key] = last
		case known:
			log.Infof("Load of %s is read again", key)
		}
		if damped[key] = o.Damped; o.Damped != l.said.damped[key] {
			if o.Damped {
				log.Warningf("%s", dampedText(key, o.Lump))
			} else {
				log.Infof("The law of capacity no longer damps %s", key)
			}
		}
	}
	l.said.unread, l.said.damped = unread, damped
	l.tellDeficit(now)
}

// steady is how long a load must be read until it is said that it is read again: a source
// that fails every other time must not fill the log.
func (l *law) steady(i int) time.Duration {
	every := lawEvery
	if levers := l.sinks.sums[i].levers; levers != nil && levers.Load != nil {
		every = max(every, levers.Load.Every)
	}
	return 3 * every
}

// tellDeficit logs that there is a deficit, once it has stood for the loop's delay: while clients move,
// loads may look like more of them. That it is over is logged at once.
func (l *law) tellDeficit(now time.Time) {
	over := l.out.Deficit > 0.001*l.out.Demand
	switch {
	case !over:
		l.said.since = time.Time{}
	case l.said.since.IsZero():
		l.said.since = now
	}
	switch {
	case over && !l.said.over && now.Sub(l.said.since) >= l.out.Delay:
		l.said.over = true
		log.Errorf("Demand of %.4g is %.4g more than all regions are to take together: those that are usable share it equally, above their targets; whom none can take gets the last resort", l.out.Demand, l.out.Deficit)
	case !over && l.said.over:
		l.said.over = false
		log.Infof("All demand fits again")
	}
}

// warnings are what somebody should see of the last step.
func (l *law) warnings(now time.Time) (list []string) {
	if l.out == nil {
		return nil
	}
	for i := range l.sinks.list {
		key, o := l.sinks.keys[i], &l.out.Sinks[i]
		if err := l.unreadable(i, now); err != nil {
			list = append(list, fmt.Sprintf("load of %s can't be read: %v", key, err))
		}
		if o.Damped {
			list = append(list, dampedText(key, o.Lump))
		}
	}
	return list
}

// unreadable is why the load of a sink that has one can't be read; nil: it can, or
// nothing has been read yet.
func (l *law) unreadable(i int, now time.Time) error {
	levers := l.sinks.sums[i].levers
	if levers == nil || levers.Capacity == nil || levers.Load == nil {
		return nil
	}
	t, _ := l.signals.total(l.sinks.keys[i], levers.Capacity.Score, now)
	switch {
	case t.Err != nil:
		return t.Err
	case l.out.Sinks[i].Refused:
		c := levers.Capacity
		switch doubtful := t.Value > capacity.DoubtfulLoad*c.Value; {
		case !c.Score && !doubtful && t.Value >= 0: // one that came after the step
			return nil
		case !c.Score && doubtful && t.Value <= capacity.AbsurdLoad*c.Value:
			return fmt.Errorf("%g is far above the capacity of %g, and is believed once it has stood for a period", t.Value, c.Value)
		}
		return fmt.Errorf("%g can't be a load", t.Value)
	}
	return nil
}

// lastLoad is the load of a sink that the law goes by, and its age: the last that can be one.
// That of a sensor which is stuck is as old as the first of that value. Without any it is not ok.
func (l *law) lastLoad(i int, now time.Time) (load float64, age time.Duration, ok bool) {
	m := &l.state.Sinks[i]
	return m.Load, max(0, now.Sub(m.LoadAt)), !m.LoadAt.IsZero()
}

// dampedText says that the law damps a region, why, and what ends that.
func dampedText(key sinkKey, lump float64) string {
	return fmt.Sprintf("The law of capacity damps %s: its load jumped by %.4g again and again by itself, as one very large resolver makes it, "+
		"so what has left it stays away until there is room for that; any change with gslbctl ends it", key, lump)
}

// tellOverrides logs what operators have changed.
func tellOverrides(before *control.Overrides, p *control.Publication) {
	for _, o := range p.Next.All() {
		if before.Find(o.ID) != nil {
			continue
		}
		until := "until " + o.Until.UTC().Format(time.RFC3339)
		if o.Never {
			until = "until it is cancelled"
		}
		log.Infof("Override %s by %s: %s of %s is %s, was %s, %s: %s", o.ID, o.By, o.Lever, o.Object, o.Value, o.Previous, until, oneLine(o.Why))
	}
	for _, o := range before.All() {
		if p.Next.Find(o.ID) == nil {
			log.Infof("Override %s (%s of %s is %s) is over: %s", o.ID, o.Lever, o.Object, o.Value, oneLine(p.Ended[o.ID]))
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
