package probe

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// fleet is the probed world: every endpoint passes at once unless it is told
// otherwise, and every probe is written down.
type fleet struct {
	mu      sync.Mutex
	begun   map[Target][]time.Time
	results map[netip.Addr]Result
	delay   map[netip.Addr]time.Duration
	hang    map[netip.Addr]chan struct{} // until closed, whatever the context says
	running int
	most    int
	made    int
	closed  int
	changes []Notice
	told    []time.Time
}

func newFleet() *fleet {
	return &fleet{
		begun: map[Target][]time.Time{}, results: map[netip.Addr]Result{},
		delay: map[netip.Addr]time.Duration{}, hang: map[netip.Addr]chan struct{}{},
	}
}

func (f *fleet) set(addr netip.Addr, r Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results[addr] = r
}

// slow has the probes of an endpoint take some time.
func (f *fleet) slow(i int, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay[addrOf(i)] = d
}

// stick has the probes of an endpoint hang until a channel is closed.
func (f *fleet) stick(i int, until chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hang[addrOf(i)] = until
}

func (f *fleet) setAll(n int, r Result) {
	for i := range n {
		f.set(addrOf(i), r)
	}
}

func (f *fleet) prepare(c *check.Check) (*Runner, error) {
	if c.Kind == check.ICMP {
		return nil, errors.New("no ping here")
	}
	f.made++
	return &Runner{Probe: f.probe, Close: func() { f.closed++ }}, nil
}

func (f *fleet) probe(ctx context.Context, t Target) Result {
	f.mu.Lock()
	f.begun[t] = append(f.begun[t], time.Now())
	f.running++
	f.most = max(f.most, f.running)
	r, delay, hang := f.results[t.Addr], f.delay[t.Addr], f.hang[t.Addr]
	f.mu.Unlock()
	switch {
	case hang != nil:
		<-hang
	case delay > 0:
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	return r
}

func (f *fleet) changed(n Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, n)
	f.told = append(f.told, time.Now())
}

// notices gives those told so far.
func (f *fleet) notices() []Notice {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.changes)
}

func (f *fleet) lastNotice() Notice {
	all := f.notices()
	return all[len(all)-1]
}

// lastTold is when the last of them was.
func (f *fleet) lastTold() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[len(f.told)-1]
}

func (f *fleet) times(i int) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.begun[Target{Addr: addrOf(i)}])
}

func (f *fleet) options() Options {
	return Options{New: f.prepare, Changed: f.changed}
}

func addrOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func acquire(t testing.TB, s *Scheduler, c *check.Check, i int) *Probe {
	t.Helper()
	p, err := s.Acquire(c, Target{Addr: addrOf(i)}, "api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// after lets time pass in a bubble, and all that comes with it.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
