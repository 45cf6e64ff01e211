package gslb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/seed-945f90c5/gslb/internal/control"
)

// scheduled drains a at half past, for half an hour. Without b it leaves nobody.
func scheduled(more ...string) string {
	return "gslb {\nregion a {\ndrain from 2000-01-01T00:30:00Z until 2000-01-01T01:00:00Z\nramp 0\n}\nregion b {\nramp 0\n}\nclients rest {\norder a b\n}\ncheck web {\nhttp :8080 /\n}\n" +
		"host api.example.com {\ncheck web\npool a 192.0.2.1\npool b 192.0.2.2\n}\n" + strings.Join(more, "\n") + "\n}"
}

// TestScheduleIsGuarded begins a drain that would be all right on another day.
func TestScheduleIsGuarded(t *testing.T) {
	begins := 30*time.Minute + time.Second
	for _, tc := range []struct {
		name, text, dead string
		want             string // while the drain holds
		postponed        bool
	}{
		{"the other serves", scheduled(), "", fromB, false},
		{"the other is down", scheduled(), "192.0.2.2 fail", fromA, true},
		{"nobody is left to require", scheduled("guard require 2 of a b"), "", fromA, true},
		{"that is accepted", scheduled("guard require 2 of a b", "guard accept maintenance until 2000-01-02T00:00:00Z"), "", fromB, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				w := newWorld()
				r := w.registry()
				gen, g := r.mustStart(t, tc.text)
				w.set(tc.dead)
				time.Sleep(begins - 10*time.Second)
				expect(t, "before", g, fromA)
				logged.Reset()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				expect(t, "while it is to be drained", g, tc.want)
				postponed := testutil.ToFloat64(schedulesPostponed.WithLabelValues("example.com.", "", ""))
				if (postponed == 1) != tc.postponed || strings.Count(logged.String(), "levers that the clock would move now are postponed") != int(postponed) {
					t.Errorf("postponed %v; logged %s", postponed, logged.String())
				}
				if tc.dead != "" { // it goes on by itself
					w.set("192.0.2.2 pass")
					time.Sleep(risen)
					synctest.Wait()
					expect(t, "the other is back", g, fromB)
					if got := logged.String(); strings.Count(got, "levers follow the clock again") != 1 {
						t.Errorf("logged %s", got)
					}
				}
				time.Sleep(30 * time.Minute)
				expect(t, "after", g, fromA)
				if postponed := testutil.ToFloat64(schedulesPostponed.WithLabelValues("example.com.", "", "")); postponed != 0 {
					t.Errorf("still postponed")
				}
				r.stop(gen)
			})
		})
	}
}

// A reload is no way past: the drain stays postponed, and the reload is let through.
func TestReloadOfAPostponedSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		w := newWorld()
		r := w.registry()
		first, _ := r.mustStart(t, scheduled())
		w.set("192.0.2.2 fail")
		time.Sleep(35 * time.Minute)
		logged.Reset()
		second, g := r.mustStart(t, scheduled("ttl 30"))
		r.stop(first)
		time.Sleep(time.Minute)
		expect(t, "after the reload", g, fromA)
		if got := logged.String(); strings.Contains(got, "levers") {
			t.Errorf("said again: %s", got)
		}
		third, g := r.mustStart(t, scheduled("guard accept really until 2000-01-02T00:00:00Z"))
		time.Sleep(time.Second + 1)
		if got := told(t, g, "api A", ""); got == fromA {
			t.Errorf("accepted, and still %s", got)
		}
		r.stop(second)
		r.stop(third)
	})
}

// TestExpiryIsGuarded has an override expire that keeps a region in service which the
// Corefile drains, while the other one is down.
func TestExpiryIsGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := w.clerk(t, t.TempDir())
		c.desk.api = new(control.Server)
		gen, g := c.start(t, strings.Replace(scheduled(), "drain from 2000-01-01T00:30:00Z until 2000-01-01T01:00:00Z", "drain", 1))
		postponed := func(want int) {
			t.Helper()
			text := fmt.Sprintf("# HELP coredns_gslb_overrides_postponed Overrides that have expired and stay in force, as guards are against their end.\n"+
				"# TYPE coredns_gslb_overrides_postponed gauge\ncoredns_gslb_overrides_postponed %d\n", want)
			if err := testutil.CollectAndCompare(steeringCollector{c.registry}, strings.NewReader(text), "coredns_gslb_overrides_postponed"); err != nil {
				t.Error(err)
			}
		}
		postponed(0)
		c.must(t, "drain off region=a for=1h force")
		expect(t, "drained no more", g, fromA)
		w.set("192.0.2.2 fail")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		expect(t, "past its time", g, fromA)
		postponed(1)
		w.set("192.0.2.2 pass")
		time.Sleep(risen + 10*time.Second)
		synctest.Wait()
		expect(t, "the other is back", g, fromB)
		postponed(0)
		c.stop(gen)
	})
}

// While schedules are postponed they are tried again with every beat; the law, which that
// tells nothing, keeps to its period.
func TestPostponedDoesNotHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, strings.Replace(scheduled(), "ramp 0\n", "ramp 0\ncapacity 100\n", 1))
		defer r.stop(gen)
		w.set("192.0.2.2 fail")
		later(35 * time.Minute)
		steps := make(map[time.Time]bool)
		for range 60 {
			later(beat)
			r.mu.Lock()
			postponed := g.postponed
			steps[r.steering.law.stepped] = true
			r.mu.Unlock()
			if !postponed {
				t.Fatal("the schedule isn't postponed")
			}
		}
		if most := int(time.Minute/lawEvery) + 1; len(steps) > most {
			t.Errorf("%d steps of the law in a minute, want %d at most", len(steps), most)
		}
	})
}
