package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/mmdbtest"
)

// copyFile copies a file for a test that changes it.
func copyFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, t.TempDir(), filepath.Base(path), string(content))
}

// database builds a location database that has the client 198.51.100.0/24 in a
// country, and n other networks.
func database(t *testing.T, continent, country string, n int) string {
	t.Helper()
	db := mmdbtest.Database{
		Type:     "GeoLite2-Country",
		Networks: []mmdbtest.Network{{Prefix: "198.51.100.0/24", Record: mmdbtest.Country(continent, country)}},
	}
	for i := range n {
		db.Networks = append(db.Networks, mmdbtest.Network{Prefix: fmt.Sprintf("192.0.%d.0/24", i), Record: mmdbtest.Country("OC", []string{"AU", "NZ"}[i%2])}) // neighbours that differ
	}
	content, err := db.Build()
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// b21, b52, b69: databases are replaced while queries come in, in each way that
// files are replaced; content that is no good leaves the last good one in use.
func TestDataFiles(t *testing.T) {
	dir := t.TempDir()
	eu, us := database(t, "EU", "DE", 20), database(t, "NA", "US", 20)
	replace := map[string]func(content string){
		"written": func(content string) { writeFile(t, dir, "written", content) },
		"renamed": func(content string) {
			if err := os.Rename(writeFile(t, dir, "new", content), filepath.Join(dir, "renamed")); err != nil {
				t.Error(err)
			}
		},
	}
	generation := 0
	replace["linked"] = func(content string) {
		generation++
		writeFile(t, dir, fmt.Sprintf("linked-%d", generation), content)
		if err := os.Symlink(fmt.Sprintf("linked-%d", generation), filepath.Join(dir, "link")); err != nil {
			t.Error(err)
		}
		if err := os.Rename(filepath.Join(dir, "link"), filepath.Join(dir, "linked")); err != nil {
			t.Error(err)
		}
	}
	var corefile strings.Builder
	for name, with := range replace {
		with(eu)
		fmt.Fprintf(&corefile, `%s.example:53 {
    gslb {
        geoip country %s
        spread resolver
        region eu { clients continent EU }
        region us { clients rest }
        host www.%s.example {
            pool eu 192.0.2.1
            pool us 192.0.2.2
        }
    }
}
`, name, filepath.Join(dir, name), name)
	}
	s := serve(t, corefile.String())
	question := func(name string) string { return "www." + name + ".example A +subnet=198.51.100.0/24" }
	var askers []*asker
	for name := range replace {
		askers = append(askers, keepAskingFor(t, s.addr, question(name), "192.0.2.1 /6", "192.0.2.2 /6"))
	}
	reloads := func(name, result string) float64 {
		return metric(t, "coredns_gslb_file_reloads_total", "file", filepath.Join(dir, name), "result", result)
	}
	failing := func(name string) float64 {
		return metric(t, "coredns_gslb_file_failing", "file", filepath.Join(dir, name))
	}

	for _, step := range []struct {
		what              string
		content           map[string]string
		region            string
		successes, errors float64
	}{
		{"another database", map[string]string{"written": us, "renamed": us, "linked": us}, "192.0.2.2", 1, 0},
		{"no good database", map[string]string{"written": us[:len(us)/2], "renamed": "not a database", "linked": database(t, "EU", "DE", 2)}, "192.0.2.2", 1, 1},
		{"a good one again", map[string]string{"written": eu, "renamed": eu, "linked": eu}, "192.0.2.1", 2, 1},
	} {
		for name, with := range replace {
			with(step.content[name])
		}
		for name := range replace {
			eventually(t, fmt.Sprintf("%s is seen in %s", step.what, name), func() bool {
				return reloads(name, "success") == step.successes && reloads(name, "error") == step.errors
			})
			if want := map[bool]float64{true: 1}[step.what == "no good database"]; failing(name) != want {
				t.Errorf("%s in %s: file_failing is %v, want %v", step.what, name, failing(name), want)
			}
			if got := brief(s.exchange(t, question(name))); !strings.HasPrefix(got, step.region) {
				t.Errorf("%s in %s: %s, want %s", step.what, name, got, step.region)
			}
		}
	}
	for _, a := range askers {
		a.stop(t)
	}
}
