package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// answersWithTTL is what a client is answered, as "ADDRESS… ttl TTL".
func answersWithTTL(t *testing.T, addr, name string) string {
	t.Helper()
	r := ask(t, addr, name+".example.com A")
	if len(r.Answer) == 0 {
		return brief(r)
	}
	return fmt.Sprintf("%s ttl %d", brief(r), r.Answer[0].Header().Ttl)
}

// healthCase is a host with services behind it, which are broken and mended.
type healthCase struct {
	name   string // of the host
	checks string
	host   string // options and pools; the first service is at ADDRESS, another one that never breaks at OTHER
	broken string // what is answered then
	held   bool   // still so after it was broken and mended twice
	make   func(t *testing.T, addr string) service
}

const oneOther = "pool a { endpoint ADDRESS; endpoint OTHER up }"

// Every kind of check against real services, which are broken, mended, broken
// and mended again. After each the answers follow.
func TestHealthKinds(t *testing.T) {
	secure, ca := certify(t, "secure.example.com")
	present := filepath.Join(t.TempDir(), "present")
	second := run(t, "example.com:53 {\n gslb {\n region a\n host www.example.com { pool a 192.0.2.1 }\n }\n}\n")
	http := func(t *testing.T, addr string) service { return newWeb(t, addr, nil).service }
	const common = "interval 1s\ntimeout 1s\nfall 2\nrise 2\n"
	cases := []healthCase{
		{"b38-http", "check http {\nhttp :PORT /healthz\n" + common + "}", "check http\n" + oneOther, "OTHER ttl 30", false, http},
		{"https", "check https {\nhttps :PORT /healthz\nauthority secure.example.com\nca " + ca + "\n" + common + "}", "check https\n" + oneOther, "OTHER ttl 30", false,
			func(t *testing.T, addr string) service { return newWeb(t, addr, secure).service }},
		{"tcp", "check tcp {\ntcp :PORT\nexpect body contains ready\n" + common + "}", "check tcp\n" + oneOther, "OTHER ttl 30", false, plainTCP},
		{"dns", "check dns {\ndns www.example.com A\nexpect address 192.0.2.1\n" + common + "}", "check dns\npool a {\nendpoint ADDRESS probe " + second.addr + "\nendpoint OTHER up\n}", "OTHER ttl 30", false,
			func(t *testing.T, addr string) service {
				return service{func() { second.end(t, syscall.SIGKILL) }, func() { second.begin(t) }}
			}},
		{"grpc", "check grpc {\ngrpc :PORT api.v1\n" + common + "}", "check grpc\n" + oneOther, "OTHER ttl 30", false,
			func(t *testing.T, addr string) service { return healthGRPC(t, addr, "api.v1") }},
		{"exec", "check exec {\nexec test -e " + present + "\n" + common + "}", "check exec\n" + oneOther, "OTHER ttl 30", false,
			func(t *testing.T, addr string) service { return presence(t, present) }},
		{"json", "check json {\nhttp :PORT /healthz\nexpect json .lag < 5\n" + common + "}", "check json\n" + oneOther, "OTHER ttl 30", false,
			func(t *testing.T, addr string) service { return newWeb(t, addr, nil).says(`{"lag": 1}`, `{"lag": 7}`) }},
		{"two", "check slow {\nhttp :PORT /slow\n" + common + "}\ncheck lag {\nhttp :PORT /healthz\nexpect json .lag < 5\n" + common + "}", "check slow lag\n" + oneOther, "OTHER ttl 30", false,
			func(t *testing.T, addr string) service { return newWeb(t, addr, nil).says(`{"lag": 1}`, `{"lag": 7}`) }},
		{"b49-region", "", "check http\nmin_healthy 50%\npool a ADDRESS\npool b OTHER", "OTHER ttl 30", false, http},
		{"last-resort", "", "check http\npool a ADDRESS", "ADDRESS ttl 5", false, http},
		{"b66-closed", "", "check http\nlast_resort closed\npool a ADDRESS", "SERVFAIL", false, http},
		{"b66-flapping", "check flapping {\nhttp :PORT /healthz\ninterval 3s\ntimeout 3s\nfall 1\nrise 1\nhold 2 flips\n}", "check flapping\n" + oneOther, "OTHER ttl 30", true, http},
	}
	port := commonPort(t)
	var corefile strings.Builder
	fmt.Fprint(&corefile, "example.com:53 {\n gslb {\n region a { ramp 0s }\n region b { ramp 0s }\n clients rest {\norder a b\n}\n")
	services := make([]service, len(cases))
	fill := func(i int, text string) string {
		return strings.NewReplacer("PORT", port, "ADDRESS", loopback(2*i+11), "OTHER", loopback(2*i+12), "; ", "\n", "{ endpoint", "{\nendpoint", "up }", "up\n}").Replace(text)
	}
	for i, c := range cases {
		services[i] = c.make(t, net.JoinHostPort(loopback(2*i+11), port))
		if strings.Contains(c.host, "pool b") {
			newWeb(t, net.JoinHostPort(loopback(2*i+12), port), nil)
		}
		fmt.Fprintf(&corefile, "%s\nhost %s.example.com {\n%s\n}\n", fill(i, c.checks), c.name, fill(i, c.host))
	}
	fmt.Fprint(&corefile, "}\n}\n")
	s := serve(t, corefile.String())
	whole := func(i int) string {
		if strings.Contains(cases[i].host, "endpoint OTHER") {
			return fill(i, "ADDRESS OTHER ttl 30")
		}
		return fill(i, "ADDRESS ttl 30")
	}
	follow := func(what string, want func(i int) string) {
		t.Helper()
		for i, c := range cases {
			eventually(t, fmt.Sprintf("%s: %s is answered %s, not %s", what, c.name, want(i), answersWithTTL(t, s.addr, c.name)), func() bool {
				return answersWithTTL(t, s.addr, c.name) == want(i)
			})
		}
	}
	lost := func() float64 { return metric(t, "coredns_gslb_lists_last_resort") }
	flapped := func() float64 {
		return metric(t, "coredns_gslb_transitions_total", "check", "flapping", "verdict", "down")
	}
	before := flapped()
	eventually(t, "all are probed and up", func() bool {
		return metric(t, "coredns_gslb_probed_endpoints", "verdict", "unknown") == 0 && metric(t, "coredns_gslb_probed_endpoints", "verdict", "down") == 0
	})
	follow("at first", whole)
	if n := lost(); n != 0 {
		t.Errorf("%v lists have come to the last resort", n)
	}
	for round := range 2 {
		for _, one := range services {
			one.breaks()
		}
		follow("broken", func(i int) string { return fill(i, cases[i].broken) })
		if n := lost(); n != 2 {
			t.Errorf("%v lists have come to the last resort, want those of two hosts", n)
		}
		if n := metric(t, "coredns_gslb_endpoint_state", "endpoint", loopback(11)); n != 0 {
			t.Errorf("the state shown of what is down is %v", n)
		}
		for _, one := range services {
			one.mends()
		}
		follow("mended", func(i int) string {
			if round == 1 && cases[i].held {
				return fill(i, cases[i].broken)
			}
			return whole(i)
		})
	}
	if n := flapped() - before; n != 2 {
		t.Errorf("the flapping one went down %v times, want 2", n)
	}
}

