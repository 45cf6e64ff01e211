package main

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

// reloadable answers 192.0.2.N, and watches a data file.
func reloadable(n int, more ...string) string {
	return fmt.Sprintf(`example.com:53 {
    gslb {
        geoip country testdata/ipv4only.mmdb
        region a
        host www.example.com { pool a 192.0.2.%d }
    }
    %s
}
`, n, strings.Join(more, "\n"))
}

// watchers is how many goroutines follow data files.
func watchers() int {
	stacks := make([]byte, 1<<22)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "geodb.(*Watcher).Run(")
}

// expectAnswer asks over UDP and TCP: both are served from then on, and CoreDNS
// can be stopped. A server that is stopped before it has begun goes on for ever.
func expectAnswer(t *testing.T, s *server, n int) {
	t.Helper()
	for _, net := range []string{"", " +tcp"} {
		if got, want := brief(s.exchange(t, "www.example.com A"+net)), fmt.Sprintf("192.0.2.%d", n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func expectWatchers(t *testing.T, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d watchers of data files, not %d", want, watchers()), func() bool { return watchers() == want })
}

// b08, b09, b22, b91: reloads under load lose no query and leave nothing behind.
func TestReloads(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	s, err := start("Corefile", reloadable(1))
	if err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, s, 1)
	asker := keepAsking(t, s.addr, "192.0.2.1", "192.0.2.2")
	for i := range 20 {
		asked := asker.asked.Load()
		if err := s.reload(reloadable(2 - i%2)); err != nil {
			t.Fatal(err)
		}
		expectAnswer(t, s, 2-i%2)
		expectWatchers(t, 1)
		eventually(t, "queries go on", func() bool { return asker.asked.Load() > asked })
	}
	asker.stop(t)
	if n := metric(t, "coredns_gslb_plan_info"); n != 1 {
		t.Errorf("%v plans are told of, want the one in use", n)
	}
	s.stop()
	if n := metric(t, "coredns_gslb_plan_info"); n != 0 {
		t.Errorf("%v plans are told of after the end", n)
	}
	nothingLeft(t, ignore)
}

// A reload that fails leaves the old Corefile in service and nothing behind,
// wherever it fails.
func TestReloadFails(t *testing.T) {
	useTrouble(t, "file")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	ignore := goleak.IgnoreCurrent()
	s, err := start("Corefile", reloadable(1))
	if err != nil {
		t.Fatal(err)
	}
	expectAnswer(t, s, 1)
	asker := keepAsking(t, s.addr, "192.0.2.1", "192.0.2.9")
	for _, c := range []struct{ name, corefile, want string }{
		{"bad word", strings.Replace(reloadable(2), "pool a", "pol a", 1), "pol"},
		{"bad file", strings.Replace(reloadable(2), "ipv4only", "missing", 1), "missing.mmdb"},
		{"bad setup of a later plugin", reloadable(2, "file"), "file"},
		{"start of a later plugin fails", reloadable(2, "trouble startup"), "trouble at startup"},
		{"busy port", reloadable(2) + "example.net:" + portOf(busy.Addr().String()) + " {\n bind 127.0.0.1\n whoami\n}\n", "in use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := s.reload(c.corefile)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			expectAnswer(t, s, 1)
			expectWatchers(t, 1)
			if n := metric(t, "coredns_gslb_plan_info"); n != 1 {
				t.Errorf("%v plans are told of, want the one in use", n)
			}
		})
	}
	if err := s.reload(reloadable(9)); err != nil {
		t.Errorf("after the failures: %v", err)
	}
	expectAnswer(t, s, 9)
	expectWatchers(t, 1)
	asker.stop(t)
	s.stop()
	nothingLeft(t, ignore)
}

// Another plugin's error while the old server ends makes caddy call the reload
// failed, though the new server answers. It must go on following its files.
func TestReloadForeignShutdownError(t *testing.T) {
	for _, before := range []string{"gslb", "file"} {
		t.Run("before "+before, func(t *testing.T) {
			useTrouble(t, before)
			ignore := goleak.IgnoreCurrent()
			s, err := start("Corefile", reloadable(1, "trouble shutdown"))
			if err != nil {
				t.Fatal(err)
			}
			expectAnswer(t, s, 1)
			if err := s.reload(reloadable(2)); err == nil || !strings.Contains(err.Error(), "trouble at shutdown") {
				t.Errorf("error %v, want the one of the other plugin", err)
			}
			s.Instance = caddy.Instances()[0] // what really serves
			expectAnswer(t, s, 2)
			expectWatchers(t, 1)
			if n := metric(t, "coredns_gslb_plan_info"); n != 1 {
				t.Errorf("%v plans are told of, want the one in use", n)
			}
			if err := s.reload(reloadable(3)); err != nil {
				t.Fatal(err)
			}
			expectAnswer(t, s, 3)
			expectWatchers(t, 1)
			s.stop()
			nothingLeft(t, ignore)
		})
	}
}

// useTrouble puts a plugin that fails when told to before another directive.
func useTrouble(t *testing.T, before string) {
	t.Helper()
	right := dnsserver.Directives
	dnsserver.Directives = slices.Insert(slices.Clone(right), slices.Index(right, before), "trouble")
	t.Cleanup(func() { dnsserver.Directives = right })
}

func init() {
	caddy.RegisterPlugin("trouble", caddy.Plugin{ServerType: "dns", Action: func(c *caddy.Controller) error {
		c.Next()
		c.NextArg()
		at := c.Val()
		fail := func() error { return errors.New("trouble at " + at) }
		if at == "startup" {
			c.OnStartup(fail)
		} else {
			c.OnShutdown(fail)
		}
		return nil
	}})
}

// asker asks a server without a pause for long, until it is stopped.
type asker struct {
	asked atomic.Int64
	quit  chan struct{}
	done  sync.WaitGroup
	mu    sync.Mutex
	bad   map[string]int // what came back, or not, that was not wanted
}

func keepAsking(t *testing.T, addr string, want ...string) *asker {
	return keepAskingFor(t, addr, "www.example.com A", want...)
}

func keepAskingFor(t *testing.T, addr, question string, want ...string) *asker {
	t.Helper()
	l := &asker{quit: make(chan struct{}), bad: make(map[string]int)}
	q := parseQuery(t, question)
	m := q.msg(t)
	l.done.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-l.quit:
				return
			case <-tick.C:
			}
			m.Id = dns.Id()
			r, err := q.exchange(m, addr)
			got := fmt.Sprint(err)
			if err == nil {
				got = brief(r)
			}
			if !slices.Contains(want, got) {
				l.mu.Lock()
				l.bad[got]++
				l.mu.Unlock()
			}
			l.asked.Add(1)
		}
	})
	return l
}

func (l *asker) stop(t *testing.T) {
	t.Helper()
	close(l.quit)
	began := time.Now()
	l.done.Wait()
	if len(l.bad) > 0 {
		t.Errorf("of %d queries: %v (the last one took %s)", l.asked.Load(), l.bad, time.Since(began))
	}
}
