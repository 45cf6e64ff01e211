package gslb

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// halting is a context that does something each time that it is asked whether it has ended,
// as work that takes long does between its parts.
type halting struct {
	context.Context
	at func()
}

func (h halting) Err() error {
	h.at()
	return h.Context.Err()
}

// once does something the first time.
func once(do func()) func() {
	done := false
	return func() {
		if !done {
			done = true
			do()
		}
	}
}

// free tells whether the registry's lock is, while everybody else waits.
func (r *registry) free() bool {
	synctest.Wait()
	if !r.mu.TryLock() {
		return false
	}
	r.mu.Unlock()
	return true
}

// lawfulBlock is one in which the law has a say, probes too, and the clock in ten minutes.
const lawfulBlock = `gslb {
	guard max_move 100%
	region a {
		capacity 100
	}
	region b {
		capacity 100
	}
	region c {
		capacity 100
		dial 50% from 2000-01-01T00:10:00Z
	}
	clients rest {
		order a b c
	}
	check web {
		http :8080 /healthz
	}
	host api.example.com {
		check web
		pool a 192.0.2.1
		pool b 192.0.2.2
		pool c 192.0.2.3
	}
}`

const inC = "192.0.2.3 ttl 30"

// desked has a test at the desk of such a block. drained is a set of overrides that drains
// a, and that was in service before.
func desked(t *testing.T, test func(t *testing.T, w *world, c *clerk, g *GSLB, drained *control.Overrides)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := w.clerk(t, dir)
		c.desk.api = new(control.Server) // for metrics
		gen, g := c.start(t, lawfulBlock)
		time.Sleep(risen)
		c.must(t, "drain on region=a")
		drained := c.desk.store.Overrides()
		c.must(t, "cancel 1")
		time.Sleep(time.Minute) // in which the law lets all of a come back
		test(t, w, c, g, drained)
		c.stop(gen)
	})
}

// backend is that of the clerk's store.
func (c *clerk) backend() backend { return backend{c.registry, c.desk.store} }

// TestWhatIfHoldsNothingUp lets a world go on while a what-if is being worked out: verdicts,
// metrics, steps of the law and other changes don't wait for it, and it is of the time when
// it was asked.
func TestWhatIfHoldsNothingUp(t *testing.T) {
	desked(t, func(t *testing.T, w *world, c *clerk, g *GSLB, drained *control.Overrides) {
		halted := false
		ctx := halting{t.Context(), once(func() {
			halted = true
			if !c.registry.free() {
				t.Fatal("the registry's lock is held")
			}
			step := c.registry.steering.law.state
			w.set("192.0.2.1 fail")
			time.Sleep(fallen)
			synctest.Wait()
			expect(t, "after a verdict", g, inB)
			if c.registry.steering.law.state == step {
				t.Error("no step of the law")
			}
			if n := testutil.CollectAndCount(healthCollector{c.registry}) + testutil.CollectAndCount(steeringCollector{c.registry}); n == 0 {
				t.Error("no metrics")
			}
			c.must(t, "drain on region=b")
			expect(t, "after a change", g, inC)
		})}
		result, err := c.desk.store.WhatIf(ctx, clerkHerself, asked("drain on region=a"))
		if err != nil || !halted {
			t.Fatal(halted, err)
		}
		to := ""
		for _, f := range result.Report.Flows {
			to += f.From + f.To + " "
		}
		if to != "ab ac " || result.Report.MovedBlocks != 100 {
			t.Errorf("it would move %v %% of blocks: %s", result.Report.MovedBlocks, to)
		}
	})
}

// TestWhatIfGivesUp has clients go away at every part of the work: no other part begins.
func TestWhatIfGivesUp(t *testing.T) {
	desked(t, func(t *testing.T, _ *world, c *clerk, _ *GSLB, drained *control.Overrides) {
		parts := 0
		if _, err := c.backend().WhatIf(halting{t.Context(), func() { parts++ }}, drained); err != nil || parts < 4 {
			t.Fatal(parts, err)
		}
		for last := 1; last <= parts; last++ {
			ctx, leave := context.WithCancel(t.Context())
			n := 0
			_, err := c.backend().WhatIf(halting{ctx, func() {
				if n++; n == last {
					leave()
				}
			}}, drained)
			if !errors.Is(err, context.Canceled) || n != last {
				t.Errorf("gone at %d: %v, at %d", last, err, n)
			}
		}
	})
}

