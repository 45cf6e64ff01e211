package beacon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sleep lets virtual time pass, and what is due then be done.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRotateByAge(t *testing.T) {
	for _, zip := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o, l := options(t)
			o.Rotate, o.Gzip = time.Minute, zip
			c := start(t, o)
			end := ".ndjson"
			if zip {
				end += ".gz"
			}
			sleep(10 * time.Minute)
			if all := names(t, o.Dir, ""); len(all) > 0 {
				t.Fatalf("files of nothing: %s", all)
			}
			send(c, "192.0.2.7:1", good)
			sleep(2 * time.Second)
			open := names(t, o.Dir, ".open")
			if len(open) != 1 || strings.Count(content(t, o.Dir, ".open"), "\n") != 2 {
				t.Fatalf("a second later there is %s", names(t, o.Dir, ""))
			}
			sleep(55 * time.Second)
			if all := names(t, o.Dir, end); len(all) != 0 {
				t.Fatalf("too early: %s", all)
			}
			sleep(5 * time.Second)
			if all := names(t, o.Dir, ""); len(all) != 1 || all[0] != strings.TrimSuffix(open[0], ".ndjson.open")+end {
				t.Fatalf("a minute later there is %s", all)
			}
			send(c, "192.0.2.7:1", good)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if all := names(t, o.Dir, end); len(all) != 2 || len(names(t, o.Dir, "")) != 2 {
				t.Fatalf("in the end there is %s", names(t, o.Dir, ""))
			}
			if n := strings.Count(content(t, o.Dir, ""), "\n"); n != 4 {
				t.Errorf("%d lines, expected 4", n)
			}
			if w := send(c, "192.0.2.7:1", good); w.Code != 503 {
				t.Errorf("after the end: %d, expected 503", w.Code)
			}
			if l.text() != "" {
				t.Error(l.text())
			}
		})
	}
}

// fill writes lines of some size through the spool, as the writer does.
func fill(c *Collector, lines, size int) {
	for range lines {
		c.put([]byte(strings.Repeat("x", size-1) + "\n"))
	}
	synctest.Wait()
}

func TestRotateBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options(t)
		o.MaxFile = MinFile
		c := start(t, o)
		fill(c, 160, 1<<10) // 64 to a file, all begun in the same second
		if n, open := len(names(t, o.Dir, ".ndjson")), len(names(t, o.Dir, ".open")); n != 2 || open != 1 {
			t.Errorf("%d files and %d open, expected 2 and 1", n, open)
		}
		for _, path := range names(t, o.Dir, ".ndjson") {
			if info, err := os.Stat(path); err != nil || info.Size() != MinFile {
				t.Error(path, info.Size(), err)
			}
		}
		c.Close()
		if n := strings.Count(content(t, o.Dir, ".ndjson"), "\n"); n != 160 {
			t.Errorf("%d lines, expected 160", n)
		}
	})
}

func TestDiskBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := options(t)
		o.MaxFile, o.MaxTotal = MinFile, 2*MinFile
		c := start(t, o)
		fill(c, 200, 1<<10)
		total := int64(0)
		for _, path := range names(t, o.Dir, "") {
			info, err := os.Stat(path)
			if err != nil || strings.HasSuffix(path, ".open") {
				t.Error(path, err)
			}
			total += info.Size()
		}
		if total != o.MaxTotal {
			t.Errorf("%d bytes, expected %d", total, o.MaxTotal)
		}
		wantMetric(t, c, "dropped_total 72")
		wantMetric(t, c, fmt.Sprint("disk_bytes ", o.MaxTotal))
		if w := send(c, "192.0.2.7:1", good); w.Code != 503 {
			t.Errorf("a report: %d, expected 503", w.Code)
		}
		if w := get(c, "/healthz"); w.Code != 503 || !strings.Contains(w.Body.String(), "move some away") {
			t.Error(w.Code, w.Body)
		}
		if strings.Count(l.text(), "has reached its") != 1 {
			t.Error(l.text())
		}
		sleep(time.Hour)
		if w := get(c, "/healthz"); w.Code != 503 {
			t.Errorf("still full, but %d", w.Code)
		}
		os.Remove(names(t, o.Dir, "")[0])
		sleep(sweepEvery + time.Second)
		if w := get(c, "/healthz"); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		if w := send(c, "192.0.2.7:1", good); w.Code != 200 {
			t.Errorf("a report: %d, expected 200", w.Code)
		}
	})
}

// A full directory of compressed files has room again when the last is compressed.
func TestDiskBoundCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := options(t)
		o.MaxFile, o.MaxTotal, o.Gzip = MinFile, MinFile, true
		c := start(t, o)
		fill(c, 500, 1<<10)
		wantMetric(t, c, "dropped_total 0")
		c.Close()
		if n := strings.Count(content(t, o.Dir, ".ndjson.gz"), "\n"); n != 500 || l.text() != "" {
			t.Errorf("%d lines, expected 500; %s", n, l.text())
		}
	})
}

func TestBrokenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := options(t)
		o.Dir = filepath.Join(o.Dir, "sub")
		os.Mkdir(o.Dir, 0o755)
		c := start(t, o)
		os.RemoveAll(o.Dir)
		for range 3 {
			if w := send(c, "192.0.2.7:1", good); w.Code != 200 { // it can't know yet
				t.Fatal(w.Code)
			}
			synctest.Wait()
		}
		if w := get(c, "/healthz"); w.Code != 503 || !strings.Contains(w.Body.String(), "can't be written") {
			t.Error(w.Code, w.Body)
		}
		if strings.Count(l.text(), "measurements are lost: open ") != 1 {
			t.Error(l.text())
		}
		wantMetric(t, c, "dropped_total 6")
		sleep(sweepEvery + time.Second)
		if w := get(c, "/healthz"); w.Code != 503 {
			t.Error(w.Code, w.Body)
		}
		os.Mkdir(o.Dir, 0o755)
		sleep(sweepEvery + time.Second)
		if w := get(c, "/healthz"); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		send(c, "192.0.2.7:1", good)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(content(t, o.Dir, ".ndjson"), "\n"); n != 2 {
			t.Errorf("%d lines, expected 2", n)
		}
	})
}

// A crash at any point leaves what the next run finishes, each line once.
func TestRecover(t *testing.T) {
	const line, torn = `{"a":1}` + "\n", `{"a":`
	for name, x := range map[string]struct {
		files map[string]string
		zip   bool
		want  []string
		lines int
	}{
		"torn":           {map[string]string{"beacons-1.ndjson.open": line + line + torn}, false, []string{"beacons-1.ndjson"}, 2},
		"empty":          {map[string]string{"beacons-1.ndjson.open": ""}, false, nil, 0},
		"only torn":      {map[string]string{"beacons-1.ndjson.open": torn}, false, nil, 0},
		"compress":       {map[string]string{"beacons-1.ndjson.open": line + torn, "beacons-1.ndjson.gz.tmp": "x"}, true, []string{"beacons-1.ndjson.gz"}, 1},
		"finished":       {map[string]string{"beacons-1.ndjson": line, "beacons-2.ndjson.open": line}, false, []string{"beacons-1.ndjson", "beacons-2.ndjson"}, 2},
		"strangers stay": {map[string]string{"notes.open": line, "beacons-1.ndjson.open": line}, false, []string{"beacons-1.ndjson"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o, l := options(t)
			o.Gzip = x.zip
			for file, text := range x.files {
				if err := os.WriteFile(filepath.Join(o.Dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			start(t, o)
			var got []string
			for _, path := range names(t, o.Dir, "") {
				got = append(got, filepath.Base(path))
			}
			if fmt.Sprint(got) != fmt.Sprint(x.want) || strings.Count(content(t, o.Dir, ""), "\n") != x.lines {
				t.Errorf("%s with %q, expected %s with %d lines", got, content(t, o.Dir, ""), x.want, x.lines)
			}
			if _, stranger := x.files["notes.open"]; stranger {
				if _, err := os.Stat(filepath.Join(o.Dir, "notes.open")); err != nil {
					t.Error(err)
				}
			}
			if !strings.Contains(l.text(), "left behind") {
				t.Error(l.text())
			}
		})
	}
	t.Run("between the last two steps", func(t *testing.T) {
		o, _ := options(t)
		o.Gzip = true
		path := filepath.Join(o.Dir, "beacons-1.ndjson.open")
		os.WriteFile(path, []byte(line), 0o644)
		start(t, o).Close()
		os.WriteFile(path, []byte(line), 0o644) // as if it had not been removed
		start(t, o)
		if got := content(t, o.Dir, ""); got != line {
			t.Errorf("%q", got)
		}
	})
}

func TestOneCollector(t *testing.T) {
	o, _ := options(t)
	c := start(t, o)
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "another collector writes there") {
		t.Fatal(err)
	}
	c.Close()
	start(t, o)
}

// TestConcurrent holds that what is acknowledged is written, whole, up to the end.
func TestConcurrent(t *testing.T) {
	o, _ := options(t)
	o.MaxFile, o.PerMinute = MinFile, 60000
	c := start(t, o)
	var taken atomic.Int64
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for range 300 {
				if send(c, fmt.Sprintf("192.0.%d.7:1", i), good).Code == 200 {
					taken.Add(2)
				}
			}
		})
	}
	wait.Go(func() {
		for taken.Load() < 2000 {
			get(c, "/metrics")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	wait.Wait()
	if n := int64(strings.Count(content(t, o.Dir, ".ndjson"), "\n")); n != taken.Load() || len(names(t, o.Dir, ".open")) > 0 {
		t.Errorf("%d lines, expected %d", n, taken.Load())
	}
}

// TestQueue holds that requests don't wait for the writer.
func TestQueue(t *testing.T) {
	o, _ := options(t)
	c := start(t, o)
	full := &Collector{Options: c.Options, regions: c.regions, limit: c.limit, queue: make(chan []byte, 1)}
	full.metrics.measured = make([]measured, len(o.Candidates))
	for i, want := range []int{200, 503, 503} { // nobody writes
		if w := send(full, "192.0.2.7:1", good); w.Code != want {
			t.Errorf("report %d: %d, expected %d", i, w.Code, want)
		}
	}
	wantMetric(t, full, `reports_total{outcome="queue_full"} 2`)
	wantMetric(t, full, `measurements_total{region="eu",timing="resource"} 1`)
	wantMetric(t, full, "queue_reports 1")
}
