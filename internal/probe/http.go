package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/seed-945f90c5/gslb/internal/check"
)

const (
	maxRedirects = 10
	maxHeader    = 64 << 10 // bytes of all headers of an answer, 1xx answers included
	userAgent    = "gslb"
)

// httpProber sends one request and judges the answer. Every connection is
// opened by the dialer and made an HTTP/1 or HTTP/2 client connection of its
// own: the pools of net/http, which know nothing of places, are not involved.
type httpProber struct {
	judge
	dialer    *dialer
	transport *http.Transport
	places    places
	idle      *keeper[*http.ClientConn]

	scheme, method string
	plainPort      uint16 // left out of Host
	url            *url.URL
	header         http.Header // of every request; only read
	report         []string    // canonical names
	follow, keep   bool
	secrets        []string
}

// hop is one request of a probe: the first, or that of a redirect.
type hop struct {
	place  place
	method string
	url    *url.URL
}

func newHTTP(c *check.Check) (prober, error) {
	p := &httpProber{scheme: string(c.Kind), plainPort: 80, method: c.Method, follow: c.Follow, keep: c.KeepAlive}
	if c.Kind == check.HTTPS {
		p.plainPort = 443
	}
	ok, err := statusIn([][2]int{{200, 299}})
	if err != nil {
		return nil, err
	}
	p.judge, err = newJudge(c, check.Status, []condition{ok}, []condition{{ClassFull, "", overloaded}})
	if err != nil {
		return nil, err
	}
	if p.dialer, err = newDialer(c, c.Kind == check.HTTPS, "h2", "http/1.1"); err != nil {
		return nil, err
	}
	if p.places, err = newPlaces(c, int(p.plainPort)); err != nil {
		return nil, err
	}
	if err := p.prepare(c); err != nil {
		return nil, err
	}
	p.transport = newTransport()
	p.idle = newKeeper[*http.ClientConn](c)
	return p, nil
}

// prepare reads and checks all that requests are made of.
func (p *httpProber) prepare(c *check.Check) (err error) {
	if p.method == "" {
		p.method = http.MethodGet
	}
	path := c.Path
	if path == "" {
		path = "/"
	}
	if p.url, err = url.ParseRequestURI(path); err != nil || p.url.Host != "" || !strings.HasPrefix(path, "/") {
		return fmt.Errorf("path %q, expected one such as /health?deep=1", path)
	}
	if _, err := http.NewRequest(p.method, "http://host/", nil); err != nil {
		return fmt.Errorf("method %q, expected one such as GET or HEAD", p.method)
	}
	p.header = http.Header{"User-Agent": {userAgent}}
	for _, h := range c.Headers {
		if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value) {
			return fmt.Errorf("header %q: its name or value is not one that HTTP can carry", h.Name)
		}
		switch name := http.CanonicalHeaderKey(h.Name); name {
		case "Host":
			return errors.New("header Host: expected authority instead, which sets the name in TLS as well")
		case "Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Upgrade":
			return fmt.Errorf("header %s is set by the probe itself", name)
		case "User-Agent":
			p.header.Set(name, h.Value)
		default:
			p.header.Add(name, h.Value)
		}
		p.secrets = append(p.secrets, secretsIn(h.Value)...)
	}
	for _, name := range c.Report {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("report %q: it is not a name of a header", name)
		}
		p.report = append(p.report, http.CanonicalHeaderKey(name))
	}
	// Longer ones first, or a part would hide before the whole.
	slices.SortFunc(p.secrets, func(a, b string) int { return len(b) - len(a) })
	return nil
}

// secretsIn returns what reasons must not show of a header's value: all of it,
// and its longer words (the token after "Bearer").
func secretsIn(value string) []string {
	return slices.DeleteFunc(append(strings.Fields(value), value), func(s string) bool { return len(s) < 6 })
}

// newTransport makes client connections of the connection that the context
// carries, and dials nothing.
func newTransport() *http.Transport {
	given := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return ctx.Value(connKey{}).(net.Conn), nil
	}
	t := &http.Transport{
		DialContext: given, DialTLSContext: given,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        1 << 10,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	return t
}

type connKey struct{}

func (p *httpProber) close() { p.idle.close() }

func (p *httpProber) probe(ctx context.Context, a *attempt, t Target) error {
	a.secrets = p.secrets
	first, err := p.places.of(t)
	if err != nil {
		return err
	}
	next := hop{first, p.method, p.url}
	for range maxRedirects + 1 {
		// A redirect's name is the endpoint's word: nothing is kept by it.
		o, err := p.exchange(ctx, a, next, p.keep && next.place == first)
		if err != nil {
			return err
		}
		a.timings.RetryAfter, a.timings.Reported = o.retryAfter(), o.reported(p.report)
		again, err := p.redirect(next, o)
		if err != nil {
			return err
		}
		if again == nil {
			return p.judge.of(o)
		}
		next = *again
	}
	return fail(ClassProtocol, "more than %d redirects", maxRedirects)
}

// exchange sends the request of one hop on a connection kept, else a new one.
// Servers close connections at any time, so what fails on a connection kept is
// tried once more on a new one.
func (p *httpProber) exchange(ctx context.Context, a *attempt, h hop, keep bool) (*outcome, error) {
	if keep {
		if conn, ok := p.idle.take(h.place); ok {
			o, err := p.send(ctx, a, conn, h, true)
			if err == nil || ctx.Err() != nil || a.phase != phaseFirstByte {
				return o, err
			}
		}
	}
	conn, err := p.open(ctx, a, h.place)
	if err != nil {
		return nil, err
	}
	return p.send(ctx, a, conn, h, keep)
}

