package beacon

import (
	"bytes"
	cryptorand "crypto/rand"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency/build"
)

func TestReport(t *testing.T) {
	o, _ := options(t)
	o.PerMinute = 1000
	c := start(t, o)
	long := `{"v":1,"entries":[` + strings.Repeat(" ", MaxBody) + `]}`
	one := func(e string) string { return `{"v":1,"entries":[` + e + `]}` }
	for _, x := range []struct {
		name, body, header, value string
		status                    int
		reply, metric             string
	}{
		{"good", good, "", "", 200, `"accepted":2`, `reports_total{outcome="accepted"} 1`},
		{"JSON", good, "Content-Type", "application/json", 200, `"accepted":2`, `reports_total{outcome="accepted"} 2`},
		{"in part", one(`{"region":"xx","ok":false},{"region":"ap","ok":true,"rtt_ms":1e9,"timing":"clock"},{"region":"us","ok":false},{"region":"us","ok":false}`),
			"", "", 200, `{"accepted":1,"rejected":{"region":1,"rtt":1,"twice":1}}`, `rejected_total{reason="region"} 1`},
		{"nothing left", one(`{"region":"xx","ok":false}`), "", "", 422, `"rejected":{"region":1}`, `reports_total{outcome="none_left"} 1`},
		{"no JSON", "hello", "", "", 400, "no report: expected {", `reports_total{outcome="malformed"} 1`},
		{"long", long, "", "", 413, "too large", `reports_total{outcome="too_large"} 1`},
		{"form", good, "Content-Type", "application/x-www-form-urlencoded", 415, "text/plain", `reports_total{outcome="wrong_type"} 1`},
		{"no type", good, "Content-Type", "", 415, "text/plain", `reports_total{outcome="wrong_type"} 2`},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/report", strings.NewReader(x.body))
			r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
			if x.header != "" {
				r.Header.Set(x.header, x.value)
			}
			w := httptest.NewRecorder()
			c.Handler().ServeHTTP(w, r)
			if w.Code != x.status || !strings.Contains(w.Body.String(), x.reply) {
				t.Errorf("%d %s, expected %d %s", w.Code, w.Body, x.status, x.reply)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Error(w.Header())
			}
			wantMetric(t, c, x.metric)
		})
	}
	wantMetric(t, c, `measurements_total{region="us",timing="failed"} 3`)
	wantMetric(t, c, `measurements_total{region="eu",timing="resource"} 2`)
	wantMetric(t, c, `measurements_total{region="ap",timing="clock"} 0`)
}

func TestLimited(t *testing.T) {
	o, _ := options(t)
	now := time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	o.PerMinute, o.Now = 2, func() time.Time { return now }
	c := start(t, o)
	for i, want := range []int{200, 200, 429} {
		if w := send(c, "192.0.2.7:1", good); w.Code != want {
			t.Errorf("report %d: %d, expected %d", i, w.Code, want)
		}
	}
	if w := send(c, "192.0.2.200:1", good); w.Code != 429 {
		t.Errorf("another address of the prefix: %d", w.Code)
	}
	wantMetric(t, c, `reports_total{outcome="limited"} 2`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(content(t, o.Dir, ".ndjson"), "\n"); n != 4 {
		t.Errorf("%d lines, expected 4", n)
	}
}

func TestOthers(t *testing.T) {
	o, _ := options(t)
	c := start(t, o)
	for path, want := range map[string]int{"/probe": 204, "/beacon.js": 200, "/demo": 200, "/healthz": 200, "/metrics": 200, "/": 404, "/report": 405} {
		w := get(c, path)
		if w.Code != want {
			t.Errorf("%s: %d, expected %d", path, w.Code, want)
		}
		switch h := w.Header(); path {
		case "/probe":
			if h.Get("Timing-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Cache-Control") != "no-store" || w.Body.Len() > 0 {
				t.Error(h, w.Body)
			}
		case "/beacon.js":
			if h.Get("Content-Type") != "text/javascript; charset=utf-8" || h.Get("Access-Control-Allow-Origin") != "*" {
				t.Error(h)
			}
		}
	}
	wantMetric(t, c, "probes_total 1")
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodOptions, "/report", nil))
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Headers") != "Content-Type" {
		t.Error(w.Code, w.Header())
	}
}

