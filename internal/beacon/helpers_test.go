package beacon

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const good = `{"v":1,"entries":[{"region":"eu","ok":true,"rtt_ms":20.5,"timing":"resource"},{"region":"us","ok":false}]}`

// logged keeps what a collector logs.
type logged struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logged) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l, format+"\n", args...)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

// random is the randomness of the tests: sources and the limiter's counters are hashes, so with
// another key some might be equal by chance.
func random(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// options are those of a collector of eu, us and ap in a new directory.
func options(t *testing.T) (Options, *logged) {
	t.Helper()
	l := new(logged)
	return Options{
		Dir:        t.TempDir(),
		Candidates: []Candidate{{"eu", "https://eu.example.com"}, {"us", "https://us.example.com/rum/"}, {Region: "ap"}},
		Now:        time.Now, Random: random(1), Logf: l.printf,
	}, l
}

// start starts a collector; the test closes it.
func start(t *testing.T, o Options) *Collector {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { nothingLeft(t, before) })
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// nothingLeft waits until the goroutines that a test started have ended. A busy machine may
// take longer than goleak waits.
func nothingLeft(t testing.TB, before goleak.Option) {
	t.Helper()
	for end := time.Now().Add(time.Minute); goleak.Find(before) != nil && time.Now().Before(end); {
	}
	goleak.VerifyNone(t, before)
}

// send sends a report from an address and gives the reply.
func send(c *Collector, from, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/report", strings.NewReader(body))
	r.RemoteAddr = from
	r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	return w
}

func get(c *Collector, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// wantMetric wants a line of /metrics.
func wantMetric(t *testing.T, c *Collector, line string) {
	t.Helper()
	if text := get(c, "/metrics").Body.String(); !strings.Contains(text, "\ngslb_beacon_"+line+"\n") {
		t.Errorf("no metric %s in\n%s", line, text)
	}
}

// names are the files of a directory that end in something.
func names(t *testing.T, dir, end string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "beacons-*"+end))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// content is what the files of a directory that end in something have.
func content(t *testing.T, dir, end string) (all string) {
	t.Helper()
	for _, path := range names(t, dir, end) {
		b, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(path, ".gz") {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
				b, err = io.ReadAll(z)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all += string(b)
	}
	return all
}