// regionsOf is a Corefile with three regions in order, an HTTP server in each.
func regionsOf(port string, more string) string {
	return fmt.Sprintf(`example.com:53 {
    gslb {
        region a { ramp 0s }
        region b { ramp 0s }
        region c { ramp 0s }
        clients rest { order a b c }
        check web {
            http :%s /healthz
            interval 1s
            timeout 1s
            rise 2
        }
        host www.example.com {
            check web
            pool a %s
            pool b %s
            pool c %s
        }
        %s
    }
}
`, port, loopback(101), loopback(102), loopback(103), more)
}

// b5, b38: answers follow a server that dies, one that fails, once it has failed as
// often as its check says, and one that is back. How long each takes is told: virtual
// time holds it elsewhere, and here the machine may be busy.
func TestHealthDetection(t *testing.T) {
	port := commonPort(t)
	var webs []*web
	for i := range 3 {
		webs = append(webs, newWeb(t, net.JoinHostPort(loopback(101+i), port), nil))
	}
	s := serve(t, regionsOf(port, ""))
	answer := func() string { return answersWithTTL(t, s.addr, "www") }
	until := func(want string) time.Duration {
		t.Helper()
		began := time.Now()
		for got := answer(); got != want; got = answer() {
			if time.Since(began) > deadline {
				t.Fatalf("%s is answered, want %s", got, want)
			}
			time.Sleep(time.Millisecond)
		}
		return time.Since(began)
	}
	eventually(t, "all are up", func() bool { return metric(t, "coredns_gslb_probed_endpoints", "verdict", "up") == 3 })

	webs[0].breaks()
	streak := until(loopback(101) + " ttl 15")
	t.Logf("killed: answers changed after %s", streak+until(loopback(102)+" ttl 30"))

	asked := webs[1].asked.Load()
	webs[1].status.Store(http.StatusInternalServerError)
	until(loopback(103) + " ttl 30")
	if n := webs[1].asked.Load() - asked; n < 3 {
		t.Errorf("answers changed after %d failures, want 3", n)
	}

	asked = webs[0].asked.Load()
	webs[0].mends()
	t.Logf("back: answers changed after %s", until(loopback(101)+" ttl 30"))
	if n := webs[0].asked.Load() - asked; n < 2 {
		t.Errorf("answers changed after %d successes, want 2", n)
	}
	webs[0].status.Store(http.StatusInternalServerError) // a single failure
	until(loopback(101) + " ttl 15")
	webs[0].status.Store(http.StatusOK)
	until(loopback(101) + " ttl 30")
}

