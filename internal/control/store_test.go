package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// TestChanges follows one night: what holds after each request.
func TestChanges(t *testing.T) {
	r := newRoom(t)
	for _, step := range []struct{ in, want string }{
		{`{"lever":"drain","region":"us","why":"fire","for":"1h"}`, "1 drain region us = on"},
		{`{"lever":"drain","region":"us","why":"fire again","for":"2h"}`, "2 drain region us = on"},
		{`{"lever":"dial","region":"us","host":"www.example.com","value":10,"why":"slowly","never":true}`,
			"2 drain region us = on\n3 dial host api.example.com in region us = 10%"},
		{`{"lever":"drain","region":"us","value":"off","why":"fire is out"}`, "3 dial host api.example.com in region us = 10%"},
		{`{"cancel":"3","why":"all is well"}`, ""},
		// ap is drained by the Corefile: only an override can undo that.
		{`{"lever":"drain","region":"ap","value":"off","why":"we need it","for":"1h"}`, "4 drain region ap = off"},
		{`{"lever":"drain","region":"ap","value":"on","why":"no more","for":"1h"}`, "5 drain region ap = on"},
		{`{"lever":"drain","region":"ap","value":"off","why":"yet again","for":"1h"}`, "6 drain region ap = off"},
		// eu's pool is undrained by cancelling, but where the region is drained too by an override of its own.
		{`{"changes":[{"lever":"drain","region":"us","host":"api.example.com"},{"cancel":"6"}],"why":"swap","for":"1h"}`, "7 drain host api.example.com in region us = on"},
		{`{"lever":"drain","region":"us","why":"all of it","for":"1h"}`, "7 drain host api.example.com in region us = on\n8 drain region us = on"},
		{`{"lever":"drain","region":"us","host":"api.example.com","value":"off","why":"this host can","for":"1h"}`,
			"8 drain region us = on\n9 drain host api.example.com in region us = off"},
		{`{"changes":[{"cancel":"8"},{"cancel":"9"}],"why":"over"}`, ""},
		{`{"lever":"dial","region":"us","value":100,"why":"all of it","for":"1h"}`, "10 dial region us = 100%"},
		{`{"lever":"dial","region":"us","value":"50","why":"as it was","for":"1h"}`, "11 dial region us = 50%"},
	} {
		r.must(t, step.in)
		if got := r.state(); got != step.want {
			t.Errorf("%s: it is\n%s\nexpected\n%s", step.in, got, step.want)
		}
		if kept := r.kept(t); kept != step.want {
			t.Errorf("%s: kept is\n%s\nexpected\n%s", step.in, kept, step.want)
		}
		if r.backend.Current() != r.Overrides() {
			t.Errorf("%s: the plugin has another set", step.in)
		}
	}
	o := r.Overrides().Find("11")
	if o.Previous != "100% (override 10)" || o.By != "alice" || !o.Until.Equal(start.Add(time.Hour)) || !o.Made.Equal(start) {
		t.Errorf("it is %+v", o)
	}
	entries, err := r.Audit(2)
	if err != nil || len(entries) != 2 || entries[0].Previous != "50% (Corefile:9)" || entries[1].ID != "11" || entries[1].Why != "as it was" {
		t.Errorf("the log is %+v, %v", entries, err)
	}
}

func TestRefusals(t *testing.T) {
	r := newRoom(t)
	r.must(t, `{"lever":"drain","region":"us","why":"fire","for":"1h"}`)
	before, version := r.state(), r.Version()
	for _, c := range []struct{ in, want string }{
		{`{"cancel":"7","why":"done"}`, `there is no override "7"`},
		{`{"lever":"drain","region":"mars","why":"fire","for":"1h"}`, `no region "mars"`},
		{`{"lever":"drain","region":"eu","host":"x.example.com","why":"fire","for":"1h"}`, `no host "x.example.com."`},
		{`{"lever":"drain","region":"eu","why":"fire"}`, `expected until, for or never`},
		{`{"lever":"drain","region":"ap","value":"off","why":"fire"}`, `expected until, for or never`},
		{`{"lever":"drain","region":"eu","value":"off","why":"fire"}`, `drain of region eu is off already`},
		{`{"lever":"dial","region":"eu","value":100,"why":"fire","for":"1h"}`, `dial of region eu is 100% already`},
		{`{"changes":[{"lever":"dial","region":"eu","value":7},{"lever":"dial","region":"eu","value":8}],"why":"fire","for":"1h"}`, `change 2: dial of region eu is changed twice`},
		{`{"changes":[{"cancel":"1"},{"lever":"drain","region":"us"}],"why":"fire","for":"1h"}`, `change 2: drain of region us is changed twice`},
		{`{"changes":[{"lever":"dial","region":"eu","value":7},{"lever":"dial","region":"mars","value":8}],"why":"fire","for":"1h"}`, `change 2: no region "mars"`},
		{`{"lever":"drain","region":"eu","why":"fire","for":"1h"}`, `refused by guard usable: api.example.com has no region left`},
		{`{"lever":"dial","region":"eu","value":7,"why":"fire","for":"1h","version":"old"}`, control.ErrStale.Error()},
	} {
		_, err := r.Do(t.Context(), alice, request(t, c.in))
		if err == nil || !strings.Contains(err.Error()+hintOf(err), c.want) {
			t.Errorf("%s: %v, expected %s", c.in, err, c.want)
		}
	}
	if r.state() != before || r.Version() != version || r.kept(t) != before {
		t.Errorf("refused changes made it %s", r.state())
	}
	// What named nothing that exists is a slip, and not written down.
	want := "drain region us accepted\ndrain region eu refused\ndial region eu refused"
	if trail := r.trail(t); trail != want {
		t.Errorf("the log is\n%s\nexpected\n%s", trail, want)
	}
}

