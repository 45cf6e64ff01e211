package gslb

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
)

// healthStep sets what probes find, waits, and holds what a client is answered.
type healthStep struct {
	what, set string
	wait      time.Duration
	want      string
}

// TestHealthInAnswers plays what happens to endpoints, and asks.
func TestHealthInAnswers(t *testing.T) {
	const (
		two    = "host api.example.com {\ncheck web\n%s\npool a 192.0.2.1 192.0.2.2\npool b 192.0.2.3\n}"
		both   = "192.0.2.1 192.0.2.2 ttl 30"
		second = "192.0.2.2 ttl 30"
	)
	host := func(options string) string { return fmt.Sprintf(two, options) }
	for _, tc := range []struct {
		name, block, question string
		steps                 []healthStep
	}{
		{"one dies and comes back", host(""), "api A", []healthStep{
			{"at first", "", 0, both},
			{"all well", "", oneProbe, both},
			{"a streak", "192.0.2.1 fail", oneProbe, "192.0.2.1 192.0.2.2 ttl 15"},
			{"down", "", fallen, second},
			{"a streak up", "192.0.2.1 pass", oneProbe, "192.0.2.2 ttl 15"},
			{"up", "", risen, both},
		}},
		{"b5: a single failure", host(""), "api A", []healthStep{
			{"all well", "", oneProbe, both},
			{"a failure", "192.0.2.1 fail", oneProbe, "192.0.2.1 192.0.2.2 ttl 15"},
			{"and none", "192.0.2.1 pass", oneProbe, both},
		}},
		{"a streak elsewhere is none here", host(""), "api A", []healthStep{
			{"all well", "", oneProbe, both},
			{"in b", "192.0.2.3 fail", oneProbe, both},
		}},
		{"ttl_floor", host("ttl 20\nttl_floor 12"), "api A", []healthStep{
			{"all well", "", oneProbe, "192.0.2.1 192.0.2.2 ttl 20"},
			{"a streak", "192.0.2.1 fail", oneProbe, "192.0.2.1 192.0.2.2 ttl 12"},
			{"last resort", "192.0.2.2 fail, 192.0.2.3 fail", fallen, "192.0.2.1 192.0.2.2 ttl 12"},
		}},
		{"ttl_floor off", host("ttl_floor off"), "api A", []healthStep{
			{"all well", "", oneProbe, both},
			{"a streak", "192.0.2.1 fail", oneProbe, both},
			{"last resort", "192.0.2.2 fail, 192.0.2.3 fail", fallen, both},
		}},
		{"a region dies", host(""), "api A", []healthStep{
			{"next", "192.0.2.1 fail, 192.0.2.2 fail", fallen, "192.0.2.3 ttl 30"},
			{"last resort", "192.0.2.3 fail", fallen, "192.0.2.1 192.0.2.2 ttl 5"},
			{"one is back", "192.0.2.3 pass", risen, "192.0.2.3 ttl 30"},
		}},
		{"b66: last_resort closed", host("last_resort closed"), "api A", []healthStep{
			{"all down", "192.0.2.1 fail, 192.0.2.2 fail, 192.0.2.3 fail", fallen, "SERVFAIL"},
		}},
		{"b47, b49: min_healthy", "host api.example.com {\ncheck web\npool a {\nendpoint 192.0.2.1\nendpoint 192.0.2.2\nmin_healthy 2\n}\npool b 192.0.2.3\n}", "api A", []healthStep{
			{"enough", "", oneProbe, both},
			{"too few", "192.0.2.1 fail", fallen, "192.0.2.3 ttl 30"},
			{"none elsewhere", "192.0.2.3 fail", fallen, "192.0.2.1 192.0.2.2 ttl 5"},
		}},
		{"the worst of two checks", "check db {\ntcp :5432\n}\nhost api.example.com {\ncheck web db\npool a 192.0.2.1 192.0.2.2\n}", "api A", []healthStep{
			{"all well", "", oneProbe, both},
			{"one check", "db@192.0.2.1 fail", fallen, second},
			{"both checks", "web@192.0.2.1 fail", fallen, second},
			{"the other one", "db@192.0.2.1 pass", risen, second},
			{"none", "web@192.0.2.1 pass", risen, both},
			{"a streak of the second", "db@192.0.2.1 fail", oneProbe, "192.0.2.1 192.0.2.2 ttl 15"},
			{"and of none", "db@192.0.2.1 pass", oneProbe, both},
			{"full is better than down", "db@192.0.2.1 full, web@192.0.2.1 fail", fallen, second},
		}},
		{"one probe, two hosts", "host api.example.com {\ncheck web\npool a 192.0.2.1 192.0.2.2\n}\nhost www.example.com {\ncheck web\npool a 192.0.2.1\n}", "api A", []healthStep{
			{"dead to both", "192.0.2.1 fail", fallen, second},
		}},
		{"a pool's own check", "check db {\ntcp :5432\n}\nhost api.example.com {\ncheck web\npool a {\nendpoint 192.0.2.1\nendpoint 192.0.2.2\ncheck db\n}\n}", "api A", []healthStep{
			{"not asked", "web@192.0.2.1 fail", fallen, both},
			{"asked", "db@192.0.2.1 fail", fallen, second},
		}},
		{"what is written", "host api.example.com {\ncheck web\npool a {\nendpoint 192.0.2.1 up\nendpoint 192.0.2.2 down\nendpoint 192.0.2.4 drain\nendpoint 192.0.2.5\n}\n}", "api A", []healthStep{
			{"all pass", "", oneProbe, "192.0.2.1 192.0.2.5 ttl 30"},
			{"all fail", "192.0.2.1 fail, 192.0.2.2 fail, 192.0.2.4 fail, 192.0.2.5 fail", fallen, "192.0.2.1 ttl 30"},
		}},
		{"b50: an endpoint without a check", "host api.example.com {\ncheck web\npool a {\nendpoint 192.0.2.1\ncheck web\n}\n}\nhost raw.example.com {\npool a 192.0.2.1\n}", "raw A", []healthStep{
			{"dead to others", "192.0.2.1 fail", fallen, "192.0.2.1 ttl 30"},
		}},
		{"families apart", "host api.example.com {\ncheck web\npool a 192.0.2.1 2001:db8:a::1\npool b 192.0.2.3 2001:db8:b::1\n}", "api AAAA", []healthStep{
			{"IPv4 is down", "192.0.2.1 fail", fallen, "2001:db8:a::1 ttl 30"},
			{"IPv6 is down", "2001:db8:a::1 fail", fallen, "2001:db8:b::1 ttl 30"},
		}},
		{"probe elsewhere", "host api.example.com {\ncheck web\npool a {\nendpoint 192.0.2.1 probe 10.0.0.1:81\nendpoint 192.0.2.2\n}\n}", "api A", []healthStep{
			{"its own address", "192.0.2.1 fail", fallen, both},
			{"the other one", "10.0.0.1 fail", fallen, second},
		}},
		{"initial down", "check new {\nhttp :80 /\ninitial down\nrise 2\n}\nhost api.example.com {\ncheck new\npool a 192.0.2.1 192.0.2.2\n}", "api A", []healthStep{
			{"at first", "192.0.2.2 fail", 0, "192.0.2.1 192.0.2.2 ttl 5"},
			{"after rise", "", 25 * time.Second, "192.0.2.1 ttl 30"},
		}},
		{"initial up", "check new {\nhttp :80 /\ninitial up\n}\nhost api.example.com {\ncheck new\npool a 192.0.2.1 192.0.2.2\n}", "api A", []healthStep{
			{"at first", "192.0.2.2 fail", 0, both},
			{"dead from the start", "", 15 * time.Second, "192.0.2.1 ttl 30"},
		}},
		{"b78: one is dead at the start", host(""), "api A", []healthStep{
			{"at first", "192.0.2.1 fail", 0, both},
			{"soon", "", 15 * time.Second, second},
		}},
		{"b77: a prober dies", host(""), "api A", []healthStep{
			{"one is down", "192.0.2.1 fail", fallen, second},
			{"its prober dies", "192.0.2.1 stuck", 30 * time.Second, second},
			{"last verdict for initial last", "", 5 * time.Minute, second},
			{"but not for ever", "", 6 * time.Minute, both},
		}},
		{"b20: a slow endpoint delays no other", host(""), "api A", []healthStep{
			{"it hangs", "192.0.2.2 stuck", time.Minute, both},
			{"another dies", "192.0.2.1 fail", fallen, second},
		}},
		{"b66: flapping", "check flappy {\nhttp :80 /\nfall 1\nrise 1\nhold 2 flips\n}\nhost api.example.com {\ncheck flappy\npool a 192.0.2.1 192.0.2.2\n}", "api A", []healthStep{
			{"well", "", oneProbe, both},
			{"down", "192.0.2.1 fail", oneProbe, second},
			{"up", "192.0.2.1 pass", oneProbe, both},
			{"down again", "192.0.2.1 fail", oneProbe, second},
			{"held", "192.0.2.1 pass", 10 * time.Minute, second},
			{"forgiven within the hour", "", time.Hour, both},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				defer close(w.over)
				r := w.registry()
				gen, g := r.mustStart(t, probed(tc.block))
				defer r.stop(gen)
				for _, s := range tc.steps {
					w.set(s.set)
					time.Sleep(s.wait)
					synctest.Wait()
					if got := told(t, g, tc.question, ""); got != s.want {
						t.Errorf("%s: got %s, want %s", s.what, got, s.want)
					}
				}
			})
		})
	}
}

