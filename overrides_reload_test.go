package gslb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// What is in service when a reload comes is what the new generation follows, saved or
// not yet.
func TestOverridesPublishedDuringReload(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newWorld().clerk(t, dir)
		text := "gslb {\nguard max_move 100%\n" + strings.TrimPrefix(leverBlock("", ""), "gslb {\n")
		first, _ := c.start(t, text)
		c.must(t, "drain on region=a")
		drained := c.desk.store.Overrides()
		c.must(t, "drain off region=a")
		if err := (backend{c.registry, c.desk.store}).Publish(t.Context(), control.Publication{Next: drained}); err != nil { // half of a change
			t.Fatal(err)
		}
		second, g := c.start(t, text)
		takes(t, "in the new generation", g, 0, 1)
		c.stop(first)
		takes(t, "later", g, 0, 1)
		if err := (backend{c.registry, c.desk.store}).Publish(t.Context(), control.Publication{Digest: "another"}); err != control.ErrStale {
			t.Errorf("another plan: %v", err)
		}
		takes(t, "after what is refused", g, 0, 1)
		c.stop(second)
	})
}

// A share for an area that nothing tells apart is refused, and one that a reload
// leaves without its area, its region or its endpoint is warned of.
func TestOverridesWithoutEffect(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newWorld().clerk(t, dir)
		text := "gslb {\nguard max_move 100%\n" + strings.TrimPrefix(leverBlock("share 5% area marked from 2100-01-01T00:00:00Z", ""), "gslb {\n")
		text = strings.Replace(text, "area marked prefix", "area plain prefix 30.0.0.0/8\n\tarea marked prefix", 1)
		first, _ := c.start(t, text)
		for change, want := range map[string]string{
			"share 5% region=a area=plain":  "area: the clients of area plain are not told apart in the gslb block at Corefile:1, as no share written there names it",
			"share 5% region=a area=markt":  "area: there is no area markt",
			"share 5% region=aa":            "region: there is no region aa",
			"dial 5% region=a host=x.y":     "host: there is no host x.y.",
			"force up endpoint=192.0.2.200": "endpoint: no pool has endpoint 192.0.2.200",
			"drain off region=a":            "value: drain of region a is off already, and nothing is written of it",
		} {
			if _, err := c.do(change); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", change, err, want)
			}
		}
		if n := c.desk.store.Overrides().Len(); n != 0 {
			t.Fatalf("%d overrides", n)
		}
		c.must(t, "share 5% region=a area=marked")
		c.must(t, "drain on endpoint=192.0.2.3")
		second, g := c.start(t, strings.NewReplacer("share 5% area marked from 2100-01-01T00:00:00Z", "", "192.0.2.3", "192.0.2.4").Replace(text))
		c.stop(first)
		status, err := c.desk.store.Status(t.Context())
		if err != nil || len(status.Warnings) != 2 ||
			!strings.HasPrefix(status.Warnings[0], "override 1 (share of region a is 5%, by alice: test) is without effect: area: the clients of area marked are not") ||
			!strings.HasPrefix(status.Warnings[1], "override 2 (drain of endpoint 192.0.2.3 is on, by alice: test) is without effect: endpoint: no pool has") {
			t.Errorf("warnings %q, %v", status.Warnings, err)
		}
		takes(t, "a share of clients that can't be told", g, 0, 1)
		c.must(t, "dial 50% region=b") // not refused for what others have left
		c.stop(second)
	})
}

// TestOverridesOfAnotherLoad changes overrides that the load of the Corefile before follows,
// which goes on beside one with another state directory: that moves nobody of the latter.
func TestOverridesOfAnotherLoad(t *testing.T) {
	p := newPlant(t, 60)
	older, newer := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		old := newWorld().clerk(t, older)
		defer old.onlyLive(func(*generation) bool { return false })
		p.write(t)
		old.start(t, p.block(""))
		l, err := openLedger(old.registry, newer)
		if err != nil {
			t.Fatal(err)
		}
		l.users = 1
		c := &clerk{old.registry, &desk{store: l, door: &door{users: 2}}}
		_, g := c.start(t, p.block(""))
		p.run(t, g, time.Minute)
		p.got(t, "before", g, 1, 0)
		if r := old.must(t, "drain on region=eu"); r.Report.MovedBlocks != 0 {
			t.Errorf("it was foretold that %v %% of blocks move", r.Report.MovedBlocks)
		}
		for range 6 {
			p.run(t, g, 5*time.Second)
			p.got(t, "after", g, 1, 0)
		}
	})
}

// An override that expired while the Corefile said nothing of `control` had no effect any more:
// a reload that does again moves nobody, and no guard is against it.
func TestOverridesExpiredBetweenReloads(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(leverBlock("", ""), "gslb {\n", "gslb {\nguard max_move 10%\n", 1)
		c := newWorld().clerk(t, dir)
		gen, _ := c.start(t, text)
		if _, err := c.do("drain on region=a for=1h force=1"); err != nil {
			t.Fatal(err)
		}
		c.stop(gen)
		c.desk.store.close()
		time.Sleep(2 * time.Hour)
		r := newWorld().registry()
		first, _ := r.mustStart(t, text)
		r.leave(first, true)
		l, err := openLedger(r, dir)
		if err != nil {
			t.Fatal(err)
		}
		l.users = 1
		c = &clerk{r, &desk{store: l, door: &door{users: 2}}}
		second, g := c.start(t, text)
		takes(t, "after the reload", g, 1, 0)
		c.stop(first)
		c.stop(second)
		c.desk.store.close()
		if entries, err := l.Audit(1); err != nil || len(entries) != 1 || entries[0].Action != "expire" {
			t.Errorf("the audit log ends with %v, %v", entries, err)
		}
	})
}

// An override that has expired while the server was down stays in force until it is known
// whether its end leaves anybody to answer.
func TestExpiredOverrideWaitsForProbes(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := w.clerk(t, dir)
		text := strings.Replace(leverBlock("drain", ""), "gslb {\n", "gslb {\nguard max_move 100%\n", 1)
		gen, _ := c.start(t, text)
		c.must(t, "drain off region=a for=1h")
		c.stop(gen)
		c.desk.store.close()
		time.Sleep(2 * time.Hour)
		w.set("192.0.2.2 fail, 192.0.2.3 fail")
		c = w.clerk(t, dir)
		gen, g := c.start(t, text)
		for range 30 {
			takes(t, "while the others are down", g, 1, 0)
			later(time.Second)
		}
		if n := len(c.desk.store.Postponed()); n != 1 {
			t.Errorf("%d are postponed", n)
		}
		c.stop(gen)
		c.desk.store.close()
	})
}
