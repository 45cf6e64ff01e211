package gslb

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestHealthMetrics looks at a state of everything.
func TestHealthMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer close(w.over)
		r := w.registry()
		gen, g := r.mustStart(t, probed(`check gone {
	http :8081 /
}
check other {
	http :8082 /
	initial down
}
clients prefix 198.51.100.0/24 {
	order b
}
host api.example.com {
	check web
	max_down 50%
	pool a 192.0.2.1 2001:db8:a::1
	pool b 192.0.2.2 2001:db8:b::1
}
host full.example.com {
	check web
	pool a 192.0.2.3
	pool b {
		endpoint 192.0.2.4 drain
		endpoint 192.0.2.5
	}
}
host lost.example.com {
	check gone
	pool b 192.0.2.6
}
host new.example.com {
	check other
	pool b 192.0.2.7
}`))
		w.set("192.0.2.7 stuck")
		r.mu.Lock()
		g.files.view = "inside"
		r.mu.Unlock()
		time.Sleep(oneProbe)
		w.set("192.0.2.1 fail, 192.0.2.2 fail, 2001:db8:a::1 fail, 192.0.2.3 full, 192.0.2.6 fail")
		time.Sleep(fallen)
		synctest.Wait()
		want := `
# HELP coredns_gslb_endpoint_state State of an endpoint: 0 down, 1 up, 2 full, 3 drained; what an unknown one is taken for.
# TYPE coredns_gslb_endpoint_state gauge
coredns_gslb_endpoint_state{endpoint="192.0.2.1",host="api.example.com.",region="a",view="inside"} 0
coredns_gslb_endpoint_state{endpoint="192.0.2.2",host="api.example.com.",region="b",view="inside"} 0
coredns_gslb_endpoint_state{endpoint="192.0.2.3",host="full.example.com.",region="a",view="inside"} 2
coredns_gslb_endpoint_state{endpoint="192.0.2.4",host="full.example.com.",region="b",view="inside"} 3
coredns_gslb_endpoint_state{endpoint="192.0.2.5",host="full.example.com.",region="b",view="inside"} 1
coredns_gslb_endpoint_state{endpoint="192.0.2.6",host="lost.example.com.",region="b",view="inside"} 0
coredns_gslb_endpoint_state{endpoint="192.0.2.7",host="new.example.com.",region="b",view="inside"} 0
coredns_gslb_endpoint_state{endpoint="2001:db8:a::1",host="api.example.com.",region="a",view="inside"} 0
coredns_gslb_endpoint_state{endpoint="2001:db8:b::1",host="api.example.com.",region="b",view="inside"} 1
# HELP coredns_gslb_isolated 1 while this vantage takes itself for cut off and holds the last verdicts.
# TYPE coredns_gslb_isolated gauge
coredns_gslb_isolated 0
# HELP coredns_gslb_lists_last_resort Candidate lists for whose clients the last resort answers.
# TYPE coredns_gslb_lists_last_resort gauge
coredns_gslb_lists_last_resort{family="v4",host="api.example.com.",view="inside"} 2
coredns_gslb_lists_last_resort{family="v4",host="full.example.com.",view="inside"} 0
coredns_gslb_lists_last_resort{family="v4",host="lost.example.com.",view="inside"} 1
coredns_gslb_lists_last_resort{family="v4",host="new.example.com.",view="inside"} 1
coredns_gslb_lists_last_resort{family="v6",host="api.example.com.",view="inside"} 0
# HELP coredns_gslb_lists_without_standby Candidate lists that have one usable region left.
# TYPE coredns_gslb_lists_without_standby gauge
coredns_gslb_lists_without_standby{family="v4",host="api.example.com.",view="inside"} 0
coredns_gslb_lists_without_standby{family="v4",host="full.example.com.",view="inside"} 1
coredns_gslb_lists_without_standby{family="v4",host="lost.example.com.",view="inside"} 0
coredns_gslb_lists_without_standby{family="v4",host="new.example.com.",view="inside"} 0
coredns_gslb_lists_without_standby{family="v6",host="api.example.com.",view="inside"} 2
# HELP coredns_gslb_probed_endpoints Endpoints that are probed, by verdict; never_probed ones are unknown too.
# TYPE coredns_gslb_probed_endpoints gauge
coredns_gslb_probed_endpoints{verdict="down"} 4
coredns_gslb_probed_endpoints{verdict="full"} 1
coredns_gslb_probed_endpoints{verdict="never_probed"} 1
coredns_gslb_probed_endpoints{verdict="unknown"} 1
coredns_gslb_probed_endpoints{verdict="up"} 2
# HELP coredns_gslb_probes_late_total Probes that had to wait since too many were running.
# TYPE coredns_gslb_probes_late_total counter
coredns_gslb_probes_late_total 0
# HELP coredns_gslb_probes_overran_total Probes that did not return in time.
# TYPE coredns_gslb_probes_overran_total counter
coredns_gslb_probes_overran_total 1
# HELP coredns_gslb_region_availability_ratio Part of the clients that come which a region takes, 0 where it is not usable.
# TYPE coredns_gslb_region_availability_ratio gauge
coredns_gslb_region_availability_ratio{family="v4",host="api.example.com.",region="a",view="inside"} 0
coredns_gslb_region_availability_ratio{family="v4",host="api.example.com.",region="b",view="inside"} 0
coredns_gslb_region_availability_ratio{family="v4",host="full.example.com.",region="a",view="inside"} 0.5
coredns_gslb_region_availability_ratio{family="v4",host="full.example.com.",region="b",view="inside"} 1
coredns_gslb_region_availability_ratio{family="v4",host="lost.example.com.",region="b",view="inside"} 0
coredns_gslb_region_availability_ratio{family="v4",host="new.example.com.",region="b",view="inside"} 0
coredns_gslb_region_availability_ratio{family="v6",host="api.example.com.",region="a",view="inside"} 0
coredns_gslb_region_availability_ratio{family="v6",host="api.example.com.",region="b",view="inside"} 1
# HELP coredns_gslb_regions_held_up Regions that only max_down keeps in service.
# TYPE coredns_gslb_regions_held_up gauge
coredns_gslb_regions_held_up{host="api.example.com.",view="inside"} 0
coredns_gslb_regions_held_up{host="full.example.com.",view="inside"} 0
coredns_gslb_regions_held_up{host="lost.example.com.",view="inside"} 0
coredns_gslb_regions_held_up{host="new.example.com.",view="inside"} 0
`
		if err := testutil.CollectAndCompare(healthCollector{r}, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		if problems, err := testutil.CollectAndLint(healthCollector{r}); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		w.set("2001:db8:b::1 fail")
		time.Sleep(fallen)
		synctest.Wait()
		held := `
# HELP coredns_gslb_regions_held_up Regions that only max_down keeps in service.
# TYPE coredns_gslb_regions_held_up gauge
coredns_gslb_regions_held_up{host="api.example.com.",view="inside"} 1
coredns_gslb_regions_held_up{host="full.example.com.",view="inside"} 0
coredns_gslb_regions_held_up{host="lost.example.com.",view="inside"} 0
coredns_gslb_regions_held_up{host="new.example.com.",view="inside"} 0
`
		if err := testutil.CollectAndCompare(healthCollector{r}, strings.NewReader(held), "coredns_gslb_regions_held_up"); err != nil {
			t.Error(err)
		}
		r.stop(gen)
		if n := testutil.CollectAndCount(healthCollector{r}); n != 0 {
			t.Errorf("%d series after the end", n)
		}
	})
}