// TestNoAddress holds that no address of a client is anywhere: in files, in the
// log, in metrics or in replies; and that the builder reads every line.
func TestNoAddress(t *testing.T) {
	o, l := options(t)
	now := time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	o.Trusted, o.Now = []netip.Prefix{netip.MustParsePrefix("10.9.8.0/24")}, func() time.Time { return now }
	c := start(t, o)
	rng := rand.New(rand.NewPCG(1, 2))
	var addrs []netip.Addr
	var out bytes.Buffer
	lines, prefixes := 0, make(map[netip.Prefix]bool)
	for range 500 {
		var b [16]byte
		for i := range b {
			b[i] = byte(rng.Uint32() | 1) // no zeros, which would be part of a prefix
		}
		b[0] = 33 + byte(2*rng.IntN(40)) // ordinary space, which the builder takes
		a := netip.AddrFrom16(b)
		if rng.IntN(2) == 0 {
			a = netip.AddrFrom4([4]byte(b[:4]))
		}
		addrs = append(addrs, a)
		from, header := netip.AddrPortFrom(a, 1).String(), []string{"X-Forwarded-For", "no, address"}
		if rng.IntN(2) == 0 {
			from, header = "10.9.8.7:1", []string{"X-Forwarded-For", "198.51.100.77, " + a.String()}
		}
		body := good
		if rng.IntN(4) == 0 {
			body = good[:rng.IntN(len(good))]
		}
		w := send(c, from, body, header...)
		if w.Code == 200 {
			lines += 2
			prefixes[cut(a)] = true
		}
		out.Write(w.Body.Bytes())
	}
	out.WriteString(get(c, "/metrics").Body.String())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	files := content(t, o.Dir, "")
	all := files + out.String() + l.text()
	for _, a := range append(addrs, netip.MustParseAddr("10.9.8.7"), netip.MustParseAddr("198.51.100.77")) {
		if strings.Contains(all, a.String()) || strings.Contains(all, a.StringExpanded()) {
			t.Fatalf("%s is in what was written", a)
		}
	}
	if strings.Count(files, "\n") != lines || lines == 0 {
		t.Fatalf("%d lines, expected %d", strings.Count(files, "\n"), lines)
	}
	for line := range strings.Lines(files) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || !prefixes[netip.MustParsePrefix(m["client"].(string))] {
			t.Fatal(line, err)
		}
	}
	readByBuilder(t, o.Dir, now, lines, len(prefixes))
}

// readByBuilder has the builder read the files of a directory.
func readByBuilder(t *testing.T, dir string, now time.Time, lines, prefixes int) {
	t.Helper()
	b, err := build.New(build.Options{Regions: []string{"eu", "us", "ap"}, Now: now.Add(time.Second), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, path := range names(t, dir, "") {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add(filepath.Base(path), f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	result, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; r.Lines != int64(lines) || len(r.Rejected) > 0 || r.Clients == nil || r.Clients.Prefixes != prefixes {
		t.Errorf("the builder read %d lines and %d prefixes, expected %d and %d; rejected: %v %v", r.Lines, r.Clients.Prefixes, lines, prefixes, r.Rejected, r.FirstBad)
	}
}

// TestServerLog holds that the HTTP server's own log, which names clients, is only
// counted.
func TestServerLog(t *testing.T) {
	o, l := options(t)
	c := start(t, o)
	server := c.HTTP()
	server.ReadHeaderTimeout, server.ReadTimeout = 0, 0 // however slow the machine is
	server.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	io.ReadAll(conn) // ends when the server gives it up
	conn.Close()
	server.Close()
	<-done
	wantMetric(t, c, "http_errors_total 1")
	if l.text() != "" {
		t.Error(l.text())
	}
}

// BenchmarkReport takes reports of two measurements each, from many prefixes.
func BenchmarkReport(b *testing.B) {
	c, err := New(Options{Dir: b.TempDir(), Candidates: []Candidate{{Region: "eu"}, {Region: "us"}},
		Now: time.Now, Random: cryptorand.Reader, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	handler := c.Handler()
	for i := 0; b.Loop(); i++ {
		r := httptest.NewRequest(http.MethodPost, "/report", strings.NewReader(good))
		r.RemoteAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 1, 1}), 1).String()
		r.Header.Set("Content-Type", "text/plain")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
}