// TestHealthShares holds which part of the clients a region takes.
func TestHealthShares(t *testing.T) {
	const (
		four  = "host api.example.com {\ncheck web\nanswers all\n%s\npool a 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4\npool b 192.0.2.9\n}"
		three = "host api.example.com {\ncheck web\n%s\npool a 192.0.2.1\npool b 192.0.2.8\npool c 192.0.2.9\n}"
	)
	for _, tc := range []struct {
		name, block, options, set string
		shares                    map[string]float64 // by the first address of the answer
	}{
		{"half is enough", four, "", "192.0.2.1 fail, 192.0.2.2 fail", map[string]float64{"192.0.2.3": 1}},
		{"a quarter takes half", four, "", "192.0.2.1 fail, 192.0.2.2 fail, 192.0.2.3 fail", map[string]float64{"192.0.2.4": 0.5, "192.0.2.9": 0.5}},
		{"spill_below 100%", four, "spill_below 100%", "192.0.2.1 fail", map[string]float64{"192.0.2.2": 0.75, "192.0.2.9": 0.25}},
		{"spill_below 0%", four, "spill_below 0%", "192.0.2.1 fail, 192.0.2.2 fail, 192.0.2.3 fail", map[string]float64{"192.0.2.4": 1}},
		{"nowhere to spill to", four, "spill_below 100%", "192.0.2.1 fail, 192.0.2.9 fail", map[string]float64{"192.0.2.2": 1}},
		{"all full", four, "", "192.0.2.1 full, 192.0.2.2 full, 192.0.2.3 full, 192.0.2.4 full", map[string]float64{"192.0.2.1": 0.5, "192.0.2.9": 0.5}},
		{"one full", four, "", "192.0.2.1 full", map[string]float64{"192.0.2.1": 0.875, "192.0.2.9": 0.125}},
		{"two of three down", three, "", "192.0.2.1 fail, 192.0.2.8 fail", map[string]float64{"192.0.2.9": 1}},
		{"max_down 34%", three, "max_down 34%", "192.0.2.8 fail", map[string]float64{"192.0.2.1": 1}},
		{"max_down 0%", three, "max_down 0%", "192.0.2.1 fail, 192.0.2.8 fail", map[string]float64{"192.0.2.1": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				r := w.registry()
				gen, g := r.mustStart(t, probed(fmt.Sprintf(tc.block, tc.options)))
				defer r.stop(gen)
				time.Sleep(oneProbe)
				w.set(tc.set)
				time.Sleep(fallen)
				synctest.Wait()
				for addr, want := range tc.shares {
					if got := share(t, g, "api A", addr); got < want-0.05 || got > want+0.05 {
						t.Errorf("%s: %v of the clients, want %v", addr, got, want)
					}
				}
			})
		})
	}
}

