package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/control/controltest"
)

const drainUS = `{"lever":"drain","region":"us","why":"fire","for":"1h"}`

// block makes a file impossible to write, whoever we are, and gives a function
// that ends that.
func (r *room) block(t *testing.T, name string) (unblock func()) {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotSaved holds that what can't be saved isn't done.
func TestNotSaved(t *testing.T) {
	r := newRoom(t)
	r.must(t, drainUS)
	unblock := r.block(t, "overrides.json.tmp")
	version := r.Version()
	_, err := r.Do(t.Context(), alice, request(t, `{"lever":"dial","region":"eu","value":7,"why":"cold","for":"1h"}`))
	if !errors.Is(err, control.ErrNotKept) {
		t.Errorf("it is %v", err)
	}
	const want = "1 drain region us = on"
	if r.state() != want || r.kept(t) != want || r.Version() != version || r.backend.Current() != r.Overrides() {
		t.Errorf("it is %s, kept %s", r.state(), r.kept(t))
	}
	if trail := r.trail(t); trail != "drain region us accepted\ndial region eu refused" {
		t.Errorf("the log is %s", trail)
	}
	if !strings.Contains(r.log(), "after a restart the overrides may be others") {
		t.Errorf("the log says %s", r.log())
	}
	unblock()
	if err := r.Expire(t.Context()); err != nil { // it is saved again
		t.Error(err)
	}
	r.must(t, `{"lever":"dial","region":"eu","value":7,"why":"cold","for":"1h"}`)
}

// TestOpenUnwritable holds that a server starts with the overrides it had though its directory
// can't be written to, changes nothing until it can, and then saves them by itself.
func TestOpenUnwritable(t *testing.T) {
	r := newRoom(t)
	r.must(t, drainUS)
	unblock := r.block(t, "overrides.json.tmp")
	if err := r.restart(t); err != nil {
		t.Fatal(err)
	}
	const want = "1 drain region us = on"
	if r.state() != want || strings.Count(r.log(), "trying again") != 1 {
		t.Errorf("it is %s, and the log says %s", r.state(), r.log())
	}
	const dial = `{"lever":"dial","region":"eu","value":7,"why":"cold","for":"1h"}`
	if _, err := r.Do(t.Context(), alice, request(t, dial)); !errors.Is(err, control.ErrNotKept) {
		t.Errorf("it is %v", err)
	}
	unblock()
	if err := r.Expire(t.Context()); err != nil {
		t.Error(err)
	}
	r.must(t, dial)
}

// TestNotPublished holds that what the plugin doesn't take is taken back.
func TestNotPublished(t *testing.T) {
	r := newRoom(t)
	r.must(t, drainUS)
	r.backend.FailWith(func(method string) error {
		if method == "Publish" {
			return errors.New("no memory")
		}
		return nil
	})
	_, err := r.Do(t.Context(), alice, request(t, `{"cancel":"1","why":"done"}`))
	if err == nil || err.Error() != "no memory" {
		t.Errorf("it is %v", err)
	}
	const want = "1 drain region us = on"
	if r.state() != want || r.kept(t) != want || r.backend.Current() != r.Overrides() {
		t.Errorf("it is %s, kept %s", r.state(), r.kept(t))
	}
	entries, _ := r.Audit(1)
	if len(entries) != 1 || entries[0].Outcome != control.OutcomeRefused || entries[0].Reason != "no memory" {
		t.Errorf("the log ends with %+v", entries)
	}
}

func TestDamaged(t *testing.T) {
	good := func(t *testing.T) *room {
		r := newRoom(t)
		r.must(t, drainUS)
		return r
	}
	for name, damage := range map[string]func(data string) string{
		"cut":       func(s string) string { return s[:len(s)/2] },
		"empty":     func(string) string { return "" },
		"zeros":     func(s string) string { return strings.Repeat("\x00", len(s)) },
		"edited":    func(s string) string { return strings.Replace(s, `"on"`, `"off"`, 1) },
		"no sum":    func(s string) string { return strings.Replace(s, `"sha256": "`, `"sha256": "0`, 1) },
		"format":    func(s string) string { return strings.Replace(s, `"format": 1`, `"format": 2`, 1) },
		"too large": func(s string) string { return s + strings.Repeat(" ", 8<<20) },
		"more":      func(s string) string { return s + "{}" },
	} {
		t.Run(name, func(t *testing.T) {
			r := good(t)
			path := filepath.Join(r.dir, "overrides.json")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(damage(string(data))), 0o600); err != nil {
				t.Fatal(err)
			}
			err = r.restart(t)
			if !errors.Is(err, control.ErrSetAside) || !strings.Contains(err.Error(), path+".bad-20260501T220000Z") {
				t.Errorf("it is %v", err)
			}
			if aside, err := os.ReadFile(path + ".bad-20260501T220000Z"); err != nil || string(aside) != damage(string(data)) {
				t.Errorf("set aside: %v", err)
			}
			afterLoss(t, r)
		})
	}
	t.Run("gone", func(t *testing.T) {
		r := good(t)
		if err := os.Remove(filepath.Join(r.dir, "overrides.json")); err != nil {
			t.Fatal(err)
		}
		if err := r.restart(t); !errors.Is(err, control.ErrSetAside) || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("it is %v", err)
		}
		afterLoss(t, r)
	})
	t.Run("white space", func(t *testing.T) { // what an editor may do is no damage
		r := good(t)
		path := filepath.Join(r.dir, "overrides.json")
		data, _ := os.ReadFile(path)
		os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "  ", "\t")), 0o600)
		if err := r.restart(t); err != nil || r.state() != "1 drain region us = on" {
			t.Errorf("it is %s, %v", r.state(), err)
		}
	})
}