func hintOf(err error) string {
	if wrong := (*control.Invalid)(nil); errors.As(err, &wrong) {
		return " " + wrong.Hint
	}
	return ""
}

func TestForce(t *testing.T) {
	r := newRoom(t)
	result := r.must(t, `{"changes":[{"lever":"drain","region":"eu"},{"lever":"drain","region":"us"}],"why":"end of the world","for":"1h","force":true}`)
	if !result.Forced || len(result.Report.Refusals) != 2 || r.Overrides().Len() != 2 {
		t.Errorf("it is %+v", result)
	}
	entries, err := r.Audit(10)
	if err != nil || len(entries) != 2 || !entries[1].Forced || !strings.Contains(entries[1].Reason, "overruled: refused by guard usable") {
		t.Errorf("the log is %+v, %v", entries, err)
	}
	if result := r.must(t, `{"lever":"dial","region":"us","value":7,"why":"no need","for":"1h","force":true}`); result.Forced {
		t.Error("forced, though nothing was against it")
	}
}

// TestStale holds that a delayed plan doesn't undo a newer one.
func TestStale(t *testing.T) {
	r := newRoom(t)
	old := r.Version()
	r.must(t, `{"lever":"drain","region":"us","why":"fire","for":"1h","version":"`+old+`"}`)
	delayed := request(t, `{"lever":"drain","region":"eu","why":"fire","for":"1h","version":"`+old+`"}`)
	if _, err := r.Do(t.Context(), alice, delayed); !errors.Is(err, control.ErrStale) {
		t.Errorf("the delayed change: %v", err)
	}
	if _, err := r.WhatIf(t.Context(), alice, delayed); !errors.Is(err, control.ErrStale) {
		t.Errorf("what if the delayed change: %v", err)
	}
	delayed.Version = r.Version()
	r.backend.Reload("bb")
	if _, err := r.Do(t.Context(), alice, delayed); !errors.Is(err, control.ErrStale) {
		t.Errorf("after a reload: %v", err)
	}
	// A plan that changes between judging and publishing.
	r.backend.FailWith(func(method string) error {
		if method == "Publish" {
			r.backend.Reload("cc")
		}
		return nil
	})
	delayed = request(t, `{"lever":"dial","region":"eu","value":7,"why":"fire","for":"1h"}`)
	if _, err := r.Do(t.Context(), alice, delayed); !errors.Is(err, control.ErrStale) {
		t.Errorf("a plan that changes meanwhile: %v", err)
	}
	const want = "1 drain region us = on"
	if r.state() != want || r.kept(t) != want || r.backend.Current() != r.Overrides() {
		t.Errorf("it is %s, kept %s", r.state(), r.kept(t))
	}
	if trail := r.trail(t); !strings.HasSuffix(trail, "dial region eu accepted\ndial region eu refused") {
		t.Errorf("the log is\n%s", trail)
	}
	// The same revision of a lost directory is another version.
	lost := newRoom(t)
	lost.pass(time.Second)
	other := newRoom(t)
	other.pass(time.Hour)
	other.dir = t.TempDir()
	other.restart(t)
	if lost.Version() == other.Version() {
		t.Errorf("both are %s", lost.Version())
	}
}

func TestWhatIfChangesNothing(t *testing.T) {
	r := newRoom(t)
	version := r.Version()
	result, err := r.WhatIf(t.Context(), alice, request(t, `{"lever":"drain","region":"eu","why":"fire","for":"1h"}`))
	if err != nil || result.Report.MovedBlocks != 50 || result.Version != version || result.Applied[0].Override.Previous != "off" {
		t.Errorf("it is %+v, %v", result, err)
	}
	if r.Overrides().Len() != 0 || r.Version() != version || r.trail(t) != "" {
		t.Error("it has changed something")
	}
	done := r.must(t, `{"lever":"drain","region":"eu","why":"fire","for":"1h"}`)
	if done.Report.MovedBlocks != 50 || done.Version == version || done.Version != r.Version() {
		t.Errorf("it was %+v", done)
	}
}

