package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const failoverCorefile = `example.com {
    gslb {
        region a b
        check quick {
            tcp :80
            interval 5s
            fall 2
        }
        check slow {
            tcp :81
            interval 20s
            fall 4
        }
        host api.example.com {
            ttl 45
            check quick slow
            pool a 192.0.2.1
            pool b 192.0.2.2
        }
        host plain.example.com {
            pool a 192.0.2.1
        }
    }
}
`

// failoverJSON runs the command and reads what it printed.
func failoverJSON(t *testing.T, args ...string) (r failoverResult) {
	t.Helper()
	var out, errs strings.Builder
	if code := run(append([]string{"failover", "-json"}, args...), &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFailoverWorksOutAnOutage(t *testing.T) {
	r := failoverJSON(t, "-detection", "30s", "-publish", "10s", "-phase=false", "-ttl", "60", "-rate", "40000", "-horizon", "340s",
		"-caches", "200000", "-price", "0.40", "-regions", "3")
	c := r.Compared
	if c[0].Lost != 101.5 || c[0].Failed != 4.06e6 || c[1].Name != "TTL 30" || c[1].Lost != 89.5 || c[2].Lost != 87.25 || c[3].Lost != 14.25 {
		t.Errorf("compared: %+v", c)
	}
	if int(r.Queries) != 3333 || r.Headroom != 0.5 || int(r.Cost) != 3456 {
		t.Errorf("queries %g, cost %g, headroom %g", r.Queries, r.Cost, r.Headroom)
	}
	if at := failoverJSON(t, "-detection", "40s", "-phase=false", "-ttl", "60", "-at", "0,70,100,340").Curve; len(at) != 4 || at[1].Left < 0.5849 || at[1].Left > 0.5851 || at[2].At != 100 {
		t.Errorf("the curve at times asked for: %+v", at)
	}
	if last := r.Curve[len(r.Curve)-1]; last.At != 340 || last.Left > 0.0501 || last.Left < 0.0499 {
		t.Errorf("the curve ends with %+v", last)
	}
}

// TestFailoverDetection has a target killed, whose probes are refused: with checks of
// interval 4s and fall 3 the answer moved 8 s after the first failed probe, which came up
// to 4 s after the outage.
func TestFailoverDetection(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "Corefile")
	text := strings.Replace(failoverCorefile, "interval 20s\n            fall 4", "interval 4s\n            fall 3\n            timeout 1s\n            retry", 1)
	text = strings.Replace(text, "check quick slow", "check slow", 1)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           string
		first, refused float64
	}{
		{"-interval 4s -fall 3", 14, 10},
		{"-interval 4s -fall 3 -phase=false", 12, 8},
		{"-interval 4s -fall 3 -timeout 0s", 10, 10},
		{"-interval 4s -fall 3 -timeout 0s -phase=false", 8, 8},
		{"-interval 4s -fall 3 -timeout 1s -publish 2s", 13, 12},
		{"-detection 5s", 5, 5},
		{"-detection 0s", 0, 0},
		{"-detection 0s -publish 3s", 3, 3},
		{"-conf CONF api.example.com", 8 + 3 + 2, 8 + 1 + 2}, // two probes and a second
		{"-conf CONF -timeout 0s api.example.com", 8 + 1 + 2, 8 + 1 + 2},
		{"-conf CONF -interval 2s api.example.com", 4 + 2 + 1, 4 + 1 + 1}, // a timeout of 500 ms fits
		{"-conf CONF -detection 5s api.example.com", 5, 5},
	} {
		r := failoverJSON(t, strings.Fields(strings.Replace(c.args, "CONF", conf, 1))...)
		if r.FirstNew != c.first || r.Refused != c.refused || r.Percentiles[0].Exact < c.first {
			t.Errorf("%s: the first new answer after %g, %g if refused; expected %g, %g", c.args, r.FirstNew, r.Refused, c.first, c.refused)
		}
	}
	if _, out, _ := call(t, "failover -conf "+conf+" api.example.com"); !strings.Contains(out, "interval 4s, fall 3, timeout 1s, retry, TTL 45s") || !strings.Contains(out, "after 13s; after 11s if the region refuses probes at once.") {
		t.Errorf("printed %s", out)
	}
	if _, out, _ := call(t, "failover -detection 0s"); !strings.HasPrefix(out, "Detection 0s, TTL 30s\nThe first new answer is out after 0s.\n") {
		t.Errorf("printed %s", out)
	}
}

