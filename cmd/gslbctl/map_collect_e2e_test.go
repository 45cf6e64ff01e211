//go:build e2e

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// rounds is how often the page is loaded, and patience how long all of it may take on a
// machine that is busy.
const (
	rounds   = 4
	patience = 4 * time.Minute
)

// place is a region's proxy: on a port of its own, before the collector.
type place struct {
	*httptest.Server
	delay, warm time.Duration // of the measured request, and of the first one
	untimed     bool          // it takes off Timing-Allow-Origin
	hangs       bool          // it takes connections and never answers
	probes      atomic.Int32  // measured
}

// open opens a region for business at the collector.
func (p *place) open(t *testing.T, collector *atomic.Pointer[url.URL]) {
	gone := make(chan struct{})
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(collector.Load()); r.SetXForwarded() },
		ModifyResponse: func(r *http.Response) error {
			if p.untimed {
				r.Header.Del("Timing-Allow-Origin")
			}
			return nil
		},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			t.Errorf("%s has a cookie", r.URL)
		}
		delay := p.delay
		switch {
		case r.URL.RawQuery == "warm":
			delay = p.warm
		case r.URL.RawQuery == "timed":
			p.probes.Add(1)
		}
		wait := time.After(delay)
		if p.hangs {
			wait = nil
		}
		select {
		case <-wait:
			proxy.ServeHTTP(w, r)
		case <-gone:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(gone); p.Close() })
}

// chromium starts a browser on a page; the test ends it.
func chromium(t *testing.T, page string) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		path, err = exec.LookPath("chromium-browser")
	}
	if err != nil {
		t.Fatalf("a browser is needed, of the package chromium: %v", err)
	}
	profile, err := os.MkdirTemp("", "gslb-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--user-data-dir="+profile, page)
	out, err := os.Create(filepath.Join(profile, "out"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(out.Name())
			t.Logf("the browser said: %s", text)
		}
		out.Close()
		os.RemoveAll(profile)
	})
}

// pages serves a page that has the beacon, under a strict policy, and loads itself
// again when the beacon is done. The channel has what each beacon tells the page.
func pages(t *testing.T, script string, connect []string) (address string, done chan string) {
	done = make(chan string, rounds)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src 'self' %s; connect-src 'self' %s", script, strings.Join(connect, " ")))
		w.Header().Set("Content-Type", "text/html")
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"}) // cookies know no ports: the regions could get it
		fmt.Fprintf(w, `<!doctype html><script src="/page.js"></script><script src="%s/beacon.js" data-sample="1" async></script>`, script)
	})
	mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `document.addEventListener("gslb-beacon", async (e) => {
			const more = await fetch("/done", { method: "POST", body: JSON.stringify(e.detail) });
			if (more.status === 200) location.reload();
		});`)
	})
	n := 0
	mux.HandleFunc("POST /done", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if n++; n >= rounds {
			w.WriteHeader(http.StatusNoContent)
		}
		if n <= rounds {
			done <- string(text)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, done
}

// TestMapCollectBrowser has a real browser measure regions whose delays are known,
// one that is dead, which is also the first to be reported to, one that hangs, and one that hides
// its timing.
func TestMapCollectBrowser(t *testing.T) {
	var collector atomic.Pointer[url.URL]
	const ms = time.Millisecond
	places := map[string]*place{
		"near":   {delay: 20 * ms, warm: 1600 * ms}, // would be last if the connection counted
		"middle": {delay: 500 * ms},
		"far":    {delay: 1000 * ms},
		"hidden": {delay: 200 * ms, untimed: true},
		"hangs":  {hangs: true},
	}
	dead := deadAddress(t)
	regions, connect := []string{"dead=" + dead}, []string{dead}
	for name, p := range places {
		p.open(t, &collector)
		regions = append(regions, name+"="+p.URL)
		connect = append(connect, p.URL)
	}
	dir := t.TempDir()
	address, end := collect(t, time.Second, "-dir", dir, "-regions", strings.Join(regions, ","), "-pick", "6", "-trust-forwarded", "127.0.0.1",
		"-report", strings.Join([]string{dead + "/report", places["far"].URL + "/report", places["near"].URL + "/report"}, ","))
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	collector.Store(u)
	page, done := pages(t, address, connect)
	chromium(t, page)
	late := time.After(patience)
	for i := range rounds {
		select {
		case text := <-done:
			if want := fmt.Sprintf(`"through":"%s/report"`, places["far"].URL); !strings.Contains(text, want) {
				t.Errorf("load %d: %s, expected %s", i, text, want)
			}
		case <-late:
			t.Fatalf("the browser loaded the page %d times in %v, expected %d", i, patience, rounds)
		}
	}
	metrics := fetch(t, address+"/metrics")
	for _, line := range []string{
		`measurements_total{region="hidden",timing="clock"} `, `measurements_total{region="near",timing="resource"} `,
		`measurements_total{region="hangs",timing="failed"} `, `reports_total{outcome="accepted"} `,
	} {
		if !strings.Contains(metrics, fmt.Sprint("gslb_beacon_", line, rounds, "\n")) {
			t.Errorf("no %s%d in\n%s", line, rounds, metrics)
		}
	}
	end()
	checkMeasured(t, dir, places)
}

// measurement is a line of the files.
type measurement struct {
	Client, Region string
	RTT            float64 `json:"rtt_ms"`
	OK             bool
}

func checkMeasured(t *testing.T, dir string, places map[string]*place) {
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := make(map[string][]measurement)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", text)
		for line := range strings.Lines(string(text)) {
			var m measurement
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Client != "127.0.0.0/24" {
				t.Fatal(line, err)
			}
			all[m.Region] = append(all[m.Region], m)
		}
	}
	// Noise only adds: the least of some is held against the delay, and delays are far apart.
	least := func(region string) float64 {
		return slices.MinFunc(all[region], func(a, b measurement) int { return cmp.Compare(a.RTT, b.RTT) }).RTT
	}
	for _, region := range []string{"dead", "hangs", "near", "middle", "far", "hidden"} {
		if len(all[region]) != rounds {
			t.Fatalf("%s was measured %d times, expected %d", region, len(all[region]), rounds)
		}
		p := places[region]
		for _, m := range all[region] {
			if m.OK != (p != nil && !p.hangs) {
				t.Errorf("%+v", m)
			}
		}
		if p == nil || p.hangs {
			continue
		}
		if got := least(region); got < float64(p.delay.Milliseconds()) {
			t.Errorf("%s: %.2f ms, expected at least %v", region, got, p.delay)
		}
		if n := p.probes.Load(); n != rounds {
			t.Errorf("%s was asked %d times on the open connection, expected %d", region, n, rounds)
		}
	}
	if !(least("near") < least("middle") && least("middle") < least("far")) {
		t.Errorf("near %.2f, middle %.2f, far %.2f ms: expected this order", least("near"), least("middle"), least("far"))
	}
}

// deadAddress is one that nobody listens on. A socket that doesn't listen keeps it from others.
func deadAddress(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("http://127.0.0.1:", at.(*syscall.SockaddrInet4).Port)
}

func fetch(t *testing.T, address string) string {
	t.Helper()
	reply, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