// TestConcurrentChanges holds that of changes made on one version one is done.
func TestConcurrentChanges(t *testing.T) {
	r := newRoom(t)
	const rounds, workers = 5, 8
	for range rounds {
		version := r.Version()
		var done sync.Map
		var all sync.WaitGroup
		for i := range workers {
			q := request(t, fmt.Sprintf(`{"lever":"dial","region":"eu","value":%d,"why":"race","never":true,"version":%q}`, i, version))
			all.Go(func() {
				if _, err := r.Do(t.Context(), alice, q); err == nil {
					done.Store(i, true)
				} else if !errors.Is(err, control.ErrStale) {
					t.Error(err)
				}
			})
			all.Go(func() { r.Overrides().Region("api.example.com.", "eu"); r.Version() })
		}
		all.Wait()
		n := 0
		done.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("%d changes of one version were done", n)
		}
	}
	var all sync.WaitGroup
	for i := range workers { // without a version all of them are, one after the other
		q := request(t, fmt.Sprintf(`{"lever":"weight","endpoint":"192.0.2.1","value":%d,"why":"race","never":true}`, i))
		all.Go(func() {
			if _, err := r.Do(t.Context(), alice, q); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if r.Overrides().Len() != 2 || r.Overrides().Revision() != rounds+workers || r.kept(t) != r.state() {
		t.Errorf("revision %d of\n%s", r.Overrides().Revision(), r.state())
	}
}

// TestWaiting holds that who waits for another change can give up.
func TestWaiting(t *testing.T) {
	r := newRoom(t)
	began, end := make(chan bool), make(chan bool)
	r.backend.FailWith(func(method string) error {
		if method == "WhatIf" {
			began <- true
			<-end
		}
		return nil
	})
	finished := make(chan error)
	go func() {
		_, err := r.Do(t.Context(), alice, request(t, `{"lever":"dial","region":"eu","value":7,"why":"slow","never":true}`))
		finished <- err
	}()
	<-began
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Do(gone, alice, request(t, `{"lever":"dial","region":"eu","value":8,"why":"gone","never":true}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("it is %v", err)
	}
	close(end)
	if err := <-finished; err != nil {
		t.Error(err)
	}
}

// TestJudgedAgain holds that what has changed since a change was judged counts: guards may
// refuse it then, or be overruled, which is written down.
func TestJudgedAgain(t *testing.T) {
	refused := control.Report{MovedBlocks: 100, Refusals: []control.Refusal{{Guard: "usable", Reason: "ap has gone down"}}}
	const ask = `{"lever":"dial","region":"us","value":7,"why":"slow","for":"1h"`
	r := newRoom(t)
	r.backend.Upset(refused)
	_, err := r.Do(t.Context(), alice, request(t, ask+`}`))
	var by *control.Refused
	if !errors.As(err, &by) || by.Refusals[0].Reason != "ap has gone down" {
		t.Errorf("it is %v", err)
	}
	if r.Overrides().Len() != 0 || r.kept(t) != "" || r.backend.Current() != r.Overrides() {
		t.Errorf("it is %s, kept %s", r.state(), r.kept(t))
	}
	if trail := r.trail(t); trail != "dial region us accepted\ndial region us refused" {
		t.Errorf("the log is\n%s", trail)
	}
	r.backend.Upset(refused)
	result := r.must(t, ask+`,"force":true}`)
	entries, _ := r.Audit(1)
	if !result.Forced || result.Report.MovedBlocks != 100 || !entries[0].Forced || !strings.Contains(entries[0].Reason, "overruled: refused by guard usable") {
		t.Errorf("it is %+v, and the log ends with %+v", result, entries)
	}
	r.backend.Upset(control.Report{MovedBlocks: 3})
	if result := r.must(t, ask+`,"force":true}`); result.Forced || result.Report.MovedBlocks != 3 {
		t.Errorf("it is %+v", result)
	}
	if n := strings.Count(r.trail(t), "accepted"); n != 4 {
		t.Errorf("the log is\n%s", r.trail(t))
	}
}

// TestWhatIfsWait holds that what-ifs are worked out one at a time, that who waits can give
// up, and that changes don't wait for them.
func TestWhatIfsWait(t *testing.T) {
	r := newRoom(t)
	ask := request(t, `{"lever":"dial","region":"eu","value":7,"why":"slow","never":true}`)
	began, end := make(chan bool), make(chan bool)
	r.backend.FailWith(func(method string) error {
		if method == "WhatIf" {
			began <- true
			<-end
		}
		return nil
	})
	finished := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := r.WhatIf(t.Context(), alice, ask)
			finished <- err
		}()
	}
	<-began
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.WhatIf(gone, alice, ask); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waiting for another what-if") {
		t.Errorf("it is %v", err)
	}
	go func() {
		_, err := r.Do(t.Context(), alice, ask)
		finished <- err
	}()
	<-began // the change's: the other what-if waits
	end <- true
	end <- true
	<-began // now it doesn't
	end <- true
	for range 3 {
		if err := <-finished; err != nil {
			t.Error(err)
		}
	}
}