// b6, b25, b65, b78: at a cold start nobody is taken for dead, the server gets
// ready once all have been probed, and one that is dead is out soon.
func TestHealthColdStart(t *testing.T) {
	port := commonPort(t)
	silent, err := net.Listen("tcp", net.JoinHostPort(loopback(101), port))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // until then it takes connections, and never answers
	newWeb(t, net.JoinHostPort(loopback(102), port), nil)
	ready := "127.0.0.1:" + freePort(t)
	patient := strings.NewReplacer("gslb {", "ready "+ready+"\n    gslb {", "interval 1s", "interval 1m", "timeout 1s", "timeout 1m\n            fall 1")
	s := serve(t, patient.Replace(regionsOf(port, "")))
	isReady := func() bool {
		resp, err := http.Get("http://" + ready + "/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	if isReady() {
		t.Error("ready before anything was probed")
	}
	if got := answersWithTTL(t, s.addr, "www"); !strings.HasPrefix(got, loopback(101)+" ") || strings.HasSuffix(got, "ttl 5") {
		t.Errorf("before anything was probed: %s", got)
	}
	silent.Close()
	eventually(t, "it is ready", isReady)
	if n := metric(t, "coredns_gslb_probed_endpoints", "verdict", "never_probed"); n != 0 {
		t.Errorf("ready, and %v were never probed", n)
	}
	eventually(t, "the dead one is out", func() bool { return answersWithTTL(t, s.addr, "www") == loopback(102)+" ttl 30" })
}

// b8, b22, b65, b77: reloads in the middle of an outage, good and bad ones. No
// query gets what is known dead, and nothing is left behind.
func TestHealthReload(t *testing.T) {
	useTrouble(t, "file")
	port := commonPort(t)
	other := newWeb(t, net.JoinHostPort(loopback(102), port), nil)
	third := newWeb(t, net.JoinHostPort(loopback(103), port), nil)
	ignore := goleak.IgnoreCurrent()
	state := t.TempDir()
	plain := regionsOf(port, "")
	s, err := start("Corefile", plain)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the outage is known", func() bool { return brief(ask(t, s.addr, "www.example.com A")) == loopback(102) })
	asker := keepAsking(t, s.addr, loopback(102))
	for _, c := range []struct{ name, corefile, want string }{
		{"the same", plain, ""},
		{"more", regionsOf(port, "host more.example.com {\ncheck web\npool a "+loopback(103)+"\n}"), ""},
		{"a bad word", strings.Replace(plain, "pool a", "pol a", 1), "pol"},
		{"b48: a bad word in a check", strings.Replace(plain, "rise 2", "up_tresh 0.3", 1), "up_tresh"},
		{"a later plugin fails", strings.Replace(regionsOf(port, "beacon 127.0.0.1:2"), "gslb {", "trouble startup\n    gslb {", 1), "trouble at startup"},
		{"with other beacons", regionsOf(port, "beacon 127.0.0.1:1"), ""},
		{"with state", regionsOf(port, "state "+state), ""},
		{"no state that can be made", regionsOf(port, "state /dev/null/x"), "state directory: mkdir /dev/null: not a directory: expected one that this process can write to"},
		{"two states", regionsOf(port, "state "+state) + strings.ReplaceAll(regionsOf(port, "state "+state+"/other"), "example.com", "example.net"), "says another directory"},
		{"without state", plain, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := asker.asked.Load()
			err := s.reload(c.corefile)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			for _, net := range []string{"", " +tcp"} {
				if got := brief(s.exchange(t, "www.example.com A"+net)); got != loopback(102) {
					t.Errorf("got %s", got)
				}
			}
			eventually(t, "queries go on", func() bool { return asker.asked.Load() > before+20 })
			if n := metric(t, "coredns_gslb_endpoint_state", "host", "www.example.com.", "endpoint", loopback(101)); n != 0 {
				t.Errorf("the dead one is shown as %v", n)
			}
		})
	}
	asker.stop(t)
	if err := s.reload(strings.Replace(plain, "pool c "+loopback(103), "", 1)); err != nil {
		t.Fatal(err)
	}
	asked, others := third.asked.Load(), other.asked.Load()
	eventually(t, "the others are probed", func() bool { return other.asked.Load() > others+2 })
	if n := third.asked.Load(); n > asked+1 {
		t.Errorf("%d probes of what is not in the Corefile any more", n-asked)
	}
	s.stop()
	nothingLeft(t, ignore)
}

