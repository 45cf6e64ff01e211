package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMapGolden(t *testing.T) {
	const monday, tuesday = "testdata/maps/monday.txt ", "testdata/maps/tuesday.txt "
	for name, c := range map[string]struct {
		line string
		code int
	}{
		"map-show.txt":          {"map show " + monday, exitOK},
		"map-show-client.txt":   {"map show " + monday + "192.0.2.77", exitOK},
		"map-show-prefix.txt":   {"map show " + tuesday + "192.0.0.0/8", exitOK},
		"map-show-resolver.txt": {"map show -resolver " + monday + "192.0.2.200", exitOK},
		"map-show-none.txt":     {"map show " + tuesday + "203.0.112.0/24", exitError},
		"map-diff.txt":          {"map diff " + monday + tuesday, exitError},
		"map-diff-all.txt":      {"map diff -budget 100% -top 1 " + monday + tuesday, exitOK},
		"map-diff.json":         {"map diff -json -regions eu,us " + tuesday + monday, exitError},
		"map-convert.txt":       {"map convert " + tuesday + "-", exitOK},
		"map-help-show.txt":     {"map show -help", exitOK},
		"map-help-diff.txt":     {"map diff -help", exitOK},
		"map-help-convert.txt":  {"map convert -help", exitOK},
		"map-help-rollback.txt": {"map rollback -help", exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, c.line)
			if code != c.code || stderr != "" {
				t.Fatalf("exit code %d, errors: %s", code, stderr)
			}
			golden(t, name, stdout)
		})
	}
}

func TestMapMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
		want string // in the errors
	}{
		"nothing":         {"map", exitUsage, "Commands:"},
		"unknown command": {"map dif", exitUsage, `did you mean "diff"?`},
		"show nothing":    {"map show", exitUsage, "expected FILE"},
		"show too much":   {"map show a b c", exitUsage, "at most one PREFIX"},
		"bad prefix":      {"map show testdata/maps/monday.txt 10.0.0.1/8", exitUsage, "write 10.0.0.0/8"},
		"no file":         {"map show testdata/maps/none", exitError, "testdata/maps/none: no such file"},
		"no map":          {"map show testdata/Corefile", exitError, "testdata/Corefile: not a steering map"},
		"one map":         {"map diff testdata/maps/monday.txt", exitUsage, "expected OLD and NEW"},
		"bad budget":      {"map diff -budget 200% a b", exitUsage, "-budget 200%: expected a part"},
		"bad top":         {"map diff -top -1 a b", exitUsage, "-top -1: expected 0 to 10000"},
		"no new map":      {"map diff testdata/maps/monday.txt testdata/maps/none", exitError, "no such file"},
		"one file":        {"map convert a", exitUsage, "expected IN and OUT"},
		"bad form":        {"map convert testdata/maps/monday.txt x.json", exitUsage, ".mmdb or .txt"},
		"no place":        {"map convert testdata/maps/monday.txt testdata/none/x.txt", exitError, "no such file"},
		"no reason":       {"map rollback x.mmdb", exitUsage, "expected a reason: -why TEXT"},
		"nothing to roll": {"map rollback -why x", exitUsage, "expected FILE"},
		"nothing there":   {"map rollback -why x testdata/maps/none.txt", exitError, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, c.line)
			if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("got %d %q %q, want %d and %q", code, stdout, stderr, c.code, c.want)
			}
		})
	}
	if code, stdout, _ := call(t, "map help"); code != exitOK || !strings.Contains(stdout, "rollback") {
		t.Errorf("map help: %d %s", code, stdout)
	}
}

// TestMapConvert: to a MaxMind DB file and back nothing is lost, and orders alone
// can be converted, too.
func TestMapConvert(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map.mmdb")
	for range 2 { // the second time over a file
		if code, _, stderr := call(t, "map convert testdata/maps/tuesday.txt "+file); code != exitOK {
			t.Fatal(stderr)
		}
	}
	want, err := os.ReadFile("testdata/maps/tuesday.txt")
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := call(t, "map convert "+file+" -"); code != exitOK || stdout != string(want) {
		t.Errorf("%d %s\n%s", code, stderr, stdout)
	}
	code, stdout, stderr := call(t, "map convert testdata/maps/nets -")
	if code != exitOK || !strings.Contains(stdout, "clients\n10.0.0.0/16 eu us\n10.1.0.0/16 us\n10.2.0.0/15 eu us\n") {
		t.Errorf("%d %s\n%s", code, stderr, stdout)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestMapRollback(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map.txt")
	for from, to := range map[string]string{"monday": file + ".1", "tuesday": file} {
		data, err := os.ReadFile("testdata/maps/" + from + ".txt")
		if err := errors.Join(err, os.WriteFile(to, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	code := run([]string{"map", "rollback", file, "-why", "eu is slow at night"}, &stdout, &stderr)
	if want := file + ": the map built 2026-11-02T03:00:00Z is back in the place of the one built 2026-11-03T03:00:00Z\n"; code != exitOK || stdout.String() != want {
		t.Fatalf("%d %s %s", code, stdout.String(), stderr.String())
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), `"eu is slow at night"`) || !strings.Contains(string(data), "built 2026-11-02") {
		t.Errorf("%v %s", err, data)
	}
	log, err := os.ReadFile(file + ".log")
	if err != nil || !strings.Contains(string(log), `"action":"rollback"`) || !strings.Contains(string(log), `"why":"eu is slow at night","from":{"built":"2026-11-03T03:00:00Z"`) {
		t.Errorf("%v %s", err, log)
	}
	if code := run([]string{"map", "rollback", file, "-why", "further"}, &stdout, &stderr); code != exitError || !strings.Contains(stderr.String(), "no version kept beside it") {
		t.Errorf("%d %s", code, stderr.String())
	}
}
