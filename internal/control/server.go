package control

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the API.
const (
	maxBody       = 64 << 10
	maxHeader     = 16 << 10
	maxInFlight   = 32
	requestTime   = 30 * time.Second
	wrongLogEvery = 10 * time.Second
)

// Options are what a Server is made of. All are needed.
type Options struct {
	Store  *Store
	Tokens *Tokens
	Now    func() time.Time
	Logf   func(format string, args ...any) // for what somebody must see
}

// Server is the HTTP API; docs/control-api.yaml describes it. It is an
// http.Handler; HTTP makes a server of it that has the limits it relies on.
type Server struct {
	Options
	mux      *http.ServeMux
	inFlight chan struct{}

	wrong atomic.Uint64

	mu       sync.Mutex // of what follows
	logged   time.Time
	unlogged int
}

// route is a path of the API and what may be done there.
type route struct {
	path, method string
	change       bool // not with a token that may only read
	serve        func(*Server, *http.Request, Author) (any, error)
}

var routes = []route{
	{"/v1/status", http.MethodGet, false, (*Server).status},
	{"/v1/overrides", http.MethodGet, false, (*Server).overrides},
	{"/v1/overrides/{id}", http.MethodDelete, true, (*Server).cancel},
	{"/v1/changes", http.MethodPost, true, (*Server).changes},
	{"/v1/whatif", http.MethodPost, false, (*Server).whatIf},
	{"/v1/explain", http.MethodGet, false, (*Server).explain},
	{"/v1/audit", http.MethodGet, false, (*Server).audit},
	{"/v1/return", http.MethodPost, true, (*Server).takeBack},
}

// New makes a server.
func New(o Options) *Server {
	s := &Server{Options: o, mux: http.NewServeMux(), inFlight: make(chan struct{}, maxInFlight)}
	for _, r := range routes {
		s.mux.Handle(r.path, s.on(r))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, &httpError{status: http.StatusNotFound, Failure: Failure{Error: "no such path", Code: "not_found",
			Expected: "/v1/status, overrides, changes, whatif, explain, audit or return"}})
	})
	return s
}

// HTTP is a server for the API, to be used with a listener of [Listen].
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      requestTime + 5*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(writerFunc(func(text string) { s.Logf("control: %s", text) }), "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, peerOf(c))
		},
	}
}

// writerFunc is a function that takes the lines of a log.
type writerFunc func(string)

func (f writerFunc) Write(p []byte) (int, error) {
	f(strings.TrimSpace(string(p)))
	return len(p), nil
}

// peerKey is where the peer of a unix socket is kept in a connection's context.
type peerKey struct{}

// WrongTokens counts the requests without a good token since the start.
func (s *Server) WrongTokens() uint64 { return s.wrong.Load() }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.inFlight <- struct{}{}:
		defer func() { <-s.inFlight }()
	default:
		s.fail(w, &httpError{status: http.StatusServiceUnavailable, Failure: Failure{Error: fmt.Sprintf("%d requests are being served", maxInFlight), Code: "busy", Hint: "try again"}})
		return
	}
	if err := notBrowser(r); err != nil {
		s.fail(w, err)
		return
	}
	token, err := s.token(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), tokenKey{}, token), requestTime)
	defer cancel()
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// tokenKey is where the token is kept in a request's context.
type tokenKey struct{}

// notBrowser refuses what a web page could make a browser send: names that are
// bound to our address (DNS rebinding), and requests from another origin.
func notBrowser(r *http.Request) *httpError {
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return &httpError{status: http.StatusForbidden, Failure: Failure{Error: "browsers are not served", Code: "browser", Hint: "use gslbctl, or curl"}}
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && local.Network() == "unix" || r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return nil
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		return &httpError{status: http.StatusForbidden, Failure: Failure{Error: fmt.Sprintf("the request is for host %.60q", r.Host), Code: "host",
			Expected: "an address or localhost"}}
	}
	return nil
}

// token wants a good token, and says nothing about a wrong one.
func (s *Server) token(r *http.Request) (Token, *httpError) {
	presented, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	token, ok, err := s.Tokens.Find(presented)
	if err != nil {
		s.logWrong("%v: nobody is let in", err)
		return token, &httpError{status: http.StatusServiceUnavailable, Failure: Failure{Error: "the token file can't be used", Code: "tokens",
			Hint: "the server's log says why"}}
	}
	if !ok || !bearer {
		s.wrong.Add(1)
		s.logWrong("a request from %s without a good token", author(r).From)
		return token, &httpError{status: http.StatusUnauthorized, Failure: Failure{Error: "unauthorized", Code: "unauthorized"}}
	}
	return token, nil
}

// logWrong logs at most one line in ten seconds.
func (s *Server) logWrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	if !s.logged.IsZero() && now.Sub(s.logged) < wrongLogEvery && !now.Before(s.logged) {
		s.unlogged++
		return
	}
	s.Logf("control: %s (%d more not logged before)", fmt.Sprintf(format, args...), s.unlogged)
	s.logged, s.unlogged = now, 0
}

// author is who made a request.
func author(r *http.Request) Author {
	token, _ := r.Context().Value(tokenKey{}).(Token)
	from, _ := r.Context().Value(peerKey{}).(string)
	if from == "" {
		from = r.RemoteAddr
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		from = fmt.Sprintf("%s, certificate of %.100q", from, r.TLS.VerifiedChains[0][0].Subject.CommonName)
	}
	return Author{Name: token.Name, From: from}
}

// on serves a route.
func (s *Server) on(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := r.Context().Value(tokenKey{}).(Token)
		switch {
		case r.Method != rt.method:
			w.Header().Set("Allow", rt.method)
			s.fail(w, &httpError{status: http.StatusMethodNotAllowed, Failure: Failure{Error: fmt.Sprintf("%.10q is not done here", r.Method), Code: "method", Expected: rt.method}})
			return
		case rt.change && token.Read:
			s.fail(w, &httpError{status: http.StatusForbidden, Failure: Failure{Error: fmt.Sprintf("the token of %s may read, and change nothing", token.Name), Code: "read_only"}})
			return
		}
		reply, err := rt.serve(s, r, author(r))
		if err != nil {
			s.fail(w, s.failure(err))
			return
		}
		s.write(w, http.StatusOK, reply)
	}
}

// write writes a reply as JSON.
func (s *Server) write(w http.ResponseWriter, status int, reply any) {
	data, err := json.MarshalIndent(reply, "", "  ")
	if err != nil { // a number that JSON doesn't have: NaN, infinity
		s.Logf("control: a reply can't be written: %v", err)
		status, data = http.StatusInternalServerError, []byte(`{"error": "the reply can't be written", "code": "internal"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	w.Write(append(data, '\n')) // an error is the client's going
}
