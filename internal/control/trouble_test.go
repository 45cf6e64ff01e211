package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
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
	r := newRoom(t)
	r.Close()
	r.block(t, "overrides.json.tmp")
	_, err = control.Open(control.StoreOptions{Dir: r.dir, Backend: r.backend, Now: r.Time, Logf: t.Logf})
	if err == nil || errors.Is(err, control.ErrSetAside) {
		t.Errorf("with a directory that can't be written: %v", err)
	}
}

// TestExpiry holds that an override ends when it said, with the server up or down,
// and is dropped though nothing can be saved, until it can.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{dir: t.TempDir()}
		open := func() func() {
			r.backend = controltest.New()
			s, err := control.Open(control.StoreOptions{Dir: r.dir, Backend: r.backend, Now: time.Now, Logf: r.Logf})
			if err != nil {
				t.Fatal(err)
			}
			r.Store = s
			r.backend.Publish(t.Context(), control.Publication{Next: s.Overrides()})
			return runUntil(t, s)
		}
		stop := open()
		r.must(t, drainUS)
		r.must(t, `{"lever":"dial","region":"eu","value":7,"why":"cold","for":"2h"}`)
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if r.backend.Current().Len() != 2 {
			t.Error("it ended too early")
		}
		unblock := r.block(t, "overrides.json.tmp")
		version := r.Version()
		time.Sleep(time.Second)
		synctest.Wait()
		if r.backend.Current().Len() != 1 || r.Version() == version {
			t.Error("it didn't end")
		}
		unblock()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		data, _ := os.ReadFile(filepath.Join(r.dir, "overrides.json"))
		if strings.Contains(string(data), `"drain"`) {
			t.Error("it is kept for ever")
		}
		stop()
		time.Sleep(2 * time.Hour)
		stop = open()
		defer stop()
		if r.Overrides().Len() != 0 {
			t.Errorf("after a long time down there are %s", r.state())
		}
		if trail := r.trail(t); !strings.HasSuffix(trail, "expire region us accepted\nexpire region eu accepted") {
			t.Errorf("the log is %s", trail)
		}
		if !strings.Contains(r.log(), "override 1 (drain of region us = on, by alice: fire) has expired") {
			t.Errorf("the log says %s", r.log())
		}
	})
}

// TestExpiryTriedAgain holds that an expiry that the plugin doesn't take is tried again, and
// that a guard against what moves is told of, but not obeyed.
func TestExpiryTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runningRoom(t)
		r.must(t, `{"lever":"drain","region":"ap","value":"off","why":"needed","never":true}`)
		r.must(t, `{"changes":[{"lever":"drain","region":"eu"},{"lever":"drain","region":"us"}],"why":"only ap","for":"1h","force":true}`)
		r.backend.FailWith(func(method string) error {
			if method == "Publish" && r.Overrides().Find("2").Until.After(time.Now().Add(-5*time.Second)) {
				return errors.New("not now")
			}
			return nil
		})
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		if got := stateOf(r.backend.Current()); got != "1 drain region ap = off" {
			t.Errorf("it is %s", got)
		}
		for _, want := range []string{"not now; trying again", "an override expires, as was said when it was made, though refused by guard max_move"} {
			if !strings.Contains(r.log(), want) {
				t.Errorf("the log doesn't say %q:\n%s", want, r.log())
			}
		}
	})
}

