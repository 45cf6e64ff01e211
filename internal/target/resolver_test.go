package target

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// told gathers what is told of changes.
type told struct {
	mu    sync.Mutex
	calls [][]Change
}

func (c *told) take(changes []Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, changes)
}

func (c *told) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

func TestResolvesOnTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.resolver(nil)
		defer r.Close()
		n.tell("lb.test. 300 CNAME b.test.", "b.test. 100 A 192.0.2.1", "b.test. 200 AAAA 2001:db8::1")
		target := acquire(t, r, "LB.test")
		after(0)
		if got := uses(target, 0); got != "192.0.2.1 2001:db8::1" || target.Name() != "lb.test." {
			t.Errorf("%s is %s", target.Name(), got)
		}
		after(time.Hour)
		for _, word := range []string{"A lb.test.", "AAAA lb.test."} {
			times := n.times(word)
			gaps := map[time.Duration]bool{}
			for i := 1; i < len(times); i++ {
				gap := times[i].Sub(times[i-1])
				gaps[gap] = true
				if gap < 100*time.Second || gap > 110*time.Second {
					t.Errorf("%s is asked again after %v", word, gap)
				}
			}
			if len(gaps) < 20 {
				t.Errorf("%s: only %d different gaps of %d", word, len(gaps), len(times))
			}
		}
		n.tell("lb.test. 100 A 192.0.2.2")
		after(110 * time.Second)
		if got := uses(target, time.Hour); got != "192.0.2.2" {
			t.Errorf("got %s: a family that is gone while the other is there is gone", got)
		}
	})
}

func TestKeepsLastGood(t *testing.T) {
	for name, answer := range map[string]func(string, message) []message{
		"servfail": func(_ string, m message) []message { return []message{code(m, 2)} },
		"silence":  func(string, message) []message { return nil },
		"nxdomain": func(_ string, m message) []message { return []message{with(code(m, 3), "test. 60 SOA 60")} },
		"nodata":   func(_ string, m message) []message { return []message{with(m, "test. 60 SOA 60")} },
		"garbage": func(_ string, m message) []message {
			return []message{with(m, "lb.test. 1 A 0.0.0.0", "lb.test. 1 AAAA ff02::1")}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			var changes told
			r := n.resolver(func(o *Options) { o.Changed = changes.take })
			defer r.Close()
			n.tell("lb.test. 60 A 192.0.2.1", "lb.test. 60 AAAA 2001:db8::1")
			target := acquire(t, r, "lb.test")
			after(time.Minute)
			confirmed := target.State().V4.At
			n.say(answer)
			const keep = 10 * time.Minute
			after(keep - time.Second - time.Since(confirmed))
			s := target.State()
			if got := uses(target, keep); got != "192.0.2.1 2001:db8::1" || s.Err == nil || s.Failures < 5 || !s.V4.Failing || !s.V6.Failing {
				t.Errorf("%s: %s before keep ends, %+v", name, got, s)
			}
			if got := uses(target, 0); got != "" {
				t.Errorf("%s: %s without keep", name, got)
			}
			if at, ok := s.Expires(time.Now(), keep); !ok || at.Sub(confirmed) != keep {
				t.Errorf("%s: expires %v after it was confirmed", name, at.Sub(confirmed))
			}
			after(time.Second)
			if got := uses(target, keep); got != "" {
				t.Errorf("%s: %s after keep", name, got)
			}
			gap, times := time.Duration(0), n.times("A lb.test.")
			for i := len(times) - 2; i < len(times); i++ { // both resolvers may have been asked in a round
				gap = max(gap, times[i].Sub(times[i-1]))
			}
			if gap < maxRetry || gap > maxRetry*11/10+2*serverTimeout {
				t.Errorf("%s: tried again after %v", name, gap)
			}
			n.tell("lb.test. 60 A 192.0.2.7", "lb.test. 60 AAAA 2001:db8::1")
			after(maxRetry * 11 / 10)
			if got, s := uses(target, keep), target.State(); got != "192.0.2.7 2001:db8::1" || s.Err != nil || s.Failures != 0 {
				t.Errorf("%s: %s once it is back, %+v", name, got, s)
			}
			after(coalesce)
			if got := changes.number(); got != 3 { // the first, failing, back
				t.Errorf("%s: %d changes told", name, got)
			}
		})
	}
}

// TestOneFamilyFails keeps what the broken family had, and follows the other.
func TestOneFamilyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.resolver(nil)
		defer r.Close()
		n.tell("lb.test. 60 A 192.0.2.1", "lb.test. 60 AAAA 2001:db8::1")
		target := acquire(t, r, "lb.test")
		after(time.Second)
		n.say(func(_ string, m message) []message {
			if asked(m) == "AAAA" {
				return []message{code(m, 2)}
			}
			return []message{with(m, "lb.test. 60 A 192.0.2.2")}
		})
		after(70 * time.Second)
		if s := target.State(); uses(target, time.Hour) != "192.0.2.2 2001:db8::1" || s.V4.Failing || !s.V6.Failing || !strings.Contains(s.Err.Error(), "AAAA: ") {
			t.Errorf("%s, %+v", uses(target, time.Hour), s)
		}
		after(time.Hour)
		if got := uses(target, time.Hour); got != "192.0.2.2" {
			t.Errorf("%s after keep", got)
		}
	})
}

func TestServersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.resolver(nil)
		defer r.Close()
		n.say(func(server string, m message) []message {
			if server == servers[0] {
				return nil
			}
			return []message{with(m, "lb.test. 60 A 192.0.2.1", "lb.test. 60 AAAA 2001:db8::1")}
		})
		target := acquire(t, r, "lb.test")
		after(serverTimeout - 1)
		if !target.State().Asked.IsZero() {
			t.Error("the first resolver was not waited for")
		}
		after(1)
		if got := uses(target, 0); got != "192.0.2.1 2001:db8::1" {
			t.Errorf("%s %v", got, target.State().Err)
		}
	})
}

func TestSharing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.resolver(nil)
		n.tell("lb.test. 60 A 192.0.2.1")
		a := acquire(t, r, "lb.test")
		b, err := r.Acquire(servers, "LB.TEST.", "other")
		if err != nil || a != b || fmt.Sprint(a.Users()) != "[other user]" || len(a.Servers()) != 2 {
			t.Errorf("%v, users %v", err, a.Users())
		}
		after(time.Second)
		// Other servers: another target, which knows what this one does until it
		// was asked itself, but doesn't take it for confirmed.
		n.say(func(string, message) []message { return nil })
		c, err := r.Acquire(servers[:1], "lb.test", "user")
		if err != nil || c == a || uses(c, time.Hour) != "192.0.2.1" || !c.State().V4.Failing || !c.State().Asked.IsZero() {
			t.Errorf("%v, %+v", err, c.State())
		}
		if s := r.Stats(); s.Targets != 2 {
			t.Errorf("%+v", s)
		}
		a.Release("nobody")
		a.Release("user")
		a.Release("user")
		was := n.times("A lb.test.")
		c.Release("user")
		after(time.Minute * 11 / 10)
		if len(n.times("A lb.test.")) == len(was) {
			t.Error("not looked up although it is used")
		}
		b.Release("other")
		after(5 * time.Second)
		was = n.times("A lb.test.")
		after(time.Hour)
		if got := n.times("A lb.test."); len(got) != len(was) {
			t.Error("looked up after the last release")
		}
		if s := r.Stats(); s.Targets != 0 {
			t.Errorf("%+v", s)
		}
		r.Close()
		r.Close()
		if _, err := r.Acquire(servers, "lb.test", "user"); err == nil {
			t.Error("acquired from a closed resolver")
		}
	})
}

// TestCloseEndsRounds closes while resolvers are silent.
func TestCloseEndsRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var changes told
		r := n.resolver(func(o *Options) { o.Changed, o.Concurrency = changes.take, 3 })
		n.say(func(string, message) []message { return nil })
		for i := range 10 {
			acquire(t, r, fmt.Sprintf("lb-%d.test", i))
		}
		after(time.Millisecond)
		if n.most != 6 {
			t.Errorf("%d connections at once", n.most)
		}
		begin := time.Now()
		r.Close()
		if time.Since(begin) != 0 || changes.number() != 0 {
			t.Errorf("closing took %v, %d changes", time.Since(begin), changes.number())
		}
	})
}

// TestManyNames has a fleet change at once: changes come together.
func TestManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var changes told
		r := n.resolver(func(o *Options) { o.Changed, o.Concurrency = changes.take, 10_000 })
		defer r.Close()
		say := func(address string) {
			n.say(func(_ string, m message) []message {
				if asked(m) != "A" {
					return []message{with(m, "test. 60 SOA 60")}
				}
				return []message{with(m, fmt.Sprintf("%s 50 A %s", m.Questions[0].Name, address))}
			})
		}
		say("192.0.2.1")
		const number = 500
		for i := range number {
			acquire(t, r, fmt.Sprintf("lb-%d.test", i))
		}
		after(coalesce)
		if len(changes.calls) != 1 || len(changes.calls[0]) != number {
			t.Fatalf("%d calls", len(changes.calls))
		}
		for _, c := range changes.calls[0] {
			if !c.Old.Asked.IsZero() || words(c.New.Addresses(time.Now(), 0)) != "192.0.2.1" {
				t.Fatalf("%+v to %+v", c.Old, c.New)
			}
		}
		after(10 * time.Minute)
		if changes.number() != 1 {
			t.Errorf("%d calls, though nothing changed", changes.number())
		}
		say("192.0.2.2")
		after(55*time.Second + coalesce)
		seen := map[*Target]int{}
		for _, call := range changes.calls[1:] {
			for _, c := range call {
				seen[c.Target]++
			}
		}
		if len(seen) != number || len(changes.calls) < 20 {
			t.Errorf("%d of %d changed in %d calls: expected all, spread over time", len(seen), number, len(changes.calls))
		}
	})
}

// TestChangedMayCall has the callback use the Resolver, and a target that is
// released before its change is told.
func TestChangedMayCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.tell("a.test. 60 A 192.0.2.1", "b.test. 60 A 192.0.2.2")
		var r *Resolver
		var names []string
		r = n.resolver(func(o *Options) {
			o.Changed = func(changes []Change) {
				for _, c := range changes {
					names = append(names, c.Target.Name())
					c.Target.Release("user")
					r.Acquire(servers, "c.test", "user")
				}
			}
		})
		defer r.Close()
		acquire(t, r, "a.test")
		b := acquire(t, r, "b.test")
		after(0)
		b.Release("user")
		after(coalesce)
		if fmt.Sprint(names) != "[a.test.]" || r.Stats().Targets != 1 {
			t.Errorf("%v, %+v", names, r.Stats())
		}
	})
}