func (p *httpProber) open(ctx context.Context, a *attempt, at place) (*http.ClientConn, error) {
	conn, err := p.dialer.dial(ctx, a, at)
	if err != nil {
		return nil, err
	}
	client, err := p.transport.NewClientConn(context.WithValue(ctx, connKey{}, conn), p.scheme, at.addr.String())
	if err != nil {
		conn.Close()
		return nil, err
	}
	return client, nil
}

// send owns conn: afterwards it is kept or closed.
func (p *httpProber) send(ctx context.Context, a *attempt, conn *http.ClientConn, h hop, keep bool) (*outcome, error) {
	a.phase = phaseFirstByte
	var begun atomic.Bool
	trace := httptrace.ClientTrace{GotFirstResponseByte: func() { begun.Store(true); a.answered() }}
	response, err := conn.RoundTrip(p.request(httptrace.WithClientTrace(ctx, &trace), h, keep))
	if err != nil {
		conn.Close()
		if begun.Load() {
			a.phase = phaseHeaders
		}
		return nil, httpError(ctx, err)
	}
	a.phase = phaseBody
	o := &outcome{status: response.StatusCode, header: response.Header}
	if o.status >= 200 {
		o.body, o.more, err = readBody(response.Body)
	}
	response.Body.Close()
	if err != nil || !keep {
		conn.Close()
		return o, httpError(ctx, err)
	}
	p.idle.put(h.place, conn)
	return o, nil
}

func (p *httpProber) request(ctx context.Context, h hop, keep bool) *http.Request {
	u := *h.url
	u.Scheme, u.Host = p.scheme, h.place.addr.String()
	r := &http.Request{
		Method: h.method, URL: &u, Host: p.host(h.place), Header: p.header, Close: !keep,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(ctx)
}

// host is the Host header: the name, else the address with its port unless
// that is the scheme's own.
func (p *httpProber) host(at place) string {
	switch {
	case at.name != "":
		return at.name
	case at.addr.Port() != p.plainPort:
		return at.addr.String()
	case at.addr.Addr().Is6():
		return "[" + at.addr.Addr().String() + "]"
	}
	return at.addr.Addr().String()
}

// redirect returns the hop that an answer asks for, if it is to be followed.
// Host and port of the location are never dialled: it is the same place under
// another name, perhaps.
func (p *httpProber) redirect(h hop, o *outcome) (*hop, error) {
	location := o.header.Get("Location")
	if !p.follow || location == "" {
		return nil, nil
	}
	next := hop{place: h.place, method: h.method}
	switch o.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if next.method != http.MethodHead {
			next.method = http.MethodGet
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	base := *h.url
	base.Scheme, base.Host = p.scheme, "same.invalid"
	to, err := base.Parse(location)
	switch {
	case err != nil:
		return nil, fail(ClassProtocol, "status %d with a location that can't be read", o.status)
	case to.Scheme != p.scheme:
		return nil, fail(ClassStatus, "status %d leads away from %s: check where it leads instead", o.status, p.scheme)
	case to.Host != base.Host:
		next.place.name = hostname(to.Hostname())
	}
	next.url = &url.URL{Path: to.Path, RawPath: to.RawPath, RawQuery: to.RawQuery}
	return &next, nil
}

// readBody reads check.MaxBody bytes at most.
func readBody(r io.Reader) (body []byte, more bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r, check.MaxBody+1))
	if len(body) > check.MaxBody {
		return body[:check.MaxBody], true, nil
	}
	return body, false, err
}

// httpError keeps the texts of net/http out of reasons: they quote what the
// peer sent, which may be what we sent.
func httpError(ctx context.Context, err error) error {
	var network net.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case strings.Contains(err.Error(), "server closed idle connection"), // before the request was sent
		strings.Contains(err.Error(), "conn could not be established"): // before HTTP/2 was agreed on
		return io.EOF
	case strings.Contains(err.Error(), "headers exceeded"), strings.Contains(err.Error(), "header list"):
		return fail(ClassProtocol, "headers are longer than %d bytes", maxHeader)
	}
	return fail(ClassProtocol, "answer is not valid HTTP")
}

// overloaded holds for what means full by itself.
func overloaded(o *outcome) (string, bool) {
	switch o.status {
	case http.StatusTooManyRequests:
		return "status 429", true
	case http.StatusServiceUnavailable:
		_, ok := parseRetryAfter(o.header.Get("Retry-After"), time.Now())
		return "status 503 with Retry-After", ok
	}
	return "", false
}

// retryAfter is how long a 429 or 503 asks to be left alone.
func (o *outcome) retryAfter() time.Duration {
	if o.status != http.StatusTooManyRequests && o.status != http.StatusServiceUnavailable {
		return 0
	}
	d, _ := parseRetryAfter(o.header.Get("Retry-After"), time.Now())
	return d
}

// reported are the headers of these names that the answer has.
func (o *outcome) reported(names []string) (all []check.Header) {
	for _, name := range names {
		if values := o.header[name]; len(values) > 0 {
			all = append(all, check.Header{Name: name, Value: strings.Join(values, ", ")})
		}
	}
	return all
}
