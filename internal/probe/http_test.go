package probe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// serveHTTP serves plain HTTP on loopback until the test ends.
func serveHTTP(t testing.TB, h http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func expect(cs ...check.Condition) func(*check.Check) {
	return func(c *check.Check) { c.Expect = cs }
}

func full(cs ...check.Condition) func(*check.Check) {
	return func(c *check.Check) { c.Full = cs }
}

func TestHTTPOutcomes(t *testing.T) {
	noLeaks(t)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	busy := func(code int, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(code)
		}
	}
	in := func(lo, hi int) check.Condition {
		return check.Condition{Kind: check.Status, Ranges: [][2]int{{lo, hi}}}
	}
	contains := check.Condition{Kind: check.BodyText, Text: "ok"}
	matches := check.Condition{Kind: check.BodyMatch, Text: `"status":\s*"ok"`}
	lag := check.Condition{Kind: check.JSON, Field: ".db[0].lag", Op: "<", Value: "5"}
	header := check.Condition{Kind: check.HeaderField, Field: "X-Ready"}
	value := check.Condition{Kind: check.HeaderField, Field: "X-Ready", Text: "yes"}
	ready := func(v string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Ready", v) }
	}
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		set    func(*check.Check)
		want   outcomeOf
	}{
		{"200", status(200), nil, passed},
		{"204", status(204), nil, passed},
		{"301 not followed", status(301), nil, outcomeOf{Fail, ClassStatus, "status 301, expected 200-299"}},
		{"404", status(404), nil, outcomeOf{Fail, ClassStatus, "status 404, expected 200-299"}},
		{"404 expected", status(404), expect(in(404, 404)), passed},
		{"200 where 404 is expected", status(200), expect(check.Condition{Kind: check.Status, Ranges: [][2]int{{301, 302}, {404, 404}}}),
			outcomeOf{Fail, ClassStatus, "status 200, expected 301-302,404"}},
		{"body", body("all ok"), expect(contains), passed},
		{"body without", body("bad"), expect(contains), outcomeOf{Fail, ClassContent, "body doesn't contain ok"}},
		{"body condition keeps the status", status(500), expect(contains), outcomeOf{Fail, ClassStatus, "status 500, expected 200-299"}},
		{"body at the limit", body(strings.Repeat(".", check.MaxBody-2) + "ok" + strings.Repeat(".", 1<<20)), expect(contains), passed},
		{"body beyond the limit", body(strings.Repeat(".", check.MaxBody-1) + "ok" + strings.Repeat(".", 1<<20)), expect(contains),
			outcomeOf{Fail, ClassContent, "body doesn't contain ok"}},
		{"expression", body(`{"status": "ok"}`), expect(matches), passed},
		{"expression fails", body(`{"status": "no"}`), expect(matches), outcomeOf{Fail, ClassContent, `body doesn't match "status":\s*"ok"`}},
		{"json", body(`{"db":[{"lag":4.5}]}`), expect(lag), passed},
		{"json too high", body(`{"db":[{"lag":5}]}`), expect(lag), outcomeOf{Fail, ClassContent, ".db[0].lag is 5, expected < 5"}},
		{"json missing", body(`{"db":[]}`), expect(lag), outcomeOf{Fail, ClassContent, ".db[0].lag is missing, expected < 5"}},
		{"json text", body(`{"db":[{"lag":"4"}]}`), expect(lag), outcomeOf{Fail, ClassContent, ".db[0].lag is not a number, expected < 5"}},
		{"json no json", body(`<html>`), expect(lag), outcomeOf{Fail, ClassContent, ".db[0].lag can't be read: body is not JSON, expected < 5"}},
		{"json two", body(`{} {}`), expect(lag), outcomeOf{Fail, ClassContent, ".db[0].lag can't be read: body is more than one JSON document, expected < 5"}},
		{"json too long", body(`{"a":"` + strings.Repeat("a", check.MaxBody) + `"}`), expect(lag),
			outcomeOf{Fail, ClassContent, ".db[0].lag can't be read: body is longer than 5120 bytes, expected < 5"}},
		{"header", ready("no"), expect(header), passed},
		{"header missing", status(200), expect(header), outcomeOf{Fail, ClassContent, "header X-Ready is missing"}},
		{"header value", ready("yes"), expect(value), passed},
		{"header other value", ready("secret"), expect(value), outcomeOf{Fail, ClassContent, "header X-Ready has another value than expected"}},
		{"all must hold", body("ok"), expect(contains, header), outcomeOf{Fail, ClassContent, "header X-Ready is missing"}},
		{"429", status(429), nil, outcomeOf{Full, ClassFull, "full: status 429"}},
		{"503", status(503), nil, outcomeOf{Fail, ClassStatus, "status 503, expected 200-299"}},
		{"503 with Retry-After", busy(503, "30"), nil, outcomeOf{Full, ClassFull, "full: status 503 with Retry-After"}},
		{"503 with nonsense", busy(503, "later"), nil, outcomeOf{Fail, ClassStatus, "status 503, expected 200-299"}},
		{"own full replaces 429", status(429), full(header), outcomeOf{Fail, ClassStatus, "status 429, expected 200-299"}},
		{"full before expect", status(500), full(header, in(500, 500)), outcomeOf{Full, ClassFull, "full: status 500"}},
		{"full by json", body(`{"db":[{"lag":4}]}`), full(lag), outcomeOf{Full, ClassFull, "full: .db[0].lag is 4"}},
		{"not full", body(`{"db":[{"lag":9}]}`), full(lag), passed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := prepare(t, define(check.HTTP, tc.set))
			tc.want.compare(t, r.Probe(t.Context(), to(serveHTTP(t, tc.answer))))
		})
	}
}

