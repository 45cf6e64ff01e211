package gslb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/guard"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// forgetUnwritable forgets what other tests have left.
func forgetUnwritable() {
	writingState.Lock()
	defer writingState.Unlock()
	clear(unwritable)
}

// TestSlowDisk holds that the law makes its steps while the state directory can't be written
// to, that this is said once, and that what is saved afterwards is of then.
func TestSlowDisk(t *testing.T) {
	p := newPlant(t, 120)
	forgetUnwritable()
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		defer r.stop(gen)
		stuck := make(chan struct{})
		r.mu.Lock()
		r.steering.saver.give([]func(){func() { <-stuck }}, time.Now())
		r.mu.Unlock()
		said := func(text string) int { return strings.Count(logged.String(), text) }
		at := func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.steering.law.stepped
		}
		file := filepath.Join(p.dir, "state", lawFile)
		p.run(t, g, 25*time.Second)
		if n := said("isn't done"); n != 0 {
			t.Errorf("said %d times that it takes long after 25 s", n)
		}
		for range 12 {
			before := at()
			p.run(t, g, 5*time.Second)
			if at() == before {
				t.Error("no step of the law")
			}
		}
		if n := said("isn't done"); n != 1 {
			t.Errorf("said %d times that it takes long\n%s", n, logged)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("saved past what is stuck")
		}
		if f := testutil.ToFloat64(stateFailing.WithLabelValues()); f != 1 {
			t.Errorf("state_failing is %v while it is stuck", f)
		}
		close(stuck)
		p.run(t, g, 5*time.Second)
		if f := testutil.ToFloat64(stateFailing.WithLabelValues()); f != 0 {
			t.Errorf("state_failing is %v afterwards", f)
		}
		if n := said("is written to again, after 1m25s"); n != 1 {
			t.Errorf("said %d times that it is over\n%s", n, logged)
		}
		if rec, err := loadLaw(file); err != nil || rec == nil {
			t.Errorf("%v, %v", rec, err)
		}
	})
}

// TestSlowDiskAtTheEnd holds that the process can end while the state directory can't be
// written to, which is said once.
func TestSlowDiskAtTheEnd(t *testing.T) {
	p := newPlant(t, 120)
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		p.run(t, g, 5*time.Second)
		stuck := make(chan struct{})
		defer close(stuck)
		r.mu.Lock()
		r.steering.saver.give([]func(){func() { <-stuck }}, time.Now())
		r.mu.Unlock()
		began := time.Now()
		r.stop(gen)
		if took := time.Since(began); took > patience {
			t.Errorf("the end took %s, expected %s", took, patience)
		}
		if n := strings.Count(logged.String(), "going on without it"); n != 1 {
			t.Errorf("said %d times\n%s", n, logged)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "state", lawFile)); err == nil {
			t.Error("saved past what is stuck")
		}
	})
}

// TestUnwritableStateIsToldOf holds that what can't be written is said once, and tried until it
// can, which is said, too.
func TestUnwritableStateIsToldOf(t *testing.T) {
	p := newPlant(t, 120)
	forgetUnwritable()
	dir := filepath.Join(p.dir, "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		r := newWorld().registry()
		gen, g := r.mustStart(t, p.block(""))
		defer r.stop(gen)
		p.run(t, g, 100*time.Second)
		if f := testutil.ToFloat64(stateFailing.WithLabelValues()); f != 1 {
			t.Errorf("state_failing is %v", f)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		p.run(t, g, 70*time.Second)
		if f := testutil.ToFloat64(stateFailing.WithLabelValues()); f != 0 {
			t.Errorf("state_failing is %v afterwards", f)
		}
		for _, what := range []string{"The state of the law of capacity", "What was accepted"} {
			for _, how := range []string{"can't be saved", "can be saved again"} {
				if n := strings.Count(logged.String(), what+" "+how); n != 1 {
					t.Errorf("%s %s: said %d times\n%s", what, how, n, logged)
				}
			}
		}
		for _, file := range []string{lawFile, guard.MemoryFile} {
			if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
				t.Error(err)
			}
		}
	})
}
