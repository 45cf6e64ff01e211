package gslb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/guard"
)

// TestStartIsGuarded has a process start with a Corefile, and the next one with another.
func TestStartIsGuarded(t *testing.T) {
	accept := "guard accept ticket-8 until 2000-01-02T00:00:00Z"
	for _, tc := range []struct {
		name          string
		before, after string
		lived         time.Duration // by the process before
		spoil         func(t *testing.T, path string)
		want          string // of the error; "": it starts
		log           string
	}{
		{"nothing has changed", guarded("a"), guarded("a"), time.Minute, nil, "", ""},
		{"everybody moves", guarded("a"), guarded("b"), time.Minute, nil, "guard max_move: 100.0%", ""},
		{"that is accepted", guarded("a"), guarded("b", accept), time.Minute, nil, "", "Corefile:11: let through by `guard accept` (ticket-8): guard max_move: 100.0%"},
		{"it never was in service for long", guarded("a"), guarded("b"), settling - beat - 1, nil, "", ""},
		{"a host is gone", strings.ReplaceAll(guarded("a"), "api", "www"), guarded("a"), time.Minute, nil, "guard hosts: 1 of the 1 host names in service would be gone, such as www.example.com.", ""},
		{"nobody can use it", guarded("a"), strings.NewReplacer("a 192.0.2.1", "a {\nendpoint 192.0.2.1 down\n}", "b 192.0.2.2", "b {\nendpoint 192.0.2.2 drain\n}").Replace(guarded("a")), time.Minute, nil, "guard usable", ""},
		{"lost", guarded("a"), guarded("b"), time.Minute, func(t *testing.T, path string) { os.Remove(path) }, "", ""},
		{"damaged", guarded("a"), guarded("b"), time.Minute, func(t *testing.T, path string) { replace(t, path, []byte("garbage")) }, "",
			"Corefile:1: what was last accepted can't be read, so this start is not held against it: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				process := func(text string, lived time.Duration) error {
					r := newWorld().registry()
					gen, _, err := r.startTexts(t, strings.Replace(text, "gslb {", "gslb {\nstate "+dir, 1))
					time.Sleep(lived)
					r.stop(gen)
					return err
				}
				if err := process(tc.before, tc.lived); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, guard.MemoryFile)
				if tc.spoil != nil {
					tc.spoil(t, path)
				}
				logged.Reset()
				err := process(tc.after, time.Minute)
				if (err != nil) != (tc.want != "") || err != nil && !(strings.Contains(err.Error(), tc.want) &&
					strings.HasSuffix(err.Error(), ", and start again. It is held against what was last in service, which "+path+" tells")) {
					t.Errorf("error %v; want %q", err, tc.want)
				}
				if !strings.Contains(logged.String(), tc.log) {
					t.Errorf("logged %s", logged.String())
				}
				if err == nil { // which is what is remembered now
					if err := process(strings.Replace(tc.after, accept, "", 1), 0); err != nil {
						t.Errorf("once more: %v", err)
					}
				}
			})
		})
	}
}

// What a load that failed has started is not remembered, and what data files move is.
func TestWhatIsRemembered(t *testing.T) {
	dir := t.TempDir()
	state := "state " + dir
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		first, err := r.startAt(t, []string{":53 - example.com.", guarded("a", state), ":53 - example.net.", ofNet("a")})
		if err != nil {
			t.Fatal(err)
		}
		r.leave(first, true)
		_, err = r.startAt(t, []string{":53 - example.com.", guarded("b", state, "guard max_move 100%"), ":53 - example.net.", ofNet("b")})
		if err == nil {
			t.Fatal("not refused")
		}
		time.Sleep(time.Minute)
		r.stop(first)
		list, err := guard.LoadMemories(dir)
		if err != nil || len(list) != 1 { // the other has no state directory
			t.Fatalf("%d, %v", len(list), err)
		}
		g := servedAt(t, ":53 - example.com.", guarded("b"))
		if got := list[0].Refusals(&g.block.Guard, g.live.Load().plan); len(got) != 1 {
			t.Errorf("what failed is remembered: %v", got)
		}
		g = servedAt(t, ":53 - example.com.", guarded("a"))
		if got := list[0].Refusals(&g.block.Guard, g.live.Load().plan); got != nil {
			t.Errorf("what serves is not remembered: %v", got)
		}
	})
}

// TestDataIsRemembered has a data file change what is remembered, with the next beat.
func TestDataIsRemembered(t *testing.T) {
	file := dataCases[1]
	dir := t.TempDir()
	path := filepath.Join(dir, file.file)
	file.good(t, path, "de", 10)
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(file.text(path), "gslb {", "gslb {\nstate "+dir, 1)
		gen, _ := begin(t, text)
		defer running.stop(gen)
		time.Sleep(time.Minute)
		before, err := os.ReadFile(filepath.Join(dir, guard.MemoryFile))
		if err != nil {
			t.Fatal(err)
		}
		file.good(t, path, "fr", 10)
		time.Sleep(3*watchEvery + 2*beat)
		after, err := os.ReadFile(filepath.Join(dir, guard.MemoryFile))
		if err != nil || string(after) == string(before) {
			t.Errorf("the file is what it was, %v", err)
		}
	})
}
