package probe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/check"
)

func TestHTTPReported(t *testing.T) {
	noLeaks(t)
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/twice":
			w.Header().Add("X-Load", "1")
			w.Header().Add("X-Load", "2")
		case "/redirect":
			w.Header().Set("X-Load", "first")
			w.Header().Set("Location", "/")
			w.WriteHeader(302)
			return
		case "/without":
			return
		default:
			w.Header().Set("X-Load", "0.5")
		}
		if r.URL.Path == "/503" {
			w.WriteHeader(503)
		}
	})
	load := func(value string) []check.Header { return []check.Header{{Name: "X-Load", Value: value}} }
	for _, tc := range []struct {
		path   string
		names  []string
		status Status
		want   []check.Header
	}{
		{"/", []string{"x-load", "X-Other"}, Pass, load("0.5")},
		{"/503", []string{"X-Load"}, Fail, load("0.5")},
		{"/twice", []string{"X-Load"}, Pass, load("1, 2")},
		{"/redirect", []string{"X-Load"}, Pass, load("0.5")},
		{"/without", []string{"X-Load"}, Pass, nil},
		{"/", nil, Pass, nil},
	} {
		r := prepare(t, define(check.HTTP, func(c *check.Check) { c.Path, c.Report, c.Follow = tc.path, tc.names, true }))
		if got := r.Probe(t.Context(), to(address)); got.Status != tc.status || !slices.Equal(got.Reported, tc.want) {
			t.Errorf("%s %v: got %v %v, want %v %v", tc.path, tc.names, got.Status, got.Reported, tc.status, tc.want)
		}
	}
	for _, c := range []*check.Check{
		define(check.TCP, func(c *check.Check) { c.Port, c.Report = 1, []string{"X-Load"} }),
		define(check.HTTP, func(c *check.Check) { c.Report = []string{"X Load"} }),
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "header") {
			t.Errorf("%s %q: %v", c.Kind, c.Report, err)
		}
	}
}

// TestDigestWithoutReport holds that verdicts saved by a version that knew no
// reports are still found.
func TestDigestWithoutReport(t *testing.T) {
	c := check.Defaults("web", check.HTTPS)
	if got, want := checkDigest(&c), uint64(0x61294101dc322d48); got != want {
		t.Errorf("digest %#x, want %#x", got, want)
	}
}

func TestJSONNumber(t *testing.T) {
	for _, tc := range []struct{ path, doc, want string }{
		{".a[1].b", `{"a":[0,{"b":1.5}]}`, "1.5"},
		{".", "7", "7"},
		{".a", `{"a":-1e3}`, "-1000"},
		{".a", `{"a":"1"}`, ".a is text, expected a number"},
		{".a", `{"a":true}`, ".a is true or false, expected a number"},
		{".a", `{"a":null}`, ".a is null, expected a number"},
		{".a", `{"a":[1]}`, ".a is an array, expected a number"},
		{".", `{}`, ". is an object, expected a number"},
		{".a", `{"a":1e999}`, ".a is beyond all numbers that can be read"},
		{".b", `{"a":1}`, ".b is missing"},
		{".a", `<html>`, "body is not JSON"},
		{".a", `{"a":1}{}`, "body is more than one JSON document"},
	} {
		p, err := ParseJSONPath(tc.path)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.Number([]byte(tc.doc))
		got := fmt.Sprint(v)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s of %s: got %s, want %s", tc.path, tc.doc, got, tc.want)
		}
	}
	if _, err := ParseJSONPath("a"); err == nil {
		t.Error("no error")
	}
}
