package load

import (
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-945f90c5/gslb/internal/probe"
)

func noLeaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { nothingLeft(t, before) })
}

// nothingLeft waits until the goroutines that a test started have ended. A busy machine may
// take longer than goleak waits.
func nothingLeft(t testing.TB, before goleak.Option) {
	t.Helper()
	for end := time.Now().Add(time.Minute); goleak.Find(before) != nil && time.Now().Before(end); {
	}
	goleak.VerifyNone(t, before)
}

func serve(t testing.TB, h http.HandlerFunc) (base string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// readOnce reads a source by a transport of its own and puts what came, or what
// went wrong, in words.
func readOnce(t testing.TB, s Source, patience time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(patience, long))
	defer cancel()
	transport := newTransport(t.Context())
	defer transport.CloseIdleConnections()
	options := Options{Transport: transport}
	if patience == begun {
		options.Transport = interrupted{transport, cancel}
	}
	s.Every = MaxEvery
	read, err := s.reader(options)
	if err != nil {
		t.Fatal(err)
	}
	m, err := read(ctx)
	if err != nil {
		return s.readable(err).Error()
	}
	return fmt.Sprint(m.value)
}

const (
	long  = time.Minute            // what answers
	short = 300 * time.Millisecond // what doesn't
	begun = 0                      // until an answer begins, however soon that is
)

// interrupted ends the time of a reading when its answer has begun.
type interrupted struct {
	http.RoundTripper
	end func()
}

func (i interrupted) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := i.RoundTripper.RoundTrip(r)
	i.end()
	return response, err
}

