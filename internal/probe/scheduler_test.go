package probe

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

func TestSchedulerStartIsSpread(t *testing.T) {
	starts := func(interval time.Duration) (all []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet()
			s := NewScheduler(f.options())
			defer s.Close()
			begin := time.Now()
			c := rules(func(c *check.Check) { c.Interval = interval })
			const n = 500
			for i := range n {
				acquire(t, s, c, i)
			}
			after(min(interval, 10*time.Second) + tick)
			for i := range n {
				times := f.times(i)
				if len(times) == 0 {
					t.Fatalf("endpoint %d has not been probed", i)
				}
				all = append(all, times[0].Sub(begin))
			}
		})
		return all
	}
	for _, interval := range []time.Duration{3 * time.Second, 10 * time.Second, time.Hour} {
		first := starts(interval)
		if again := starts(interval); !slices.Equal(first, again) {
			t.Errorf("interval %s: a restart is spread otherwise", interval)
		}
		tenths := [10]int{}
		for _, d := range first {
			tenths[min(9, 10*d/min(interval, 10*time.Second))]++
		}
		t.Logf("interval %s: starts by tenth: %v", interval, tenths)
		for _, n := range tenths {
			if n < 25 || n > 80 {
				t.Errorf("interval %s: starts by tenth: %v", interval, tenths)
			}
		}
	}
}

func TestSchedulerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(nil)
		for i := range 50 {
			acquire(t, s, c, i)
		}
		const rounds = 100
		after(rounds * c.Interval)
		jitters := map[time.Duration]bool{}
		for i := range 50 {
			times := f.times(i)
			if len(times) < rounds-1 || len(times) > rounds+1 {
				t.Fatalf("%d probes in %d intervals", len(times), rounds)
			}
			for k, at := range times {
				off := at.Sub(times[0]) - time.Duration(k)*c.Interval
				if off < -c.Interval/20 || off > c.Interval/20+tick {
					t.Errorf("endpoint %d, round %d is off by %s", i, k, off)
				}
				jitters[off] = true
			}
		}
		t.Logf("%d jitters", len(jitters))
		if len(jitters) < 2000 {
			t.Errorf("only %d jitters", len(jitters))
		}
		if stats := s.Stats(); stats.Endpoints != 50 || stats.Running != 0 || stats.Late != 0 || stats.Begun < 50*(rounds-1) {
			t.Errorf("%+v", stats)
		}
	})
}

// TestSchedulerSlowProbe has probes take all of their interval: each is
// followed by the next at once, and none is left out.
func TestSchedulerSlowProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(func(c *check.Check) { c.Timeout = c.Interval })
		f.slow(0, c.Interval)
		acquire(t, s, c, 0)
		after(102 * c.Interval)
		if n := len(f.times(0)); n < 100 {
			t.Errorf("%d probes in 102 intervals", n)
		}
	})
}

func TestSchedulerShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		one, two := rules(nil), rules(func(c *check.Check) { c.Name = "other name" })
		other := rules(func(c *check.Check) { c.Path = "/healthz" })
		get := func(c *check.Check, addr string, name, user string) *Probe {
			p, err := s.Acquire(c, Target{Addr: netip.MustParseAddr(addr), Name: name}, user)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := get(one, "192.0.2.1", "a.example.com", "a")
		if q := get(two, "::ffff:192.0.2.1", "b.example.com", "b"); q != p {
			t.Error("the same is probed twice")
		}
		get(one, "192.0.2.1", "", "a")
		if q := get(other, "192.0.2.1", "", "a"); q == p {
			t.Error("another check is not probed apart")
		}
		if q := get(one, "2001:db8::1", "", "a"); q == p {
			t.Error("IPv6 is not probed apart")
		}
		if users := p.State().Users; !slices.Equal(users, []string{"a", "b"}) {
			t.Errorf("users %q", users)
		}
		if p.Check() != one || f.made != 2 {
			t.Errorf("check %q, %d runners", p.Check().Name, f.made)
		}
		after(5 * one.Interval)
		if n := len(f.begun[p.Target()]); n < 4*2 || n > 6*2 { // of two checks
			t.Errorf("%d probes", n)
		}
		for _, user := range []string{"a", "a", "a", "nobody"} {
			p.Release(user)
		}
		if users := p.State().Users; !slices.Equal(users, []string{"b"}) || s.Stats().Endpoints != 3 {
			t.Errorf("users %q, %+v", users, s.Stats())
		}
		p.Release("b")
		p.Release("b")
		if s.Stats().Endpoints != 2 || f.closed != 0 {
			t.Errorf("%+v, %d runners closed", s.Stats(), f.closed)
		}
		if _, err := s.Acquire(rules(func(c *check.Check) { c.Kind = check.ICMP }), Target{}, "a"); err == nil {
			t.Error("no error")
		}
	})
}

func TestSchedulerRunnerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		c := rules(nil)
		p, q := acquire(t, s, c, 0), acquire(t, s, c, 1)
		p.Release("api.example.com")
		if f.closed != 0 {
			t.Error("closed in use")
		}
		q.Release("api.example.com")
		if f.closed != 1 {
			t.Error("not closed")
		}
		acquire(t, s, c, 0)
		s.Close()
		s.Close()
		if f.made != 2 || f.closed != 2 {
			t.Errorf("%d made, %d closed", f.made, f.closed)
		}
		if _, err := s.Acquire(c, Target{Addr: addrOf(0)}, "late"); err == nil {
			t.Error("acquired after Close")
		}
	})
}

