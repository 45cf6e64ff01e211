//go:build linux

package probe

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// loadEndpoints is the size of BenchmarkLoad.
const loadEndpoints = 30_000

// BenchmarkLoad probes 30,000 endpoints at an interval of 10 s, over real
// connections to a responder in a process of its own, for the first round and
// two more. It tells what that costs this process, and how late probes began.
// The endpoints differ in the name that is asked for; they share an address.
func BenchmarkLoad(b *testing.B) {
	for _, tc := range []struct {
		name      string
		kind      check.Kind
		keepalive bool
		endpoints int
	}{
		{"http", check.HTTP, false, loadEndpoints},
		{"http-keepalive", check.HTTP, true, loadEndpoints / 3},
		{"https", check.HTTPS, false, loadEndpoints / 10},
		{"https-keepalive", check.HTTPS, true, loadEndpoints / 10},
	} {
		b.Run(fmt.Sprintf("kind=%s/endpoints=%d", tc.name, tc.endpoints), func(b *testing.B) {
			c := check.Defaults("load", tc.kind)
			c.Path, c.Each, c.KeepAlive = "/healthz", true, tc.keepalive
			addr, ca := responder(b, tc.kind)
			c.CA = ca
			benchmarkLoad(b, &c, addr, tc.endpoints)
		})
	}
}

func benchmarkLoad(b *testing.B, c *check.Check, addr netip.AddrPort, endpoints int) {
	var mu sync.Mutex
	var late []time.Duration
	failed := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := NewScheduler(Options{Observed: func(_ *Probe, r Result, l time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		late = append(late, l)
		if r.Status != Pass {
			failed++
		}
	}})
	defer s.Close()
	for i := range endpoints {
		name := fmt.Sprintf("host-%d.example.com", i)
		if _, err := s.Acquire(c, Target{Addr: addr.Addr(), Port: addr.Port(), Name: name}, name); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	cpu, began := processTime(), time.Now()
	<-time.After(3 * c.Interval)
	used := processTime() - cpu
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(late)
	for b.Loop() { // nothing: the work above is what was measured
	}
	b.ReportMetric(used.Seconds()/time.Since(began).Seconds(), "cores")
	b.ReportMetric(used.Seconds()*1e6/float64(len(late)), "us-CPU/probe")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "ms-late-p99")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(endpoints), "B/endpoint")
	b.ReportMetric(float64(failed), "failed")
}

// processTime is the CPU time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// asResponder makes the test binary a responder; its value is the kind.
const asResponder = "GSLB_TEST_AS_RESPONDER"

// TestResponder is the responder when it is asked to be one.
func TestResponder(t *testing.T) {
	kind := os.Getenv(asResponder)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	if kind == "" { // as a test: what the benchmark relies on
		s := httptest.NewServer(ok)
		defer s.Close()
		passed.compare(t, prepare(t, define(check.HTTP, nil)).Probe(t.Context(), to(s.Listener.Addr().String())))
		return
	}
	s := httptest.NewUnstartedServer(ok)
	if kind == string(check.HTTPS) {
		s.TLS = &tls.Config{}
		s.StartTLS()
		pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	} else {
		s.Start()
	}
	fmt.Println("listening on", s.Listener.Addr())
	bufio.NewReader(os.Stdin).ReadString('\n') // until the benchmark ends
}

// responder starts one and gives its address and the file of its certificate.
func responder(b *testing.B, kind check.Kind) (netip.AddrPort, string) {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestResponder$")
	cmd.Env = append(os.Environ(), asResponder+"="+string(kind))
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	var cert bytes.Buffer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		addr, found := strings.CutPrefix(lines.Text(), "listening on ")
		if !found {
			cert.WriteString(lines.Text() + "\n")
			continue
		}
		ap, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		file := ""
		if cert.Len() > 0 {
			file = filepath.Join(b.TempDir(), "ca.pem")
			if err := os.WriteFile(file, cert.Bytes(), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		return ap.AddrPort(), file
	}
	b.Fatal("the responder did not start")
	return netip.AddrPort{}, ""
}
