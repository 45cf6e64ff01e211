package gslb

import (
	"context"
	"errors"
	"fmt"
	golog "log"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/probe"

	"github.com/miekg/dns"
)

// world is what probes find in place of endpoints.
type world struct {
	mu     sync.Mutex
	found  map[string]string // pass, full, fail or stuck, by "ADDRESS" or "CHECK@ADDRESS"; pass without
	asked  map[string]int    // probes by "CHECK@ADDRESS"
	beacon bool              // beacons answer
	over   chan struct{}     // closed to let go of stuck probes
}

func newWorld() *world {
	return &world{found: make(map[string]string), asked: make(map[string]int), beacon: true, over: make(chan struct{})}
}

// registry makes one whose probes go to the world.
func (w *world) registry() *registry {
	return &registry{probing: probe.Options{New: w.runner, Beacon: w.askBeacon}}
}

// set reads "[CHECK@]ADDRESS RESULT, …".
func (w *world) set(text string) {
	if text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range strings.Split(text, ", ") {
		where, what, _ := strings.Cut(one, " ")
		w.found[where] = what
	}
}

func (w *world) setBeacon(answers bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beacon = answers
}

func (w *world) count(where string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[where]
}

func (w *world) look(check, addr string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[check+"@"+addr]++
	if what, ok := w.found[check+"@"+addr]; ok {
		return what
	}
	return w.found[addr]
}

func (w *world) runner(c *check.Check) (*probe.Runner, error) {
	if c.Name == "impossible" {
		return nil, errors.New("check impossible: not on this machine")
	}
	return &probe.Runner{Close: func() {}, Probe: func(ctx context.Context, t probe.Target) probe.Result {
		travel(ctx)
		switch w.look(c.Name, t.Addr.String()) {
		case "full":
			return probe.Result{Status: probe.Full, Class: probe.ClassFull, Reason: "busy", Total: roundTrip}
		case "fail":
			return probe.Result{Status: probe.Fail, Class: probe.ClassConnect, Reason: "connection refused", Total: roundTrip}
		case "stuck":
			<-w.over
			return probe.Result{Status: probe.Fail, Class: probe.ClassInternal}
		}
		return probe.Result{Class: probe.ClassOK, Total: roundTrip}
	}}, nil
}

func (w *world) askBeacon(ctx context.Context, _ probe.Target) probe.Result {
	travel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.beacon {
		return probe.Result{}
	}
	return probe.Result{Status: probe.Fail, Class: probe.ClassConnect}
}

// startTexts starts a generation of one block for each text.
func (r *registry) startTexts(t *testing.T, texts ...string) (*generation, []*GSLB, error) {
	t.Helper()
	if n := len(r.generations); n > 0 {
		r.leave(r.generations[n-1], true)
	}
	gen := &generation{}
	for _, text := range texts {
		gen.loaded = append(gen.loaded, load(t, text, nil))
	}
	for _, g := range gen.loaded {
		if err := r.start(gen, g); err != nil {
			return gen, gen.loaded, err
		}
	}
	return gen, gen.loaded, nil
}

func (r *registry) mustStart(t *testing.T, text string) (*generation, *GSLB) {
	t.Helper()
	gen, gs, err := r.startTexts(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return gen, gs[0]
}

// told is what a client is answered: "ADDRESS… ttl TTL", or the response code.
func told(t *testing.T, g *GSLB, question, subnet string) string {
	t.Helper()
	words := strings.Fields(question)
	m, _ := serve(t, g, ask(words[0]+".example.com.", dns.StringToType[words[1]], subnet))
	if len(m.Answer) == 0 {
		return dns.RcodeToString[m.Rcode]
	}
	return fmt.Sprintf("%s ttl %d", addrs(m), m.Answer[0].Header().Ttl)
}

// share is the part of 1024 clients whose answer begins with an address.
func share(t *testing.T, g *GSLB, question, addr string) float64 {
	t.Helper()
	n := 0
	for i := range 1024 {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(20 + i/256), byte(i), 1, 0}), 24)
		if strings.HasPrefix(told(t, g, question, subnet.String()), addr+" ") {
			n++
		}
	}
	return float64(n) / 1024
}

// probedBlock is three regions in order, and the check web at 10 s. %s is more.
const probedBlock = `gslb {
	region a b c
	clients rest {
		order a b c
	}
	check web {
		http :8080 /healthz
	}
%s
}`

func probed(more string) string { return strings.Replace(probedBlock, "%s", more, 1) }

// Times by which verdicts have changed, and by which one has only begun to.
const (
	oneProbe = 11 * time.Second // of an interval of 10 s
	fallen   = 35 * time.Second // fall 3
	risen    = 60 * time.Second // rise 5
)

// lines is what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// logTo has the log written to lines, without times, until the test ends.
func logTo(t *testing.T) *lines {
	l := new(lines)
	flags := golog.Flags()
	golog.SetFlags(0)
	golog.SetOutput(l)
	t.Cleanup(func() {
		golog.SetFlags(flags)
		clog.Discard()
	})
	return l
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset forgets what was logged so far.
func (l *lines) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
