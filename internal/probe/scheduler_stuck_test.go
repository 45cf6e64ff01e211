package probe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// TestSchedulerStuckProber has a prober that never returns.
func TestSchedulerStuckProber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(func(c *check.Check) { c.Initial = check.InitialDown; c.Rise = 1 })
		p, other := acquire(t, s, c, 0), acquire(t, s, c, 1)
		after(c.Interval)
		last := p.State().LastAt
		hang := make(chan struct{})
		f.stick(0, hang)

		after(time.Until(last.Add(3*c.Interval + c.Timeout)))
		if st := p.State(); st.Verdict != VerdictUp {
			t.Errorf("before the bound: %s", st.Verdict)
		}
		if stats := s.Stats(); stats.Lost != 1 || stats.Overran != 1 || stats.Running != 0 {
			t.Errorf("%+v", stats)
		}
		after(5 * time.Millisecond)
		if st := p.State(); st.Verdict != VerdictUnknown || st.Assumed != VerdictDown || !st.LastAt.Equal(last) {
			t.Errorf("after the bound: %+v", st)
		}
		begun := len(f.times(0))
		after(time.Hour)
		if len(f.times(0)) != begun {
			t.Error("probed again while a probe is stuck")
		}
		if n := len(f.times(1)); other.State().Verdict != VerdictUp || n < 360 {
			t.Errorf("the other is %s after %d probes", other.State().Verdict, n)
		}
		f.set(addrOf(0), resultOf('f'))
		f.stick(0, nil)
		close(hang) // the stuck probe passes, an hour late; that which follows at once fails
		after(5 * time.Millisecond)
		if st := p.State(); st.Verdict != VerdictDown || !st.Since.After(last.Add(time.Hour)) || s.Stats().Lost != 0 {
			t.Errorf("once it runs again: %+v, %+v", st, s.Stats())
		}
		for _, n := range f.notices()[2:] {
			if n.Changes[0].New.Verdict == VerdictUp {
				t.Error("what came an hour late counted")
			}
		}
	})
}

// TestSchedulerLateResult has a prober return after it was given up, but before
// its result would be too old.
func TestSchedulerLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		first, second := make(chan struct{}), make(chan struct{})
		defer close(second)
		f.stick(0, first)
		c := rules(nil)
		p := acquire(t, s, c, 0)
		for s.Stats().Lost == 0 {
			after(tick)
		}
		f.stick(0, second)
		close(first)
		after(5 * time.Millisecond)
		if st := p.State(); st.Probed || st.Verdict != VerdictUnknown || s.Stats().Lost != 0 {
			t.Errorf("%+v, %+v", st, s.Stats())
		}
	})
}

// TestSchedulerLastAges has what is taken for down by its last verdict become
// what is taken for up when that is too old, while the prober is stuck.
func TestSchedulerLastAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		hang := make(chan struct{})
		defer close(hang)
		f.stick(0, hang)
		opts := f.options()
		c := rules(nil)
		now := time.Now()
		key := KeyOf(c, Target{Addr: addrOf(0)}).String()
		opts.Saved = map[string]Saved{key: {Verdict: VerdictDown, At: now.Add(-5 * time.Minute)}}
		s := NewScheduler(opts)
		defer s.Close()
		p := acquire(t, s, c, 0)
		after(5 * time.Minute)
		if st := p.State(); st.Verdict != VerdictUnknown || st.Assumed != VerdictDown || st.Probed {
			t.Errorf("%+v", st)
		}
		after(10 * time.Millisecond)
		if st := p.State(); st.Assumed != VerdictUp {
			t.Errorf("%+v", st)
		}
		if len(f.notices()) != 1 {
			t.Errorf("told %d times", len(f.notices()))
		}
	})
}

func TestSchedulerConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		opts := f.options()
		opts.Concurrency = 10
		var worst atomic.Int64
		opts.Observed = func(_ *Probe, _ Result, late time.Duration) { worst.Store(max(worst.Load(), int64(late))) }
		s := NewScheduler(opts)
		defer s.Close()
		c := rules(nil)
		const n = 100 // for 2 s each within 10 s: 20 are needed
		for i := range n {
			f.slow(i, 2*time.Second)
			acquire(t, s, c, i)
		}
		after(60 * c.Interval)
		t.Logf("%+v, late by %s", s.Stats(), time.Duration(worst.Load()))
		if stats := s.Stats(); f.most != 10 || stats.Late < 1000 || worst.Load() < int64(time.Second) {
			t.Errorf("%d at once, %+v, late by %s", f.most, stats, time.Duration(worst.Load()))
		}
		for i := range n {
			if got := len(f.times(i)); got < 28 || got > 32 {
				t.Errorf("endpoint %d was probed %d times, want half of 60", i, got)
			}
		}
	})
}

