package gslb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// TestTargetsFollow has a name get other addresses, of which each is probed.
func TestTargetsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := logTo(t)
		w, n := newWorld(), newNames()
		n.set("lb.example.net.", "192.0.2.2 192.0.2.1 ttl 60")
		r := n.resolving(w.registry())
		gen, g := r.mustStart(t, balanced(""))
		defer r.stop(gen)
		wants(t, "before anything is known", g, "api A", "192.0.2.9 ttl 30", "api AAAA", "SERVFAIL", "api TXT", "NOERROR")
		if r.ready() {
			t.Error("ready before the name was asked for")
		}
		settle()
		wants(t, "resolved", g, "api A", "192.0.2.1 192.0.2.2 ttl 30", "api AAAA", "NOERROR")
		later(oneProbe)
		if !r.ready() || w.count("web@192.0.2.1") == 0 {
			t.Error("not ready, or not probed")
		}
		logged.Reset()

		n.set("lb.example.net.", "192.0.2.3 192.0.2.2 ttl 60")
		gone, stays := w.count("web@192.0.2.1"), w.count("web@192.0.2.2")
		later(66 * time.Second)
		wants(t, "other addresses", g, "api A", "192.0.2.2 192.0.2.3 ttl 30")
		wantLog(t, logged, "Target lb.example.net. has other addresses: [192.0.2.2 192.0.2.3], before [192.0.2.1 192.0.2.2]")
		later(20 * time.Second)
		if now := w.count("web@192.0.2.1"); now > gone+7 || w.count("web@192.0.2.3") == 0 {
			t.Errorf("what is gone had %d probes more, what is new %d", now-gone, w.count("web@192.0.2.3"))
		}
		if more := w.count("web@192.0.2.2") - stays; more < 8 || more > 9 {
			t.Errorf("what stays was probed %d times in 86 s", more)
		}

		w.set("192.0.2.2 fail, 192.0.2.3 fail")
		later(fallen)
		wants(t, "all are dead", g, "api A", "192.0.2.9 ttl 30")
		logged.Reset()

		// Alive ones replace them: that is no return after an outage, but what was out
		// of service comes back with what has never failed.
		n.set("lb.example.net.", "192.0.2.4 192.0.2.5 ttl 60")
		later(66 * time.Second)
		wants(t, "replaced", g, "api A", "192.0.2.4 192.0.2.5 ttl 30")

		n.set("lb.example.net.", "192.0.2.4 2001:db8::4 ttl 60")
		later(66 * time.Second)
		wants(t, "AAAA in one region of two", g, "api A", "192.0.2.4 ttl 30", "api AAAA", "NOERROR")
	})
}

// A pool whose addresses are all replaced is not one that was out: nothing ramps, and
// nobody moves.
func TestTargetsReplacedDontRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		r := n.resolving(w.registry())
		n.set("lb.example.net.", "192.0.2.1 ttl 30")
		gen, g := r.mustStart(t, balanced(""))
		defer r.stop(gen)
		later(risen)
		for _, addr := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.4"} {
			n.set("lb.example.net.", addr+" ttl 30")
			for until := time.Now().Add(risen); time.Now().Before(until); later(time.Second) {
				if got := told(t, g, "api A", ""); got != addr+" ttl 30" && !strings.HasPrefix(got, "192.0.2."+string(addr[8]-1)+" ") {
					t.Fatalf("got %s while %s comes", got, addr)
				}
			}
			if part := share(t, g, "api A", addr); part != 1 {
				t.Errorf("%s has %v of the clients", addr, part)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.steering.ramps) > 0 {
			t.Errorf("ramps %v", r.steering.ramps)
		}
	})
}