// TestWhatChangesRestOn changes the world after a change was judged, and before it takes
// effect.
func TestWhatChangesRestOn(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, w *world, c *clerk)
		again     int
	}{
		"nothing":             {func(*testing.T, *world, *clerk) {}, 0},
		"steps of the law":    {func(*testing.T, *world, *clerk) { time.Sleep(time.Minute) }, 0},
		"a streak":            {func(_ *testing.T, w *world, _ *clerk) { w.set("192.0.2.3 fail"); time.Sleep(oneProbe) }, 0},
		"a verdict":           {func(_ *testing.T, w *world, _ *clerk) { w.set("192.0.2.3 fail"); time.Sleep(fallen) }, 1},
		"the clock":           {func(*testing.T, *world, *clerk) { time.Sleep(10 * time.Minute) }, 1},
		"another change":      {func(t *testing.T, _ *world, c *clerk) { c.must(t, "weight 7 endpoint=192.0.2.3") }, 1},
		"the same plan again": {func(t *testing.T, _ *world, c *clerk) { c.start(t, lawfulBlock) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			desked(t, func(t *testing.T, w *world, c *clerk, g *GSLB, drained *control.Overrides) {
				defer c.onlyLive(func(*generation) bool { return false })
				report, err := c.backend().WhatIf(t.Context(), drained)
				if err != nil {
					t.Fatal(err)
				}
				tc.meanwhile(t, w, c)
				synctest.Wait()
				again := 0
				p := control.Publication{Next: drained, Digest: c.backend().Digest(), Report: report, Accept: func(control.Report) error { again++; return nil }}
				if err := c.backend().Publish(t.Context(), p); err != nil || again != tc.again {
					t.Errorf("%v, judged again %d times, want %d", err, again, tc.again)
				}
				expect(t, "drained", g, inB)
			})
		})
	}
}

// TestChangeRefusedAtLast has the other regions go down while the drain of one is being
// judged.
func TestChangeRefusedAtLast(t *testing.T) {
	desked(t, func(t *testing.T, w *world, c *clerk, g *GSLB, _ *control.Overrides) {
		ctx := halting{t.Context(), once(func() {
			w.set("192.0.2.2 fail, 192.0.2.3 fail")
			time.Sleep(fallen)
			synctest.Wait()
		})}
		_, err := c.desk.store.Do(ctx, clerkHerself, asked("drain on region=a"))
		var refused *control.Refused
		if !errors.As(err, &refused) || refused.Refusals[0].Guard != "usable" {
			t.Errorf("it is %v", err)
		}
		expect(t, "not drained", g, inA)
		if n := c.desk.store.Overrides().Len(); n != 0 {
			t.Errorf("%d overrides", n)
		}
	})
}

