package gslb

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type alertRule struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

// alertRules are those of examples/alerts.
func alertRules(t *testing.T) (list []alertRule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alertRule } }
	readYAML(t, "examples/alerts/gslb.yml", &file)
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

var (
	grouped   = regexp.MustCompile(`\b(?:by|on) \(([a-z, ]+)\)`)
	outermost = regexp.MustCompile(`^(?:max|min|sum|count|time\(\) - max) by \(([a-z, ]+)\)`)
	shown     = regexp.MustCompile(`\$labels\.([a-z]+)`)
)

// TestAlertRules holds that what the rules look at is there: metrics, with the labels that they
// are grouped by, and labels that texts show. When they fire is tested with promtool.
func TestAlertRules(t *testing.T) {
	there := describedMetrics(t)
	rules := alertRules(t)
	if len(rules) < 20 {
		t.Fatalf("only %d rules", len(rules))
	}
	for _, r := range rules {
		if n := checkMentioned(t, r.Alert, r.Expr, there); n == 0 {
			t.Errorf("%s looks at no metric of ours: %s", r.Alert, r.Expr)
		}
		labels := []string{"instance", "job"}
		for _, m := range mentioned.FindAllString(r.Expr, -1) {
			name, _, _ := strings.Cut(m, "{")
			labels = append(labels, there[name]...)
		}
		for _, m := range grouped.FindAllStringSubmatch(r.Expr, -1) {
			for _, l := range sortedFields(m[1]) {
				if !slices.Contains(labels, l) {
					t.Errorf("%s groups by %s, and its metrics have the labels %v", r.Alert, l, labels)
				}
			}
		}
		kept := labels
		if m := outermost.FindStringSubmatch(r.Expr); m != nil {
			kept = sortedFields(m[1])
		}
		for _, m := range shown.FindAllStringSubmatch(r.Annotations["summary"], -1) {
			if !slices.Contains(kept, m[1]) {
				t.Errorf("%s shows the label %s, and keeps %v", r.Alert, m[1], kept)
			}
		}
		if severity := r.Labels["severity"]; r.Annotations["summary"] == "" || severity != "page" && severity != "ticket" {
			t.Errorf("%s: severity %q, summary %q", r.Alert, severity, r.Annotations["summary"])
		}
	}
}

// TestAlertsAreTested holds that promtool is to see each rule fire, and not fire.
func TestAlertsAreTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, "examples/alerts/gslb_test.yml", &file)
	type side struct {
		alert string
		fires bool
	}
	seen := make(map[side]bool)
	for _, one := range file.Tests {
		for _, c := range one.Cases {
			seen[side{c.Alert, len(c.Fires) > 0}] = true
		}
	}
	for _, r := range alertRules(t) {
		for _, fires := range []bool{true, false} {
			if s := (side{r.Alert, fires}); !seen[s] {
				t.Errorf("no test of %+v", s)
			}
			delete(seen, side{r.Alert, fires})
		}
	}
	for s := range seen {
		t.Errorf("a test of %+v, and there is no such rule", s)
	}
}
