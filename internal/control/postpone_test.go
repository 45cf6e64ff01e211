package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/control/controltest"
)

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
		if ended := r.backend.Ended(); !slices.Equal(ended, []string{"1 it has expired"}) {
			t.Errorf("the backend was told that %q", ended)
		}
		stop()
		time.Sleep(2 * time.Hour)
		stop = open()
		defer stop()
		synctest.Wait()
		if r.Overrides().Len() != 0 || r.backend.Current().Len() != 0 {
			t.Errorf("after a long time down there are %s", r.state())
		}
		if trail := r.trail(t); !strings.HasSuffix(trail, "expire region us accepted\nexpire region eu accepted") {
			t.Errorf("the log is %s", trail)
		}
		if ended := r.backend.Ended(); !slices.Equal(ended, []string{"2 it has expired"}) {
			t.Errorf("the backend was told that %q", ended)
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
				if n := strings.Count(r.log(), want); n != 1 || !slices.Equal(r.backend.Ended(), []string{"4 it has expired"}) {
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
				ended := map[string][]string{"eu is back": {"2 cancelled by alice: repaired", "1 it has expired"}, "by force": {"1 cancelled by alice: really"}}[name]
				if got := r.backend.Ended(); !slices.Equal(got[1:], ended) {
					t.Errorf("the backend was told that %q", got)
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

// TestExpiryPostponedOverRestarts holds that what guards keep in force stays so in the next
// process, and ends as in the first.
func TestExpiryPostponedOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{dir: t.TempDir(), backend: controltest.New()}
		open := func() (end func()) {
			s, err := control.Open(control.StoreOptions{Dir: r.dir, Backend: r.backend, Now: time.Now, Logf: r.Logf})
			if err != nil {
				t.Fatal(err)
			}
			r.Store = s
			return runUntil(t, s)
		}
		end := open()
		r.must(t, `{"lever":"drain","region":"ap","value":"off","why":"needed","for":"1h"}`)
		r.must(t, `{"changes":[{"lever":"drain","region":"eu"},{"lever":"drain","region":"us"}],"why":"only ap","never":true,"force":true}`)
		time.Sleep(2 * time.Hour)
		end()
		time.Sleep(time.Hour)
		end = open()
		const down = "1 drain region ap = off\n2 drain region eu = on\n3 drain region us = on"
		for range 2 { // at once, and once it has been judged
			if got := stateOf(r.Overrides()); got != down {
				t.Errorf("after a restart it is %s", got)
			}
			synctest.Wait()
		}
		if len(r.Postponed()) != 1 || len(r.backend.Ended()) != 0 {
			t.Errorf("postponed are %v, ended %v", r.Postponed(), r.backend.Ended())
		}
		r.must(t, `{"lever":"drain","region":"eu","value":"off","why":"repaired","never":true,"force":true}`)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := r.backend.Ended(); !slices.Contains(got, "1 it has expired") || len(r.Postponed()) != 0 {
			t.Errorf("ended are %q, postponed %v", got, r.Postponed())
		}
		end()
	})
}
