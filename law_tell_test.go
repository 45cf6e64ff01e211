package gslb

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestLoadsAreToldOf writes what is no load, and holds that log, metric and status say so,
// each once, and when it is over.
func TestLoadsAreToldOf(t *testing.T) {
	for _, bad := range []string{"NaN", "-50", "garbage", "1e300", ""} {
		t.Run(bad, func(t *testing.T) {
			p := newPlant(t, 60)
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				r := newWorld().registry()
				gen, g := r.mustStart(t, p.block(""))
				defer r.stop(gen)
				p.run(t, g, time.Minute)
				said := func(what string, warnings int, refused float64) {
					t.Helper()
					synctest.Wait()
					r.mu.Lock()
					list := r.steering.law.warnings(time.Now())
					r.mu.Unlock()
					if n := strings.Count(logged.String(), "Load of region eu can't be read"); n != warnings || (len(list) == 1) != (refused == 1) {
						t.Errorf("%s: %d warnings, status %q, log\n%s", what, n, list, logged.String())
					}
					want := "# HELP coredns_gslb_load_refused 1 while the load of a region can't be read, or can't be (not a number, negative, absurdly large).\n" +
						"# TYPE coredns_gslb_load_refused gauge\ncoredns_gslb_load_refused{host=\"\",region=\"eu\"} " + map[float64]string{0: "0", 1: "1"}[refused] + "\ncoredns_gslb_load_refused{host=\"\",region=\"us\"} 0\n"
					if err := testutil.CollectAndCompare(steeringCollector{r}, strings.NewReader(want), "coredns_gslb_load_refused"); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				p.demand = 61 // one that always says the same would be taken for stuck
				p.run(t, g, 10*time.Second)
				said("good loads", 0, 0)
				for range 4 {
					replace(t, filepath.Join(p.dir, "eu"), []byte(bad+"\n"))
					time.Sleep(5 * time.Second)
				}
				said("bad loads", 1, 1)
				wantLoad(t, r, 61)
				for range 4 { // one that fails every other time
					p.run(t, g, 10*time.Second)
					replace(t, filepath.Join(p.dir, "eu"), []byte(bad+"\n"))
					time.Sleep(5 * time.Second)
				}
				said("bad and good", 1, 1)
				p.run(t, g, time.Minute)
				said("good again", 1, 0)
				if n := strings.Count(logged.String(), "Load of region eu is read again"); n != 1 {
					t.Errorf("said %d times that it is over:\n%s", n, logged.String())
				}
			})
		})
	}
}

// wantLoad holds that status and metrics show the last good load of eu, and its age: it was
// written anew every 5 s, for the last time 25 s ago.
func wantLoad(t *testing.T, r *registry, load float64) {
	t.Helper()
	s, err := backend{r, new(ledger)}.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if eu := s.Regions[0]; eu.Load == nil || *eu.Load != load || eu.LoadAge == nil || *eu.LoadAge < 20 || *eu.LoadAge > 30 || *eu.Utilisation != load {
		t.Errorf("status: %s", asJSON(eu))
	}
	seen := make(changes)
	seen.gather(t, r)
	if got := seen["load  eu"]; len(got) != 1 || !got[load] {
		t.Errorf("metric load: %v", got)
	}
	for age := range seen["load_age_seconds  eu"] {
		if age < 20 || age > 30 {
			t.Errorf("metric load_age_seconds: %v", age)
		}
	}
}

// TestDeficitIsToldOf holds that a demand that nobody can take is told of once.
func TestDeficitIsToldOf(t *testing.T) {
	p := newPlant(t, 60)
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		defer r.stop(gen)
		p.run(t, g, time.Minute)
		p.demand = 250
		p.run(t, g, 3*time.Minute)
		p.demand = 60
		p.run(t, g, 3*time.Minute)
		synctest.Wait()
		if log := logged.String(); strings.Count(log, "more than all regions are to take") != 1 || strings.Count(log, "All demand fits again") != 1 {
			t.Errorf("logged\n%s", log)
		}
	})
}

// TestDampingEnds holds that a region whose load jumps by itself is damped, that everybody is
// told, and that an operator's change ends it.
func TestDampingEnds(t *testing.T) {
	p := newPlant(t, 60)
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		defer r.stop(gen)
		p.run(t, g, time.Minute)
		for range 8 {
			for _, load := range []string{"97\n", "30\n"} {
				replace(t, filepath.Join(p.dir, "eu"), []byte(load))
				time.Sleep(10 * time.Second)
			}
		}
		damped := func() bool {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.steering.law.out.Sinks[0].Damped
		}
		if !damped() || strings.Count(logged.String(), "The law of capacity damps region eu: its load jumped by ") != 1 {
			t.Fatalf("damped %v, logged\n%s", damped(), logged.String())
		}
		if err := (backend{r, new(ledger)}).Publish(t.Context(), control.Publication{}); err != nil {
			t.Fatal(err)
		}
		if damped() || strings.Count(logged.String(), "The law of capacity no longer damps region eu") != 1 {
			t.Errorf("still damped, or nobody was told:\n%s", logged.String())
		}
	})
}
