package gslb

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var described = regexp.MustCompile(`fqName: "(coredns_gslb_[a-z_]+)".* variableLabels: \{([a-z_,]*)\}`)

// describedMetrics are the metrics that this plugin registers, with their labels sorted.
func describedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	ch := make(chan *prometheus.Desc)
	go func() {
		prometheus.DefaultRegisterer.(prometheus.Collector).Describe(ch)
		close(ch)
	}()
	labels := make(map[string][]string)
	for d := range ch {
		if m := described.FindStringSubmatch(d.String()); m != nil {
			labels[m[1]] = sortedFields(m[2])
		}
	}
	if len(labels) < 50 {
		t.Fatalf("only %d metrics are registered", len(labels))
	}
	return labels
}

func sortedFields(list string) []string {
	fields := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(fields)
	return fields
}

// TestMetricsAreDocumented holds that README.md lists every metric with its labels, and
// none besides.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string][]string)
	for _, m := range regexp.MustCompile("`(coredns_gslb_[a-z_]+)\\{([a-z, ]*)\\}`").FindAllStringSubmatch(string(text), -1) {
		if documented[m[1]] != nil {
			t.Errorf("README.md lists %s twice", m[1])
		}
		documented[m[1]] = sortedFields(m[2])
	}
	there := describedMetrics(t)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		switch labels, ok := documented[name]; {
		case !ok:
			t.Errorf("README.md doesn't list %s%v", name, there[name])
		case !slices.Equal(labels, there[name]):
			t.Errorf("README.md gives %s the labels %v, and it has %v", name, labels, there[name])
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("README.md lists %s, and there is no such metric", name)
	}
}

var (
	mentioned = regexp.MustCompile(`\bcoredns_gslb_[a-z_]+(?:\{[^}\n]*\})?`)
	labelled  = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=)`)
)

// checkMentioned holds that every metric that a text speaks of is there, and has the labels
// that the text gives it values of; Prometheus adds instance and job, and le to histograms.
func checkMentioned(t *testing.T, where, text string, there map[string][]string) (n int) {
	t.Helper()
	for _, m := range mentioned.FindAllString(text, -1) {
		n++
		name, labels, _ := strings.Cut(m, "{")
		has, ok := there[name]
		if !ok {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			has, ok = there[name]
		}
		if !ok {
			t.Errorf("%s speaks of %s, and there is no such metric", where, m)
		}
		for _, l := range labelled.FindAllStringSubmatch(labels, -1) {
			if ok && !slices.Contains(append(has, "instance", "job", "le"), l[1]) {
				t.Errorf("%s speaks of %s, and %s has the labels %v", where, m, name, has)
			}
		}
	}
	return n
}

// TestMetricsOnPages holds that the metrics that pages and examples speak of are there.
func TestMetricsOnPages(t *testing.T) {
	there := describedMetrics(t)
	files := []string{"README.md"}
	for _, dir := range []string{"docs", "examples"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n += checkMentioned(t, path, string(text), there)
	}
	if n < 60 {
		t.Errorf("only %d metrics are spoken of", n)
	}
}