// TestHealthMetricsOfSeveral has two blocks with one host, in one view and in
// two, and blocks without checks.
func TestHealthMetricsOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, gs, err := r.startTexts(t, pair(""), pair(""), pair(""))
		if err != nil {
			t.Fatal(err)
		}
		defer r.stop(gen)
		r.mu.Lock()
		gs[2].files.view = "inside"
		r.mu.Unlock()
		if n := testutil.CollectAndCount(healthCollector{r}, "coredns_gslb_endpoint_state"); n != 4 {
			t.Errorf("%d states, want those of two endpoints in two views", n)
		}
		if n := gen.prober.scheduler.Stats().Endpoints; n != 2 {
			t.Errorf("%d endpoints are probed, want 2", n)
		}
		second, _ := r.mustStart(t, block("guard max_move 100%"))
		r.stop(gen)
		defer r.stop(second)
		if n := testutil.CollectAndCount(healthCollector{r}, "coredns_gslb_isolated", "coredns_gslb_probed_endpoints"); n != 0 {
			t.Errorf("%d series of probes without a check", n)
		}
	})
}

func TestIsolatedMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, _ := r.mustStart(t, pair("beacon 192.0.2.53:53"))
		defer r.stop(gen)
		time.Sleep(oneProbe)
		w.setBeacon(false)
		w.set("192.0.2.1 fail, 192.0.2.2 fail")
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "# HELP coredns_gslb_isolated 1 while this vantage takes itself for cut off and holds the last verdicts.\n# TYPE coredns_gslb_isolated gauge\ncoredns_gslb_isolated 1\n"
		if err := testutil.CollectAndCompare(healthCollector{r}, strings.NewReader(want), "coredns_gslb_isolated"); err != nil {
			t.Error(err)
		}
	})
}