// TestExpiryPostponed holds that an override stays in force past its time where its end
// would leave nobody to answer, that others end meanwhile, and that it goes on by
// itself or by force.
func TestExpiryPostponed(t *testing.T) {
	for name, release := range map[string]string{
		"eu is back": `{"lever":"drain","region":"eu","value":"off","why":"repaired","never":true,"force":true}`,
		"by force":   `{"cancel":"1","why":"really","force":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := runningRoom(t)
				r.must(t, `{"lever":"drain","region":"ap","value":"off","why":"needed","for":"1h"}`)
				r.must(t, `{"changes":[{"lever":"drain","region":"eu"},{"lever":"drain","region":"us"}],"why":"only ap","never":true,"force":true}`)
				r.must(t, `{"lever":"dial","region":"us","value":"50","why":"slowly","for":"1h"}`)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				const down = "1 drain region ap = off\n2 drain region eu = on\n3 drain region us = on"
				if got := stateOf(r.backend.Current()); got != down || stateOf(r.Overrides()) != down {
					t.Errorf("after its time it is %s", got)
				}
				const want = "override 1 (drain of region ap = off, by alice: needed) has expired but stays in force until guards let it end: refused by guard usable: "
				status, err := r.Status(t.Context())
				if err != nil || len(status.Warnings) != 1 || !strings.HasPrefix(status.Warnings[0], want) || len(r.Postponed()) != 1 {
					t.Errorf("the status warns of %q, %v; postponed are %v", status.Warnings, err, r.Postponed())
				}
				if n := strings.Count(r.log(), want); n != 1 || !strings.Contains(r.log(), "override 4 (dial of region us") {
					t.Errorf("said %d times:\n%s", n, r.log())
				}
				r.must(t, release)
				if name != "by force" && len(r.Postponed()) != 1 {
					t.Error("it has ended before it was judged again")
				}
				time.Sleep(11 * time.Second)
				synctest.Wait()
				if r.Overrides().Find("1") != nil || len(r.Postponed()) != 0 {
					t.Errorf("it is %s; postponed are %v", r.state(), r.Postponed())
				}
				if expired := strings.HasSuffix(strings.TrimSpace(r.log()), "override 1 (drain of region ap = off, by alice: needed) has expired"); expired != (name != "by force") {
					t.Errorf("the log says %s", r.log())
				}
			})
		})
	}
}

// runningRoom is a room whose overrides expire.
func runningRoom(t *testing.T) *room {
	t.Helper()
	r := &room{dir: t.TempDir(), backend: controltest.New()}
	s, err := control.Open(control.StoreOptions{Dir: r.dir, Backend: r.backend, Now: time.Now, Logf: r.Logf})
	if err != nil {
		t.Fatal(err)
	}
	r.Store = s
	t.Cleanup(runUntil(t, s))
	return r
}

// TestExpiryUnjudged has a store end while guards are asked about what has expired, and
// an outage come after they were: it stays in force.
func TestExpiryUnjudged(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(r *room, leave func())
		want      error // nil: a refusal
	}{
		"the store ends": {func(r *room, leave func()) {
			r.backend.FailWith(func(method string) error {
				if method != "WhatIf" {
					return nil
				}
				leave()
				return context.Canceled
			})
		}, context.Canceled},
		"an outage": {func(r *room, _ func()) {
			r.backend.Upset(control.Report{Refusals: []control.Refusal{{Guard: "usable", Reason: "us is down"}}})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			r.must(t, `{"lever":"drain","region":"ap","value":"off","why":"needed","for":"1h"}`)
			r.pass(2 * time.Hour)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			tc.meanwhile(r, leave)
			err := r.Expire(ctx)
			if refused := (*control.Refused)(nil); err == nil || tc.want == nil && !errors.As(err, &refused) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("it is %v", err)
			}
			if got := stateOf(r.backend.Current()); got != "1 drain region ap = off" || r.state() != got {
				t.Errorf("in force is %q, kept %q", got, r.state())
			}
		})
	}
}

func TestReturn(t *testing.T) {
	r := newRoom(t)
	ask := control.ReturnRequest{Endpoint: "192.0.2.1", Check: "web", Why: "disk replaced", Version: r.Version()}
	if back, err := r.Return(t.Context(), alice, ask); err != nil || back.Endpoint != addr("192.0.2.1") {
		t.Errorf("it is %+v, %v", back, err)
	}
	for want, wrong := range map[string]func(*control.ReturnRequest){
		"endpoint": func(r *control.ReturnRequest) { r.Endpoint = "lb-1" },
		"why":      func(r *control.ReturnRequest) { r.Why = "" },
		"check":    func(r *control.ReturnRequest) { r.Check = "" },
		"waits":    func(r *control.ReturnRequest) { r.Check = "other" },
		"version":  func(r *control.ReturnRequest) { r.Version = "old" },
	} {
		bad := ask
		wrong(&bad)
		if _, err := r.Return(t.Context(), alice, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if got := r.backend.Returned(); len(got) != 1 || got[0] != "192.0.2.1 web" {
		t.Errorf("back are %q", got)
	}
	const trail = "return endpoint 192.0.2.1 accepted\nreturn endpoint 192.0.2.1 refused\nreturn endpoint 192.0.2.1 refused"
	if got := r.trail(t); got != trail { // of another check, and another version
		t.Errorf("the log is %s", got)
	}
}
