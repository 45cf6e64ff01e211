package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// The load of BenchmarkServerCPU: a closed loop, so that the server is busy but
// never floods a socket.
const (
	loadSockets  = 8
	loadInFlight = 16
	loadQueries  = 50_000 // in each turn
)

const cpuCorefile = `bench.test:53 {
    gslb {
        geoip country testdata/world-country.mmdb
        region eu {
            clients continent EU AF
        }
        region us {
            clients continent NA SA
        }
        region ap {
            clients rest
        }
        host www.bench.test {
            pool eu 192.0.2.1 2001:db8:e::1
            pool us 198.51.100.1 2001:db8:a::1
            pool ap 203.0.113.1 2001:db8:c::1
        }
    }
}
who.test:53 {
    whoami
}
`

// BenchmarkServerCPU measures what the plugin costs: the CPU time of a server
// process for each query that gslb answers, with a random client subnet in
// each, against that of CoreDNS's whoami in the same process under the same
// load. The two alternate; the ratio of their sums is the figure to look at.
func BenchmarkServerCPU(b *testing.B) {
	pid, addr := serverProcess(b, cpuCorefile)
	names := []string{"www.bench.test.", "www.who.test."}
	queries := [][][]byte{packedQueries(b, names[0]), packedQueries(b, names[1])}
	var cpu [2]time.Duration
	turns := 0
	for i, q := range queries { // warm up
		if err := load(addr, q); err != nil {
			b.Fatal(names[i], err)
		}
	}
	for b.Loop() {
		for i, q := range queries {
			before := cpuTime(b, pid)
			if err := load(addr, q); err != nil {
				b.Fatal(names[i], err)
			}
			cpu[i] += cpuTime(b, pid) - before
		}
		turns++
	}
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(turns*loadQueries) }
	b.ReportMetric(each(cpu[0]), "gslb-us/query")
	b.ReportMetric(each(cpu[1]), "whoami-us/query")
	b.ReportMetric(float64(cpu[0])/float64(cpu[1]), "ratio")
}

// serverProcess starts this test binary as a server and waits until it answers.
func serverProcess(b *testing.B, corefile string) (pid int, addr string) {
	b.Helper()
	addr, err := freeAddr()
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "Corefile")
	if err := os.WriteFile(file, []byte(onAddr(corefile, addr)), 0o600); err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self, "-conf", file)
	cmd.Env = append(os.Environ(), asServer+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	m := new(dns.Msg)
	m.SetQuestion("www.bench.test.", dns.TypeA)
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		if reply, err := dns.Exchange(m, addr); err == nil && len(reply.Answer) > 0 {
			return cmd.Process.Pid, addr
		}
	}
	b.Fatalf("The server doesn't answer: %s", &out)
	return 0, ""
}

// packedQueries are queries for a name, each with another random /24.
func packedQueries(b *testing.B, name string) [][]byte {
	r := rand.New(rand.NewPCG(1, 1))
	out := make([][]byte, 1<<14)
	for i := range out {
		m := new(dns.Msg)
		m.SetQuestion(name, []uint16{dns.TypeA, dns.TypeAAAA}[i%2])
		m.SetEdns0(1232, false)
		v := r.Uint32()
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{
			Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: net.IPv4(byte(v>>24)%223+1, byte(v>>16), byte(v>>8), 0),
		}}
		var err error
		if out[i], err = m.Pack(); err != nil {
			b.Fatal(err)
		}
	}
	return out
}

// load sends loadQueries queries and reads their answers.
func load(addr string, queries [][]byte) error {
	var wg sync.WaitGroup
	errs := make([]error, loadSockets)
	for s := range loadSockets {
		wg.Go(func() { errs[s] = loadSocket(addr, queries, s) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func loadSocket(addr string, queries [][]byte, socket int) error {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 4096)
	next := socket * len(queries) / loadSockets
	send := func() error {
		next++
		_, err := c.Write(queries[next%len(queries)])
		return err
	}
	for range loadInFlight {
		if err := send(); err != nil {
			return err
		}
	}
	for range loadQueries / loadSockets {
		c.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		if rcode := buf[3] & 15; n < 12 || rcode != dns.RcodeSuccess {
			return fmt.Errorf("rcode %d in %d bytes", rcode, n)
		}
		if err := send(); err != nil {
			return err
		}
	}
	return nil
}

// cpuTime is the CPU time a process has used; Linux counts it in ticks of 10 ms.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	total := 0
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond
}
