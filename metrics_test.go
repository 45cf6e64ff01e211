package gslb

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestQueryMetrics(t *testing.T) {
	const host = "counted.example.com."
	g := load(t, block("host counted.example.com {\npool a 192.0.2.8\npool b 192.0.2.9\n}"), nil)
	counts := []struct {
		name string
		c    prometheus.Counter
		want float64
	}{
		{"ecs b", requestCount.WithLabelValues("", "", host, "ecs", "b"), 2},
		{"ecs a", requestCount.WithLabelValues("", "", host, "ecs", "a"), 1},
		{"transport a", requestCount.WithLabelValues("", "", host, "transport", "a"), 2},
		{"transport none", requestCount.WithLabelValues("", "", host, "transport", "none"), 1},
		{"answers", decisionCount.WithLabelValues("", "", host, "answer"), 5},
		{"no family", decisionCount.WithLabelValues("", "", host, "no_family"), 1},
	}
	before := make([]float64, len(counts)) // counters are the process's
	for i, tc := range counts {
		before[i] = testutil.ToFloat64(tc.c)
	}
	for _, subnet := range []string{"198.51.100.0/24", "198.51.100.0/24", "203.0.113.0/24", "10.0.0.0/24", ""} {
		serve(t, g, ask(host, dns.TypeA, subnet))
	}
	serve(t, g, ask(host, dns.TypeAAAA, ""))
	for i, tc := range counts {
		if got := testutil.ToFloat64(tc.c) - before[i]; got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
	c := g.labels.of(context.Background(), g.block)
	for i, want := range []float64{2, 3, 1} { // shared with other tests of this package: at least
		if got := testutil.ToFloat64(c.subnets[i]); got < want {
			t.Errorf("client subnets %s: got %v, want at least %v", subnetWords[i], got, want)
		}
	}
}

func TestFamilyMoved(t *testing.T) {
	const host = "moved.example.com."
	g := load(t, block("host moved.example.com {\npool a {\nendpoint 192.0.2.8\nendpoint 2001:db8::8 down\n}\npool b 192.0.2.9 2001:db8::9\n}"), nil)
	moved := familyMovedCount.WithLabelValues("", "", host)
	before := testutil.ToFloat64(moved)
	if m, _ := serve(t, g, ask(host, dns.TypeAAAA, "203.0.113.0/24")); addrs(m) != "2001:db8::9" {
		t.Errorf("got %s", m)
	}
	if m, _ := serve(t, g, ask(host, dns.TypeA, "203.0.113.0/24")); addrs(m) != "192.0.2.8" {
		t.Errorf("got %s", m)
	}
	if got := testutil.ToFloat64(moved) - before; got != 1 {
		t.Errorf("got %v", got)
	}
}

func TestMetricNames(t *testing.T) {
	for _, c := range []prometheus.Collector{
		requestCount, decisionCount, familyMovedCount, subnetCount, planInfo, topologyBlocks, topologyLists, topologySeconds,
		databaseBuilt, databaseLoaded, databaseSize, databaseNetworks, fileFailing, fileReloads,
	} {
		problems, err := testutil.CollectAndLint(c)
		if err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
		ch := make(chan *prometheus.Desc, 1)
		c.Describe(ch)
		if d := (<-ch).String(); !strings.Contains(d, `"coredns_gslb_`) {
			t.Errorf("got %s", d)
		}
	}
}

func TestStateMetrics(t *testing.T) {
	g := load(t, block(""), nil)
	g.files.view = "inside"
	gen := &generation{loaded: []*GSLB{g}}
	running.start(gen, g)
	if got := testutil.ToFloat64(topologyBlocks.WithLabelValues("example.com.", "", "inside", "v4", "client_subnet")); got < 24 {
		t.Errorf("%v blocks", got)
	}
	if n := testutil.CollectAndCount(planInfo); n != 1 {
		t.Errorf("%d plans", n)
	}
	running.stop(gen)
	if n := testutil.CollectAndCount(planInfo); n != 0 {
		t.Errorf("%d plans after the end", n)
	}
}

func TestMetadata(t *testing.T) {
	g := load(t, block(""), nil)
	ctx := metadata.ContextWithMetadata(context.Background())
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := g.ServeDNS(ctx, rec, ask("api.example.com.", dns.TypeA, "198.51.100.0/24")); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"gslb/host": "api.example.com.", "gslb/region": "b", "gslb/source": "ecs", "gslb/scope": "24",
		"gslb/outcome": "answer", "gslb/client": "198.51.100.0/24",
	} {
		f := metadata.ValueFunc(ctx, label)
		if f == nil || f() != want {
			t.Errorf("%s is not %s", label, want)
		}
	}
}