func TestPages(t *testing.T) {
	noLeaks(t)
	text := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
		}
	}
	endless := func(chunk string, pause time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-time.After(pause):
				case <-r.Context().Done():
				}
			}
		}
	}
	const app = "application/json"
	for _, tc := range []struct {
		name     string
		answer   http.HandlerFunc
		patience time.Duration
		want     string
	}{
		{"number", text(app, `{"busy":[1,17.5]}`), long, "17.5"},
		{"of another type", text("text/html", `{"busy":[1,2]}`), long, "2"},
		{"text", text(app, `{"busy":[1,"2"]}`), long, ".busy[1] is text, expected a number"},
		{"missing", text(app, `{"busy":[1]}`), long, ".busy[1] is missing"},
		{"html", text("text/html", "<html>"), long, "body is not JSON"},
		{"empty", text(app, ""), long, "body is not JSON"},
		{"deep", text(app, strings.Repeat("[", 1<<19)), long, "body is not JSON"},
		{"at the limit", text(app, `{"busy":[1,2]}`+strings.Repeat(" ", maxBody-14)), long, "2"},
		{"beyond the limit", text(app, `{"busy":[1,2]}`+strings.Repeat(" ", maxBody-13)), long, "the answer is longer than 1048576 bytes"},
		{"never ends", endless(strings.Repeat(" ", 1<<16), 0), long, "the answer is longer than 1048576 bytes"},
		{"drips", endless(" ", time.Millisecond), begun, "no whole answer within 5s"},
		{"silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, short, "no answer within 5s"},
		{"compressed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(make([]byte, 64<<20))
			z.Close()
		}, long, `the answer is compressed, which wasn't asked for (Content-Encoding "gzip")`},
		{"huge headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Much", strings.Repeat("x", 2*maxHeader))
		}, long, "the answer's headers are longer than 65536 bytes"},
		{"error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, long, "status 500, expected 200"},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, long, "status 204, expected 200"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/load" {
				http.Redirect(w, r, "/other", http.StatusFound)
				return
			}
			t.Error("the redirect was followed")
		}, long, "status 302, expected 200: redirects are not followed, write the URL it leads to"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"busy":[1,2]}`)
		}, long, "no whole answer: connection closed by the peer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			source := Source{Kind: JSON, URL: serve(t, tc.answer) + "/load", Path: ".busy[1]"}
			if got := readOnce(t, source, tc.patience); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	noLeaks(t)
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	var got *http.Request
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		io.WriteString(w, "busy 4\n")
	})
	base = strings.Replace(base, "http://", "http://user:secret-word@", 1)
	if value := readOnce(t, Source{Kind: Metric, URL: base + "/a%2Fb?token=x", Metric: "busy"}, long); value != "4" {
		t.Error(value)
	}
	user, password, _ := got.BasicAuth()
	if got.Method != "GET" || got.RequestURI != "/a%2Fb?token=x" || user != "user" || password != "secret-word" {
		t.Errorf("%s %s by %s %s", got.Method, got.RequestURI, user, password)
	}
	h := got.Header
	if h.Get("Accept-Encoding") != "identity" || h.Get("User-Agent") != "gslb" || h.Get("Accept") != "text/plain;version=0.0.4" {
		t.Errorf("%v", h)
	}
}

func TestMetricPage(t *testing.T) {
	noLeaks(t)
	kind := ""
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, page)
	})
	source := Source{Kind: Metric, URL: base, Metric: "busy"}
	for kind = range map[string]bool{"": true, "text/plain; version=0.0.4": true} {
		if got := readOnce(t, source, long); got != "107.5" {
			t.Error(got)
		}
	}
	kind = "application/openmetrics-text; version=1.0.0"
	if got := readOnce(t, source, long); !strings.Contains(got, "OpenMetrics") {
		t.Error(got)
	}
}

func TestPrometheusServer(t *testing.T) {
	noLeaks(t)
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prom/api/v1/query" || r.URL.Query().Get("tenant") != "a" {
			w.WriteHeader(404)
			return
		}
		switch q := r.URL.Query().Get("query"); q {
		case `sum(busy{pool="web"}) + 1`:
			io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[{"value":[1772366400,"5"]}]}}`)
		case "bad(":
			w.WriteHeader(400)
			io.WriteString(w, `{"status":"error","errorType":"bad_data","error":"parse error"}`)
		default:
			w.WriteHeader(502)
			io.WriteString(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"5"]}}`)
		}
	})
	for _, tc := range []struct{ path, query, want string }{
		{"/prom/?tenant=a", `sum(busy{pool="web"}) + 1`, "5"},
		{"/prom?tenant=a", `sum(busy{pool="web"}) + 1`, "5"},
		{"/prom?tenant=a", "bad(", "the server refuses the query: bad_data: parse error"},
		{"/prom?tenant=a", "1", "status 502, expected 200"},
		{"/", "1", "status 404, expected 200"},
	} {
		if got := readOnce(t, Source{Kind: Prometheus, URL: base + tc.path, Query: tc.query}, long); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.path, tc.query, got, tc.want)
		}
	}
}

func TestNoPage(t *testing.T) {
	noLeaks(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "SSH-2.0-secret-word and \x1b[31mmore\r\n")
			conn.Close()
		}
	})
	at := listener.Addr().String()
	url := "http://user:secret-word@" + at
	if got := readOnce(t, Source{Kind: JSON, URL: url, Path: "."}, long); strings.Contains(got, "secret-word") || strings.Contains(got, "\x1b") || !strings.HasPrefix(got, "no answer: ") {
		t.Error(got)
	}
	listener.Close()
	wg.Wait()
	// Nobody is given this port by chance, as the one just closed could be.
	if got := readOnce(t, Source{Kind: JSON, URL: "http://user:secret-word@127.0.0.1:1", Path: "."}, long); got != "no answer: connection refused" {
		t.Error(got)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	if got := readOnce(t, Source{Kind: JSON, URL: secure.URL, Path: "."}, long); !strings.Contains(got, "certificate") {
		t.Error(got)
	}
}

func TestFile(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "load")
	source := Source{Kind: File, File: path}
	if got := readOnce(t, source, long); got != "no such file or directory" {
		t.Error(got)
	}
	for content, want := range map[string]string{
		"12.5":                             "12.5",
		"\n 12\t\r\n":                      "12",
		"":                                 "there is nothing, expected a number",
		"12 13":                            `"12 13" is not a number`,
		strings.Repeat(" ", maxFile) + "1": "it is longer than 4096 bytes, expected a number and nothing else",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readOnce(t, source, long); got != want {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
	}
	if err := os.Chtimes(path, noon, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(path, []byte("3"), 0o600)
	os.Chtimes(path, noon, noon)
	if m, err := fileReader(path)(t.Context()); err != nil || m.value != 3 || !m.at.Equal(noon) {
		t.Errorf("%v %v", m, err)
	}
	if got := readOnce(t, Source{Kind: File, File: dir}, long); got != "it is no regular file" {
		t.Error(got)
	}
}

// TestConnectionsAreKept is in virtual time: net/http keeps no connection whose
// writer is 50 ms behind its reader.
func TestConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "1") })}
		go server.Serve(&oneConn{conn: theirs, closed: make(chan struct{})})
		defer server.Close()
		p := NewPoller(Options{})
		defer p.Close()
		dialled := 0
		p.own.DialContext = func(context.Context, string, string) (net.Conn, error) { dialled++; return ours, nil }
		g := acquire(t, p, source("/", 15*time.Second))
		for range 5 {
			after(15 * time.Second)
		}
		if r := g.Reading(); r.Value != 1 || r.Err != nil || dialled != 1 {
			t.Errorf("%+v over %d connections", r, dialled)
		}
	})
}

// oneConn listens for the one connection that it has.
type oneConn struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	conn := l.conn
	if l.conn = nil; conn == nil {
		<-l.closed
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *oneConn) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{} }

func BenchmarkPage(b *testing.B) {
	metrics := []byte(strings.Repeat("other_metric{pool=\"web\",zone=\"a\"} 12.5\n", 20_000) + page)
	metrics = metrics[:min(len(metrics), maxBody)]
	chosen, err := parseSelector("busy")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("metric", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if m, err := chosen.sum(metrics); err != nil || m.value != 107.5 {
				b.Fatal(m, err)
			}
		}
	})
	hostile := []byte("[" + strings.Repeat("{},", maxBody/3-1) + "0]")
	path, err := probe.ParseJSONPath("[0]")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("hostile json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := path.Number(hostile); err == nil {
				b.Fatal("no error")
			}
		}
	})
}
