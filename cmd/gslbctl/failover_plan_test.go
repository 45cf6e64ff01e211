package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planCorefile has checks that differ in all that counts, and regions with capacities.
const planCorefile = `example.com {
    gslb {
        region a {
            capacity 48000
            ramp 20m
        }
        region b {
            capacity 36000
        }
        region c
        check quick {
            tcp :80
            interval 5s
            fall 3 within 12s
            rise 2
        }
        check slow {
            tcp :81
            interval 10s
            rise 5 over 60s
        }
        check told {
            tcp :82
            return manual
        }
        host api.example.com {
            ttl 45
            check quick slow
            pool a 192.0.2.1
            pool b 192.0.2.2
        }
        host third.example.com {
            ttl 45
            check told
            pool b 192.0.2.2
            pool c 192.0.2.3
        }
        host plain.example.com {
            pool a 192.0.2.1
        }
    }
}
`

func planConf(t *testing.T) string {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(conf, []byte(planCorefile), 0o600); err != nil {
		t.Fatal(err)
	}
	return conf
}

// TestFailoverBudget: 99.95 % of a quarter are 64.8 minutes, and an outage of ten minutes
// takes 15 % of them.
func TestFailoverBudget(t *testing.T) {
	args := []string{"-detection", "10m", "-phase=false", "-ttl", "0", "-population", "all:1:ttl", "-target", "99.95%"}
	r := failoverJSON(t, args...)
	if b := r.Budget; b == nil || b.Seconds != 3888 || math.Abs(r.Compared[0].Budget-0.154) > 0.001 || b.Target != 0.9995 {
		t.Errorf("%+v, of which %g", r.Budget, r.Compared[0].Budget)
	}
	if half := failoverJSON(t, append(args, "-days", "45")...); math.Abs(half.Compared[0].Budget-2*r.Compared[0].Budget) > 1e-9 {
		t.Errorf("in half of the time an outage takes %g of the budget", half.Compared[0].Budget)
	}
	if r := failoverJSON(t); r.Budget != nil || r.Compared[0].Budget != 0 {
		t.Errorf("without -target: %+v", r.Budget)
	}
}

// TestFailoverRecovery: five good probes at 10 s span 40 s, and 60 s take seven.
func TestFailoverRecovery(t *testing.T) {
	for _, c := range []struct {
		args string
		want recoveryResult
	}{
		{"-rise 5", recoveryResult{5, 0, 10, 10, 5, 40, 300, false}},
		{"-over 60s", recoveryResult{5, 60, 10, 10, 7, 60, 300, false}},
		{"-over 60s -interval 5s", recoveryResult{5, 60, 5, 5, 13, 60, 300, false}},
		{"-rise 8 -over 60s -ttl 60", recoveryResult{8, 60, 10, 10, 8, 70, 600, false}},
		{"-phase=false -rise 5", recoveryResult{5, 0, 10, 0, 5, 40, 300, false}},
		{"-ramp 0s", recoveryResult{5, 0, 10, 10, 5, 40, 0, false}},
		{"-conf CONF api.example.com", recoveryResult{5, 60, 10, 10, 7, 60, 1200, false}}, // the slow check, and the longest ramp
		{"-conf CONF third.example.com", recoveryResult{5, 0, 10, 10, 5, 40, 450, true}},
		{"-conf CONF -rise 9 -over 0s -interval 2s -ramp 1m api.example.com", recoveryResult{9, 0, 2, 2, 9, 16, 60, false}},
	} {
		r := failoverJSON(t, strings.Fields(strings.Replace(c.args, "CONF", planConf(t), 1))...)
		if r.Recovery == nil || *r.Recovery != c.want {
			t.Errorf("%s: %+v, expected %+v", c.args, r.Recovery, c.want)
		}
	}
	for _, args := range []string{"", "-conf " + planConf(t) + " plain.example.com"} {
		if r := failoverJSON(t, strings.Fields(args)...); r.Recovery != nil {
			t.Errorf("%q: a way back: %+v", args, r.Recovery)
		}
	}
}

func TestFailoverWindow(t *testing.T) {
	if r := failoverJSON(t, "-conf", planConf(t), "api.example.com"); r.Within != 12 || r.Interval != 5 {
		t.Errorf("the window is %g, the interval %g", r.Within, r.Interval)
	}
	if r := failoverJSON(t, "-interval", "30s", "-within", "1m"); r.Within != 60 {
		t.Errorf("the window is %g", r.Within)
	}
	// A slower check no longer fits in the window of the Corefile; with a time of detection there is none.
	code, _, stderr := call(t, "failover -conf "+planConf(t)+" -interval 30s api.example.com")
	if code != exitUsage || !strings.Contains(stderr, "span 1m0s, longer than the window of 12s") {
		t.Errorf("%d: %s", code, stderr)
	}
	if r := failoverJSON(t, "-conf", planConf(t), "-interval", "30s", "-detection", "1m", "api.example.com"); r.Within != 0 {
		t.Errorf("the window is %g", r.Within)
	}
}

// TestFailoverPlannedMove: of 24 h lowered an hour before, 23 h remain.
func TestFailoverPlannedMove(t *testing.T) {
	for args, want := range map[string]float64{
		"-ttl 86400 -lowered 60 -before 1h":                   23 * 3600,
		"-ttl 86400 -lowered 60 -before 24h":                  60,
		"-ttl 86400 -lowered 0 -before 25h":                   0,
		"-conf CONF -lowered 5 -before 15s plain.example.com": 15, // of 30 s
	} {
		r := failoverJSON(t, strings.Fields(strings.Replace(args, "CONF", planConf(t), 1))...)
		if r.Move == nil || r.Move.Old != want {
			t.Errorf("%s: %+v, expected %g", args, r.Move, want)
		}
	}
	if r := failoverJSON(t); r.Move != nil {
		t.Errorf("nobody asked for %+v", r.Move)
	}
}

