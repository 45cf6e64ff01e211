package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// TestControlConcurrent makes changes from several sides at once, of levers of their
// own and of one that all want: all are made, one after the other, and answers follow.
func TestControlConcurrent(t *testing.T) {
	o := newOperator(t)
	s := serve(t, o.controlled(controlledHost))
	var all sync.WaitGroup
	for i, region := range []string{"a", "b", "c"} {
		all.Go(func() {
			for n := range 4 {
				for _, body := range []string{
					fmt.Sprintf(`{"lever":"dial","region":%q,"value":%d,"never":true,"why":"test"}`, region, 25*(n+1)),
					fmt.Sprintf(`{"lever":"trickle","region":"a","value":%d,"never":true,"why":"test"}`, i+1),
				} {
					if code, f := o.post(t, aliceToken, "changes", body); code != 200 && !strings.Contains(f.Error, "already") {
						t.Errorf("%s: %d %+v", body, code, f)
					}
				}
				if code, f := o.post(t, aliceToken, "whatif", `{"lever":"drain","region":"a","never":true,"why":"test"}`); code != 200 {
					t.Errorf("what if: %d %+v", code, f)
				}
			}
		})
	}
	all.Go(func() {
		for range 300 {
			if got := brief(s.exchange(t, "api.example.com A +subnet=16.0.7.0/24")); !strings.HasPrefix(got, "192.0.2.") {
				t.Errorf("answered %s", got)
			}
		}
	})
	all.Wait()
	list := reply[control.OverrideList](t, o, "overrides").Overrides
	if len(list) != 1 || list[0].Lever != control.Trickle { // a dial of 100% takes the others back
		t.Errorf("at the end there are %+v", list)
	}
	if n := len(reply[control.AuditList](t, o, "audit -limit 1000").Entries); n != 24 {
		t.Errorf("%d entries in the audit log", n)
	}
}

// An endpoint that says `return manual` waits until somebody lets it back.
func TestControlReturn(t *testing.T) {
	o := newOperator(t)
	port := commonPort(t)
	w := newWeb(t, net.JoinHostPort(loopback(70), port), nil)
	s := serve(t, o.controlled(fmt.Sprintf(`
  check web {
   http :%s /healthz
   interval 3s
   timeout 3s
   fall 1
   rise 1
   return manual
  }
  host api.example.com {
   check web
   pool a {
    endpoint %s
    ramp 0s
   }
   pool b {
    endpoint 192.0.2.2 up
   }
  }`, port, loopback(70))))
	answers := func(want string) func() bool {
		return func() bool { return brief(s.exchange(t, "api.example.com A +subnet=16.0.7.0/24")) == want }
	}
	if f := o.refused(t, "return "+loopback(70)+" web -why test"); !strings.Contains(f.Error, "waits for nobody") {
		t.Errorf("before: %+v", f)
	}
	w.breaks()
	eventually(t, "it is down", answers("192.0.2.2 /16"))
	w.mends()
	waiting := func() bool {
		for _, r := range reply[control.Status](t, o, "status").Hosts[0].Regions {
			for _, e := range r.Endpoints {
				if len(e.Returnable) == 1 && e.Returnable[0] == "web" && e.State == "down" && r.Name == "a" {
					return true
				}
			}
		}
		return false
	}
	eventually(t, "it waits", waiting)
	if !answers("192.0.2.2 /16")() {
		t.Error("it is back by itself")
	}
	for line, want := range map[string]string{"return 192.0.2.9 web": "no probe", "return " + loopback(70) + " other": "no probe"} {
		if f := o.refused(t, line+" -why test"); f.Code == "" || !strings.Contains(f.Error, want) {
			t.Errorf("%s: %+v", line, f)
		}
	}
	if back := reply[control.Returned](t, o, "return "+loopback(70)+" web -why mended"); back.Check != "web" {
		t.Errorf("%+v", back)
	}
	eventually(t, "it is back", answers(loopback(70)+" /16"))
	entries := reply[control.AuditList](t, o, "audit -limit 1").Entries
	if len(entries) != 1 || entries[0].Action != "return" || entries[0].Outcome != "accepted" || entries[0].Why != "mended" {
		t.Errorf("the audit log ends with %+v", entries)
	}
}