// TestSchedulerDetects measures the time from an outage to the notice of it.
func TestSchedulerDetects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(nil)
		p := acquire(t, s, c, 0)
		after(5*c.Interval + 3*time.Second)
		if st := p.State(); st.Verdict != VerdictUp || !st.Probed || st.Streak {
			t.Fatalf("%+v", st)
		}
		f.set(addrOf(0), resultOf('f'))
		f.slow(0, c.Timeout)
		outage := time.Now()
		after(time.Duration(c.Fall)*c.Interval + c.Timeout + c.Interval)
		if st := p.State(); st.Verdict != VerdictDown || st.Notes[0].Reason != "refused" {
			t.Errorf("%+v", st)
		}
		last := f.lastNotice()
		if n := last.Changes[0]; len(last.Changes) != 1 || n.Probe != p || n.Old.Verdict != VerdictUp || n.New.Verdict != VerdictDown {
			t.Errorf("told %+v", last)
		}
		told := f.lastTold()
		if d := told.Sub(p.State().Since.Add(c.Timeout)); d > 10*time.Millisecond { // since is when the probe began
			t.Errorf("told after %s", d)
		}
		t.Logf("found after %s", told.Sub(outage))
	})
}

// TestSchedulerKnowsSoon has a process start with dead endpoints.
func TestSchedulerKnowsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		f.set(addrOf(0), resultOf('f'))
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(nil)
		p := acquire(t, s, c, 0)
		after(c.Interval + 2*time.Second + 4*tick)
		if v := p.State().Verdict; v != VerdictDown {
			t.Errorf("%s", v)
		}
		after(3 * c.Interval)
		if n := len(f.times(0)); n < 5 || n > 7 {
			t.Errorf("%d probes", n)
		}
	})
}

func TestSchedulerRetry(t *testing.T) {
	for _, second := range []rune{'p', 'f'} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet()
			s := NewScheduler(f.options())
			defer s.Close()
			c := rules(func(c *check.Check) { c.Retry, c.Fall = true, 1 })
			p := acquire(t, s, c, 0)
			after(c.Interval)
			first := len(f.times(0))
			f.set(addrOf(0), resultOf('f'))
			for len(f.times(0)) == first {
				after(tick)
			}
			if v := p.State().Verdict; v != VerdictUp {
				t.Fatalf("a failure counted at once: %s", v)
			}
			f.set(addrOf(0), resultOf(second))
			after(time.Second + tick)
			times := f.times(0)[first:]
			if len(times) != 2 || times[1].Sub(times[0]) < time.Second || times[1].Sub(times[0]) > time.Second+2*tick {
				t.Fatalf("probes at %v", times)
			}
			want := map[rune]Verdict{'p': VerdictUp, 'f': VerdictDown}[second]
			if v := p.State().Verdict; v != want {
				t.Errorf("%c: %s", second, v)
			}
			after(c.Interval * 11 / 10)
			if n := len(f.times(0)[first:]); second == 'p' && n != 3 {
				t.Errorf("%d probes: the retry moved the slots", n)
			}
		})
	}
}

func TestSchedulerCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(func(c *check.Check) { c.Interval, c.Timeout, c.Fall = time.Second, time.Second/2, 1 })
		const n = 3000
		for i := range n {
			acquire(t, s, c, i)
		}
		after(2 * time.Second)
		f.setAll(n, resultOf('f'))
		before := len(f.notices())
		after(1200 * time.Millisecond)
		notices := f.notices()[before:]
		down := map[*Probe]bool{}
		for _, n := range notices {
			for _, c := range n.Changes {
				down[c.Probe] = c.New.Verdict == VerdictDown
			}
		}
		if len(down) != n || slices.Contains(slices.Collect(maps.Values(down)), false) {
			t.Errorf("%d told", len(down))
		}
		t.Logf("%d notices of %d changes", len(notices), n)
		if len(notices) > 300 {
			t.Errorf("%d notices of %d changes", len(notices), n)
		}
	})
}

func TestSchedulerReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		s := NewScheduler(f.options())
		defer s.Close()
		c := rules(func(c *check.Check) { c.Manual, c.Fall, c.Rise = true, 1, 1 })
		f.set(addrOf(0), resultOf('f'))
		p := acquire(t, s, c, 0)
		after(c.Interval)
		f.set(addrOf(0), resultOf('p'))
		after(10 * c.Interval)
		if st := p.State(); st.Verdict != VerdictDown || !st.Waiting {
			t.Errorf("%+v", st)
		}
		p.Return()
		if st := p.State(); st.Verdict != VerdictUp || st.Waiting {
			t.Errorf("%+v", st)
		}
	})
}

// TestSchedulerRestart hands what is known from one scheduler to the next.
func TestSchedulerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		c := rules(nil)
		s := NewScheduler(f.options())
		f.set(addrOf(0), resultOf('f'))
		acquire(t, s, c, 0)
		acquire(t, s, c, 1)
		after(time.Minute)
		saved := s.Saved()
		s.Close()
		if len(saved) != 2 {
			t.Fatalf("saved %v", saved)
		}
		after(time.Minute)
		opts := f.options()
		opts.Saved = saved
		s = NewScheduler(opts)
		defer s.Close()
		p := acquire(t, s, c, 0)
		if st := p.State(); st.Verdict != VerdictUnknown || st.Assumed != VerdictDown || st.LastAt.IsZero() {
			t.Errorf("%+v", st)
		}
		if again := s.Saved(); len(again) != 2 || again[p.Key().String()].Verdict != VerdictDown {
			t.Errorf("saved again: %v", again)
		}
		after(c.Interval)
		if st := p.State(); st.Verdict != VerdictDown {
			t.Errorf("after the first probe: %+v", st)
		}
	})
}
