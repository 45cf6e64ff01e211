package latency

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// versionAt is a map that is told from others by when it was built.
func versionAt(t testing.TB, built time.Time) *Map {
	m := *parse(t, small)
	m.Built = built
	return &m
}

func publishAt(t testing.TB, path string, built time.Time) {
	t.Helper()
	if err := Publish(path, versionAt(t, built), built, PublishOptions{By: "cron"}); err != nil {
		t.Fatal(err)
	}
}

// hours of the versions that are at a path and beside it, as built on now's day.
func hours(t testing.TB, path string) (list string) {
	t.Helper()
	for n := 0; n <= Kept+1; n++ {
		file := path
		if n > 0 {
			file = version(path, n)
		}
		m, _, err := Read(file)
		if errors.Is(err, os.ErrNotExist) {
			list += "- "
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		list += fmt.Sprint(m.Built.Sub(now).Hours())
		if m.Rollback != nil {
			list += "r"
		}
		list += " "
	}
	return strings.TrimSuffix(list, " ")
}

func hour(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }

func TestPublish(t *testing.T) {
	for _, name := range []string{"map.mmdb", "map.txt"} {
		path := filepath.Join(t.TempDir(), name)
		for n := range 8 {
			publishAt(t, path, hour(n))
		}
		if got := hours(t, path); got != "7 6 5 4 3 2 -" {
			t.Errorf("versions: %s", got)
		}
		same(t, must(Read(path)), versionAt(t, hour(7)))
		if err := Publish(path, versionAt(t, hour(7)), hour(8), PublishOptions{By: "cron"}); err != nil || hours(t, path) != "7 6 5 4 3 2 -" {
			t.Errorf("the same map once more: %v, versions %s", err, hours(t, path))
		}
		other := *versionAt(t, hour(7))
		other.Regions = append(slices.Clone(other.Regions), "elsewhere")
		for _, m := range []*Map{versionAt(t, hour(6)), &other} {
			err := Publish(path, m, hour(8), PublishOptions{By: "cron"})
			if err == nil || !strings.Contains(err.Error(), "not after") || !strings.Contains(err.Error(), "map rollback") {
				t.Errorf("an older map: %v", err)
			}
		}
		if err := Publish(path, versionAt(t, hour(12)), hour(8), PublishOptions{By: "cron"}); err == nil || !strings.Contains(err.Error(), "future") {
			t.Errorf("a map from the future: %v", err)
		}
		if got := hours(t, path); got != "7 6 5 4 3 2 -" {
			t.Errorf("versions after refusals: %s", got)
		}
	}
}

func must(m *Map, _ Format, err error) *Map {
	if err != nil {
		panic(err)
	}
	return m
}

func TestPublishRefuses(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.txt")
	if err := os.WriteFile(broken, []byte("gslb-latency 1\nbuilt x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bad := versionAt(t, now)
	bad.Clients = append(bad.Clients, bad.Clients[0])
	for path, c := range map[string]struct {
		m    *Map
		want string
	}{
		"map.json":          {versionAt(t, now), ".mmdb or .txt"},
		"map.txt":           {bad, "stands after"},
		"broken.txt":        {versionAt(t, now), "move it away first"},
		"nowhere/map.txt":   {versionAt(t, now), "no such file"},
		"broken.txt/a.mmdb": {versionAt(t, now), "not a directory"},
	} {
		if err := Publish(filepath.Join(dir, path), c.m, now, PublishOptions{By: "x"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", path, err, c.want)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

// TestPublishThroughLink: a symbolic link stays one, and the mode of the file stays.
func TestPublishThroughLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.txt"), filepath.Join(dir, "link.txt")
	publishAt(t, real, hour(0))
	if err := errors.Join(os.Chmod(real, 0o640), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	publishAt(t, link, hour(1))
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 || hours(t, real) != "1 0 - - - - -" {
		t.Errorf("the file: %v %v, versions %s", info.Mode(), err, hours(t, real))
	}
}

func TestRollBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.mmdb")
	for n := range 4 {
		publishAt(t, path, hour(n))
	}
	steps := []struct {
		to   int
		at   time.Time
		want string
	}{
		{0, hour(4), "2r 3 2 1 0 - -"},
		{0, hour(5), "1r 2r 3 2 1 0 -"}, // again: further back
		{3, hour(6), "2r 1r 2r 3 2 1 -"},
		{0, hour(-9), "1r 2r 1r 2r 3 2 -"}, // whatever the clock says
	}
	for _, s := range steps {
		old, put, err := RollBack(path, s.to, s.at, PublishOptions{By: "ann", Why: "loss in eu"})
		if err != nil && s.at != hour(-9) {
			t.Fatal(err)
		}
		if s.at == hour(-9) { // nine hours back, all that is there is from the future
			if err == nil || !strings.Contains(err.Error(), "future") {
				t.Errorf("a clock far behind: %v", err)
			}
			continue
		}
		if got := hours(t, path); got != s.want {
			t.Errorf("versions %s, want %s", got, s.want)
		}
		now := must(Read(path))
		same(t, now, put)
		if !now.Newer(old) || now.Rollback.Why != "loss in eu" || now.Rollback.By != "ann" {
			t.Errorf("mark: %+v", now.Rollback)
		}
	}
	publishAt(t, path, hour(30)) // the next night's map
	if got := hours(t, path); got != "30 2r 1r 2r 3 2 -" {
		t.Errorf("versions %s", got)
	}
	checkLog(t, path)
}

// TestRollBackOfNothing: where the file in place is damaged or gone, the latest version is put
// back. What is no file stays.
func TestRollBackOfNothing(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, []byte("torn"), 0o644) },
		"gone":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "map.txt")
			for n := range 3 {
				publishAt(t, path, hour(n))
			}
			held := must(Read(path))
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			old, put, err := RollBack(path, 0, hour(5), PublishOptions{By: "ann", Why: "torn"})
			if err != nil || old != nil {
				t.Fatal(old, err)
			}
			now := must(Read(path))
			same(t, now, put)
			if !now.Newer(held) || !now.Built.Equal(hour(1)) {
				t.Errorf("built %s, rolled back %+v: no server takes it", now.Built, now.Rollback)
			}
			if name == "gone" {
				if got := hours(t, path); got != "1r 1 0 - - - -" {
					t.Errorf("versions %s", got)
				}
			} else if kept := string(mustRead(t, path+".1")); kept != "torn" {
				t.Errorf("what was in place is kept as %q", kept)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "map.txt")
	publishAt(t, path, hour(0))
	publishAt(t, path, hour(1))
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := RollBack(path, 0, hour(5), PublishOptions{By: "ann", Why: "torn"}); err == nil {
		t.Error("a directory was replaced")
	}
}

// checkLog: the log has every publication and rollback, each from what was in place.
func checkLog(t *testing.T, path string) {
	t.Helper()
	var last string
	var actions []string
	for line := range strings.Lines(string(mustRead(t, path+".log"))) {
		var l LogLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if (l.From == nil) != (last == "") || l.From != nil && l.From.Digest != last || l.By == "" {
			t.Errorf("line %s after %s", line, last)
		}
		if (l.Action == "rollback") != (l.Why != "" && l.To.Rollback != nil) {
			t.Errorf("line %s", line)
		}
		last = l.To.Digest
		actions = append(actions, l.Action[:1])
	}
	if got := strings.Join(actions, ""); got != "pppprrrp" {
		t.Errorf("actions: %s", got)
	}
}

// TestRollBackClock: where the clock is behind that of who built the map, the mark is
// still later than the map.
func TestRollBackClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.txt")
	publishAt(t, path, hour(0))
	publishAt(t, path, hour(1))
	_, put, err := RollBack(path, 0, hour(1).Add(-50*time.Minute), PublishOptions{By: "ann", Why: "why"})
	if err != nil || !put.Rollback.At.Equal(hour(1).Add(time.Second)) || hours(t, path) != "0r 1 0 - - - -" {
		t.Errorf("%v %v, versions %s", put, err, hours(t, path))
	}
}

func TestRollBackRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.txt")
	o := PublishOptions{By: "ann", Why: "why"}
	try := func(to int, o PublishOptions, want string) {
		t.Helper()
		if _, _, err := RollBack(path, to, hour(9), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	try(0, o, "no such file")
	publishAt(t, path, hour(0))
	try(0, o, "no version kept beside it (map.txt.1 to .5)")
	try(6, o, "expected 1 to 5")
	publishAt(t, path, hour(1))
	try(2, o, "no such file")
	try(1, PublishOptions{By: "ann", Why: "two\nlines"}, "one line")
	try(1, PublishOptions{By: "ann"}, "one line")
	if got := hours(t, path); got != "1 0 - - - - -" {
		t.Errorf("versions %s", got)
	}
	if err := os.WriteFile(path+".1", []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	try(0, o, "map.txt.1: not a steering map")
}

// TestKilled: killed at any step, and again while going on, a publisher leaves a whole
// map in place and every older version once at least; and the next one gets through.
func TestKilled(t *testing.T) {
	for _, action := range []string{"publish", "rollback"} {
		run := func(path string, o PublishOptions) error {
			if action == "rollback" {
				o.Why = "why"
				_, _, err := RollBack(path, 0, hour(9), o)
				return err
			}
			return Publish(path, versionAt(t, hour(9)), hour(9), o)
		}
		for steps := 0; ; steps++ {
			path := filepath.Join(t.TempDir(), "map.mmdb")
			for n := range 5 {
				publishAt(t, path, hour(n))
			}
			killed := errors.New("killed")
			left := steps
			o := PublishOptions{By: "cron", step: func(string) error {
				if left--; left < 0 {
					return killed
				}
				return nil
			}}
			err := run(path, o)
			got := hours(t, path)
			if err == nil {
				if steps < 6 {
					t.Fatalf("%s has only %d steps", action, steps)
				}
				break
			}
			inPlace, _, _ := strings.Cut(got, " ")
			renamed := inPlace == "9" || inPlace == "3r"
			if !errors.Is(err, killed) || inPlace != "4" && !renamed {
				t.Fatalf("%s killed after %d steps: %v, versions %s", action, steps, err, got)
			}
			for _, old := range []string{"4", "3", "2", "1", "0"} {
				if !strings.Contains(" "+got+" ", " "+old+" ") {
					t.Errorf("%s killed after %d steps lost %s: %s", action, steps, old, got)
				}
			}
			if err := Publish(path, versionAt(t, hour(10)), hour(10), PublishOptions{By: "cron"}); err != nil {
				t.Errorf("after %s was killed after %d steps: %v", action, steps, err)
			}
			if got := hours(t, path); !strings.HasPrefix(got, "10 ") || !strings.Contains(got, " 4 3 2 1") {
				t.Errorf("after %s was killed after %d steps: versions %s", action, steps, got)
			} else if strings.Count(" "+got, " 4") != 1 {
				t.Errorf("after %s was killed after %d steps: a version is kept twice: %s", action, steps, got)
			}
		}
	}
}

// TestSweep: what killed publishers left goes away a day later.
func TestSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.txt")
	o := PublishOptions{By: "cron", step: func(what string) error {
		if what == "log" {
			return errors.New("killed")
		}
		return nil
	}}
	if err := Publish(path, versionAt(t, hour(0)), hour(0), o); err == nil {
		t.Fatal("not killed")
	}
	left := func() int {
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
		return len(files)
	}
	if left() != 1 {
		t.Fatalf("%d files left", left())
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err := os.Chtimes(files[0], hour(0), hour(0)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, left int }{{24, 1}, {25, 0}} {
		if publishAt(t, path, hour(c.at)); left() != c.left {
			t.Errorf("%d hours later %d files are left, want %d", c.at, left(), c.left)
		}
	}
}
