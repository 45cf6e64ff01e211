package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// server stands in for HTTP: no sockets, and time is virtual.
type server struct {
	mu      sync.Mutex
	begun   map[string][]time.Time // by path
	running int
	most    int
	takes   time.Duration
	hangs   bool
	answer  func(path string) (string, error)
}

func newServer(answer func(path string) (string, error)) *server {
	return &server{begun: map[string][]time.Time{}, answer: answer}
}

func always(text string) func(string) (string, error) {
	return func(string) (string, error) { return text, nil }
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.begun[r.URL.Path] = append(s.begun[r.URL.Path], time.Now())
	s.running++
	s.most = max(s.most, s.running)
	takes, hangs, answer := s.takes, s.hangs, s.answer
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.running--; s.mu.Unlock() }()
	if hangs {
		takes = time.Hour
	}
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	text, err := answer(r.URL.Path)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(text)), Request: r}, err
}

func (s *server) times(path string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[path]
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func source(path string, every time.Duration) Source {
	return Source{Kind: JSON, URL: "http://load.test" + path, Path: ".", Every: every}
}

func acquire(t testing.TB, p *Poller, s Source) *Signal {
	t.Helper()
	g, err := p.Acquire(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestPollerTimes(t *testing.T) {
	places := func(every time.Duration) (all []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(always("1"))
			p := NewPoller(Options{Transport: s, Concurrency: 1000})
			defer p.Close()
			start := time.Now()
			const n = 200
			for i := range n {
				acquire(t, p, source(fmt.Sprint("/", i), every))
			}
			after(firstRound)
			for i := range n {
				if times := s.times(fmt.Sprint("/", i)); len(times) < 1 {
					t.Errorf("%d is not read in the first second", i)
				}
			}
			after(10*every - firstRound)
			in := make([]int, 4) // by quarters of the period
			for i := range n {
				times := s.times(fmt.Sprint("/", i))
				if len(times) < 10 || len(times) > 12 {
					t.Errorf("%d is read %d times in 10 periods", i, len(times))
				}
				for j := 2; j < len(times); j++ {
					if gap := times[j].Sub(times[j-1]); gap != every {
						t.Fatalf("%d: %v between two readings", i, gap)
					}
				}
				place := times[1].Sub(start) % every
				in[4*place/every]++
				all = append(all, place)
			}
			t.Logf("every %v: %v", every, in)
			for _, count := range in {
				if count < n/8 || count > n/2 {
					t.Errorf("readings are not spread: %v", in)
				}
			}
		})
		return all
	}
	for _, every := range []time.Duration{MinEvery, 15 * time.Second, MaxEvery} {
		one, two := places(every), places(every)
		if fmt.Sprint(one) != fmt.Sprint(two) {
			t.Errorf("every %v: another process reads at other times", every)
		}
	}
}

func TestPollerKeepsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(always("40"))
		p := NewPoller(Options{Transport: s})
		defer p.Close()
		const every = 15 * time.Second
		g := acquire(t, p, source("/", every))
		if r := g.Reading(); r.OK() || r.Err != nil {
			t.Errorf("before the first: %+v", r)
		}
		after(firstRound)
		good := g.Reading()
		if age, ok := good.Age(time.Now()); good.Value != 40 || good.Err != nil || !ok || age > firstRound {
			t.Fatalf("%+v, age %v", good, age)
		}
		after(2 * every)
		good = g.Reading()
		s.set(func() { s.answer = func(string) (string, error) { return "", errors.New("cut") } })
		after(5 * every)
		r := g.Reading()
		age, _ := r.Age(time.Now())
		if r.Value != 40 || r.At != good.At || r.Err == nil || r.Failures != 5 || age <= 5*every || age > 6*every {
			t.Errorf("%+v, age %v", r, age)
		}
		s.set(func() { s.answer = always("-1") })
		after(every)
		if r := g.Reading(); r.Value != 40 || r.Failures != 6 || r.Err.Error() != "the value is -1, expected none below 0" {
			t.Errorf("%+v", r)
		}
		s.set(func() { s.answer = always("41") })
		after(every)
		if r := g.Reading(); r.Value != 41 || r.Failures != 0 || r.Err != nil {
			t.Errorf("%+v", r)
		}
	})
}

func TestPollerTimesOut(t *testing.T) {
	for every, timeout := range map[time.Duration]time.Duration{2 * time.Second: 2 * time.Second, time.Minute: maxTimeout} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(always("1"))
			s.hangs = true
			p := NewPoller(Options{Transport: s})
			defer p.Close()
			g := acquire(t, p, source("/", every))
			after(20 * every)
			times := s.times("/")
			want := 20
			if timeout == every { // every second slot is missed
				want = 10
			}
			if len(times) < want || len(times) > want+1 {
				t.Errorf("every %v: %d readings", every, len(times))
			}
			if r := g.Reading(); r.OK() || r.Err.Error() != "no answer within "+timeout.String() {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestPollerShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(always("1"))
		p := NewPoller(Options{Transport: s})
		defer p.Close()
		every := 10 * time.Second
		a, b := acquire(t, p, source("/", every)), acquire(t, p, source("/", every))
		other := acquire(t, p, source("/", 2*every))
		if a != b || a == other {
			t.Error("equal sources are one signal, others aren't")
		}
		after(25 * time.Second)
		was := a.Reading()
		// A reload: the new comes before the old goes.
		c := acquire(t, p, source("/", every))
		a.Release()
		b.Release()
		if c != a || c.Reading() != was {
			t.Error("a reload changed something")
		}
		n := len(s.times("/"))
		other.Release()
		after(100 * time.Second)
		if got := len(s.times("/")) - n; got != 10 {
			t.Errorf("%d readings in 10 periods", got)
		}
		c.Release()
		c.Release()
		n = len(s.times("/"))
		after(time.Hour)
		if got := len(s.times("/")) - n; got != 0 {
			t.Errorf("%d readings after the last release", got)
		}
		if d := acquire(t, p, source("/", every)); d == c || d.Reading().OK() {
			t.Error("what was released is forgotten")
		}
	})
}

func TestPollerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(always("1"))
		s.takes = 10 * time.Millisecond
		p := NewPoller(Options{Transport: s, Concurrency: 3})
		defer p.Close()
		var all []*Signal
		for i := range 500 {
			all = append(all, acquire(t, p, source(fmt.Sprint("/", i), 10*time.Second)))
		}
		after(10 * time.Second)
		if s.most != 3 {
			t.Errorf("%d at once", s.most)
		}
		for _, g := range all {
			if !g.Reading().OK() {
				t.Errorf("%s was not read", g.Source())
			}
		}
	})
}

func TestPollerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(always("1"))
		s.hangs = true
		p := NewPoller(Options{Transport: s, Concurrency: 1})
		g, h := acquire(t, p, source("/a", time.Minute)), acquire(t, p, source("/b", time.Minute))
		after(firstRound) // one is read, the other waits
		if len(s.times("/a")) == 0 {
			g, h = h, g
		}
		h.Release() // before the slot that it waits for is free
		after(0)
		g.Release()
		after(0)
		for _, released := range []*Signal{g, h} {
			if r := released.Reading(); r.Err != nil || r.OK() {
				t.Errorf("a reading of what was released: %+v", r)
			}
		}
		h = acquire(t, p, source("/b", time.Minute))
		after(firstRound)
		if s.running != 1 {
			t.Errorf("%d are read", s.running)
		}
		begin := time.Now()
		p.Close()
		p.Close()
		if time.Since(begin) != 0 {
			t.Errorf("closing took %v", time.Since(begin))
		}
		if _, err := p.Acquire(source("/c", time.Minute)); err == nil {
			t.Error("acquired from a closed poller")
		}
		h.Release()
		after(time.Hour)
		if n := len(s.times("/a")) + len(s.times("/b")); n != 2 {
			t.Errorf("%d readings", n)
		}
		if _, err := p.Acquire(Source{}); err == nil {
			t.Error("no error")
		}
	})
}

// TestPollerClosesBeforeHangingReaders has a reader that no context ends.
func TestPollerClosesBeforeHangingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPoller(Options{})
		end := make(chan struct{})
		g := acquire(t, p, Source{Kind: File, File: "/nowhere", Every: time.Minute})
		p.mu.Lock()
		g.read = func(context.Context) (measure, error) { <-end; return measure{}, nil }
		p.mu.Unlock()
		after(firstRound)
		begin := time.Now()
		p.Close()
		if took := time.Since(begin); took != maxTimeout {
			t.Errorf("closing took %v", took)
		}
		close(end)
		synctest.Wait()
	})
}

func TestPollerBelievesNoTimeAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil)
		p := NewPoller(Options{Transport: s})
		defer p.Close()
		sample := time.Duration(0) // of the sample's time from now
		s.answer = func(string) (string, error) {
			return fmt.Sprintf("busy 3 %d\n", time.Now().Add(sample).UnixMilli()), nil
		}
		g := acquire(t, p, Source{Kind: Metric, URL: "http://load.test/", Metric: "busy", Every: time.Second})
		answer := s.answer
		for _, d := range []time.Duration{-time.Minute, time.Hour} {
			s.set(func() { sample, s.answer = d, answer })
			after(2 * time.Second)
			s.set(func() { s.answer = always("") })
			after(10 * time.Second)
			age, ok := g.Reading().Age(time.Now())
			if want := max(0, -d) + 10*time.Second; !ok || age < want || age >= want+time.Second+time.Millisecond {
				t.Errorf("%v off: age %v, want %v", d, age, want)
			}
		}
	})
}

func TestFileGoesStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "load")
	write := func(text string, at time.Time) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := NewPoller(Options{})
		defer p.Close()
		start := time.Now()
		write("7\n", start)
		g := acquire(t, p, Source{Kind: File, File: path, Score: false, Every: time.Second})
		after(100 * time.Second)
		r := g.Reading()
		if age, _ := r.Age(time.Now()); r.Value != 7 || r.Err != nil || age != 100*time.Second {
			t.Errorf("%+v, age %v", r, age)
		}
		write("8\n", time.Now())
		after(time.Second)
		if r := g.Reading(); r.Value != 8 || r.At.Sub(start) != 100*time.Second {
			t.Errorf("%+v", r)
		}
	})
}