// The server explains as the command line does from the Corefile and what is saved.
func TestControlExplain(t *testing.T) {
	o := newOperator(t)
	corefile := o.controlled(controlledHost)
	serve(t, corefile)
	writeFile(t, o.dir, "Corefile", corefile)
	for _, change := range []string{"", "dial a 40%", "share c 20%"} {
		if change != "" {
			o.must(t, change+" -never -why test -quiet")
		}
		for _, question := range []string{"api.example.com 16.3.7.9", "api.example.com 150.1.0.0/16 -resolver 192.0.2.53", "api.example.com 2001:db8::/48 -type A"} {
			_, here, complaint := o.run(t, "explain -conf Corefile "+question)
			code, there, stderr := o.run(t, "explain -control "+o.control+" "+question)
			if code != 0 || here != there || here == "" {
				t.Errorf("after %q, %s:\n%s%s\nthe server says\n%s%s", change, question, here, complaint, there, stderr)
			}
		}
	}
}

// The API at a loopback address with certificates: of the server, and of clients.
func TestControlTLS(t *testing.T) {
	o := newOperator(t)
	config, authority := certify(t, "localhost")
	key, err := x509.MarshalPKCS8PrivateKey(config.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	o.secret(t, "key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	port := freePort(t)
	corefile := strings.Replace(o.controlled(controlledHost), "control unix:"+o.dir+"/s token "+o.dir+"/tokens",
		fmt.Sprintf("control 127.0.0.1:%s token %s/tokens {\n tls %s %s/key\n client_ca %s\n}", port, o.dir, authority, o.dir, authority), 1)
	s := serve(t, corefile)
	o.control = "https://localhost:" + port
	o.flags = []string{"-ca", authority}
	if code, _, stderr := o.run(t, "status"); code == 0 || !strings.Contains(stderr, "certificate") {
		t.Errorf("without a certificate: %d %s", code, stderr)
	}
	o.flags = append(o.flags, "-cert", authority, "-key", filepath.Join(o.dir, "key"))
	o.must(t, "drain a -never -why test")
	if got := brief(s.exchange(t, "api.example.com A +subnet=16.0.7.0/24")); got != "192.0.2.2 /16" {
		t.Errorf("drained: %s", got)
	}
	entries := reply[control.AuditList](t, o, "audit").Entries
	if len(entries) != 1 || !strings.Contains(entries[0].From, `certificate of "test"`) {
		t.Errorf("written down: %+v", entries)
	}
	o.control = "http://127.0.0.1:" + port
	o.flags = nil
	if code, _, _ := o.run(t, "status"); code == 0 {
		t.Error("it answers without TLS")
	}
}

// What was acknowledged holds after the process was killed, and its socket, which
// nobody removed, is in nobody's way.
func TestControlKilled(t *testing.T) {
	o := newOperator(t)
	p := run(t, o.controlled(controlledHost))
	o.must(t, "drain a -never -why test -quiet")
	p.end(t, syscall.SIGKILL)
	if _, err := os.Stat(strings.TrimPrefix(o.control, "unix:")); err != nil {
		t.Fatal(err)
	}
	p.begin(t)
	if got := brief(ask(t, p.addr, "api.example.com A +subnet=16.0.7.0/24")); got != "192.0.2.2 /16" {
		t.Errorf("afterwards: %s", got)
	}
	o.must(t, "undrain a -why test -quiet")
	if got := brief(ask(t, p.addr, "api.example.com A +subnet=16.0.7.0/24")); got != "192.0.2.1 /16" {
		t.Errorf("undrained: %s", got)
	}
	p.end(t, syscall.SIGTERM)
	if _, err := os.Stat(strings.TrimPrefix(o.control, "unix:")); err == nil {
		t.Error("the socket is left after an orderly end")
	}
}