func TestHTTPRetryAfter(t *testing.T) {
	noLeaks(t)
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(map[string]int{"/429": 429, "/503": 503, "/200": 200}[r.URL.Path])
	})
	for path, want := range map[string]time.Duration{"/429": 90 * time.Second, "/503": 90 * time.Second, "/200": 0} {
		r := prepare(t, define(check.HTTP, func(c *check.Check) { c.Path = path }))
		if got := r.Probe(t.Context(), to(address)); got.RetryAfter != want {
			t.Errorf("%s: got %v, want %v", path, got.RetryAfter, want)
		}
	}
}

func TestHTTPRequest(t *testing.T) {
	noLeaks(t)
	var got *http.Request
	address := serveHTTP(t, func(_ http.ResponseWriter, r *http.Request) { got = r })
	r := prepare(t, define(check.HTTP, func(c *check.Check) {
		c.Method, c.Path, c.Authority = "HEAD", "/a%2Fb?deep=1&x=%20", "api.test."
		c.Headers = []check.Header{{Name: "x-token", Value: "one"}, {Name: "X-Token", Value: "two"}}
	}))
	result := r.Probe(t.Context(), to(address))
	passed.compare(t, result)
	if got.Method != "HEAD" || got.RequestURI != "/a%2Fb?deep=1&x=%20" || got.Host != "api.test" || !got.Close {
		t.Errorf("%s %s of %s, close %v", got.Method, got.RequestURI, got.Host, got.Close)
	}
	h := got.Header
	if strings.Join(h["X-Token"], " ") != "one two" || h.Get("User-Agent") != "gslb" || h.Get("Accept-Encoding") != "" {
		t.Errorf("headers %v", h)
	}
	if result.Connected <= 0 || result.Secured != 0 || result.FirstByte < result.Connected {
		t.Errorf("times %+v", result)
	}
}

func TestHTTPIgnoresProxies(t *testing.T) {
	noLeaks(t)
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://"+refused)
	}
	r := prepare(t, define(check.HTTP, func(c *check.Check) { c.Authority = "not-local.test" }))
	passed.compare(t, r.Probe(t.Context(), to(serveHTTP(t, func(http.ResponseWriter, *http.Request) {}))))
}

func TestHTTPRefused(t *testing.T) {
	noLeaks(t)
	r := prepare(t, define(check.HTTP, nil))
	outcomeOf{Fail, ClassConnect, "connect: connection refused"}.compare(t, r.Probe(t.Context(), to(refused)))
}

