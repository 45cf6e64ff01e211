package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
)

// TestNetsFromCopy: nets that can't be used at a start, for whatever reason, are
// replaced by their copy in the state directory.
func TestNetsFromCopy(t *testing.T) {
	for name, content := range map[string]string{
		"a region that is none": "203.0.113.0/24 mars\n", "no region": "203.0.113.0/24\n", "garbage": "\x00\x01", "gone": "",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			nets := put(t, dir, "nets.txt", "203.0.113.0/24 us\n")
			state := filepath.Join(dir, "state")
			b, err := parse("example.com.", "nets nets.txt\nregion eu us\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}")
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Build(b, plan.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Data.Keep(state, mapDay); err != nil {
				t.Fatal(err)
			}
			if content == "" {
				err = os.Remove(nets)
			} else {
				err = os.WriteFile(nets, []byte(content), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := plan.Build(b, plan.Options{Root: dir}); err == nil {
				t.Error("without a copy it is no error")
			}
			again, err := plan.Build(b, plan.Options{Root: dir, LastGood: plan.LastGood{Dir: state, Now: mapDay}})
			if err != nil {
				t.Fatal(err)
			}
			if again.Digest != p.Digest || again.Data.Stale[nets] == nil {
				t.Errorf("digest %x, want %x; stale %v", again.Digest, p.Digest, again.Data.Stale)
			}
			warned := false
			for _, w := range again.Warnings {
				warned = warned || strings.Contains(w.Text, "the last good content of nets.txt is in use")
			}
			if !warned {
				t.Errorf("warnings %v", again.Warnings)
			}
		})
	}
}

// TestLastGoodSuitsTheBlock: content that names a region which the block no
// longer has is no substitute, be it in service or a copy.
func TestLastGoodSuitsTheBlock(t *testing.T) {
	dir := t.TempDir()
	nets := put(t, dir, "nets.txt", "203.0.113.0/24 us\n")
	p := build(t, dir, "nets nets.txt\nregion eu us\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}")
	state := filepath.Join(dir, "state")
	if err := p.Data.Keep(state, mapDay); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(nets); err != nil {
		t.Fatal(err)
	}
	b, err := parse("example.com.", "nets nets.txt\nregion eu ap\nhost a.example.com {\npool eu 192.0.2.1\npool ap 192.0.2.2\n}")
	if err != nil {
		t.Fatal(err)
	}
	for name, last := range map[string]plan.LastGood{
		"in service": {InService: []*plan.Data{p.Data}}, "copy": {Dir: state, Now: mapDay},
	} {
		if _, err := plan.Build(b, plan.Options{Root: dir, LastGood: last}); err == nil || !strings.Contains(err.Error(), "nets.txt") {
			t.Errorf("%s: got %v, want that nets.txt can't be read", name, err)
		}
	}
}

// TestKeep: what the state directory has already is dated anew and not written, with or
// without the file itself.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	nets := put(t, dir, "nets.txt", "203.0.113.0/24 us\n")
	p := build(t, dir, "nets nets.txt\nregion eu us\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}")
	state := filepath.Join(dir, "state")
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	keep := func(what string) os.FileInfo {
		t.Helper()
		now = now.Add(24 * time.Hour)
		if err := p.Data.Keep(state, now); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		copies, err := filepath.Glob(filepath.Join(state, "data-*"))
		if err != nil || len(copies) != 1 {
			t.Fatalf("%s: copies %v, %v", what, copies, err)
		}
		content, err := os.ReadFile(copies[0])
		if err != nil || string(content) != "203.0.113.0/24 us\n" {
			t.Errorf("%s: %q, %v", what, content, err)
		}
		info, err := os.Stat(copies[0])
		if err != nil || !info.ModTime().Equal(now) {
			t.Errorf("%s: dated %v, want %v; %v", what, info.ModTime(), now, err)
		}
		return info
	}
	first := keep("at first")
	if !os.SameFile(first, keep("once more")) {
		t.Error("it is written again")
	}
	if err := os.WriteFile(filepath.Join(state, first.Name()), []byte("203.0.113.0/2"), 0o600); err != nil {
		t.Fatal(err)
	}
	mended := keep("damaged")
	put(t, dir, "nets.txt", "gar bage")
	keep("the file has changed since")
	if err := os.Remove(nets); err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(mended, keep("the file is gone")) {
		t.Error("it is written again")
	}
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := p.Data.Keep(state, now); err == nil || !strings.Contains(err.Error(), "nets.txt") {
		t.Errorf("neither copy nor file is there: %v", err)
	}
}

// TestMapCopyHasNoAge: how old a latency map may be is for max_age to say.
func TestMapCopyHasNoAge(t *testing.T) {
	dir := t.TempDir()
	file := put(t, dir, "nets", "198.51.100.0/24 => us\n")
	if err := os.Chtimes(file, mapDay, mapDay); err != nil {
		t.Fatal(err)
	}
	block := "latency nets max_age 1440h" + threeRegions
	p := mustBuildAt(t, dir, block, mapDay)
	state, now := filepath.Join(dir, "state"), mapDay.Add(40*24*time.Hour)
	if err := p.Data.Keep(state, now); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "nets", "gar bage")
	q, err := buildAt(dir, block, plan.LastGood{Dir: state, Now: now}, now)
	if err != nil {
		t.Fatal(err)
	}
	if m := q.Maps()[0]; !m.Built.Equal(mapDay) || m.TooOld {
		t.Errorf("%+v", m)
	}
}