// TestTargetsFailing has a name fail in every way: it keeps what it had for as long
// as its pool says.
func TestTargetsFailing(t *testing.T) {
	for _, tc := range []struct{ name, says, log string }{
		{"NXDOMAIN", "NXDOMAIN", "the name has no addresses, neither A nor AAAA"},
		{"no data", "ttl 60", "the name has no addresses, neither A nor AAAA"},
		{"SERVFAIL", "SERVFAIL", "SERVFAIL"},
		{"REFUSED", "REFUSED", "REFUSED"},
		{"silence", "silence", "no answer within 2s"},
		{"garbage", "0.0.0.0 ttl 60", "0.0.0.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				w, n := newWorld(), newNames()
				r := n.resolving(w.registry())
				n.set("lb.example.net.", "192.0.2.1 ttl 60")
				n.set("only.example.net.", "192.0.2.7 2001:db8::7 ttl 60")
				gen, g := r.mustStart(t, strings.Replace(balanced(only), "target lb.example.net", "target lb.example.net\nkeep 10m", 1))
				defer r.stop(gen)
				settle()
				logged.Reset()
				n.set("lb.example.net.", tc.says)
				n.set("only.example.net.", tc.says)
				later(75 * time.Second)
				wants(t, "it fails", g, "api A", "192.0.2.1 ttl 30", "only A", "192.0.2.7 ttl 30", "only AAAA", "2001:db8::7 ttl 30")
				wantLog(t, logged, "Target lb.example.net. can't be resolved (", tc.log, "): what it had last serves on, for as long as its pools keep it: [192.0.2.1]")
				later(8*time.Minute + 40*time.Second)
				wants(t, "just kept", g, "api A", "192.0.2.1 ttl 30")
				wantLog(t, logged)
				wantTargets(t, "just kept", r, 1, "")
				later(70 * time.Second)
				wants(t, "too old", g, "api A", "192.0.2.9 ttl 30", "only A", "192.0.2.7 ttl 30")
				wantLog(t, logged, "Host api.example.com.: the targets of region a have no address any more that is young enough, so it serves nobody")
				wantTargets(t, "too old", r, 0, "its target has no address, or none that is known")
				later(50 * time.Minute)
				wants(t, "the other is too old", g, "only A", "SERVFAIL", "only AAAA", "SERVFAIL", "api AAAA", "NOERROR", "api A", "192.0.2.9 ttl 30")
				n.set("lb.example.net.", "192.0.2.2 ttl 60")
				n.set("only.example.net.", "192.0.2.8 ttl 60")
				later(75 * time.Second)
				wants(t, "back", g, "api A", "192.0.2.2 ttl 30", "only A", "192.0.2.8 ttl 30", "only AAAA", "NOERROR")
				wantLog(t, logged, "Target lb.example.net. can be resolved again: [192.0.2.2]")
			})
		})
	}
}

// wantTargets holds how many addresses of lb.example.net the metric counts, and why region a
// of the first host serves nobody by the status.
func wantTargets(t *testing.T, what string, r *registry, n float64, why string) {
	t.Helper()
	seen := make(changes)
	seen.gather(t, r)
	if got := seen["target_addresses v4 lb.example.net"]; len(got) != 1 || !got[n] {
		t.Errorf("%s: addresses are %v, want %v", what, got, n)
	}
	s, err := backend{r, new(ledger)}.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Hosts[0].Regions[0].Why; got != why {
		t.Errorf("%s: region a serves nobody as %q, want %q", what, got, why)
	}
}

// At a cold start without a resolver, nothing is denied that nobody can know, and
// what is written is answered.
func TestTargetsColdStart(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.setDumb("127.0.0.53:53", true)
		r := n.resolving(w.registry())
		gen, g := r.mustStart(t, balanced(only+"host plain.example.com {\npool a 192.0.2.8\n}"))
		if r.ready() {
			t.Error("ready before anything was asked or probed")
		}
		for range 7 {
			wants(t, "without resolvers", g, "only A", "SERVFAIL", "only AAAA", "SERVFAIL", "api A", "192.0.2.9 ttl 30", "plain A", "192.0.2.8 ttl 30", "plain AAAA", "NOERROR")
			later(500 * time.Millisecond)
		}
		m, _ := serve(t, g, ask("only.example.com.", 1, "198.51.100.0/24"))
		if text := m.String(); !strings.Contains(text, "the host's targets can't be resolved") {
			t.Errorf("no reason given:\n%s", text)
		}
		later(time.Minute)
		wants(t, "a minute later", g, "only A", "SERVFAIL", "only AAAA", "SERVFAIL", "api A", "192.0.2.9 ttl 30", "api AAAA", "NOERROR")
		if !r.ready() {
			t.Error("never ready")
		}
		n.setDumb("127.0.0.53:53", false)
		n.set("only.example.net.", "2001:db8::1 ttl 300")
		later(70 * time.Second)
		wants(t, "resolved at last", g, "only A", "NOERROR", "only AAAA", "2001:db8::1 ttl 30")
		r.stop(gen)
		asked := n.count("A only.example.net.")
		later(time.Hour)
		if n.count("A only.example.net.") != asked {
			t.Error("the name is asked for after the end")
		}
	})
	nothingLeft(t, ignore)
}

