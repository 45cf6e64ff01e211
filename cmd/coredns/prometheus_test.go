//go:build e2e

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrometheus has a real Prometheus measure a region, the server read the load
// from it, and Prometheus read the server's metrics in turn, and go by the alert rules.
func TestPrometheus(t *testing.T) {
	prometheus := tool(t, "prometheus", "--version")
	promtool := tool(t, "promtool", "--version")
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE busy gauge\nbusy{region=\"eu\",instance_of=\"a\"} 1500\nbusy{region=\"eu\",instance_of=\"b\"} 700\nbusy{region=\"us\"} 10\n")
	}))
	defer exporter.Close()

	dir, addr, metrics := t.TempDir(), "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	rules, err := filepath.Abs("examples/alerts/gslb.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := writeFile(t, dir, "prometheus.yml", fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["%s"]
scrape_configs:
- {job_name: busy, static_configs: [{targets: ["%s"]}]}
- {job_name: gslb, static_configs: [{targets: ["%s"]}]}
`, rules, strings.TrimPrefix(exporter.URL, "http://"), metrics))
	serve(t, fmt.Sprintf(`example.com:53 {
    prometheus %s
    gslb {
        region eu {
            capacity 4000
            load prometheus http://%s "sum(busy{region=\"eu\"})" every 1s
        }
        region us
        host api.example.com {
            order eu us
            pool eu 192.0.2.1
            pool us 192.0.2.2
        }
    }
}`, metrics, addr))
	background(t, prometheus, "--config.file="+config, "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+addr)

	eventually(t, "the load that Prometheus measured is known", func() bool {
		return metric(t, "coredns_gslb_load", "region", "eu") == 2200
	})
	eventually(t, "Prometheus knows what the server made of it", func() bool {
		return strings.Contains(get("http://"+addr+"/api/v1/query?query="+url.QueryEscape(`coredns_gslb_utilisation_ratio{region="eu"}`)), `"0.55"`)
	})
	eventually(t, "all alert rules have been evaluated", func() bool {
		told := get("http://" + addr + "/api/v1/rules")
		return strings.Contains(told, `"health":"ok"`) && !strings.Contains(told, `"health":"unknown"`)
	})
	if told := get("http://" + addr + "/api/v1/rules"); strings.Contains(told, `"health":"err"`) || strings.Contains(told, `"state":"firing"`) {
		t.Errorf("alert rules: %s", told)
	}

	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(ours(get("http://" + metrics + "/metrics")))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestAlerts has promtool check the alert rules, and see each fire when it should, and not
// before.
func TestAlerts(t *testing.T) {
	promtool := tool(t, "promtool", "--version")
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", "examples/alerts/gslb.yml"},
		{"test", "rules", "examples/alerts/gslb_test.yml"},
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// get is the body of a page, empty if there is none.
func get(page string) string {
	r, err := http.Get(page)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	return string(body)
}

// ours are the lines of a scrape that this plugin makes.
func ours(scrape string) string {
	var lines []string
	for line := range strings.Lines(scrape) {
		if strings.Contains(line, "coredns_gslb_") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
