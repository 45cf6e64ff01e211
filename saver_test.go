package gslb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowDisk holds that the law makes its steps while the state directory can't be written
// to, that this is said once, and that what is saved afterwards is of then.
func TestSlowDisk(t *testing.T) {
	p := newPlant(t, 120)
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
		close(stuck)
		p.run(t, g, 5*time.Second)
		if n := said("is written to again, after 1m25s"); n != 1 {
			t.Errorf("said %d times that it is over\n%s", n, logged)
		}
		if rec, err := loadLaw(file); err != nil || rec == nil {
			t.Errorf("%v, %v", rec, err)
		}
	})
}