// TestSchedulerStuckProbersFreeTheirSlots has more stuck probers than slots.
func TestSchedulerStuckProbersFreeTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		opts := f.options()
		opts.Concurrency = 2
		s := NewScheduler(opts)
		defer s.Close()
		hang := make(chan struct{})
		defer close(hang)
		c := rules(nil)
		for i := range 8 {
			if i < 5 {
				f.stick(i, hang)
			}
			acquire(t, s, c, i)
		}
		after(60 * time.Second)
		if stats := s.Stats(); stats.Lost != 5 || stats.Running != 0 || stats.Waiting != 0 {
			t.Errorf("%+v", stats)
		}
		for i := 5; i < 8; i++ {
			if n := len(f.times(i)); n < 4 {
				t.Errorf("endpoint %d was probed %d times", i, n)
			}
		}
	})
}

func TestSchedulerReleaseWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(nil)
		f.slow(0, 2*time.Second)
		f.set(addrOf(0), resultOf('f'))
		p := acquire(t, s, c, 0)
		for s.Stats().Running == 0 {
			after(tick)
		}
		p.Release("api.example.com")
		after(time.Minute)
		if stats := s.Stats(); stats.Running != 0 || stats.Endpoints != 0 || p.State().Probed {
			t.Errorf("%+v, %+v", stats, p.State())
		}
		if n := len(f.times(0)); n != 1 {
			t.Errorf("%d probes", n)
		}
		if q := acquire(t, s, c, 0); q == p || q.State().Verdict != VerdictUnknown {
			t.Error("what is known outlived the release")
		}
	})
}

func TestSchedulerReleaseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		opts := f.options()
		opts.Concurrency = 1
		s := NewScheduler(opts)
		defer s.Close()
		c := rules(nil)
		hang := make(chan struct{})
		defer close(hang)
		var probes []*Probe
		for i := range 20 {
			f.stick(i, hang)
			probes = append(probes, acquire(t, s, c, i))
		}
		for s.Stats().Waiting < 2 {
			after(tick)
		}
		for _, p := range probes {
			p.Release("api.example.com")
		}
		if stats := s.Stats(); stats.Waiting != 0 || stats.Endpoints != 0 {
			t.Errorf("%+v", stats)
		}
		after(time.Minute)
		if stats := s.Stats(); stats.Running != 0 || stats.Begun > 2 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestSchedulerCloseWaits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stuck bool
		want  time.Duration
	}{{"returns when told", false, 0}, {"stuck", true, 4 * time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet()
				s := NewScheduler(f.options())
				hang := make(chan struct{})
				defer close(hang)
				c := rules(nil)
				f.slow(0, c.Timeout)
				if tt.stuck {
					f.stick(0, hang)
				}
				acquire(t, s, c, 0)
				for s.Stats().Running == 0 {
					after(tick)
				}
				begin := time.Now()
				s.Close()
				if took := time.Since(begin); took != tt.want {
					t.Errorf("took %s", took)
				}
				if n := len(f.notices()); n != 0 {
					t.Errorf("told %d times", n)
				}
			})
		})
	}
}

func TestSchedulerPanickingProber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler(Options{New: func(*check.Check) (*Runner, error) {
			return &Runner{Probe: func(context.Context, Target) Result { panic("oh") }, Close: func() {}}, nil
		}})
		defer s.Close()
		p := acquire(t, s, rules(nil), 0)
		after(time.Minute)
		if st := p.State(); st.Verdict != VerdictUnknown || st.Notes[0].Reason != "the prober panicked: oh" {
			t.Errorf("%+v", st)
		}
	})
}

// TestSchedulerRaces acquires, reads and releases from many goroutines.
func TestSchedulerRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		opts := f.options()
		opts.Concurrency = 5
		s := NewScheduler(opts)
		c := rules(func(c *check.Check) { c.Interval, c.Timeout = time.Second, time.Second/4 })
		for i := range 40 {
			f.slow(i, 20*time.Millisecond)
		}
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				user := fmt.Sprint("generation ", g)
				for range 20 {
					var held []*Probe
					for i := range 40 {
						p, err := s.Acquire(c, Target{Addr: addrOf((i*7 + g) % 40)}, user)
						if err != nil {
							t.Error(err)
							return
						}
						held = append(held, p)
					}
					time.Sleep(time.Duration(300+g*50) * time.Millisecond)
					s.Saved()
					for _, p := range held {
						if st := p.State(); !slices.Contains(st.Users, user) {
							t.Error("a user is missing")
						}
						p.Return()
						p.Release(user)
					}
				}
			})
		}
		all.Wait()
		if stats := s.Stats(); stats.Endpoints != 0 || stats.Waiting != 0 || stats.Begun == 0 {
			t.Errorf("%+v", stats)
		}
		s.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.queue) != 0 {
			t.Errorf("%d still queued", len(s.queue))
		}
	})
}