// Without checks there are no probes to wait for, but names all the same.
func TestTargetsReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("only.example.net.", "silence")
		r := n.resolving(w.registry())
		gen, _ := r.mustStart(t, "gslb {\nregion a\nresolvers 127.0.0.53 127.0.0.54 127.0.0.55 127.0.0.56 127.0.0.57 127.0.0.58 127.0.0.59\n"+strings.Replace(only, "check web\n", "order a\n", 1)+"}")
		defer r.stop(gen)
		later(9 * time.Second)
		if r.ready() {
			t.Error("ready while the first name is asked for")
		}
		later(2 * time.Second)
		if !r.ready() {
			t.Error("it waits longer than its deadline")
		}
	})
}

// One name of two hosts is asked for once; each pool keeps it as long as it says, and
// gives it its own words.
func TestTargetsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), newNames()
		n.set("lb.example.net.", "192.0.2.1 192.0.2.2 ttl 60")
		r := n.resolving(w.registry())
		gen, gs, err := r.startTexts(t, balanced(`host two.example.com {
	check web
	pool a {
		target lb.example.net drain
	}
	pool b {
		target LB.example.net weight 3 probe :8443
		endpoint 192.0.2.2
		answers 1
		keep 0s
	}
}`), balanced(""))
		if err != nil {
			t.Fatal(err)
		}
		defer r.stop(gen)
		settle()
		wants(t, "drained in a", gs[0], "api A", "192.0.2.1 192.0.2.2 ttl 30")
		if part := share(t, gs[0], "two A", "192.0.2.1"); part < 0.7 || part > 0.8 {
			t.Errorf("the target's own address has %v of the clients, want three quarters", part)
		}
		if n.count("A lb.example.net.") != 1 || n.count("AAAA lb.example.net.") != 1 {
			t.Errorf("asked %d times", n.count("A lb.example.net."))
		}
		n.set("lb.example.net.", "SERVFAIL")
		later(10 * time.Minute)
		wants(t, "kept by one", gs[0], "api A", "192.0.2.1 192.0.2.2 ttl 30", "two A", "192.0.2.2 ttl 30")
		later(time.Hour)
		wants(t, "kept by none", gs[0], "api A", "192.0.2.9 ttl 30", "two A", "192.0.2.2 ttl 30")
	})
}

// TestLawHearsOfTargets has a region lose all addresses of its target: the law doesn't wait
// for its period to hear of that.
func TestLawHearsOfTargets(t *testing.T) {
	p := newPlant(t, 60)
	synctest.Test(t, func(t *testing.T) {
		n := newNames()
		n.set("lb.example.net.", "192.0.2.1 ttl 60")
		r := n.resolving(newWorld().registry())
		block := strings.Replace(p.block(""), "gslb {", "gslb {\n\tresolvers 127.0.0.53", 1)
		block = strings.Replace(block, "pool eu 192.0.2.1", "pool eu {\n\t\t\ttarget lb.example.net\n\t\t\tkeep 2m\n\t\t}", 1)
		p.write(t)
		gen, g := r.mustStart(t, strings.ReplaceAll(block, "every 5s", "every 60s"))
		defer r.stop(gen)
		later(3 * time.Minute)
		wants(t, "before", g, "api A", "192.0.2.1 ttl 30")
		n.set("lb.example.net.", "SERVFAIL")
		for told(t, g, "api A", "") == "192.0.2.1 ttl 30" {
			later(time.Millisecond)
		}
		left := time.Now()
		later(2 * beat)
		r.mu.Lock()
		defer r.mu.Unlock()
		if late := left.Sub(r.steering.law.stepped); late > 5*time.Millisecond {
			t.Errorf("no step of the law since %s before the region was left", late)
		}
	})
}
