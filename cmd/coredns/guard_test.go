package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/guard"
)

// steered sends everybody to a region, a or b. %s is more of the block.
func steered(state, first string, more ...string) string {
	other := map[string]string{"a": "b", "b": "a"}[first]
	return fmt.Sprintf(`example.com:53 {
    gslb {
        state %s
        region a b
        clients rest {
            order %s %s
        }
        host www.example.com {
            pool a 192.0.2.1
            pool b 192.0.2.2
        }
        %s
    }
}
`, state, first, other, strings.Join(more, "\n"))
}

// A reload that guards refuse leaves the old Corefile in service, which goes on
// answering; one that accepts it is taken. What is in service is what the next process
// is held against.
func TestReloadIsGuarded(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	s, err := start("Corefile", steered(state, "a"))
	if err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, s, 1)
	asker := keepAsking(t, s.addr, "192.0.2.1")
	before := metric(t, "coredns_gslb_guard_refusals_total", "guard", "max_move")
	for range 2 {
		err := s.reload(steered(state, "b"))
		if err == nil || !strings.Contains(err.Error(), "guard max_move: 100.0% of the blocks") || !strings.Contains(err.Error(), "The Corefile before stays in service") {
			t.Errorf("error %v", err)
		}
		expectAnswer(t, s, 1)
	}
	if err := s.reload(strings.ReplaceAll(steered(state, "b"), "example.com:53", "www.example.com:53")); err == nil {
		t.Error("another zone's name is a way past the guard")
	}
	if n := metric(t, "coredns_gslb_guard_refusals_total", "guard", "max_move") - before; n != 3 {
		t.Errorf("%v refusals", n)
	}
	asker.stop(t)
	accepted := steered(state, "b", `guard accept "moved on purpose" until `+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	if err := s.reload(accepted); err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, s, 2)
	file := filepath.Join(state, guard.MemoryFile)
	eventually(t, "what is in service is remembered", func() bool { _, err := os.Stat(file); return err == nil })
	s.stop()
	if other, err := start("Corefile", steered(state, "a")); err == nil {
		other.stop()
		t.Error("the next process starts with what was in service before")
	} else if !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "guard max_move") {
		t.Errorf("error %v", err)
	}
	s, err = start("Corefile", steered(state, "b"))
	if err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, s, 2)
	s.stop()
}

// A reload that takes the last gslb block away is refused until that block accepts it.
func TestReloadWithoutGSLB(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	s, err := start("Corefile", steered(state, "a"))
	if err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, s, 1)
	const without = "example.com:53 {\n    whoami\n}\n"
	for range 2 {
		err := s.reload(without)
		if err == nil || !strings.Contains(err.Error(), "plugin/gslb: refused: Corefile:2: guard hosts: 1 of the 1 host names in service would be gone, such as www.example.com.") {
			t.Errorf("error %v", err)
		}
		expectAnswer(t, s, 1)
	}
	if err := s.reload(steered(state, "a", "guard accept farewell until "+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))); err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, s, 1)
	if err := s.reload(without); err != nil {
		t.Fatal(err)
	}
	if got := brief(s.exchange(t, "www.example.com A")); got == "192.0.2.1" {
		t.Error("gslb answers, though it is gone")
	}
	if err := s.reload(without + "# once more\n"); err != nil {
		t.Error(err)
	}
	s.stop()
}
