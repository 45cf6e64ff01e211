package main

import (
	"encoding/json"
	"os"
	"path/filepath"
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
