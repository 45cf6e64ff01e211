package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/control/controltest"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/target"
)

// TestMoves holds what explain and check tell of latency maps, levers and targets. The
// clock stands at 2000-01-01T00:00:00Z.
func TestMoves(t *testing.T) {
	const conf = " -conf testdata/moves.cf -type A "
	for name, line := range map[string]string{
		"moves-check.txt":         "check -conf testdata/moves.cf",
		"map.txt":                 "explain" + conf + "map.example.com 198.51.100.1",
		"map.json":                "explain" + conf + "-json map.example.com 198.51.100.1",
		"map-resolver.txt":        "explain" + conf + "-resolver 198.51.100.53 map.example.com",
		"map-no-entry.txt":        "explain" + conf + "map.example.com 100.1.2.3",
		"map-unmeasured.txt":      "explain" + conf + "map.example.com 203.0.113.5",
		"map-prefix-rule.txt":     "explain" + conf + "-exact map.example.com 192.0.2.200",
		"map-refused.txt":         "explain" + conf + "-exact map.example.com 192.0.2.1",
		"map-too-old.txt":         "explain" + conf + "old.example.com 198.51.100.1",
		"map-too-old.json":        "explain" + conf + "-json old.example.com 198.51.100.1",
		"map-put-back.txt":        "explain" + conf + "back.example.com 198.51.100.1",
		"map-none-of-it.txt":      "explain" + conf + "one.example.com 203.0.113.5",
		"lever-schedule.txt":      "explain" + conf + "night.example.com 198.51.100.1",
		"lever-schedule.json":     "explain" + conf + "-json night.example.com 198.51.100.1",
		"lever-share.txt":         "explain" + conf + "soak.example.com 198.51.100.1",
		"lever-trickled.txt":      "explain" + conf + "soak.example.com 34.51.100.1",
		"partly-spilled.txt":      "explain" + conf + "half.example.com 21.51.100.1",
		"lever-alone.txt":         "explain" + conf + "alone.example.com 198.51.100.1",
		"lever-all-dialled.txt":   "explain" + conf + "dark.example.com 198.51.100.1",
		"partly-healthy.txt":      "explain" + conf + "half.example.com 198.51.100.1",
		"targets-unresolved.txt":  "explain" + conf + "targets.example.com 198.51.100.1",
		"targets-unresolved.json": "explain" + conf + "-json targets.example.com 198.51.100.1",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code, stdout, stderr := call(t, line)
				if code != exitOK || stderr != "" {
					t.Fatalf("exit code %d, errors: %s", code, stderr)
				}
				golden(t, name, stdout)
			})
		})
	}
}

// TestMoveTexts holds the words for what only a running server knows, each on a line.
func TestMoveTexts(t *testing.T) {
	e := plan.Explanation{
		Host: "www.example.com.", At: "Corefile:9", Digest: "0123456789abcdef",
		Client: plan.SeenClient{Transport: netip.MustParseAddr("192.0.2.53"), Source: "transport", Prefix: netip.MustParsePrefix("192.0.2.53/32"), Block: netip.MustParsePrefix("192.0.2.0/24")},
		Facts:  plan.KnownFacts{Address: netip.MustParseAddr("192.0.2.53")},
		List: plan.ListWhy{CandidateList: plan.CandidateList{Order: []string{"eu", "us", "ap"}}, By: "latency", Latency: &plan.LatencyWhy{
			File: "map.mmdb", Built: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC), Side: "resolver", Entry: netip.MustParsePrefix("192.0.2.0/24"), Changed: true,
			Without: &plan.CandidateList{Order: []string{"us", "eu", "ap"}}, By: "order_written",
		}},
		Levers: []plan.LeverWhy{{Region: "eu", Lever: "dial", Value: "70%", From: "override 12", By: "alice", Why: "eu is hot",
			Next: time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC), Then: "100%"}},
		Targets: []plan.TargetWhy{{Region: "ap", Target: "lb.example.net.", At: "Corefile:12", Endpoints: 3}},
		Decisions: []steer.Trace{{
			Family: "v4", Outcome: "answer", By: "shed", Region: "eu", Name: "core.example.net.", TTL: 30, TTLClass: "steady", Spread: "balanced", ScopeWhy: "no_option",
			Candidates: []steer.TraceCandidate{
				{Region: "eu", Tier: "order", Status: "chosen", Availability: 0.755, Levers: []steer.TraceLever{
					{Lever: "dial", Part: 0.7, Why: "override 12"}, {Lever: "ramp", Part: 0.3, Why: "back from an outage"},
					{Lever: "admission", Part: 0.41255, Why: "capacity"}, {Lever: "trickle", Part: 0.005, Why: "Corefile:3"},
				}, Endpoints: []steer.TraceEndpoint{{Addr: netip.MustParseAddr("203.0.113.7"), Weight: 5, Weighed: true, Verdict: "up"}}},
				{Region: "us", Tier: "order", Status: "passed", Why: "trickled", Written: true},
				{Region: "ap", Tier: "order", Status: "passed", Why: "soak", Levers: []steer.TraceLever{{Lever: "share", Part: 0.05}}},
			},
			Shares: []steer.TraceShare{{Region: "eu", Name: "core.example.net.", Part: 1, Of: 4}},
		}},
	}
	var out bytes.Buffer
	printExplanation(&out, &e, false)
	golden(t, "moves-of-server.txt", out.String())
}