// TestChangeInTheEnd changes the world as often as a change is judged: in the end it is with
// the lock, and takes effect. Meanwhile the law waits for the step that the change makes.
func TestChangeInTheEnd(t *testing.T) {
	desked(t, func(t *testing.T, w *world, c *clerk, g *GSLB, drained *control.Overrides) {
		var judged []string
		begin := true
		ctx := halting{t.Context(), func() {
			if begin && c.registry.free() {
				begin = false
				w.set([]string{"192.0.2.3 fail", "192.0.2.3 ok"}[len(judged)%2])
				before := c.registry.steering.law.state
				time.Sleep(risen)
				synctest.Wait()
				if c.registry.steering.law.state != before {
					t.Error("the law has made a step of its own")
				}
			}
		}}
		accept := func(control.Report) error {
			begin = true
			if c.registry.free() {
				judged = append(judged, "aside")
			} else {
				judged = append(judged, "with the lock")
			}
			return nil
		}
		if err := c.backend().Publish(ctx, control.Publication{Next: drained, Accept: accept}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(judged, ", "); got != "aside, aside, with the lock" {
			t.Errorf("it was judged %s", got)
		}
		expect(t, "drained", g, inB)
	})
}

// TestChangeOfOldPlan has another plan come into service while a change is being judged.
func TestChangeOfOldPlan(t *testing.T) {
	desked(t, func(t *testing.T, _ *world, c *clerk, _ *GSLB, drained *control.Overrides) {
		defer c.onlyLive(func(*generation) bool { return false })
		var g *GSLB
		ctx := halting{t.Context(), once(func() { _, g = c.start(t, strings.Replace(lawfulBlock, "pool c 192.0.2.3", "pool c 192.0.2.4", 1)) })}
		accept := func(control.Report) error { return nil }
		err := c.backend().Publish(ctx, control.Publication{Next: drained, Digest: c.backend().Digest(), Accept: accept})
		if !errors.Is(err, control.ErrStale) {
			t.Errorf("it is %v", err)
		}
		expect(t, "not drained", g, inA)
	})
}

// TestControlAtTheEnd asks when nothing runs any more.
func TestControlAtTheEnd(t *testing.T) {
	b := backend{new(registry), new(ledger)}
	if _, err := b.WhatIf(t.Context(), nil); !errors.Is(err, errEnding) {
		t.Errorf("it is %v", err)
	}
	if err := b.Publish(t.Context(), control.Publication{}); !errors.Is(err, errEnding) {
		t.Errorf("it is %v", err)
	}
}

// TestOutlookAtOnce has everything at the same time: changes, what-ifs, explanations, verdicts,
// returns after outages, steps of the law, metrics and a reload. It is for the race detector;
// besides, each change of one version is done once.
func TestOutlookAtOnce(t *testing.T) {
	desked(t, func(t *testing.T, w *world, c *clerk, _ *GSLB, _ *control.Overrides) {
		defer c.onlyLive(func(*generation) bool { return false })
		var all sync.WaitGroup
		store, done := c.desk.store, make(chan string, 1000)
		for i := range 4 {
			all.Go(func() {
				for range 20 {
					version := store.Version()
					time.Sleep(time.Duration(7+i%2) * time.Second)
					r := asked([]string{"drain on region=a", "dial 50% region=b", "weight 7 endpoint=192.0.2.3"}[i%3])
					r.Version = version
					_, err := store.Do(t.Context(), clerkHerself, r)
					switch {
					case err == nil:
						done <- version
					case !errors.Is(err, control.ErrStale):
						t.Error(err)
					}
				}
			})
			all.Go(func() {
				for range 30 {
					if _, err := store.WhatIf(t.Context(), clerkHerself, asked("drain on region=b")); err != nil && !errors.Is(err, control.ErrStale) {
						t.Error(err)
					}
					question := control.Question{Host: "api.example.com.", Client: netip.MustParsePrefix("20.0.0.0/24")}
					if _, err := c.backend().Explain(t.Context(), question); err != nil {
						t.Error(err)
					}
					testutil.CollectAndCount(steeringCollector{c.registry})
					time.Sleep(5 * time.Second)
				}
			})
		}
		all.Go(func() {
			for i := range 3 {
				w.set([]string{"192.0.2.1 fail", "192.0.2.1 ok"}[i%2])
				time.Sleep(risen)
			}
			c.start(t, lawfulBlock+"\n")
		})
		all.Wait()
		close(done)
		versions := make(map[string]bool)
		for v := range done {
			if versions[v] {
				t.Errorf("two changes of version %s were done", v)
			}
			versions[v] = true
		}
		if len(versions) < 10 {
			t.Errorf("only %d changes were done", len(versions))
		}
	})
}

// TestLawHearsOfTheClock has the clock move a lever in the same beat as the law makes a step:
// it hears of that with the next beat, not after a period.
func TestLawHearsOfTheClock(t *testing.T) {
	desked(t, func(t *testing.T, _ *world, c *clerk, g *GSLB, _ *control.Overrides) {
		law := &c.registry.steering.law
		c.registry.mu.Lock()
		at := g.due
		law.next = at
		c.registry.mu.Unlock()
		time.Sleep(time.Until(at) + 2*beat + beat/2)
		synctest.Wait()
		c.registry.mu.Lock()
		defer c.registry.mu.Unlock()
		if got := law.sinks.list[law.sinks.index[sinkKey{region: "c"}]].Dial; got != 0.5 {
			t.Errorf("two beats after the clock has dialled c to 50 %%, the law has it at %v", got)
		}
	})
}