// afterLoss holds that a store goes on without what was lost: no ID comes again,
// it is told in the status, and only once the file is lost.
func afterLoss(t *testing.T, r *room) {
	t.Helper()
	if r.Overrides().Len() != 0 {
		t.Errorf("there are %s", r.state())
	}
	status, err := r.Status(t.Context())
	if err != nil || len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], "the overrides made before are lost") {
		t.Errorf("the status warns %q, %v", status.Warnings, err)
	}
	r.must(t, drainUS)
	if got := r.state(); got != "2 drain region us = on" {
		t.Errorf("it is %s", got)
	}
	if err := r.restart(t); err != nil || r.state() != "2 drain region us = on" {
		t.Errorf("then it is %s, %v", r.state(), err)
	}
}

func TestNoDirectory(t *testing.T) {
	_, err := control.Open(control.StoreOptions{Dir: filepath.Join(t.TempDir(), "none"), Backend: controltest.New(), Now: time.Now, Logf: t.Logf})
	if err == nil || errors.Is(err, control.ErrSetAside) {
		t.Errorf("it is %v", err)
	}
}

// TestFileGone holds that overrides in service are saved again after their directory was
// removed, that this is said once, and that changes go on.
func TestFileGone(t *testing.T) {
	r := newRoom(t)
	r.must(t, drainUS)
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := r.Expire(t.Context()); err != nil {
			t.Error(err)
		}
	}
	kept, err := control.Peek(r.dir, r.Time())
	if err != nil || kept == nil || stateOf(kept) != "1 drain region us = on" {
		t.Errorf("kept is %v, %v", kept, err)
	}
	if n := strings.Count(r.log(), "is gone; saving"); n != 1 {
		t.Errorf("said %d times: %s", n, r.log())
	}
	r.must(t, `{"lever":"dial","region":"eu","value":7,"why":"cold","for":"1h"}`)
	if trail := r.trail(t); trail != "dial region eu accepted" {
		t.Errorf("the log is %s", trail)
	}
}
