package gslb

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/check"
)

// headerBlock has the load of a, which has three endpoints, in a header. The first has two
// probes, as it is in two hosts that are asked for by name.
const headerBlock = `gslb {
	region a {
		capacity AMOUNT
		load header web X-Load
	}
	region b
	clients rest {
		order a b
	}
	check web {
		http :8080 /healthz
		authority host
	}
	host api.example.com {
		check web
		pool a 192.0.2.1 192.0.2.2 192.0.2.3
		pool b {
			endpoint 192.0.2.9 up
		}
	}
	host www.example.com {
		check web
		pool a 192.0.2.1
		pool b {
			endpoint 192.0.2.9 up
		}
	}
}`

// reports has all probes of an endpoint report a load, now.
func reports(g *GSLB, addr, load string) {
	for e, probes := range g.health.endpoints {
		for _, p := range probes {
			if e.Addr.String() == addr {
				heard.note(p.Key(), []check.Header{{Name: "X-Load", Value: load}}, time.Now())
			}
		}
	}
}

// TestHeaderLoads adds up what endpoints say of themselves.
func TestHeaderLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard.forget(nil) // what the probes of other tests have said
		w := newWorld()
		r := w.registry()
		text := strings.Replace(headerBlock, "AMOUNT", "100", 1)
		gen, g := r.mustStart(t, text)
		defer func() { r.stop(gen) }()
		load := func(what string, want float64, silent int) {
			t.Helper()
			r.mu.Lock()
			defer r.mu.Unlock()
			s := r.steering.law.signals.read(sinkKey{region: "a"}, false, time.Now())
			all, _ := r.steering.law.signals.total(sinkKey{region: "a"}, false, time.Now())
			if want < 0 && s.Valid || want >= 0 && (!s.Valid || math.Abs(s.Value-want) > 1e-9) || all.Silent != silent {
				t.Errorf("%s: load %v (there: %v), %d silent; want %v and %d", what, s.Value, s.Valid, all.Silent, want, silent)
			}
			if s.Period != 10*time.Second {
				t.Errorf("%s: a period of %s", what, s.Period)
			}
		}
		load("nobody has spoken", -1, 3)
		reports(g, "192.0.2.1", "10")
		load("one of three: the others bear as much", 30, 2)
		reports(g, "192.0.2.2", "20")
		reports(g, "192.0.2.3", "30")
		load("all three, each once", 60, 0)
		time.Sleep(20 * time.Second)
		reports(g, "192.0.2.1", "11")
		load("the first again", 61, 0)
		for _, bad := range []string{"NaN", "-1", "+Inf", "much", "", "1e999", strings.Repeat("9", 100)} {
			reports(g, "192.0.2.1", bad)
			load(bad+" is no load, the last one holds", 61, 0)
		}

		// A reload keeps what was heard, and with it a new scheduler.
		old := gen
		gen, g = r.mustStart(t, strings.Replace(text, "region b", "beacon 192.0.2.53:53\n\tregion b", 1))
		load("after a reload", 61, 0)
		r.stop(old)
		time.Sleep(20 * time.Second) // the old prober's probes are forgotten, these not
		load("and later", 61, 0)

		// Who is dead bears nothing, once its last word is not fresh; who is alive and
		// silent does.
		w.set("192.0.2.3 fail")
		time.Sleep(fallen)
		reports(g, "192.0.2.1", "10")
		reports(g, "192.0.2.2", "20")
		load("the third is dead", 30, 0)
		time.Sleep(101 * time.Second)
		load("all are silent", -1, 2)
		reports(g, "192.0.2.1", "10")
		load("one speaks", 20, 1)
	})
}

func TestHeaderScores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard.forget(nil) // what the probes of other tests have said
		r := newWorld().registry()
		gen, g := r.mustStart(t, strings.Replace(headerBlock, "AMOUNT", "score", 1))
		defer r.stop(gen)
		reports(g, "192.0.2.1", "0.2")
		reports(g, "192.0.2.2", "0.4")
		reports(g, "192.0.2.3", "0.9")
		if s := r.steering.law.signals.read(sinkKey{region: "a"}, true, time.Now()); !s.Valid || math.Abs(s.Value-0.5) > 1e-9 {
			t.Errorf("%+v, want a load of 0.5", s)
		}
	})
}