// b10, b77: the process is ended in the middle of an outage, or killed, and
// started again: no query gets what is known dead.
func TestHealthRestart(t *testing.T) {
	t.Parallel()
	port := commonPort(t)
	newWeb(t, net.JoinHostPort(loopback(102), port), nil)
	state := t.TempDir()
	corefile := strings.Replace(regionsOf(port, "state "+state), "gslb {", "errors\n    gslb {", 1)
	p := run(t, corefile)
	eventually(t, "the outage is known", func() bool { return brief(ask(t, p.addr, "www.example.com A")) == loopback(102) })
	eventually(t, "b78: the log tells what the answer shows", func() bool {
		return strings.Contains(p.out.String(), "Check web of "+net.JoinHostPort(loopback(101), port)+" was taken for up and is down: ")
	})
	saved := filepath.Join(state, "verdicts")
	eventually(t, "it is saved", func() bool {
		content, _ := os.ReadFile(saved)
		return strings.Contains(string(content), loopback(101)+":"+port+`","verdict":"down"`)
	})
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p.end(t, signal)
		p.begin(t)
		asker := keepAsking(t, p.addr, loopback(102))
		eventually(t, "queries have come", func() bool { return asker.asked.Load() > 300 })
		asker.stop(t)
	}

	// A damaged file is set aside, and nothing is known; not soon, for once.
	p.end(t, syscall.SIGTERM)
	if err := os.WriteFile(saved, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write(t, strings.Replace(corefile, "interval 1s", "interval 1h\nfall 20", 1)) // not within 19 s
	p.begin(t)
	if got := brief(ask(t, p.addr, "www.example.com A")); got != loopback(101) {
		t.Errorf("got %s, want what is answered when nothing is known", got)
	}
	eventually(t, "the log tells", func() bool { return strings.Contains(p.out.String(), "Saved verdicts can't be read: "+saved) })
	if content, err := os.ReadFile(saved + ".bad"); err != nil || string(content) != "damaged" {
		t.Errorf("the damaged file is not set aside: %q, %v", content, err)
	}
	p.end(t, syscall.SIGTERM)
	p.write(t, corefile)
	p.begin(t)
	eventually(t, "the outage is known again", func() bool { return brief(ask(t, p.addr, "www.example.com A")) == loopback(102) })
}
