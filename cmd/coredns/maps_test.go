package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// mapsCorefile has a host for each map file of a directory. All are told apart by the
// map alone: region eu is 192.0.2.1, us 192.0.2.2; without it they get ap, 192.0.2.3.
func mapsCorefile(dir string, files ...string) string {
	var hosts strings.Builder
	for _, file := range files {
		name, _, _ := strings.Cut(file, ".")
		fmt.Fprintf(&hosts, "host %s.example.com {\nlatency %s\npool eu 192.0.2.1\npool us 192.0.2.2\npool ap 192.0.2.3\n}\n", name, file)
	}
	return "example.com:53 {\nroot " + dir + "\nerrors\ngslb {\nstate state\nregion eu us ap\nclients rest { order ap eu us }\n" + hosts.String() + "}\n}\n"
}

// measuredMap is a map that has 198.51.100.0/24 in a region, and others besides.
func measuredMap(built time.Time, region string) *latency.Map {
	m := &latency.Map{Built: built.UTC().Truncate(time.Second), Regions: []string{"eu", "us"}}
	cells := []latency.Cell{{P75: 12.5, Samples: 4000}, {P75: 90, Samples: 3900, Failed: 0.015}}
	for i := range 50 {
		e := latency.Entry{Prefix: netip.MustParsePrefix(fmt.Sprintf("198.51.%d.0/24", 100+i)), Order: []uint8{0, 1}, Cells: cells}
		if region == "us" {
			e.Order = []uint8{1, 0}
		}
		m.Clients = append(m.Clients, e)
	}
	return m
}

// encoded is a map as a MaxMind DB file.
func encoded(t *testing.T, m *latency.Map) string {
	t.Helper()
	var b bytes.Buffer
	if err := latency.WriteMMDB(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMaps: maps are replaced under a running server in good ways and bad ones, put
// back by the command that does it, and kept over a reload and restarts.
func TestMaps(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	write := func(file, content string) {
		t.Helper()
		if err := os.Rename(writeFile(t, dir, "new", content), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(built time.Time, region string) {
		t.Helper()
		if err := latency.Publish(filepath.Join(dir, "good.mmdb"), measuredMap(built, region), now, latency.PublishOptions{By: "cron", Why: "nightly"}); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{"good.mmdb", "older.mmdb", "garbage.mmdb", "half.mmdb", "unknown.mmdb"}
	publish(now.Add(-2*time.Hour), "eu")
	for _, file := range files[1:] {
		write(file, encoded(t, measuredMap(now.Add(-2*time.Hour), "eu")))
	}
	p := run(t, mapsCorefile(dir, files...))
	answers := func() string {
		var all []string
		for _, file := range files {
			name, _, _ := strings.Cut(file, ".")
			r := brief(ask(t, p.addr, name+".example.com A +subnet=198.51.100.0/24"))
			all = append(all, strings.TrimPrefix(strings.Fields(r)[0], "192.0.2."))
		}
		return strings.Join(all, " ")
	}
	expect := func(what, want string) {
		t.Helper()
		last := ""
		defer func() {
			if last != want {
				t.Logf("answers are %s; the log is\n%s", last, p.out)
			}
		}()
		eventually(t, what+" want "+want, func() bool { last = answers(); return last == want })
	}
	from := 0 // where the log of this process begins
	told := func(words ...string) {
		t.Helper()
		for _, want := range words {
			eventually(t, "the log has "+want, func() bool { return strings.Contains(p.out.String()[from:], want) })
		}
	}
	expect("at first", "1 1 1 1 1")

	newer := encoded(t, measuredMap(now.Add(-time.Hour), "us"))
	publish(now.Add(-time.Hour), "us")
	write("older.mmdb", encoded(t, measuredMap(now.Add(-3*time.Hour), "us")))
	write("garbage.mmdb", "gar bage")
	writeFile(t, dir, "half.mmdb", newer[:len(newer)/2]) // in place
	mars := measuredMap(now.Add(-time.Hour), "us")
	mars.Regions[0] = "mars"
	write("unknown.mmdb", encoded(t, mars))
	expect("a newer map alone is taken", "2 1 1 1 1")
	told("older.mmdb: this map was built", "gslbctl map rollback", "garbage.mmdb: not a steering map", "half.mmdb: not a steering map", "unknown.mmdb: the map sends clients to regions that are not known: mars; expected some of: eu, us, ap")

	path, err := gslbctl()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "map", "rollback", "-why", "us is slow since last night", filepath.Join(dir, "good.mmdb")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write("half.mmdb", newer)
	expect("what was put back, and a whole one", "1 1 1 2 1")
	for _, file := range []string{"good.mmdb", "half.mmdb"} {
		eventually(t, "a copy of "+file, func() bool { return copied(t, filepath.Join(dir, "state"), filepath.Join(dir, file)) })
	}

	write("good.mmdb", newer[len(newer)/2:])
	write("half.mmdb", encoded(t, measuredMap(now.Add(-2*time.Hour), "eu")))
	p.write(t, strings.Replace(mapsCorefile(dir, files...), "errors", "errors\nready 127.0.0.1:"+freePort(t), 1))
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	told("Reloading complete", "the last good content of good.mmdb is in use", "the last good content of half.mmdb is in use")
	expect("a reload of the Corefile with bad maps", "1 1 1 2 1")

	for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
		p.end(t, signal)
		from = len(p.out.String())
		p.begin(t)
		expect("a start with bad maps", "1 1 1 2 1")
		told("the last good content of good.mmdb is in use", "the last good content of half.mmdb is in use: "+filepath.Join(dir, "half.mmdb")+": this map was built")
	}
}

// copied tells whether a state directory has a copy of a file.
func copied(t *testing.T, state, file string) bool {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copies, err := filepath.Glob(filepath.Join(state, "data-*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(copies, func(name string) bool {
		data, err := os.ReadFile(name)
		return err == nil && bytes.Equal(data, want)
	})
}
