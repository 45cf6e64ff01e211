package probe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// TestEditedCheck: whoever edits a check in the middle of an outage does not
// bring dead endpoints back, nor ends a hold that waits for an operator.
func TestEditedCheck(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*check.Check)
	}{
		{"timeout", func(c *check.Check) { c.Timeout /= 2 }},
		{"interval and fall", func(c *check.Check) { c.Interval, c.Fall = 2*c.Interval, 7 }},
		{"path", func(c *check.Check) { c.Path = "/other" }},
	} {
		for _, manual := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet()
					s := NewScheduler(f.options())
					defer s.Close()
					before := rules(func(c *check.Check) { c.Name, c.Manual = "web", manual })
					f.set(addrOf(0), resultOf('f'))
					old := acquire(t, s, before, 0)
					after(10 * before.Interval)
					if old.State().Verdict != VerdictDown {
						t.Fatalf("it is %s", old.State().Verdict)
					}
					edited := *before
					tc.edit(&edited)
					p := acquire(t, s, &edited, 0)
					if got := p.State(); got.Assumed != VerdictDown || got.Waiting != manual {
						t.Errorf("after the edit: %+v", got)
					}
					other := *before
					other.Name, other.Path = "db", "/db"
					if got := acquire(t, s, &other, 0).State(); got.Assumed != VerdictUp {
						t.Errorf("another check: %+v", got)
					}
				})
			})
		}
	}
}

// TestIsolationWindow: turns count within one interval of their own check.
func TestIsolationWindow(t *testing.T) {
	for _, tc := range []struct {
		name     string
		interval time.Duration
		apart    time.Duration
		isolated bool
	}{
		{"one by one, intervals apart", time.Second, 5 * time.Second, false},
		{"within one long interval", 40 * time.Second, 12 * time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet()
				o := f.options()
				o.Beacons = []Target{{Addr: addrOf(99), Port: 80}}
				o.Beacon = f.probe
				f.set(addrOf(99), resultOf('f'))
				s := NewScheduler(o)
				defer s.Close()
				c := rules(func(c *check.Check) { c.Interval, c.Timeout, c.Fall = tc.interval, tc.interval/4, 1 })
				for i := range 3 {
					acquire(t, s, c, i)
				}
				after(2 * tc.interval)
				g := &s.guard
				for i := range 2 { // the turns of two of three, as their probes tell them
					s.mu.Lock()
					g.turned[c.Interval] = append(g.turned[c.Interval], turn{probe: s.probes[KeyOf(c, Target{Addr: addrOf(i)})], at: s.now()})
					n := g.recent(s.now())
					s.mu.Unlock()
					if want := 1 + i; tc.isolated && n != want || !tc.isolated && n != 1 {
						t.Errorf("turn %d: %d count", i, n)
					}
					after(tc.apart)
				}
			})
		})
	}
}