// TestHeardIsForgotten holds that what no probe says any more takes no memory.
func TestHeardIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard.forget(nil) // what the probes of other tests have said
		r := newWorld().registry()
		text := strings.Replace(headerBlock, "AMOUNT", "100", 1)
		gen, g := r.mustStart(t, text)
		reports(g, "192.0.2.1", "1")
		reports(g, "192.0.2.3", "1")
		before := len(heard.pushed)
		old := gen
		gen, _ = r.mustStart(t, strings.Replace(text, " 192.0.2.3", "", 1))
		defer func() { r.stop(gen) }()
		r.stop(old)
		time.Sleep(lawEvery + time.Second)
		synctest.Wait()
		if n := len(heard.pushed); n != before-1 || n == 0 {
			t.Errorf("%d probes are remembered of %d, want one less", n, before)
		}
	})
}

// TestSignalsGetOld holds that a load loses its say after 3 periods and has none after 10, as
// if none were shorter than 15 seconds, and is never taken for none.
func TestSignalsGetOld(t *testing.T) {
	p := newPlant(t, 120)
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		defer r.stop(gen)
		p.run(t, g, 10*time.Minute)
		replace(t, p.dir+"/eu", []byte("nothing of use\n"))
		last := capacity.Fresh
		seen := map[capacity.Reading]bool{}
		for range 180 {
			time.Sleep(time.Second)
			synctest.Wait()
			r.mu.Lock()
			o := r.steering.law.out.Sinks[0]
			r.mu.Unlock()
			if seen[o.Reading] = true; o.Reading < last {
				t.Errorf("%v after %v", o.Reading, last)
			}
			last = o.Reading
			if o.Demand < 100 {
				t.Fatalf("%v: the demand is taken for %v", o.Reading, o.Demand)
			}
		}
		if !seen[capacity.Fading] || last != capacity.Absent {
			t.Errorf("readings %v", seen)
		}
		p.got(t, "without a load", g, 0.75, 0.05)
	})
}

// TestSignalOfTheLatest holds which of two generations a load is of.
func TestSignalOfTheLatest(t *testing.T) {
	p := newPlant(t, 60)
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		p.run(t, g, 10*time.Second)
		signals := &r.steering.law.signals
		kept := signals.users[0].list[0].polled
		replace(t, p.dir+"/other", []byte("7\n"))
		second, _ := r.mustStart(t, strings.Replace(p.block(""), "/us every", "/other every", 1))
		if signals.users[1].list[0].polled != kept {
			t.Error("the load that stays is read anew")
		}
		if s := signals.read(sinkKey{region: "eu"}, false, time.Now()); !s.Valid {
			t.Error("the load that stays has lost its reading")
		}
		time.Sleep(5 * time.Second)
		for range 20 { // no order of maps decides
			if s := signals.read(sinkKey{region: "us"}, false, time.Now()); s.Value != 7 {
				t.Fatalf("the load of us is %v, want the new one", s.Value)
			}
		}
		r.stop(gen)
		if len(signals.users) != 1 {
			t.Error("the old generation still has loads read")
		}
		r.stop(second)
	})
}

// TestStepsFollowSignals holds that steps are as often as loads are read, within bounds.
func TestStepsFollowSignals(t *testing.T) {
	for every, want := range map[string]time.Duration{"1s": time.Second, "5s": 5 * time.Second, "1m": lawEvery} {
		p := newPlant(t, 60)
		p.write(t)
		synctest.Test(t, func(t *testing.T) {
			r := newWorld().registry()
			gen, _ := r.mustStart(t, strings.ReplaceAll(p.block(""), "every 5s", "every "+every))
			defer r.stop(gen)
			steps, last := 0, time.Time{}
			for range 60 {
				time.Sleep(time.Second)
				synctest.Wait()
				r.mu.Lock()
				if at := r.steering.law.state.Last; !at.Equal(last) {
					steps, last = steps+1, at
				}
				r.mu.Unlock()
			}
			if n := int(time.Minute / want); steps < n-2 || steps > n+2 {
				t.Errorf("every %s: %d steps in a minute, want about %d", every, steps, n)
			}
		})
	}
}