// TestFailoverCascade: 40k go to b, which then has 70k, and from there to c, which has all
// 90k there are and no more.
func TestFailoverCascade(t *testing.T) {
	c := failoverJSON(t, "-load", "a:40000", "-load", "b:30000:36000", "-load", "c:20000:24000").Cascade
	if c == nil || fmt.Sprint(c.Steps) != "[{a 40000} {b 70000} {c 90000}]" || c.Stands != "" || c.Left != 0 || c.Free != 10000 || c.Short != 30000 || c.Utilisation != 1.5 {
		t.Errorf("%+v", c)
	}
	conf := planConf(t) // which knows the capacities
	r := failoverJSON(t, "-conf", conf, "-load", "b:10000", "-load", "a:20000", "api.example.com")
	if c = r.Cascade; c == nil || len(c.Steps) != 1 || c.Stands != "a" || c.Left != 30000 || c.Free != 28000 || c.Short != 0 || c.Utilisation != 0.625 {
		t.Errorf("%+v", c)
	}
	if c = failoverJSON(t, "-conf", conf, "-load", "b:10000", "-load", "a:20000:25000", "api.example.com").Cascade; c.Stands != "" {
		t.Errorf("the flag doesn't win: %+v", c)
	}
	if b := r.Bearable; len(b) != 2 || b[0].Region != "b" || b[0].Utilisation != 48.0/84 {
		t.Errorf("what is borne: %+v", b)
	}
	r = failoverJSON(t, "-conf", conf, "api.example.com")
	if b := r.Bearable; r.Cascade != nil || len(b) != 2 || b[0] != (bearable{"a", 48000, 36.0 / 84}) || b[1] != (bearable{"b", 36000, 48.0 / 84}) {
		t.Errorf("of capacities alone: %+v, %+v", r.Cascade, b)
	}
	for _, host := range []string{"third.example.com", "plain.example.com"} { // a capacity is missing, or another region
		if r := failoverJSON(t, "-conf", conf, host); r.Cascade != nil || r.Bearable != nil {
			t.Errorf("%s: %+v, %+v", host, r.Cascade, r.Bearable)
		}
	}
}

// TestFailoverPlanForPeople holds the words that the page doesn't show.
func TestFailoverPlanForPeople(t *testing.T) {
	code, out, stderr := call(t, "failover -conf "+planConf(t)+" -load b:30000.5 -load c:1:75000 -lowered 5 -before 1h -rate 7 -target 99% -caches 3 third.example.com")
	if code != exitOK {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		"an operator's word (return manual)", "b                goes down with 30000.5\n", "c                bears 30001.5, 40% of its capacity of 75000\n",
		"in the order of -load:\n", "up to all of it and not to `target`:\n", "the last 40s after the first,\nwhich begins up to 10s after the region is back",
		"c has room for 30000.5 of 30000.5;\nthe load comes to 40% of the capacity left.", "up to 5s after it.\n", "requests    0.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

func TestFailoverPlanMisuse(t *testing.T) {
	conf := planConf(t)
	for _, c := range []struct{ args, want string }{
		{"-target 100%", "above 0% and below 100%"},
		{"-target 0", "such as 99.95%"},
		{"-target x", "such as 99.95%"},
		{"-days 7", "-days without -target"},
		{"-target 99% -days 0", "above 0, up to 3660"},
		{"-target 99% -days NaN", "above 0, up to 3660"},
		{"-rise 0", "1 to 1000 probes"},
		{"-over -1s", "-over -1s: expected 0 to"},
		{"-ramp 9999h", "-ramp 9999h0m0s: expected 0 to"},
		{"-within 9999h", "expected 0 to"},
		{"-within 30s -interval 30s", "they can never come together within it"},
		{"-within 30s -detection 30s", "-within beside -detection"},
		{"-rise 5 -detection 30s -interval 0s", "good probes are that far apart"},
		{"-lowered 5", "belong together"},
		{"-before 1h", "belong together"},
		{"-ttl 60 -lowered 61 -before 1h", "expected 0 to the TTL, which is 60"},
		{"-lowered NaN -before 1h", "expected 0 to the TTL"},
		{"-load a:1:2", "at least two regions"},
		{"-load a", "expected REGION:LOAD or REGION:LOAD:CAPACITY"},
		{"-load a:-1", "such as eu:40000:48000"},
		{"-load a:NaN", "such as eu:40000:48000"},
		{"-load a:1 -load b:1:0", "such as eu:40000:48000"},
		{"-load a:1 -load b:1:1e99", "such as eu:40000:48000"},
		{"-load a:1 -load b:1", "its capacity is not known: write b:1:CAPACITY"},
		{"-load a:1 -load a:1:2", "region a is there twice"},
		{"-conf " + conf + " -load aa:1 -load b:1 api.example.com", `the host has no pool in aa; did you mean "a"?`},
		{"-conf " + conf + " -load b:1 -load c:1 third.example.com", "`capacity NUMBER` for it in the Corefile"},
		{"-ttl NaN", "0 to 86400"},
		{"-caches NaN", "-caches NaN"},
		{"-price Inf", "expected 0 to"},
		{"-straggler 9999h", "-straggler 9999h0m0s"},
	} {
		if code, _, stderr := call(t, "failover "+c.args); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d: %s", c.args, code, stderr)
		}
	}
}
