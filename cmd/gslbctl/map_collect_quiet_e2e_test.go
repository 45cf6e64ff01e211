//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// quietPage has the beacon with what a case changes in the browser. Requests go
// nowhere: it tells the server which there were, and goes on to the next case. It waits for the
// first request, or the report, where there must be one, and in any case for a while.
const quietPage = `<!doctype html>
<script>
	const calls = [];
	let first, reported;
	const begun = new Promise((f) => (first = f)), done = new Promise((f) => (reported = f));
	const still = new Promise((f) => setTimeout(f, 3000));
	const realFetch = window.fetch;
	window.fetch = async (url, options) => {
		calls.push((options.method ?? "GET") + " " + new URL(url).pathname + " " + options.credentials + " " + options.cache);
		first();
		await new Promise((f) => setTimeout(f, 5)); // a round trip of nothing isn't reported
		return new Response(null, { status: 204 });
	};
	const pretend = (object, name, value) => Object.defineProperty(object, name, { get: () => value, configurable: true });
	document.addEventListener("gslb-beacon", reported);
	%s;
	(async () => {
		await %s;
		await realFetch("/done", { method: "POST", body: JSON.stringify(calls) });
		location.href = "/%d";
	})();
</script>
<script src="%s/beacon.js" data-sample="%s" async></script>`

// TestMapCollectQuiet holds when the script doesn't measure, and when it keeps what it
// measured to itself.
func TestMapCollectQuiet(t *testing.T) {
	address, end := collect(t, time.Second, "-dir", t.TempDir(), "-pick", "2",
		"-regions", "eu=http://eu.test,us=http://us.test,ap=http://ap.test")
	defer end()
	const silent, begins, reports = "still", "begun.then(() => still).then(() => new Promise((f) => setTimeout(f, 3000)))", "done"
	cases := []struct{ name, sample, change, wait string }{
		{"as usual", "1", "", reports},
		{"not drawn", "0", "", silent},
		{"hidden", "1", `pretend(document, "visibilityState", "hidden")`, silent},
		{"Save-Data", "1", `pretend(navigator, "connection", { saveData: true })`, silent},
		{"reduced data", "1", `window.matchMedia = (q) => ({ matches: q === "(prefers-reduced-data: reduce)" })`, silent},
		{"becomes hidden", "1", `begun.then(() => document.dispatchEvent(new Event("visibilitychange")))`, begins},
		{"goes offline", "1", `pretend(navigator, "onLine", false)`, begins},
		{"without an idle callback", "1", `window.requestIdleCallback = undefined`, reports},
	}
	done := make(chan []string, len(cases))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscan(r.PathValue("n"), &n); err != nil || n >= len(cases) {
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, quietPage, cases[n].change, cases[n].wait, n+1, address, cases[n].sample)
	})
	mux.HandleFunc("POST /done", func(_ http.ResponseWriter, r *http.Request) {
		var calls []string
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &calls); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		done <- calls
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	chromium(t, s.URL+"/0")
	late := time.After(patience)
	const get, post = "GET /probe omit no-store", "POST /report omit no-store"
	for _, c := range cases {
		select {
		case calls := <-done:
			t.Logf("%s: %s", c.name, calls)
			switch c.wait {
			case silent:
				if len(calls) > 0 {
					t.Errorf("%s: %s, expected nothing", c.name, calls)
				}
			case begins:
				if len(calls) == 0 || slices.ContainsFunc(calls, func(s string) bool { return strings.HasPrefix(s, "POST") }) {
					t.Errorf("%s: %s, expected no report", c.name, calls)
				}
			case reports: // two regions, twice each
				if want := []string{get, get, get, get, post}; !slices.Equal(calls, want) {
					t.Errorf("%s: %s, expected %s", c.name, calls, want)
				}
			}
		case <-late:
			t.Fatalf("%s: the browser is not done after %v", c.name, patience)
		}
	}
}
