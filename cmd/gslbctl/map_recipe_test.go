package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// night writes a file of a day, of 20 prefixes, of which three are slower to eu as told.
func night(t *testing.T, dir string, day time.Time, slower int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,client,region,rtt_ms,source\n")
	for p := range 20 {
		for i := range 250 {
			at := day.Add(time.Duration(i*300) * time.Second).Format(time.RFC3339)
			extra := 0
			if p < 3 {
				extra = slower
			}
			fmt.Fprintf(&b, "%s,20.%d.0.0/24,eu,%d,%d\n%s,20.%d.0.0/24,us,%d,%d\n", at, p, 60+extra+i%20, i, at, p, 60+i%20, i)
		}
	}
	path := filepath.Join(dir, "days", day.Format(time.DateOnly)+".csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestMapRecipe runs the script for every night in docs/latency.md as it stands there, from
// nothing: the first night, a usual one, the one after a cable cut, and the one after a day
// that speaks against what the map would change.
func TestMapRecipe(t *testing.T) {
	if os.Getenv("GSLBCTL_RECIPE") != "" {
		os.Exit(run(os.Args[2:], os.Stdout, os.Stderr))
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatalf("a shell is needed: %v", err)
	}
	docs, err := os.ReadFile("../../docs/latency.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(docs)
	if found == nil {
		t.Fatal("docs/latency.md has no script")
	}
	script := strings.NewReplacer(".csv.zst", ".csv", "gslbctl map", os.Args[0]+" -test.run=TestMapRecipe map",
		"-conf Corefile", "-conf "+mapCorefile(t)).Replace(string(found[1]))
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "days"), 0o755); err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	runNight := func(day time.Time) string {
		t.Helper()
		c := exec.Command(sh, "-c", script)
		c.Dir, c.Env = dir, append(os.Environ(), "GSLBCTL_RECIPE=1", "day="+day.Format(time.DateOnly))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	night(t, dir, today.Add(-96*time.Hour), 0)
	out := runNight(today.Add(-96 * time.Hour)) // the first
	if _, _, err := latency.Read(filepath.Join(dir, "map.mmdb")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	night(t, dir, today.Add(-72*time.Hour), 0)
	if out = runNight(today.Add(-72 * time.Hour)); !strings.Contains(out, "nothing to compare") {
		t.Error(out)
	}
	night(t, dir, today.Add(-48*time.Hour), 90)
	out = runNight(today.Add(-48 * time.Hour))
	if got := clientsOf(t, filepath.Join(dir, "map.mmdb")); len(got) != 3 || got[0] != "20.0.0.0/24 us eu" {
		t.Errorf("after a cut: %q\n%s", got, out)
	}
	// A day on which those three are faster by eu again: what was held out is wrong.
	night(t, dir, today.Add(-24*time.Hour), -60)
	if out = runNight(today.Add(-24 * time.Hour)); !strings.Contains(out, "do not publish, but for emergencies") {
		t.Error(out)
	}
	if got := clientsOf(t, filepath.Join(dir, "map.mmdb")); len(got) > 0 {
		t.Errorf("held back, but this is an emergency: %q\n%s", got, out)
	}
}

// TestMapZeros holds that a 0 means what it says, or is refused.
func TestMapZeros(t *testing.T) {
	in, conf := measured(t, 25), " -host api.example.com -conf "+mapCorefile(t)
	for _, name := range []string{"window", "half-life", "min-samples", "resolver-samples", "resolver-spread", "source-share", "longest4", "shortest6", "memory"} {
		zero := "0"
		out := filepath.Join(t.TempDir(), "map.txt")
		code, _, stderr := call(t, "map build -o "+out+january+conf+" -"+name+" "+zero+" "+in)
		if _, err := os.Stat(out); code != exitUsage || !strings.Contains(stderr, "-"+name+" 0: expected") || err == nil {
			t.Errorf("-%s 0: exit code %d, errors %s", name, code, stderr)
		}
	}
	for flags, want := range map[string]int{"-budget 0 -emergency-budget 0": 0, "-budget 0 -emergency-budget 1": 0, "-budget 1 -emergency-budget 0": 20} {
		out := filepath.Join(t.TempDir(), "map.txt")
		code, _, stderr := call(t, "map build -o "+out+january+conf+" "+flags+" "+in)
		if got := clientsOf(t, out); code != exitOK || len(got) != want {
			t.Errorf("%s: exit code %d, errors %s, entries %q", flags, code, stderr, got)
		}
	}
	if code, _, stderr := call(t, "map build -o x.txt -regions eu,us -budget -0.1 "+in); code != exitUsage || !strings.Contains(stderr, "expected 0 to 1") {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestMapBuilt holds that one input makes one map if told when it was built, and that builds may be
// as quick as they like.
func TestMapBuilt(t *testing.T) {
	in, dir := measured(t, 25), t.TempDir()
	files := [2]string{}
	for i := range files {
		out := filepath.Join(dir, fmt.Sprint(i, ".mmdb"))
		for range 2 { // the second one changes nothing
			if code, _, stderr := call(t, "map build -force -default-order eu,us -built 2026-01-04T00:00:00Z -o "+out+january+in); code != exitOK {
				t.Fatal(stderr)
			}
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = string(b)
	}
	if files[0] != files[1] {
		t.Error("the same input makes other bytes")
	}
	for range 3 {
		if code, _, stderr := call(t, "map build -force -default-order eu,us -o "+dir+"/quick.mmdb"+january+in); code != exitOK {
			t.Fatal(stderr)
		}
	}
	if code, _, stderr := call(t, "map build -force -default-order eu,us -built 2999-01-01 -o "+dir+"/x.mmdb"+january+in); code != exitUsage || !strings.Contains(stderr, "future") {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestMapFromFuture holds that a map whose builder's clock was ahead is no dead end.
func TestMapFromFuture(t *testing.T) {
	in := measured(t, 25)
	place := func() string {
		path := filepath.Join(t.TempDir(), "map.txt")
		for name, built := range map[string]string{path: "2999-01-01", path + ".1": "2026-01-01"} {
			if err := os.WriteFile(name, []byte("gslb-latency 1\nbuilt "+built+"T00:00:00Z\nregions eu us\n\nclients\n20.0.0.0/24 us eu\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	path := place()
	command := "map build -default-order eu,us -o " + path + january + in
	if code, _, stderr := call(t, command); code != exitError || !strings.Contains(stderr, "from the future, of 2999") || !strings.Contains(stderr, "map rollback") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr := call(t, strings.Replace(command, "build", "build -force", 1)); code != exitOK {
		t.Error(stderr)
	}
	path = place()
	if code, _, stderr := call(t, "map rollback -why ahead "+path); code != exitOK {
		t.Fatal(stderr)
	}
	m, _, err := latency.Read(path)
	if err != nil || m.Built.Year() != 2026 || m.Rollback == nil || time.Since(m.Rollback.At) > time.Hour || time.Until(m.Rollback.At) > time.Minute {
		t.Errorf("%+v, %v", m, err)
	}
	if err := m.Validate(time.Now()); err != nil {
		t.Error(err)
	}
	if code, _, stderr := run1(t, "map", "rollback", "-why", " \t ", path); code != exitUsage || !strings.Contains(stderr, "expected a reason") {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestMapUntilNote holds that forgetting what the map in service knows is noted, and holding
// out a day is not.
func TestMapUntilNote(t *testing.T) {
	in, dir := measured(t, 25), t.TempDir()
	previous := filepath.Join(dir, "previous.txt")
	for until, want := range map[string]bool{"2026-01-03": false, "2026-01-20": true} {
		text := "gslb-latency 1\nbuilt 2026-01-21T00:00:00Z\nfrom 2026-01-01T00:00:00Z\nuntil " + until + "T20:00:00Z\nregions eu us\n"
		if err := os.WriteFile(previous, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := call(t, "map build -default-order eu,us -previous "+previous+" -o "+dir+"/map.txt"+january+in)
		if code != exitOK || strings.Contains(stderr, "note: -until 2026-01-03") != want {
			t.Errorf("%s: exit code %d, errors %q", until, code, stderr)
		}
	}
}

// run1 is call for arguments with blanks.
func run1(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}
