package control_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
)

const (
	full    = "0123456789abcdef-full"
	reading = "0123456789abcdef-read"
	expired = "0123456789abcdef-gone"
)

// served is a room with an API.
type served struct {
	*room
	*control.Server
	tokens string // path
}

func newServed(t testing.TB) *served {
	t.Helper()
	s := &served{room: newRoom(t), tokens: filepath.Join(t.TempDir(), "tokens")}
	lines := "alice " + full + "\nbob " + reading + " read\ncarol " + expired + " until 2026-05-01T21:00:00Z\n"
	if err := os.WriteFile(s.tokens, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := control.OpenTokens(s.tokens, s.Time)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = control.New(control.Options{Store: s.Store, Tokens: tokens, Now: s.Time, Logf: s.Logf})
	return s
}

// ask makes a request, after what edit makes of it.
func (s *served) ask(method, path, body string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8053"
	r.Header.Set("Authorization", "Bearer "+full)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func as(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func with(header, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(header, value) }
}

// TestAPI tries every path once as it should be, and many as they shouldn't.
func TestAPI(t *testing.T) {
	const drain = `{"lever":"drain","region":"us","why":"fire","for":"1h"}`
	for _, c := range []struct {
		method, path, body string
		edit               func(*http.Request)
		status             int
		want               string // a part of the reply
	}{
		{"GET", "/v1/status", "", nil, 200, `"name": "eu"`},
		{"GET", "/v1/status", "", as(reading), 200, `"overrides": []`},
		{"GET", "/v1/overrides", "", nil, 200, `"overrides": []`},
		{"POST", "/v1/changes", drain, nil, 200, `"id": "1"`},
		{"POST", "/v1/changes", drain, with("Content-Type", "application/json; charset=utf-8"), 200, `"by": "alice"`},
		{"POST", "/v1/changes", `{"changes":[` + drain + `]}`, nil, 200, `"id": "1"`},
		{"POST", "/v1/whatif", drain, as(reading), 200, `"moved_blocks": 50`},
		{"GET", "/v1/audit?limit=5", "", nil, 200, `"entries": []`},
		{"GET", "/v1/explain?host=API.example.com&client=198.51.100.7&type=a", "", nil, 200, `"transport_assumed": true`},
		{"GET", "/v1/explain?host=api.example.com&client=198.51.100.0/24&resolver=2001:db8::1", "", nil, 200, `"at": "Corefile:20"`},
		{"POST", "/v1/return", `{"endpoint":"192.0.2.1","check":"web","why":"fixed"}`, nil, 200, `"endpoint": "192.0.2.1"`},

		{"GET", "/", "", nil, 404, `no such path`},
		{"GET", "/v2/status", "", nil, 404, `"code": "not_found"`},
		{"POST", "/v1/status", "{}", nil, 405, `"expected": "GET"`},
		{"GET", "/v1/changes", "", nil, 405, `"expected": "POST"`},
		{"GET", "/v1/overrides/1", "", nil, 405, `"expected": "DELETE"`},
		{"OPTIONS", "/v1/changes", "", nil, 405, `"code": "method"`},
		{"GET", "/v1/status?verbose=1", "", nil, 400, `verbose`},
		{"GET", "/v1/status?d=1&c=1&b=1&a=1", "", nil, 400, `"field": "a"`},
		{"GET", "/v1/audit?limit=0", "", nil, 400, `"expected": "1..1000"`},
		{"GET", "/v1/audit?limit=1001", "", nil, 400, `"field": "limit"`},
		{"GET", "/v1/audit?limit=5&limit=6", "", nil, 400, `"field": "limit"`},
		{"GET", "/v1/explain", "", nil, 400, `"field": "host"`},
		{"GET", "/v1/explain?host=api.example.com", "", nil, 400, `whom is the answer for?`},
		{"GET", "/v1/explain?host=api.example.com&client=x", "", nil, 400, `"field": "client"`},
		{"GET", "/v1/explain?host=api.example.com&client=::1&resolver=lb", "", nil, 400, `"field": "resolver"`},
		{"GET", "/v1/explain?host=api.example.com&client=::1&type=MX", "", nil, 400, `"field": "type"`},
		{"GET", "/v1/explain?host=x.example.com&client=::1", "", nil, 404, `no host`},

		{"POST", "/v1/changes", drain, as(reading), 403, `"code": "read_only"`},
		{"POST", "/v1/return", `{}`, as(reading), 403, `"code": "read_only"`},
		{"DELETE", "/v1/overrides/1", `{}`, as(reading), 403, `"code": "read_only"`},
		{"GET", "/v1/status", "", as(expired), 401, `"error": "unauthorized"`},
		{"GET", "/v1/status", "", as("0123456789abcdef-none"), 401, `"error": "unauthorized"`},
		{"GET", "/v1/status", "", as(""), 401, `"code": "unauthorized"`},
		{"GET", "/v1/status", "", with("Authorization", "Basic "+full), 401, `unauthorized`},
		{"GET", "/v1/status", "", with("Authorization", full), 401, `unauthorized`},
		{"GET", "/v1/status", "", func(r *http.Request) { r.Header.Del("Authorization") }, 401, `unauthorized`},
		{"GET", "/nowhere", "", as("wrong"), 401, `unauthorized`},

		{"GET", "/v1/status", "", func(r *http.Request) { r.Host = "evil.example:8053" }, 403, `"code": "host"`},
		{"GET", "/v1/status", "", func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 403, `"code": "host"`},
		{"GET", "/v1/status", "", func(r *http.Request) { r.Host = "" }, 403, `"code": "host"`},
		{"GET", "/v1/status", "", func(r *http.Request) { r.Host = "localhost" }, 200, `"version"`},
		{"GET", "/v1/status", "", func(r *http.Request) { r.Host = "[::1]:8053" }, 200, `"version"`},
		{"GET", "/v1/status", "", with("Origin", "http://127.0.0.1"), 403, `"code": "browser"`},
		{"GET", "/v1/status", "", with("Sec-Fetch-Site", "same-origin"), 403, `"code": "browser"`},

		{"POST", "/v1/changes", drain, with("Content-Type", "text/plain"), 415, `"expected": "Content-Type: application/json"`},
		{"POST", "/v1/changes", drain, with("Content-Type", ""), 415, `content_type`},
		{"POST", "/v1/changes", strings.Repeat(" ", 64<<10) + drain, nil, 413, `"code": "too_large"`},
		{"POST", "/v1/changes", ``, with("Content-Type", "application/json"), 400, `it is empty`},
		{"POST", "/v1/changes", `{"lever":"drain"`, nil, 400, `ends too early`},
		{"POST", "/v1/changes", `{"levr":"drain"}`, nil, 400, `"field": "levr"`},
		{"POST", "/v1/changes", `{"levr":"drain"}`, nil, 400, `cancel, lever, region, host, endpoint`},
		{"POST", "/v1/changes", `{"changes":[{"vlaue":1}]}`, nil, 400, `"field": "vlaue"`},
		{"POST", "/v1/changes", `{"Lever":"drain"}`, nil, 400, `"expected": "lever"`},
		{"POST", "/v1/changes", `{"lever":"drain","lever":"dial"}`, nil, 400, `it is there twice`},
		{"POST", "/v1/changes", drain + drain, nil, 400, `something follows it`},
		{"POST", "/v1/changes", `[` + drain + `]`, nil, 400, `JSON array`},
		{"POST", "/v1/changes", `{"lever":7}`, nil, 400, `"field": "lever"`},
		{"POST", "/v1/changes", `{"value":null}`, nil, 400, `no text, number or boolean`},
		{"POST", "/v1/changes", `{"value":[1]}`, nil, 400, `no text, number or boolean`},
		{"POST", "/v1/changes", `{"endpoint":"lb-1"}`, nil, 400, `lb-1`},
		{"POST", "/v1/changes", `{"until":"tomorrow"}`, nil, 400, `tomorrow`},
		{"POST", "/v1/changes", `{"changes":` + strings.Repeat("[", 500), nil, 400, `nested more than 8 deep`},
		{"POST", "/v1/changes", "{\"why\":\"\xff\"}", nil, 400, `not UTF-8`},
		{"POST", "/v1/changes", `{"lever":"drain","region":"us","for":"1h"}`, nil, 400, `"field": "why"`},
		{"POST", "/v1/changes", `{"lever":"drain","region":"mars","why":"fire","for":"1h"}`, nil, 404, `"field": "region"`},
		{"POST", "/v1/changes?force=1", drain, nil, 400, `"field": "force"`},
		{"POST", "/v1/changes", `{"changes":[{"lever":"drain","region":"us"},{"lever":"drain","region":"eu"}],"why":"fire","for":"1h"}`, nil, 422, `"guard": "usable"`},
		{"POST", "/v1/changes", `{"lever":"drain","region":"us","why":"fire","for":"1h","version":"old"}`, nil, 409, `"version": "00000000000000aa.`},
		{"POST", "/v1/whatif", `{"lever":"drain","region":"us","why":"fire","for":"1h","version":"old"}`, nil, 409, `"code": "stale"`},
		{"DELETE", "/v1/overrides/1", `{"why":"done"}`, nil, 404, `there is no override`},
		{"DELETE", "/v1/overrides/1", ``, nil, 415, `content_type`},
		{"DELETE", "/v1/overrides/1", `{}`, nil, 400, `"field": "why"`},
		{"POST", "/v1/return", `{"endpoint":"192.0.2.1","check":"db","why":"fixed"}`, nil, 404, `waits to be told`},
		{"POST", "/v1/return", `{"endpoint":"192.0.2.1","chek":"db","why":"fixed"}`, nil, 400, `endpoint, check, why, version`},
	} {
		s := newServed(t)
		var edits []func(*http.Request)
		if c.edit != nil {
			edits = append(edits, c.edit)
		}
		before := s.state()
		w := s.ask(c.method, c.path, c.body, edits...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s %.200s: %d\n%s\nexpected %d, %s", c.method, c.path, c.body, w.Code, w.Body, c.status, c.want)
		}
		var failure control.Failure
		if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || (c.status != 200) != (failure.Code != "" && failure.Error != "") {
			t.Errorf("%s %s: it is %s, %v", c.method, c.path, w.Body, err)
		}
		if h := w.Header(); h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: the header is %v", c.method, c.path, h)
		}
		if c.status != 200 && s.state() != before {
			t.Errorf("%s %s %s: failed, and changed something", c.method, c.path, c.body)
		}
		s.Close()
	}
}

func TestAPIOneNight(t *testing.T) {
	s := newServed(t)
	var status control.Status
	if err := json.Unmarshal(s.ask("GET", "/v1/status", "").Body.Bytes(), &status); err != nil {
		t.Fatal(err)
	}
	body := `{"lever":"drain","region":"us","why":"fire","for":"1h","version":"` + status.Version + `"}`
	if w := s.ask("POST", "/v1/changes", body); w.Code != 200 {
		t.Fatal(w.Body)
	}
	if w := s.ask("POST", "/v1/changes", body); w.Code != 409 {
		t.Errorf("again: %d", w.Code)
	}
	var list control.OverrideList
	if err := json.Unmarshal(s.ask("GET", "/v1/overrides", "").Body.Bytes(), &list); err != nil || len(list.Overrides) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if w := s.ask("DELETE", "/v1/overrides/"+list.Overrides[0].ID, `{"why":"it is out","version":"`+list.Version+`"}`); w.Code != 200 || s.state() != "" {
		t.Errorf("%s", w.Body)
	}
	var log control.AuditList
	if err := json.Unmarshal(s.ask("GET", "/v1/audit", "").Body.Bytes(), &log); err != nil || len(log.Entries) != 3 ||
		log.Entries[0].From != "192.0.2.1:1234" || log.Entries[0].Who != "alice" || log.Entries[1].Outcome != "refused" || log.Entries[2].Action != "cancel" {
		t.Errorf("%+v, %v", log, err)
	}
}

// TestUnmatched holds that an override of what no longer exists is told of.
func TestUnmatched(t *testing.T) {
	s := newServed(t)
	s.must(t, `{"lever":"drain","region":"us","why":"fire","for":"1h"}`)
	s.backend.FailWith(func(method string) error {
		if method == "Base" {
			return &control.Invalid{Text: "no region us"}
		}
		return nil
	})
	if w := s.ask("GET", "/v1/overrides", ""); !strings.Contains(w.Body.String(), `"1": "no region us"`) {
		t.Errorf("%s", w.Body)
	}
}

// TestWrongTokens holds that they are counted and don't fill the log.
func TestWrongTokens(t *testing.T) {
	s := newServed(t)
	for range 50 {
		s.ask("GET", "/v1/status", "", as("wrong"))
	}
	s.pass(10 * time.Second)
	s.ask("GET", "/v1/status", "", as("wrong"))
	if s.WrongTokens() != 51 || len(s.logged) != 2 || !strings.Contains(s.log(), "from 192.0.2.1:1234 without a good token (49 more not logged before)") || strings.Contains(s.log(), full) {
		t.Errorf("%d, and the log is\n%s", s.WrongTokens(), s.log())
	}
	os.Chmod(s.tokens, 0o644)
	s.pass(10 * time.Second)
	if w := s.ask("GET", "/v1/status", ""); w.Code != 503 || !strings.Contains(w.Body.String(), `"code": "tokens"`) || strings.Contains(w.Body.String(), "0644") ||
		!strings.Contains(s.log(), "0644") {
		t.Errorf("a file that others can read: %d %s\n%s", w.Code, w.Body, s.log())
	}
}

// TestTooMany holds that requests beyond a number are turned away, not queued.
func TestTooMany(t *testing.T) {
	s := newServed(t)
	began, end := make(chan bool), make(chan bool)
	s.backend.FailWith(func(method string) error {
		if method == "Status" {
			began <- true
			<-end
		}
		return nil
	})
	codes := make(chan int)
	for range 32 {
		go func() { codes <- s.ask("GET", "/v1/status", "").Code }()
		<-began
	}
	if w := s.ask("GET", "/v1/overrides", ""); w.Code != 503 || !strings.Contains(w.Body.String(), `"code": "busy"`) {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	close(end)
	for range 32 {
		if code := <-codes; code != 200 {
			t.Errorf("one of them: %d", code)
		}
	}
	if w := s.ask("GET", "/v1/overrides", ""); w.Code != 200 {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// FuzzAPI holds that any body is answered as JSON, and that a body that fails
// changes nothing.
func FuzzAPI(f *testing.F) {
	for _, body := range []string{`{"lever":"drain","region":"us","why":"fire","for":"1h"}`, `{"changes":[{"cancel":"1"}],"why":"abc"}`,
		`{"lever":"share","region":"eu","value":1.25,"area":"ca","why":"abc","until":"2026-05-02T00:00:00Z","force":true}`,
		`{"endpoint":"192.0.2.1","check":"web","why":"abc"}`, `{"lever":"weight","endpoint":"::ffff:192.0.2.1","value":"7","why":"abc","never":true}`} {
		for path := range byte(4) {
			f.Add(path, body)
		}
	}
	s := newServed(f) // for all of them: the pretended Corefile bounds what can be overridden
	f.Fuzz(func(t *testing.T, path byte, body string) {
		at := []struct{ method, path string }{{"POST", "/v1/changes"}, {"POST", "/v1/whatif"}, {"POST", "/v1/return"}, {"DELETE", "/v1/overrides/1"}}[path%4]
		before := s.Version()
		w := s.ask(at.method, at.path, body, with("Content-Type", "application/json"))
		if data, err := io.ReadAll(w.Body); err != nil || !json.Valid(data) || w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, data)
		}
		if done := w.Code == 200 && (path%4 == 0 || path%4 == 3); done != (s.Version() != before) {
			t.Fatalf("%d, and the version was %s and is %s", w.Code, before, s.Version())
		}
	})
}

// slow is a backend whose what-ifs end when nobody wants to know any more.
type slow struct {
	control.Backend
	began, ended chan bool
}

func (s slow) WhatIf(ctx context.Context, _ *control.Overrides) (control.Report, error) {
	s.began <- true
	<-ctx.Done()
	s.ended <- true
	return control.Report{}, ctx.Err()
}

// TestClientGoes holds that nothing is worked out for a client who has gone, and that the
// next one's turn comes then.
func TestClientGoes(t *testing.T) {
	s := newServed(t)
	b := slow{s.backend, make(chan bool), make(chan bool)}
	s.Store.Backend = b
	server := httptest.NewServer(s.Server)
	defer server.Close()
	for range 2 {
		ctx, leave := context.WithCancel(t.Context())
		body := strings.NewReader(`{"lever":"drain","region":"us","why":"fire","for":"1h"}`)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/whatif", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+full)
		r.Header.Set("Content-Type", "application/json")
		gone := make(chan error)
		go func() {
			_, err := server.Client().Do(r)
			gone <- err
		}()
		<-b.began
		leave()
		<-b.ended
		if err := <-gone; err == nil {
			t.Error("it was answered")
		}
	}
}
