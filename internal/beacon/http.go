package beacon

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"mime"
	"net/http"
	"time"
)

// Times of the server. The script gives up after 5 seconds.
const (
	requestTime = 10 * time.Second
	idleTime    = time.Minute
)

// HTTP is a server for the collector. Its log is a counter: the standard
// library's lines have addresses of clients.
func (c *Collector) HTTP() *http.Server {
	return &http.Server{
		Handler:           c.Handler(),
		ReadHeaderTimeout: requestTime / 2,
		ReadTimeout:       requestTime,
		WriteTimeout:      requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(counter{&c.metrics}, "", 0),
	}
}

type counter struct{ m *metrics }

func (c counter) Write(p []byte) (int, error) {
	c.m.httpErrors.Add(1)
	return len(p), nil
}

// Handler answers
//
//	GET /probe       nothing, quickly
//	POST /report     takes a report
//	GET /beacon.js   the script, with its configuration
//	GET /demo        a page that has it
//	GET /healthz     200, or 503 while reports can't be written
//	GET /metrics     counters, for Prometheus
//
// The first three are for any page: they allow all origins, and need no
// credentials.
func (c *Collector) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /probe", c.probe)
	mux.HandleFunc("POST /report", c.report)
	mux.HandleFunc("OPTIONS /report", c.preflight)
	mux.HandleFunc("GET /beacon.js", c.serveScript)
	mux.HandleFunc("GET /demo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(demoPage)
	})
	mux.HandleFunc("GET /healthz", c.health)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		c.writeMetrics(w)
	})
	return mux
}

// forAll lets pages of any origin read a reply and, of Resource Timing, when it
// came.
func forAll(w http.ResponseWriter) http.Header {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Timing-Allow-Origin", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	return h
}

func (c *Collector) probe(w http.ResponseWriter, _ *http.Request) {
	c.metrics.probes.Add(1)
	forAll(w).Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

func (c *Collector) serveScript(w http.ResponseWriter, _ *http.Request) {
	if c.script == nil {
		http.Error(w, "no region has a URL to be measured at", http.StatusNotFound)
		return
	}
	h := forAll(w)
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=300")
	w.Write(c.script)
}

// preflight is for reports that don't come from the script: it sends plain text,
// for which no browser asks first.
func (c *Collector) preflight(w http.ResponseWriter, _ *http.Request) {
	h := forAll(w)
	h.Set("Access-Control-Allow-Methods", "POST")
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

func (c *Collector) health(w http.ResponseWriter, _ *http.Request) {
	switch {
	case c.metrics.full.Load():
		http.Error(w, "the files have reached their size: move some away", http.StatusServiceUnavailable)
	case c.metrics.broken.Load():
		http.Error(w, "files can't be written: see the log", http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "ok\n")
	}
}

// refusals are the replies to reports that are not taken. After a 5xx the
// script tries the next region.
var refusals = [numOutcomes]struct {
	status int
	why    string
}{
	noneLeft:  {http.StatusUnprocessableEntity, "no measurement counts"},
	malformed: {http.StatusBadRequest, "no report"},
	wrongType: {http.StatusUnsupportedMediaType, "expected text/plain or application/json"},
	tooLarge:  {http.StatusRequestEntityTooLarge, "too large"},
	noAddress: {http.StatusBadRequest, "whose is it?"},
	limited:   {http.StatusTooManyRequests, "too many reports"},
	queueFull: {http.StatusServiceUnavailable, "busy"},
	diskFull:  {http.StatusServiceUnavailable, "full"},
}

// answer is the reply to a report.
type answer struct {
	Accepted int            `json:"accepted"`
	Rejected map[string]int `json:"rejected,omitempty"` // by reason
	Error    string         `json:"error,omitempty"`
}

func (c *Collector) report(w http.ResponseWriter, r *http.Request) {
	var a answer
	result, err := c.take(w, r, &a)
	c.metrics.reports[result].Add(1)
	h := forAll(w)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	if result != accepted {
		a.Accepted, a.Error = 0, refusals[result].why
		if err != nil {
			a.Error += ": " + err.Error()
		}
		w.WriteHeader(refusals[result].status)
	}
	json.NewEncoder(w).Encode(a)
}

// take takes a report. What is cheap to refuse is refused first.
func (c *Collector) take(w http.ResponseWriter, r *http.Request, a *answer) (outcome, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "text/plain" && kind != "application/json" {
		return wrongType, nil
	}
	from, err := c.clientOf(r)
	if err != nil {
		return noAddress, err
	}
	now := c.Now()
	if !c.limit.allow(from.prefix, now) {
		return limited, nil
	}
	if c.metrics.full.Load() {
		return diskFull, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if big := (*http.MaxBytesError)(nil); errors.As(err, &big) {
		return tooLarge, nil
	}
	if err != nil {
		return malformed, errors.New("it ends too early")
	}
	entries, err := parseReport(body)
	if err != nil {
		return malformed, err
	}
	good := c.sift(entries, a)
	if len(good) == 0 {
		return noneLeft, nil
	}
	var lines []byte
	at, prefix := now.UTC().Format(time.RFC3339), from.prefix.String()
	for i := range good {
		lines = appendLine(lines, at, prefix, from.source, &good[i])
	}
	if !c.put(lines) {
		return queueFull, nil
	}
	for i := range good {
		c.metrics.count(c.regions[good[i].region], &good[i])
	}
	a.Accepted = len(good)
	return accepted, nil
}

// sift keeps the measurements that count and counts the others.
func (c *Collector) sift(entries []entry, a *answer) (good []entry) {
	var seen [MaxCandidates]bool
	for i := range entries {
		why := c.judge(&entries[i], &seen)
		if why == none {
			good = append(good, entries[i])
			continue
		}
		c.metrics.rejected[why].Add(1)
		if a.Rejected == nil {
			a.Rejected = make(map[string]int)
		}
		a.Rejected[rejectionNames[why]]++
	}
	return good
}