// TestFailoverAlternatives: what is suggested can be written in a Corefile.
func TestFailoverAlternatives(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "Corefile")
	text := strings.Replace(failoverCorefile, "ttl 45", "ttl 45\nttl_floor 40", 1)
	text = strings.Replace(text, "interval 20s", "interval 8s\ntimeout 3s\nretry", 1)
	text = strings.Replace(text, "check quick slow", "check slow", 1)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"-interval 1s -ttl 1":                                    "",
		"-interval 500ms -ttl 0":                                 "",
		"-interval 1500ms -ttl 5":                                "TTL 2; interval 1s",
		"-interval 5s -ttl 60":                                   "TTL 30; interval 2.5s",
		"-interval 3h -ttl 3":                                    "TTL 1; interval 1h0m0s",
		"-interval 5s -timeout 3s -ttl 2":                        "TTL 1; interval 2.5s, timeout 2.5s",
		"-detection 0s -ttl 2":                                   "TTL 1",
		"-detection 5s -ttl 2":                                   "TTL 1; detection 2.5s",
		"-conf CONF plain.example.com":                           "TTL 15; interval 5s",
		"-conf CONF api.example.com":                             "TTL 40; interval 4s, timeout 1.5s",
		"-conf CONF -ttl 40 api.example.com":                     "interval 4s, timeout 1.5s",
		"-conf CONF -interval 2s -timeout 0s api.example.com":    "TTL 40", // no probe and its retry fit in 1 s
		"-conf CONF -interval 4s -timeout 500ms api.example.com": "TTL 40; interval 2s",
	} {
		var names []string
		for _, c := range failoverJSON(t, strings.Fields(strings.Replace(args, "CONF", conf, 1))...).Compared {
			if c.Name != "as given" && c.Name != "anycast" {
				names = append(names, c.Name)
			}
		}
		if got := strings.Join(names, "; "); got != want {
			t.Errorf("%s: suggested %q, expected %q", args, got, want)
		}
	}
	if c := failoverJSON(t, "-ttl", "5").Compared[1]; c.Queries != 2.5 {
		t.Errorf("TTL 2 instead of 5 takes %g times the queries", c.Queries)
	}
}

