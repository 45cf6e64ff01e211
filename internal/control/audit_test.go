package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newAudit(t *testing.T) (*Audit, string) {
	t.Helper()
	dir := t.TempDir()
	a, err := openAudit(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a, dir
}

func TestAuditLines(t *testing.T) {
	a, dir := newAudit(t)
	long := strings.Repeat("ä\x00<\"\\\u2028", 3000)
	in := Entry{Time: now, Who: "alice", From: long, Action: "drain", ID: "17", Object: long, Value: long, Previous: long, Why: long, Version: long, Outcome: OutcomeAccepted, Reason: long}
	if err := a.write(in, Entry{Time: now, Who: "bob", Outcome: OutcomeRefused, Until: now.Add(time.Hour), Forced: true}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if len(lines) != 3 || len(lines[0]) > maxAuditLine || strings.Contains(lines[0], `\u`) {
		t.Errorf("%d lines, the first of %d bytes", len(lines)-1, len(lines[0]))
	}
	entries, err := a.tail(10)
	if err != nil || len(entries) != 2 || entries[0].Who != "alice" || entries[0].ID != "17" || entries[1].Who != "bob" || !entries[1].Until.Equal(now.Add(time.Hour)) {
		t.Errorf("it reads %+v, %v", entries, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "audit.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if a.highestID() != 17 {
		t.Errorf("the highest ID is %d", a.highestID())
	}
}

// TestAuditRotation fills the log, and expects the newest entries in three files.
func TestAuditRotation(t *testing.T) {
	a, dir := newAudit(t)
	why := strings.Repeat("x", maxAuditWhy)
	a.most = 1 << 20
	n := 0
	for range 30 {
		var batch []Entry
		for range 100 {
			batch = append(batch, Entry{Time: now, ID: fmt.Sprint(n), Why: why, Object: why, Outcome: OutcomeAccepted})
			n++
		}
		if err := a.write(batch...); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("there are %q", files)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > a.most || info.Size() < a.most/10 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes, mode %v", f, info.Size(), info.Mode())
		}
	}
	// What is asked for comes from as many files as it takes.
	if err := a.write(Entry{Time: now, ID: fmt.Sprint(n), Outcome: OutcomeAccepted}); err != nil {
		t.Fatal(err)
	}
	entries, err := a.tail(maxTail + 1)
	if err != nil || len(entries) != maxTail {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, e := range entries {
		if e.ID != fmt.Sprint(n+1-maxTail+i) {
			t.Fatalf("entry %d is %s", i, e.ID)
		}
	}
}

// TestNotANumber holds that a reply that JSON can't hold is an error, and JSON.
func TestNotANumber(t *testing.T) {
	w, logged := httptest.NewRecorder(), ""
	s := New(Options{Logf: func(format string, _ ...any) { logged = format }})
	s.write(w, 200, Status{Deficit: math.NaN()})
	if w.Code != 500 || !json.Valid(w.Body.Bytes()) || logged == "" {
		t.Errorf("%d %s, the log says %q", w.Code, w.Body, logged)
	}
}

// TestAuditRotationFails holds that nothing is lost when a new file can't be made.
func TestAuditRotationFails(t *testing.T) {
	a, dir := newAudit(t)
	if err := a.write(Entry{Time: now, ID: "1", Outcome: OutcomeAccepted}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "audit.log.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.size = a.most
	for range 3 {
		if err := a.write(Entry{Time: now, ID: "2"}); err == nil {
			t.Error("written into nothing")
		}
	}
	os.Remove(filepath.Join(dir, "audit.log.new"))
	if err := a.write(Entry{Time: now, ID: "3", Outcome: OutcomeAccepted}); err != nil {
		t.Error(err)
	}
	if entries, err := a.tail(10); err != nil || len(entries) != 2 || entries[0].ID != "1" || entries[1].ID != "3" {
		t.Errorf("it reads %+v, %v", entries, err)
	}
}

// full is a disk that takes so many bytes more.
type full struct {
	a    *Audit
	left int
	sync error
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if len(p) <= f.left {
		return f.a.file.Write(p)
	}
	n, _ := f.a.file.Write(p[:f.left])
	f.left = 0
	return n, errFull
}

func (f *full) Sync() error { return f.sync }

func TestAuditDiskFull(t *testing.T) {
	a, dir := newAudit(t)
	if err := a.write(Entry{Time: now, ID: "1"}); err != nil {
		t.Fatal(err)
	}
	a.sink = &full{a: a, left: 10}
	for range 2 {
		if err := a.write(Entry{Time: now, ID: "2"}); !errors.Is(err, errFull) {
			t.Errorf("it is %v", err)
		}
	}
	a.sink = &full{a: a, left: 1000, sync: errFull}
	if err := a.write(Entry{Time: now, ID: "3"}); !errors.Is(err, errFull) {
		t.Errorf("it is %v", err)
	}
	a.sink = a.file
	if err := a.write(Entry{Time: now, ID: "4"}); err != nil {
		t.Error(err)
	}
	check := func(a *Audit, want string) {
		t.Helper()
		entries, err := a.tail(10)
		got := ""
		for _, e := range entries {
			got += e.ID
		}
		if err != nil || got != want {
			t.Errorf("it reads %s, %v; expected %s", got, err, want)
		}
	}
	check(a, "134") // 3 may be on the disk: nobody was told that it isn't
	a.sink = &full{a: a, left: 10}
	a.write(Entry{Time: now, ID: "5"})
	a.Close() // a crash with half a line
	again, err := openAudit(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.write(Entry{Time: now, ID: "6"}); err != nil {
		t.Error(err)
	}
	check(again, "1346")
}

// TestAuditRefusal holds that what can't be written down isn't done.
func TestAuditRefusal(t *testing.T) {
	var logged strings.Builder
	b := &plainBackend{}
	s, err := Open(StoreOptions{Dir: t.TempDir(), Backend: b, Now: func() time.Time { return now }, Logf: func(f string, args ...any) { fmt.Fprintf(&logged, f+"\n", args...) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.audit.sink = &full{a: s.audit}
	r := &Request{Change: Change{Lever: Drain, Object: Object{Region: "eu"}, Terms: Terms{Why: "fire", Never: true}}}
	if _, err := s.Do(t.Context(), Author{Name: "alice"}, r); !errors.Is(err, ErrNotKept) || !errors.Is(err, errFull) {
		t.Errorf("it is %v", err)
	}
	if _, err := s.Return(t.Context(), Author{Name: "alice"}, ReturnRequest{Endpoint: "192.0.2.1", Check: "web", Why: "fixed"}); !errors.Is(err, ErrNotKept) {
		t.Errorf("return: %v", err)
	}
	if b.published != nil || b.returned || s.Overrides().Len() != 0 {
		t.Error("it is done all the same")
	}
	if set, err := load(s.Dir, now); err != nil || set.Len() != 0 {
		t.Errorf("kept are %d, %v", set.Len(), err)
	}
	if !strings.Contains(logged.String(), "not in the audit log") {
		t.Errorf("the log says %s", logged.String())
	}
}

// TestAuditFileGone holds that entries go where they are looked for, also after the file was
// moved away or removed, and that nothing is written while it can't be made again.
func TestAuditFileGone(t *testing.T) {
	a, dir := newAudit(t)
	write := func(id string) error { return a.write(Entry{Time: now, ID: id, Outcome: OutcomeAccepted}) }
	look := func(want string) {
		t.Helper()
		entries, err := a.tail(10)
		got := ""
		for _, e := range entries {
			got += e.ID
		}
		if err != nil || got != want {
			t.Errorf("it reads %q, %v; expected %q", got, err, want)
		}
	}
	if err := write("1"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "audit.log"), filepath.Join(dir, "audit.log.1")); err != nil {
		t.Fatal(err)
	}
	if err := write("2"); err != nil {
		t.Error(err)
	}
	look("12")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := write("3"); err == nil {
		t.Error("written into a directory that is gone")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := write("4"); err != nil {
		t.Error(err)
	}
	look("4")
}
