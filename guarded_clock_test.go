package gslb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
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
		held             bool
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
				held := testutil.ToFloat64(schedulesHeld.WithLabelValues("example.com.", "", ""))
				if (held == 1) != tc.held || strings.Count(logged.String(), "levers that the clock would move now stay where they are") != int(held) {
					t.Errorf("held %v; logged %s", held, logged.String())
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
				if held := testutil.ToFloat64(schedulesHeld.WithLabelValues("example.com.", "", "")); held != 0 {
					t.Errorf("still held")
				}
				r.stop(gen)
			})
		})
	}
}

// A reload is no way past: the drain stays held, and the reload is let through.
func TestReloadOfAHeldSchedule(t *testing.T) {
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