func TestHTTPOverIPv6(t *testing.T) {
	noLeaks(t)
	address := serveOn(t, "[::1]:0", func(c *rawConn) {
		head := string(c.readRequest())
		if !strings.Contains(head, "\r\nHost: "+c.LocalAddr().String()+"\r\n") {
			t.Errorf("head %q", head)
		}
		fmt.Fprint(c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	passed.compare(t, prepare(t, define(check.HTTP, nil)).Probe(t.Context(), to(address)))
}

func TestHTTPMappedAddress(t *testing.T) {
	noLeaks(t)
	target := to(serveHTTP(t, func(http.ResponseWriter, *http.Request) {}))
	target.Addr = netip.AddrFrom16(target.Addr.As16())
	passed.compare(t, prepare(t, define(check.HTTP, nil)).Probe(t.Context(), target))
}

func TestHTTPRedirects(t *testing.T) {
	noLeaks(t)
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		redirect := func(code int, location string) {
			w.Header().Set("Location", location)
			w.WriteHeader(code)
		}
		switch r.URL.Path {
		case "/relative":
			redirect(302, "fine?x=1")
		case "/name":
			redirect(301, "http://www.test:1234/fine")
		case "/keep":
			redirect(307, "/method")
		case "/change":
			redirect(303, "/method")
		case "/loop":
			redirect(302, "/loop")
		case "/secure":
			redirect(301, "https://a.test/fine")
		case "/bad":
			redirect(302, "http://[")
		case "/no-location":
			w.WriteHeader(302)
		default:
			fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, r.URL.RequestURI())
		}
	})
	body := func(text string) func(*check.Check) {
		return expect(check.Condition{Kind: check.BodyText, Text: text})
	}
	for _, tc := range []struct {
		path string
		set  func(*check.Check)
		want outcomeOf
	}{
		{"/relative", body("a.test /fine?x=1"), passed},
		{"/name", body("www.test /fine"), passed},
		{"/keep", body("POST a.test /method"), passed},
		{"/change", body("GET a.test /method"), passed},
		{"/loop", nil, outcomeOf{Fail, ClassProtocol, "more than 10 redirects"}},
		{"/secure", nil, outcomeOf{Fail, ClassStatus, "status 301 leads away from http: check where it leads instead"}},
		{"/bad", nil, outcomeOf{Fail, ClassProtocol, "status 302 with a location that can't be read"}},
		{"/no-location", nil, outcomeOf{Fail, ClassStatus, "status 302, expected 200-299"}},
	} {
		t.Run(tc.path, func(t *testing.T) {
			for _, keep := range []bool{false, true} {
				r := prepare(t, define(check.HTTP, func(c *check.Check) {
					if tc.set != nil {
						tc.set(c)
					}
					c.Path, c.Authority, c.Follow, c.Method, c.KeepAlive = tc.path, "a.test", true, "POST", keep
				}))
				tc.want.compare(t, r.Probe(t.Context(), to(address)))
			}
		})
	}
}

func TestHTTPSecretsStayHidden(t *testing.T) {
	noLeaks(t)
	const token = "Bearer s3cr3t-t0ken"
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"all": %q, "token": %q}`, r.Header.Get("Authorization"), strings.Fields(token)[1])
	})
	echo := serveRaw(t, func(c *rawConn) { c.Write(c.readRequest()) })
	for _, field := range []string{".all", ".token"} {
		r := prepare(t, define(check.HTTP, func(c *check.Check) {
			c.Headers = []check.Header{{Name: "Authorization", Value: token}}
			c.Path = "/?key=s3cr3t"
			c.Expect = []check.Condition{{Kind: check.JSON, Field: field, Op: "==", Value: "x"}}
		}))
		outcomeOf{Fail, ClassContent, field + " is [hidden], expected == x"}.compare(t, r.Probe(t.Context(), to(address)))
		outcomeOf{Fail, ClassProtocol, "answer is not valid HTTP"}.compare(t, r.Probe(t.Context(), to(echo)))
	}
}

func TestHTTPConcurrently(t *testing.T) {
	noLeaks(t)
	stuck(t, 20)
	address := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) })
	for _, keep := range []bool{false, true} {
		r := prepare(t, define(check.HTTP, func(c *check.Check) {
			c.Each, c.KeepAlive = true, keep
			c.Expect = []check.Condition{{Kind: check.BodyMatch, Text: `^h\d+\.test$`}}
		}))
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				target := to(address)
				target.Name = fmt.Sprintf("h%d.test", i%7)
				for range 5 {
					passed.compare(t, r.Probe(t.Context(), target))
				}
			})
		}
		wg.Wait()
	}
}

func TestHTTPCancelledBefore(t *testing.T) {
	noLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := prepare(t, define(check.HTTP, nil))
	outcomeOf{Fail, ClassInternal, "connect: cancelled"}.compare(t, r.Probe(ctx, to(refused)))
}
