package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/latency/build"
)

// measured writes measurements of 2 January 2026: eu is slower than us by some ms for 20
// clients that a Corefile sends to eu, and for 20 that it sends to us.
func measured(t *testing.T, slower int) (path string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,client,resolver,region,rtt_ms,ok,source\n")
	for p := range 40 {
		for i := range 400 {
			for r, ms := range []int{60 + slower, 60} {
				fmt.Fprintf(&b, "2026-01-02T10:%02d:00Z,%d.%d.0.0/24,,%s,%d,true,%d\n", i%60, 20+p/20, p%20, [...]string{"eu", "us"}[r], ms+i%20, i)
			}
		}
	}
	path = filepath.Join(t.TempDir(), "beacons.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// mapCorefile sends 20.0.0.0/8 to eu and all else to us.
func mapCorefile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(path, []byte(`example.com {
	gslb {
		region eu {
			clients prefix 20.0.0.0/8
		}
		region us {
			clients rest
		}
		host api.example.com {
			pool eu 192.0.2.1
			pool us 192.0.2.2
		}
	}
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// clientsOf reads a map and gives its entries for clients as words.
func clientsOf(t *testing.T, path string) (lines []string) {
	t.Helper()
	m, _, err := latency.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Clients {
		line := e.Prefix.String()
		for _, r := range e.Order {
			line += " " + m.Regions[r]
		}
		lines = append(lines, line)
	}
	return lines
}

const january = " -until 2026-01-03 "

// TestMapBuild holds that a map is made of what beats a Corefile, that a second one keeps it,
// that it may be published by a check, and that merging the day is the same.
func TestMapBuild(t *testing.T) {
	dir, in, conf := t.TempDir(), measured(t, 25), " -host api.example.com -conf "+mapCorefile(t)
	out, day := filepath.Join(dir, "map.mmdb"), filepath.Join(dir, "day.gslbs")
	code, report, stderr := call(t, "map build -force -json -previous "+out+" -o "+out+" -write-sketches "+day+january+conf+" "+in)
	if code != exitOK || !strings.Contains(stderr, "first map") {
		t.Fatalf("exit code %d, errors: %s", code, stderr)
	}
	first := clientsOf(t, out)
	for i, line := range first { // nothing for 21.0.0.0/8, which has us already
		if want := fmt.Sprintf("20.%d.0.0/24 us eu", i); line != want || len(first) != 20 {
			t.Errorf("entry %q of %d, want %q of 20", line, len(first), want)
		}
	}
	var r build.Report
	if err := json.Unmarshal([]byte(report), &r); err != nil || r.Lines != 32000 || r.Clients.Prefixes != 40 || r.Clients.Moved != 0.5 || r.Clients.OverrideGain != 25 {
		t.Errorf("report %s: %v", report, err)
	}

	merged := filepath.Join(dir, "merged.txt")
	if code, _, stderr := call(t, "map merge -force -o "+merged+january+conf+" "+day); code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, errors: %s", code, stderr)
	}
	if got := clientsOf(t, merged); fmt.Sprint(got) != fmt.Sprint(first) {
		t.Errorf("entries of the day are %q, want %q", got, first)
	}

	for slower, want := range map[int]int{25: exitOK, -25: exitError} {
		code, text, stderr := call(t, "map check -map "+out+january+conf+" "+measured(t, slower))
		if code != want || stderr != "" || strings.Contains(text, "do not publish") != (want == exitError) {
			t.Errorf("eu slower by %d: exit code %d, errors %s\n%s", slower, code, stderr, text)
		}
	}
	if code, _, stderr := call(t, "map check -map "+out+january+" -default-order us,eu "+in); code != exitOK {
		t.Errorf("a map that overrides nothing is held back: %s", stderr)
	}
}

// TestMapDiffBudget holds that map diff refuses nothing that a build moved within its budget.
func TestMapDiffBudget(t *testing.T) {
	dir, in, conf := t.TempDir(), measured(t, 25), " -host api.example.com -conf "+mapCorefile(t)
	none, out := filepath.Join(dir, "none.txt"), filepath.Join(dir, "map.mmdb")
	if code, _, stderr := call(t, "map build -budget 0 -emergency-budget 0 -built 2026-01-03T01:00:00Z -o "+none+january+conf+" "+in); code != exitOK {
		t.Fatal(stderr)
	}
	if code, _, stderr := call(t, "map build -budget 0.06 -previous "+none+" -o "+out+january+conf+" "+in); code != exitOK || len(clientsOf(t, out)) != 2 {
		t.Fatalf("%q: %s", clientsOf(t, out), stderr)
	}
	code, text, stderr := call(t, "map diff -budget 6% "+none+" "+out)
	if code != exitOK || stderr != "" || !strings.Contains(text, "of the 32000 of clients and 0 of resolvers") || !strings.Contains(text, "5.00 % enters") {
		t.Errorf("exit code %d, errors %s\n%s", code, stderr, text)
	}
}

// TestMapBuildLeavesOld holds that a build that fails, or is killed in the middle, leaves the
// old map and nothing else.
func TestMapBuildLeavesOld(t *testing.T) {
	if args := os.Getenv("GSLBCTL_ARGS"); args != "" { // the process that is killed
		os.Exit(run(strings.Fields(args), os.Stdout, os.Stderr))
	}
	dir, in := t.TempDir(), measured(t, 25)
	out := filepath.Join(dir, "map.txt")
	if err := os.Mkdir(filepath.Join(dir, "temp"), 0o755); err != nil {
		t.Fatal(err)
	}
	line := "map build -force -default-order eu,us -o " + out + " -write-sketches " + dir + "/day -memory 64K -temp " + dir + "/temp" + january
	if code, _, stderr := call(t, line+in); code != exitOK {
		t.Fatal(stderr)
	}
	old, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, line+in+" "+mapCorefile(t))
	if code != exitError || !strings.Contains(stderr, "Corefile:1: no column region") {
		t.Errorf("exit code %d, errors %s", code, stderr)
	}
	if left, _ := filepath.Glob(dir + "/temp/*"); len(left) > 0 {
		t.Errorf("a failed build left %q", left)
	}

	killed := exec.Command(os.Args[0], "-test.run", "^TestMapBuildLeavesOld$")
	killed.Env = append(os.Environ(), "GSLBCTL_ARGS="+line+"-", "GOMAXPROCS=1") // with many workers none might have written yet
	stdin, err := killed.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 { // more than a pipe and its buffers hold, so it is in the middle of it
		if _, err := stdin.Write(data); err != nil {
			t.Fatal(err)
		}
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	if spilled, _ := filepath.Glob(dir + "/temp/*/run-*"); len(spilled) == 0 {
		t.Error("it was not in the middle of it")
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.Wait()
	if now, err := os.ReadFile(out); err != nil || !bytes.Equal(now, old) {
		t.Errorf("the old map is not there: %v", err)
	}
}

func TestMapBuildMistakes(t *testing.T) {
	in, conf := measured(t, 0), mapCorefile(t)
	out := " -o " + filepath.Join(t.TempDir(), "map.mmdb") + " "
	for line, c := range map[string]struct {
		code int
		want string
	}{
		"map build -default-order eu,us " + in:                                         {exitUsage, "expected -o FILE"},
		"map build -default-order eu,us" + out:                                         {exitUsage, "expected inputs"},
		"map build -o map.json -default-order eu,us " + in:                             {exitUsage, ".mmdb or .txt"},
		"map build" + out + in:                                                         {exitError, "expected one of -conf"},
		"map build -regions eu -default-order eu" + out + in:                           {exitError, "expected one of -conf"},
		"map build -conf " + conf + out + in:                                           {exitError, "-conf and -host together"},
		"map build -host www.example.com -conf " + conf + out + in:                     {exitError, "no gslb block has a host www.example.com."},
		"map build -host api.example.com -view x -conf " + conf + out + in:             {exitError, "no gslb block in view x has a host"},
		"map build -regions eu,us -until tomorrow" + out + in:                          {exitUsage, "expected RFC 3339"},
		"map build -regions eu,us -until 2100-01-01" + out + in:                        {exitUsage, "in the future"},
		"map build -regions eu,us -memory 1Q" + out + in:                               {exitUsage, "expected a number of bytes"},
		"map build -regions eu,us -memory 1K" + out + in:                               {exitError, "the memory in bytes is 1024: expected 65536"},
		"map build -regions eu,us -previous nothing.mmdb" + out + in:                   {exitError, "nothing.mmdb"},
		"map build -regions eu,us" + out + "nothing.csv":                               {exitError, "nothing.csv"},
		"map build -regions eu,uk" + january + out + in:                                {exitError, "beacons.csv:"},
		"map check -default-order eu,us " + in:                                         {exitUsage, "expected -map FILE"},
		"map check -regions eu,us -map x.mmdb " + in:                                   {exitUsage, "answers without it"},
		"map build -regions eu,us -write-sketches " + in + out + in:                    {exitError, "beacons.csv holds no sketches"},
		"map build -regions eu,us -write-sketches " + filepath.Dir(in) + out + in:      {exitError, "holds no sketches"},
		"map merge -regions eu" + out + " -write-sketches no/such/dir/day.gslbs " + in: {exitError, "no/such/dir"},
	} {
		if code, _, stderr := call(t, line); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, errors %s, want %d, %s", line, code, stderr, c.code, c.want)
		}
	}
}

func TestByteSize(t *testing.T) {
	for s, want := range map[string]int64{"1": 1, "64k": 64 << 10, "2G": 2 << 30, "0": 0, "": -1, "G": -1, "-1": -1, "2000G": -1, "1.5G": -1, "1 G": -1} {
		var b byteSize
		if err := b.Set(s); err != nil && want >= 0 || err == nil && int64(b) != want {
			t.Errorf("%q is %d, %v, want %d", s, b, err, want)
		}
	}
}

// TestProgressBar holds that a bar is only drawn on a terminal, not too often, and taken
// away in the end.
func TestProgressBar(t *testing.T) {
	if newProgressBar(&bytes.Buffer{}) != nil {
		t.Error("a buffer gets a bar")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if newProgressBar(f) != nil {
		t.Error("a file gets a bar")
	}
	var out strings.Builder
	now := time.Unix(0, 0)
	bar := &progressBar{w: &out, now: func() time.Time { return now }}
	for done := range int64(11) {
		bar.show("reading", done, 10)
		now = now.Add(150 * time.Millisecond)
	}
	if got := strings.Count(out.String(), "\r"); got != 6 || !strings.Contains(out.String(), "[===============               ]  50 %") && !strings.Contains(out.String(), " 60 %") {
		t.Errorf("%d lines: %q", got, out.String())
	}
	bar.show("deciding", 1, 0)
	out.Reset()
	bar.clear()
	if got := out.String(); strings.Trim(got, "\r ") != "" || got == "" {
		t.Errorf("it is not taken away by %q", got)
	}
	(*progressBar)(nil).clear()
}