// TestProbeMetrics counts probes and transitions, and reads the log of the
// latter: a line for each, with the reason and who uses the probe.
func TestProbeMetrics(t *testing.T) {
	text := strings.ReplaceAll(pair("host www.example.com {\ncheck web\npool a 192.0.2.1\n}"), "check web", "check counted")
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		counted := make(map[string]float64)
		for _, verdict := range []string{"up", "down", "full", "unknown"} {
			counted[verdict] = testutil.ToFloat64(transitionCount.WithLabelValues("counted", verdict))
		}
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, text)
		time.Sleep(oneProbe)
		for _, step := range []struct {
			set  string
			wait time.Duration
			line string
			host string // what is said of the host whose only region it is
		}{
			{"", 0, "", ""},
			{"192.0.2.1 fail", fallen, "[WARNING] plugin/gslb: Check counted of 192.0.2.1:8080 was up and is down: connection refused (api.example.com. a 192.0.2.1, www.example.com. a 192.0.2.1)\n",
				"[WARNING] plugin/gslb: Host www.example.com. (v4): no region is usable for some clients, so last_resort open decides; what is drained is never answered\n"},
			{"192.0.2.1 pass", risen, "[INFO] plugin/gslb: Check counted of 192.0.2.1:8080 was down and is up (api.example.com. a 192.0.2.1, www.example.com. a 192.0.2.1)\n",
				"[INFO] plugin/gslb: Host www.example.com. (v4): every client has a usable region again\n"},
			{"192.0.2.2 full", oneProbe, "[WARNING] plugin/gslb: Check counted of 192.0.2.2:8080 was up and is full: busy (api.example.com. a 192.0.2.2)\n", ""},
			{"192.0.2.2 pass", fallen, "[INFO] plugin/gslb: Check counted of 192.0.2.2:8080 was full and is up (api.example.com. a 192.0.2.2)\n", ""},
			{"192.0.2.2 stuck", time.Minute, "[WARNING] plugin/gslb: Check counted of 192.0.2.2:8080 was up and is unknown: no result since 2000-01-01T00:02:", ""},
		} {
			w.set(step.set)
			time.Sleep(step.wait)
			synctest.Wait()
			got, said := strings.CutPrefix(logged.String(), step.host)
			if !said {
				t.Errorf("%s: logged %q, want %q first", step.set, got, step.host)
			}
			want := 0
			if step.line != "" {
				want = 1
			}
			if !strings.HasPrefix(got, step.line) || strings.Count(got, "\n") != want {
				t.Errorf("%s: logged %q, want %q", step.set, got, step.line)
			}
			logged.Reset()
		}
		expect(t, "at the end", g, alive)
		for verdict, want := range map[string]float64{"up": 4, "down": 1, "full": 1, "unknown": 1} {
			if got := testutil.ToFloat64(transitionCount.WithLabelValues("counted", verdict)) - counted[verdict]; got != want {
				t.Errorf("%v transitions to %s, want %v", got, verdict, want)
			}
		}
		for _, c := range []struct {
			result, class string
			least         float64
		}{{"pass", "ok", 10}, {"full", "full", 1}, {"fail", "connect", 3}} {
			if got := testutil.ToFloat64(probeCount.WithLabelValues("counted", c.result, c.class)); got < c.least {
				t.Errorf("%v probes with %s %s, want %v or more", got, c.result, c.class, c.least)
			}
		}
		close(w.over)
		r.stop(gen)
	})
}

// A restart doesn't log what is as it was.
func TestLogAfterRestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r, gen, _ := outage(t, w, pair("state "+dir))
		r.stop(gen)
		logged := logTo(t)
		r = w.registry()
		gen, _ = r.mustStart(t, pair("state "+dir))
		defer r.stop(gen)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "[WARNING] plugin/gslb: Check web of 192.0.2.1:8080 was taken for down and is indeed down: connection refused (api.example.com. a 192.0.2.1)\n"
		if got := logged.String(); got != want {
			t.Errorf("logged\n%s, want\n%s", got, want)
		}
	})
}

func TestStateFailing(t *testing.T) {
	dir := t.TempDir()
	forgetUnwritable()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r, gen, _ := outage(t, w, pair("state "+dir))
		defer r.stop(gen)
		gen.prober.save()
		if f := testutil.ToFloat64(stateFailing.WithLabelValues()); f != 0 {
			t.Errorf("state_failing is %v", f)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		gen.prober.save() // makes the directory again
		if f := testutil.ToFloat64(stateFailing.WithLabelValues()); f != 0 {
			t.Errorf("state_failing is %v", f)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		logged := logTo(t)
		gen.prober.save()
		if f := testutil.ToFloat64(stateFailing.WithLabelValues()); f != 1 {
			t.Errorf("state_failing is %v", f)
		}
		if got := logged.String(); !strings.Contains(got, "[ERROR] plugin/gslb: Verdicts can't be saved: ") {
			t.Errorf("logged %q", got)
		}
	})
	for _, c := range []prometheus.Collector{probeCount, probeSeconds, transitionCount, stateFailing} {
		if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}
