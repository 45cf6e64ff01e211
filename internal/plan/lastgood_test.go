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
			if err := p.Data.Keep(state); err != nil {
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
			again, err := plan.Build(b, plan.Options{Root: dir, LastGood: plan.LastGood{Dir: state, Now: time.Now()}})
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
	if err := p.Data.Keep(state); err != nil {
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
		"in service": {InService: []*plan.Data{p.Data}}, "copy": {Dir: state, Now: time.Now()},
	} {
		if _, err := plan.Build(b, plan.Options{Root: dir, LastGood: last}); err == nil || !strings.Contains(err.Error(), "nets.txt") {
			t.Errorf("%s: got %v, want that nets.txt can't be read", name, err)
		}
	}
}