// TestWordsAreKnown: explain has words for all that a trace can say.
func TestWordsAreKnown(t *testing.T) {
	for _, why := range []string{"no_pool", "no_family", "drained", "down", "min_healthy", "fenced", "unresolved", "spilled", "held_up", "soak", "alone", "trickled"} {
		if whyTexts[why] == "" {
			t.Errorf("no words for the candidate that is %s", why)
		}
	}
	for by := steer.ByChoice + 1; by <= steer.ByForced; by++ {
		if byTexts[by.String()] == "" {
			t.Errorf("no words for by %s", by)
		}
	}
	for r := steer.ReasonClosed; r <= steer.ReasonNothingLeft; r++ {
		if reasonTexts[r.String()] == "" {
			t.Errorf("no words for the failure %s", r)
		}
	}
}

// TestSavedMoves: explain goes by the overrides and the addresses of targets that a
// server keeps, and says when it can't read them.
func TestSavedMoves(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	conf := filepath.Join(dir, "Corefile")
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(conf, `example.com {
    gslb {
        state `+state+`
        control unix:`+filepath.Join(dir, "sock")+` token `+filepath.Join(dir, "tokens")+`
        resolvers 127.0.0.1:53
        region eu us
        host www.example.com {
            order eu us
            pool eu { target lb.example.net }
            pool us 192.0.2.2
        }
    }
}
`)
	explain := func() string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run([]string{"explain", "-conf", conf, "-type", "A", "www.example.com", "198.51.100.1"}, &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		return out.String()
	}
	expect := func(what string, words ...string) {
		t.Helper()
		out := explain()
		for _, want := range words {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", what, want, out)
			}
		}
	}
	expect("nothing saved", "A               192.0.2.2 ", "lb.example.net. (", "NO ADDRESS of it is known", "passed over: its target has no address")

	now := time.Now()
	saved, err := target.Encode(map[string]target.Saved{"lb.example.net. 127.0.0.1:53": {V4: target.Family{Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, At: now, TTL: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(state, target.File), string(saved))
	expect("saved addresses", "A               192.0.2.1 ", "lb.example.net. (", "1 addresses")

	store, err := control.Open(control.StoreOptions{Dir: state, Backend: controltest.New(), Now: time.Now, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	change := control.Change{Lever: control.Drain, Object: control.Object{Region: "eu"}, Value: "on", Terms: control.Terms{Why: "switch replacement", Until: now.Add(time.Hour).Truncate(time.Second)}}
	if _, err := store.Do(t.Context(), control.Author{Name: "alice"}, &control.Request{Change: change}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	until := change.Until.UTC().Format(time.RFC3339)
	expect("an override", "A               192.0.2.2 ", "eu drain on: override 1 by alice: switch replacement; off from "+until, "drained (drained by override 1)")
	write(filepath.Join(state, "overrides.json"), "gar bage")
	expect("damaged overrides", "A               192.0.2.1 ", "CAN'T BE READ", "overrides.json")
	write(filepath.Join(state, target.File), "gar bage")
	expect("damaged addresses", "CAN'T BE READ", "saved targets")
}

// TestDocsGolden holds that the texts in docs/explain.md are what the command prints.
func TestDocsGolden(t *testing.T) {
	const file = "../../docs/explain.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile("(?s)<!-- golden (\\S+) -->\n```txt\n(.*?)```\n<!-- end -->")
	found := form.FindAllSubmatch(page, -1)
	if len(found) < 5 {
		t.Errorf("%d examples", len(found))
	}
	for _, m := range found {
		want, err := os.ReadFile(filepath.Join("testdata", "golden", string(m[1])))
		if err != nil {
			t.Fatal(err)
		}
		want = bytes.ReplaceAll(want, []byte("testdata/"), nil)
		if !*update && !bytes.Equal(m[2], want) {
			t.Errorf("the example %s in %s is not what the command prints; run with -update", m[1], file)
		}
		page = bytes.Replace(page, m[0], fmt.Appendf(nil, "<!-- golden %s -->\n```txt\n%s```\n<!-- end -->", m[1], want), 1)
	}
	if *update {
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
