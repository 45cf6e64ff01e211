package control_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/control/controltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	alice = control.Author{Name: "alice", From: "unix"}
	start = time.Date(2026, 5, 1, 22, 0, 0, 0, time.UTC)
)

// room is a store with a pretended plugin, and a clock that tests set.
type room struct {
	*control.Store
	dir     string
	backend *controltest.Backend

	mu     sync.Mutex
	now    time.Time
	logged []string
}

func (r *room) Time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *room) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *room) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}

func (r *room) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.logged, "\n")
}

// open opens the store of a directory.
func (r *room) open(t testing.TB) error {
	t.Helper()
	r.backend = controltest.New()
	s, err := control.Open(control.StoreOptions{Dir: r.dir, Backend: r.backend, Now: r.Time, Logf: r.Logf})
	if err != nil && !errors.Is(err, control.ErrSetAside) {
		t.Fatal(err)
	}
	r.Store = s
	if err := r.backend.Publish(t.Context(), control.Publication{Next: s.Overrides()}); err != nil {
		t.Fatal(err)
	}
	return err
}

func newRoom(t testing.TB) *room {
	t.Helper()
	r := &room{dir: t.TempDir(), now: start}
	if err := r.open(t); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// restart closes the store and opens it again, as a new process would.
func (r *room) restart(t *testing.T) error {
	t.Helper()
	r.Close()
	return r.open(t)
}

// must does what JSON asks for.
func (r *room) must(t *testing.T, text string) control.Result {
	t.Helper()
	result, err := r.Do(t.Context(), alice, request(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return result
}

func request(t *testing.T, text string) *control.Request {
	t.Helper()
	var r control.Request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &r
}

// state is what is in service, as text: "17 drain region eu = on".
func (r *room) state() string { return stateOf(r.Overrides()) }

func stateOf(set *control.Overrides) string {
	var lines []string
	for _, o := range set.All() {
		lines = append(lines, fmt.Sprintf("%s %s %s = %s", o.ID, o.Lever, o.Object, o.Value))
	}
	return strings.Join(lines, "\n")
}

// kept is what a new process would find.
func (r *room) kept(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"overrides.json", "audit.log"} {
		data, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := control.Open(control.StoreOptions{Dir: dir, Backend: controltest.New(), Now: r.Time, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return stateOf(s.Overrides())
}

// trail is the audit log as text: "drain region eu accepted".
func (r *room) trail(t *testing.T) string {
	t.Helper()
	entries, err := r.Audit(1000)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		lines = append(lines, strings.Join([]string{e.Action, e.Object, e.Outcome}, " "))
	}
	return strings.Join(lines, "\n")
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }
