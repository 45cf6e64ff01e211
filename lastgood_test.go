package gslb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// located is a block that has the client 198.51.100.0/24 by its data file in
// the region de, others in fr. %s is more.
const located = `gslb {
	%s
	region de fr
	%s
	host api.example.com {
		pool de 192.0.2.1
		pool fr 192.0.2.2
	}
}`

// dataCase is a data file that locates the client.
type dataCase struct {
	name, file string
	text       func(path string) string
	good       func(t *testing.T, path, region string, n int) // writes a file with n other networks
}

var dataCases = []dataCase{
	{"database", "c.mmdb", func(path string) string {
		return fmt.Sprintf(located, "geoip country "+path, "clients country DE {\norder de fr\n}\nclients rest {\norder fr de\n}")
	}, func(t *testing.T, path, region string, n int) { countryFile(t, path, strings.ToUpper(region), n) }},
	{"nets", "nets.txt", func(path string) string {
		return fmt.Sprintf(located, "nets "+path, "clients rest {\norder fr de\n}")
	}, func(t *testing.T, path, region string, n int) {
		lines := "198.51.100.0/24 " + region + "\n"
		for i := range n {
			lines += fmt.Sprintf("20.%d.0.0/16 fr\n", i)
		}
		replace(t, path, []byte(lines))
	}},
	{"latency map", "map.txt", func(path string) string {
		return fmt.Sprintf(located, "latency "+path, "clients rest {\norder fr de\n}")
	}, func(t *testing.T, path, region string, n int) {
		mapsMade[path]++ // each is newer than the one before
		mapFile(t, path, time.Now().Add(-time.Hour+time.Duration(mapsMade[path])*time.Second), region, n)
	}},
}

// mapsMade counts the maps of dataCases, by file.
var mapsMade = map[string]int{}

// tryLoad is load for a block that may be refused.
func tryLoad(t *testing.T, text string) (*GSLB, error) {
	t.Helper()
	block, err := config.Parse([]string{"example.com."}, tokens(text))
	if err != nil {
		t.Fatal(err)
	}
	return newGSLB(block, "")
}

// begin loads a block and starts it in the process's registry.
func begin(t *testing.T, text string) (*generation, *GSLB) {
	t.Helper()
	g := load(t, text, nil)
	gen := &generation{loaded: []*GSLB{g}}
	if err := running.start(gen, g); err != nil {
		t.Fatal(err)
	}
	g.keepData(time.Now())
	return gen, g
}

func region(t *testing.T, g *GSLB) string {
	t.Helper()
	m, _ := serve(t, g, ask("api.example.com.", dns.TypeA, "198.51.100.0/24"))
	return map[string]string{"192.0.2.1": "de", "192.0.2.2": "fr"}[addrs(m)]
}

// TestStartWithBrokenData starts a process, and later another one, when the
// data file has been broken meanwhile.
func TestStartWithBrokenData(t *testing.T) {
	for _, file := range dataCases {
		for _, tc := range []struct {
			name  string
			state string
			spoil func(t *testing.T, path string)
			away  time.Duration
			want  string // error; empty: the copy is used
		}{
			{"garbage", "state DIR", func(t *testing.T, path string) { replace(t, path, []byte("gar bage")) }, time.Hour, ""},
			{"gone", "state DIR", func(t *testing.T, path string) { os.Remove(path) }, time.Hour, ""},
			{"unreadable", "state DIR", func(t *testing.T, path string) { os.Remove(path); os.Mkdir(path, 0o700) }, time.Hour, ""},
			{"no state", "", func(t *testing.T, path string) { replace(t, path, []byte("gar bage")) }, time.Hour, "Corefile:"},
		} {
			t.Run(file.name+", "+tc.name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, file.file)
				text := strings.Replace(file.text(path), "gslb {", "gslb {\n"+strings.ReplaceAll(tc.state, "DIR", filepath.Join(dir, "state")), 1)
				synctest.Test(t, func(t *testing.T) {
					file.good(t, path, "de", 10)
					gen, g := begin(t, text)
					if got := region(t, g); got != "de" {
						t.Fatalf("with a good file: %s", got)
					}
					running.stop(gen)
					tc.spoil(t, path)
					ago := time.Now().Add(-tc.away)
					copies, err := filepath.Glob(filepath.Join(dir, "state", "data-*"))
					if err != nil || tc.state != "" && len(copies) != 1 {
						t.Fatalf("copies %v, %v", copies, err)
					}
					for _, c := range copies {
						if err := os.Chtimes(c, ago, ago); err != nil {
							t.Fatal(err)
						}
					}
					logged := logTo(t)
					if tc.want != "" {
						if _, err := tryLoad(t, text); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
							t.Errorf("error %v, want one with %q and the file", err, tc.want)
						}
						return
					}
					gen, g = begin(t, text)
					defer running.stop(gen)
					if got := region(t, g); got != "de" {
						t.Errorf("with the copy: %s", got)
					}
					if got := logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the last good content of "+path+" is in use: ") {
						t.Errorf("logged\n%s", got)
					}
					if f := testutil.ToFloat64(fileFailing.WithLabelValues(path)); f != 1 {
						t.Errorf("file_failing is %v", f)
					}
					if info, err := os.Stat(copies[0]); err != nil || !info.ModTime().Equal(time.Now()) {
						t.Errorf("the copy is in service, and dated %v, %v", info.ModTime(), err)
					}
				})
			})
		}
	}
}

// TestCorefileReloadWithBrokenData reloads the Corefile while its data file is
// broken: what is in service stays, with or without a state directory.
func TestCorefileReloadWithBrokenData(t *testing.T) {
	for _, file := range dataCases {
		t.Run(file.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), file.file)
			synctest.Test(t, func(t *testing.T) {
				file.good(t, path, "de", 10)
				failing := func(want float64) {
					t.Helper()
					if f := testutil.ToFloat64(fileFailing.WithLabelValues(path)); f != want {
						t.Errorf("file_failing is %v, want %v", f, want)
					}
				}
				first, _ := begin(t, file.text(path))
				failing(0)
				replace(t, path, []byte("gar bage"))
				second, g := begin(t, file.text(path))
				running.stop(first)
				failing(1)
				if got := region(t, g); got != "de" {
					t.Errorf("the data in service are lost: %s", got)
				}
				third, g := begin(t, file.text(path)) // once more: they outlive their generation
				running.stop(second)
				time.Sleep(time.Minute)
				synctest.Wait()
				failing(1)
				if got := region(t, g); got != "de" {
					t.Errorf("after a second reload: %s", got)
				}
				file.good(t, path, "fr", 10)
				time.Sleep(3 * watchEvery)
				synctest.Wait()
				failing(0)
				if got := region(t, g); got != "fr" {
					t.Errorf("with a good file: %s", got)
				}
				running.stop(third)
			})
		})
	}
}

// A broken file that is as it was before the watcher looks is no failing one.
func TestBrokenDataMended(t *testing.T) {
	for _, file := range dataCases {
		t.Run(file.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), file.file)
			synctest.Test(t, func(t *testing.T) {
				file.good(t, path, "de", 10)
				first, _ := begin(t, file.text(path))
				replace(t, path, []byte("gar bage"))
				second, g := begin(t, file.text(path))
				running.stop(first)
				defer running.stop(second)
				file.good(t, path, "de", 10)
				time.Sleep(3 * watchEvery)
				synctest.Wait()
				if f := testutil.ToFloat64(fileFailing.WithLabelValues(path)); f != 0 {
					t.Errorf("file_failing is %v", f)
				}
				if got := region(t, g); got != "de" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// TestShrinkingData refuses a file that has lost more than half, while it is
// watched, and takes it once the Corefile is loaded anew.
func TestShrinkingData(t *testing.T) {
	for _, file := range dataCases {
		t.Run(file.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), file.file)
			synctest.Test(t, func(t *testing.T) {
				file.good(t, path, "de", 10)
				logged := logTo(t)
				gen, g := begin(t, file.text(path))
				defer func() { running.stop(gen) }()
				for _, step := range []struct {
					region, want string
					n            int
					failing      float64
				}{
					{"fr", "de", 1, 1},
					{"fr", "fr", 9, 0},
					{"de", "fr", 1, 1},
				} {
					file.good(t, path, step.region, step.n)
					time.Sleep(3 * watchEvery)
					synctest.Wait()
					if got := region(t, g); got != step.want {
						t.Errorf("%d networks: got %s, want %s", step.n, got, step.want)
					}
					if f := testutil.ToFloat64(fileFailing.WithLabelValues(path)); f != step.failing {
						t.Errorf("%d networks: file_failing is %v", step.n, f)
					}
				}
				if got := logged.String(); strings.Count(got, "can't be used, its last good content stays in use") != 2 || !strings.Contains(got, "where the copy in use has 11, of which it holds only ") {
					t.Errorf("logged\n%s", got)
				}
				next, g := begin(t, file.text(path))
				running.stop(gen)
				gen = next
				if got := region(t, g); got != "de" {
					t.Errorf("loaded anew: got %s", got)
				}
			})
		})
	}
}

// A data file that changes while the server runs is copied then.
func TestCopyFollowsData(t *testing.T) {
	for _, file := range dataCases {
		t.Run(file.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, file.file)
			text := strings.Replace(file.text(path), "gslb {", "gslb {\nstate "+filepath.Join(dir, "state"), 1)
			synctest.Test(t, func(t *testing.T) {
				file.good(t, path, "de", 10)
				gen, _ := begin(t, text)
				file.good(t, path, "fr", 10)
				time.Sleep(3 * watchEvery)
				synctest.Wait()
				replace(t, path, []byte("gar bage"))
				time.Sleep(3 * watchEvery)
				synctest.Wait()
				running.stop(gen)
			})
			synctest.Test(t, func(t *testing.T) {
				gen, g := begin(t, text)
				defer running.stop(gen)
				if got := region(t, g); got != "fr" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// TestCopyAge restarts a process that has run for a while after its data file broke: the
// copy's age counts from when its content was last in service.
func TestCopyAge(t *testing.T) {
	const day = 24 * time.Hour
	for _, file := range dataCases {
		if file.name == "latency map" { // its own age counts
			continue
		}
		for _, tc := range []struct {
			name     string
			runs     time.Duration
			restarts bool // after the file broke, and runs as long again
			away     time.Duration
			refused  bool
		}{
			{"soon", time.Minute, false, 29 * day, false},
			{"long", time.Minute, false, 31 * day, true},
			{"has run for a day", 25 * time.Hour, false, 29*day + day/2, false},
			{"has run for a day on the copy", 25 * time.Hour, true, 29*day + day/2, false},
			{"has run for a day, and is away for long", 25 * time.Hour, false, 31 * day, true},
		} {
			t.Run(file.name+", "+tc.name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, file.file)
				text := strings.Replace(file.text(path), "gslb {", "gslb {\nstate "+filepath.Join(dir, "state"), 1)
				synctest.Test(t, func(t *testing.T) {
					file.good(t, path, "de", 10)
					gen, _ := begin(t, text)
					time.Sleep(time.Minute)
					replace(t, path, []byte("gar bage"))
					time.Sleep(tc.runs)
					running.stop(gen)
					if tc.restarts {
						gen, _ = begin(t, text)
						time.Sleep(tc.runs)
						running.stop(gen)
					}
					time.Sleep(tc.away)
					if tc.refused {
						if _, err := tryLoad(t, text); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "more than 30 days ago") {
							t.Errorf("error %v", err)
						}
						return
					}
					gen, g := begin(t, text)
					defer running.stop(gen)
					if got := region(t, g); got != "de" {
						t.Errorf("got %s", got)
					}
				})
			})
		}
	}
}

// TestSpoiltCopy starts a process whose copies are damaged: that is said where it is
// looked for, and mended.
func TestSpoiltCopy(t *testing.T) {
	for _, file := range dataCases {
		t.Run(file.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, file.file)
			text := strings.Replace(file.text(path), "gslb {", "gslb {\nstate "+filepath.Join(dir, "state"), 1)
			file.good(t, path, "de", 10)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			gen, _ := begin(t, text)
			running.stop(gen)
			copies, _ := filepath.Glob(filepath.Join(dir, "state", "data-*"))
			replace(t, copies[0], whole[:len(whole)-5])

			replace(t, path, []byte("gar bage"))
			if _, err := tryLoad(t, text); err == nil || !strings.Contains(err.Error(), "Corefile:") || !strings.Contains(err.Error(), "nor can what was in service last: "+copies[0]) {
				t.Errorf("file and copy are broken: %v", err)
			}

			replace(t, path, whole)
			logged := logTo(t)
			gen, g := begin(t, text)
			defer running.stop(gen)
			if got := region(t, g); got != "de" {
				t.Errorf("got %s", got)
			}
			want := "" // only of maps it is looked at when it isn't needed
			if file.name == "latency map" {
				want = path + " is in use, but what was in service last can't be read and compared with it: " + copies[0] + ", the copy of " + path + ":"
			}
			if got := logged.String(); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("logged\n%s", got)
			}
			if mended, err := os.ReadFile(copies[0]); err != nil || string(mended) != string(whole) {
				t.Errorf("the copy is not mended: %v", err)
			}
		})
	}
}
