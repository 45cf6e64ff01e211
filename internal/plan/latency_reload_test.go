package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
)

// TestLatencyReload holds which content takes the place of that in use.
func TestLatencyReload(t *testing.T) {
	built := mapDay.Add(-12 * time.Hour)
	at := func(d time.Duration) string {
		return mapOf(built.Add(d), "198.51.100.0/24 us\n203.0.113.0/24 us\n192.0.2.0/24 us\n192.0.3.0/24 us", "")
	}
	rolled := func(d time.Duration) string {
		return strings.Replace(at(-time.Hour), "clients", "rollback "+built.Add(d).Format(time.RFC3339)+" \"ops\" \"eu is slow\"\nclients", 1)
	}
	for name, c := range map[string]struct{ content, want string }{
		"newer":                  {at(time.Hour), ""},
		"the same":               {at(0), ""},
		"older":                  {at(-time.Hour), "only taken when it was put back with `gslbctl map rollback`"},
		"as old and different":   {at(0) + "resolvers\n9.0.0.0/8 us\n", "map rollback"},
		"put back":               {rolled(time.Hour), ""},
		"put back before":        {rolled(-time.Minute), "map rollback"},
		"put back in the future": {rolled(15 * time.Hour), "in the future"},
		"built in the future":    {at(15 * time.Hour), "in the future"},
		"shrunk":                 {mapOf(built.Add(time.Hour), "198.51.100.0/24 us", ""), "entries"},
		"merged":                 {mapOf(built.Add(time.Hour), "192.0.0.0/3 us", ""), ""},
		"merged for the others":  {mapOf(built.Add(time.Hour), "", "192.0.0.0/3 us"), "has 1 entries where the copy in use has 4, of which it holds only 0"},
		"half is enough":         {mapOf(built.Add(time.Hour), "198.51.100.0/24 us\n203.0.113.0/24 us", ""), ""},
		"shrunk and put back":    {strings.Replace(mapOf(built.Add(-time.Hour), "198.51.100.0/24 us", ""), "clients", "rollback "+mapDay.Format(time.RFC3339)+" \"ops\" \"x\"\nclients", 1), ""},
		"an unknown region":      {strings.ReplaceAll(at(time.Hour), "us", "mars"), "not known: mars"},
		"truncated":              {at(time.Hour)[:40], ""},
		"garbage":                {"gar bage", "not a steering map"},
	} {
		dir := t.TempDir()
		file := put(t, dir, "map.txt", at(0))
		p := mustBuildAt(t, dir, "latency map.txt"+threeRegions, mapDay)
		put(t, dir, "map.txt", c.content)
		if name == "truncated" {
			c.want = file
		}
		next, err := p.Data.Reload(file, mapDay)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if err == nil {
			if _, err := plan.Compile(p.Block, next, plan.Options{Now: mapDay}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestLatencyOlderThanRollback: what a map that was put back replaced stays refused,
// and the error says by what it was.
func TestLatencyOlderThanRollback(t *testing.T) {
	dir := t.TempDir()
	back := strings.Replace(mapText("198.51.100.0/24 us", ""), "clients", "rollback "+mapDay.Format(time.RFC3339)+" \"ops\" \"eu is slow\"\nclients", 1)
	file := put(t, dir, "map.txt", back)
	p := mustBuildAt(t, dir, "latency map.txt"+threeRegions, mapDay)
	if m := p.Maps()[0]; m.RolledBack == nil || m.RolledBack.By != "ops" {
		t.Errorf("%+v", m)
	}
	put(t, dir, "map.txt", mapOf(mapDay.Add(-time.Hour), "198.51.100.0/24 ap", ""))
	if _, err := p.Data.Reload(file, mapDay); err == nil || !strings.Contains(err.Error(), "was put back 2026-11-30T12:00:00Z by ops") {
		t.Errorf("error %v", err)
	}
	put(t, dir, "map.txt", mapOf(mapDay.Add(time.Hour), "198.51.100.0/24 ap", ""))
	if _, err := p.Data.Reload(file, mapDay); err != nil {
		t.Errorf("the next map is refused: %v", err)
	}
}

// TestLatencyLastGood: a start, or a reload of the Corefile, takes the map in service
// or its copy where the file can't be used or is older, and says so.
func TestLatencyLastGood(t *testing.T) {
	built := mapDay.Add(-12 * time.Hour)
	at := func(d time.Duration, region string) string { return mapOf(built.Add(d), "198.51.100.0/24 "+region, "") }
	const block = "latency map.txt" + threeRegions
	for name, c := range map[string]struct {
		content string // of the file now; empty: it is gone
		want    string // region
		stale   string // empty: the file is used
	}{
		"newer":             {at(time.Hour, "ap"), "ap", ""},
		"older":             {at(-time.Hour, "ap"), "us", "map rollback"},
		"the same":          {at(0, "us"), "us", ""},
		"gone":              {"", "us", "no such file"},
		"garbage":           {"gar bage", "us", "not a steering map"},
		"an unknown region": {at(time.Hour, "mars"), "us", "mars"},
		"from the future":   {at(24*time.Hour, "ap"), "us", "in the future"},
	} {
		for _, from := range []string{"service", "two in service", "a copy"} {
			t.Run(name+", "+from, func(t *testing.T) {
				dir := t.TempDir()
				file := put(t, dir, "map.txt", at(-2*time.Hour, "eu"))
				oldest := mustBuildAt(t, dir, block, mapDay)
				put(t, dir, "map.txt", at(0, "us"))
				p := mustBuildAt(t, dir, block, mapDay)
				last := plan.LastGood{InService: []*plan.Data{p.Data}}
				switch from {
				case "two in service":
					last.InService = []*plan.Data{oldest.Data, p.Data}
				case "a copy":
					last = plan.LastGood{Dir: filepath.Join(dir, "state")}
					if err := p.Data.Keep(last.Dir, mapDay); err != nil {
						t.Fatal(err)
					}
				}
				put(t, dir, "map.txt", c.content)
				if c.content == "" {
					os.Remove(file)
				}
				q, err := buildAt(dir, block, last, mapDay)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Fields(listOf(q, q.Hosts[0], "198.51.100.0/24"))[0]; got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				all := strings.Join(warned(q), "\n")
				stale := q.Data.Stale[file]
				switch {
				case c.stale == "" && (stale != nil || all != ""):
					t.Errorf("stale: %v; warnings %s", stale, all)
				case c.stale != "" && (stale == nil || !strings.Contains(stale.Error(), c.stale) || strings.Count(all, "the last good content of map.txt is in use: ") != 1):
					t.Errorf("stale: %v, want %q; warnings %s", stale, c.stale, all)
				}
			})
		}
	}
}

// TestLatencyLastGoodSuits: a map that names a region which the block no longer has is
// no substitute.
func TestLatencyLastGoodSuits(t *testing.T) {
	dir := t.TempDir()
	file := put(t, dir, "map.txt", mapText("198.51.100.0/24 us", ""))
	p := mustBuildAt(t, dir, "latency map.txt"+threeRegions, mapDay)
	state := filepath.Join(dir, "state")
	if err := p.Data.Keep(state, mapDay); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	without := "latency map.txt\nregion eu ap\nhost www.example.com {\npool eu 192.0.2.1\npool ap 192.0.2.3\n}"
	for name, last := range map[string]plan.LastGood{"in service": {InService: []*plan.Data{p.Data}}, "copy": {Dir: state}} {
		if _, err := buildAt(dir, without, last, mapDay); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := buildAt(dir, "latency map.txt"+threeRegions, last, mapDay); err != nil {
			t.Errorf("%s: the block that has the region: %v", name, err)
		}
	}
}

// TestLatencyCopyKeepsDate: the copy of a map that doesn't say when it was built is as
// old as the file was, however late it was made.
func TestLatencyCopyKeepsDate(t *testing.T) {
	dir := t.TempDir()
	file := put(t, dir, "nets", "198.51.100.0/24 => us\n")
	changed := mapDay.Add(-40 * time.Hour)
	if err := os.Chtimes(file, changed, changed); err != nil {
		t.Fatal(err)
	}
	p := mustBuildAt(t, dir, "latency nets"+threeRegions, mapDay)
	state := filepath.Join(dir, "state")
	if err := p.Data.Keep(state, mapDay); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "nets", "gar bage")
	for age, tooOld := range map[time.Duration]bool{0: false, 7 * time.Hour: false, 8 * time.Hour: true} {
		q, err := buildAt(dir, "latency nets"+threeRegions, plan.LastGood{Dir: state}, mapDay.Add(age))
		if err != nil {
			t.Fatal(err)
		}
		if m := q.Maps()[0]; !m.Built.Equal(changed) || m.TooOld != tooOld {
			t.Errorf("%s later: %+v", age, m)
		}
	}
}

// TestLatencyFilesTellDates: only of a file that doesn't say when it was built does the
// date count to those who watch it.
func TestLatencyFilesTellDates(t *testing.T) {
	for name, write := range forms {
		dir := t.TempDir()
		file := put(t, dir, "map", write(t))
		if err := os.Chtimes(file, mapDay, mapDay); err != nil {
			t.Fatal(err)
		}
		files := mustBuildAt(t, dir, "latency map"+threeRegions, mapDay).Data.Files()
		want := time.Time{}
		if name == "gdnsd nets" || name == "coverage zones" {
			want = mapDay
		}
		if len(files) != 1 || !files[0].Loaded || !files[0].Dated.Equal(want) {
			t.Errorf("%s: %+v", name, files)
		}
	}
}

// TestLatencyWarnings: what is odd about a map is told once for each place that names
// it.
func TestLatencyWarnings(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "long.txt", mapText("198.51.100.0/25 us\n203.0.113.0/24 us\n2001:db8::/57 us\n2001:db9::/56 us", "192.0.2.1/32 us"))
	put(t, dir, "empty.txt", mapText("", ""))
	two := strings.Replace(threeRegions, "www.example.com", "www.example.com", 1) + "\nhost two.example.com {\nlatency empty.txt\npool eu 192.0.2.1\n}\nhost three.example.com {\npool eu 192.0.2.1\n}"
	got := strings.Join(warned(mustBuildAt(t, dir, "latency long.txt"+two, mapDay)), "\n")
	want := "Corefile:2 2 of 4 client entries in long.txt are longer than ecs max: for ECS the list of most addresses of the shorter prefix counts\n" +
		"Corefile:10 empty.txt has no entry, so it says nothing"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, ecs := range []string{"ecs off\n", "ecs {\nmax 25 57\n}\n"} {
		if got := warned(mustBuildAt(t, dir, ecs+"latency long.txt"+threeRegions, mapDay)); len(got) > 0 {
			t.Errorf("%s: %s", ecs, got)
		}
	}
}