// TestMaxDownKeepsTheLatest has two regions of three fail, one after the other:
// the one that failed last stays, and its clients with it.
func TestMaxDownKeepsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, probed("host api.example.com {\ncheck web\nmax_down 34%\npool a 192.0.2.1\npool b 192.0.2.2\npool c 192.0.2.3\n}"))
		defer r.stop(gen)
		time.Sleep(oneProbe)
		for _, s := range []healthStep{
			{"one", "192.0.2.1 fail", fallen, "192.0.2.2"},
			{"two", "192.0.2.2 fail", fallen, "192.0.2.2"},
			{"three", "192.0.2.3 fail", fallen, "192.0.2.2"},
			{"the first is back", "192.0.2.1 pass", risen + 10*30*time.Second, "192.0.2.1"},
		} {
			w.set(s.set)
			time.Sleep(s.wait)
			synctest.Wait()
			if got := told(t, g, "api A", ""); got != s.want+" ttl 30" {
				t.Errorf("%s: got %s, want %s", s.what, got, s.want)
			}
		}
	})
}

// TestHealthBesideReload has verdicts and plans change at once: neither may undo
// the other.
func TestHealthBesideReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		gen, g := r.mustStart(t, probed("host api.example.com {\ncheck web\npool a 192.0.2.1 192.0.2.2\n}"))
		defer r.stop(gen)
		var news []probe.Change
		for _, l := range g.health.leases {
			news = append(news, probe.Change{Probe: l.probe})
		}
		for range 200 {
			p, err := plan.Compile(g.block, g.live.Load().plan.Data, g.options)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					r.mu.Lock()
					defer r.mu.Unlock()
					g.healthChanged(news)
				})
			}
			r.mu.Lock()
			g.use(p, time.Now(), 0)
			r.mu.Unlock()
			wg.Wait()
			if g.live.Load().plan != p {
				t.Fatal("an old plan is back")
			}
		}
	})
}

// TestReadyAfterFirstRound holds when the server is ready: once every endpoint
// was probed, or at the deadline.
func TestReadyAfterFirstRound(t *testing.T) {
	const text = "host api.example.com {\ncheck web\npool a 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4\n}"
	for _, tc := range []struct {
		name, set string
		ready     time.Duration // at the latest
		early     time.Duration // not yet then
	}{
		{"b6, b25, b65: all are probed", "192.0.2.1 fail", 10 * time.Second, 0},
		{"one never answers", "192.0.2.1 stuck", 13 * time.Second, 13*time.Second - time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				defer close(w.over)
				r := w.registry()
				w.set(tc.set)
				gen, g := r.mustStart(t, probed(text))
				defer r.stop(gen)
				if r.ready() {
					t.Error("ready before any probe")
				}
				if got := told(t, g, "api A", ""); got != "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 ttl 30" {
					t.Errorf("before any probe: %s", got)
				}
				time.Sleep(tc.early)
				if r.ready() {
					t.Errorf("ready after %s", tc.early)
				}
				time.Sleep(tc.ready - tc.early)
				synctest.Wait()
				if !r.ready() {
					t.Errorf("not ready after %s", tc.ready)
				}
			})
		})
	}
}