// TestFailoverSticky: the sticky hold on for half an hour, or for twice a long TTL.
func TestFailoverSticky(t *testing.T) {
	for ttl, want := range map[string]float64{"60": 1800, "1000": 2000} {
		if r := failoverJSON(t, "-ttl", ttl); r.Compared[0].Moved != want {
			t.Errorf("TTL %s: the last one moves after %g", ttl, r.Compared[0].Moved)
		}
	}
	if r := failoverJSON(t, "-ttl", "60", "-population", "a:1:60s"); r.Compared[1].Lost != r.Compared[0].Lost {
		t.Errorf("a TIME as written changes with the TTL: %+v", r.Compared)
	}
	for _, where := range [][]byte{[]byte(failoverHelp), readFile(t, "../../docs/failover.md")} {
		if !regexp.MustCompile(`twice the TTL if that is\s+more`).Match(where) {
			t.Errorf("not told: %s", where)
		}
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFailoverPercentiles(t *testing.T) {
	r := failoverJSON(t, "-publish", "5s", "-ttl", "60", "-seed", "5")
	for i, want := range []float64{70.9, 95.6} {
		if p := r.Percentiles[i]; p.Exact < want-0.5 || p.Exact > want+0.5 || p.Simulated < want-0.7 || p.Simulated > want+0.7 {
			t.Errorf("percentile %g: %+v", p.P, p)
		}
	}
	if again := failoverJSON(t, "-publish", "5s", "-ttl", "60", "-seed", "5"); again.Percentiles[3] != r.Percentiles[3] {
		t.Error("equal seeds, other percentiles")
	}
}

func TestFailoverReadsTheHost(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(conf, []byte(failoverCorefile), 0o600); err != nil {
		t.Fatal(err)
	}
	r := failoverJSON(t, "-conf", conf, "api.example.com")
	if r.Interval != 5 || r.Fall != 2 || r.TTL != 45 || r.From != conf+":14" || r.NoChecks {
		t.Errorf("got interval %g, fall %d, TTL %g of %s", r.Interval, r.Fall, r.TTL, r.From)
	}
	if r := failoverJSON(t, "-conf", conf, "-interval", "2s", "-ttl", "7", "api.example.com"); r.Interval != 2 || r.Fall != 2 || r.TTL != 7 {
		t.Errorf("flags don't win: interval %g, fall %d, TTL %g", r.Interval, r.Fall, r.TTL)
	}
	if r := failoverJSON(t, "-conf", conf, "plain.example.com"); !r.NoChecks || r.Interval != 10 {
		t.Errorf("a host without checks: %+v", r)
	}
}

// TestFailoverNeedsNoData reads a host whose map isn't there, and tells of one that
// isn't.
func TestFailoverNeedsNoData(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "Corefile")
	text := strings.Replace(failoverCorefile, "ttl 45", "ttl 45\nlatency missing.mmdb", 1)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := failoverJSON(t, "-conf", conf, "api.example.com"); r.TTL != 45 {
		t.Errorf("TTL %g", r.TTL)
	}
	var out, errs strings.Builder
	if code := run([]string{"failover", "-conf", conf, "apx.example.com"}, &out, &errs); code != exitError || !strings.Contains(errs.String(), "api.example.com") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

func TestFailoverDraws(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.svg")
	failoverJSON(t, "-svg", file, "-population", "a<b:40%:600s:fixed", "-population", "rest:0.6:ttl")
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(svg); !strings.HasPrefix(text, "<svg") || strings.Count(text, "<polyline") != 4 || !strings.HasSuffix(text, "</svg>\n") {
		t.Errorf("not the picture expected: %.200s", text)
	}
}

func TestFailoverForPeople(t *testing.T) {
	var out, errs strings.Builder
	if code := run([]string{"failover", "-rate", "40000", "-regions", "5", "-caches", "1000"}, &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	for _, want := range []string{"Clients that still go", "p99", "anycast", "requests", "at 2 times the queries", "33 queries per second", "by 25%"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestFailoverMisuse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-interval 0s", "interval"},
		{"-population a:50%:60s", "add up to 0.5"},
		{"-population a:2:60s", "expected NAME:SHARE:TIME"},
		{"-population a:1:60s:sticky", "expected NAME:SHARE:TIME"},
		{"-stragglers 200%", "expected a percentage"},
		{"-draws 99999999", "10 million"},
		{"-fall 1000000000", "1 to 1000 failures"},
		{"-at 0,x", "expected up to 1000 times"},
		{"-ttl -1", "0 to 86400"},
		{"-fall 0", "-fall 0: expected 1 or more"},
		{"-timeout 11s", "timeout 11s: expected 0 to the interval, which is 10s"},
		{"-timeout -1s", "expected 0 to the interval"},
		{"-detection -1s", "expected 0 to 720h0m0s, not -1s"},
		{"-detection 5s -fall 3", "beside -detection"},
		{"-detection 5s -timeout 3s", "beside -detection"},
		{"-detection 5s -phase", "beside -detection"},
		{"-detection 5s -interval 3s", "-interval beside -detection"},
		{"-regions 1", "-regions 1: expected 2 or more, or 0"},
		{"-price 0.4", "-price without -caches"},
		{"-caches 100 -ttl 0", "-caches with a TTL of 0"},
		{"-ttl 60 -population a:1:59s", "at least the TTL, which is 1m0s"},
		{"-ttl 0 -population a:1:-1s", "at least the TTL, which is 0s"},
		{"-population a:1:-1s:fixed", "with :fixed, 0s or more"},
		{"api.example.com", "-conf"},
		{"-conf x", "NAME"},
		{"a b", "at most one NAME"},
	} {
		var out, errs strings.Builder
		if code := run(append([]string{"failover"}, strings.Fields(c.args)...), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: exit code %d: %s", c.args, code, errs.String())
		}
	}
}
