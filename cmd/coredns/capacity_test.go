package main

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// busy is a backend whose load is the clients that the DNS has sent it.
type busy struct {
	addr    string
	weight  atomic.Int64 // of the clients at it
	highest atomic.Int64 // since reset
	asked   atomic.Int64
	dead    atomic.Bool
}

// newBusy starts a backend on a loopback address; its load is read and its health checked on
// one port for all.
func newBusy(t *testing.T, addr, port string) *busy {
	t.Helper()
	b := &busy{addr: addr}
	l, err := net.Listen("tcp", addr+":"+port)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case b.dead.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/load":
			b.asked.Add(1)
			fmt.Fprintf(w, `{"clients": %d}`, b.weight.Load())
		case r.URL.Path == "/metrics":
			fmt.Fprintf(w, "# TYPE clients gauge\nclients{of=\"all\"} %d\n", b.weight.Load())
		default:
			w.Header().Set("X-Clients", fmt.Sprint(b.weight.Load()))
		}
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return b
}

// crowd is a population of clients behind resolvers: each has a subnet, a weight, and the answer
// that it keeps for the TTL.
type crowd struct {
	server   *server
	backends map[string]*busy
	clients  []*crowdClient
	factor   atomic.Int64 // percent of the weights of those of the first region
	wg       sync.WaitGroup
	stop     chan struct{}
}

type crowdClient struct {
	msg    *dns.Msg
	weight int64
	first  bool // its first region is a
	at     *busy
	bears  int64
}

// newCrowd makes clients for three regions: those of 10 units each in 20.0.0.0/8 (a), 60.0.0.0/8
// (b) and 120.0.0.0/8 (c).
func newCrowd(s *server, backends []*busy, of [3]int) *crowd {
	c := &crowd{server: s, backends: make(map[string]*busy), stop: make(chan struct{})}
	c.factor.Store(100)
	for _, b := range backends {
		c.backends[b.addr] = b
	}
	for region, first := range []byte{20, 60, 120} {
		for i := range of[region] {
			m := new(dns.Msg)
			m.SetQuestion("api.example.com.", dns.TypeA)
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: net.IPv4(first, byte(i/200), byte(i), 0)}}
			c.clients = append(c.clients, &crowdClient{msg: m, weight: 10, first: region == 0})
		}
	}
	return c
}

// run has every client ask again each time its answer's TTL of one second is over, spread over
// that second, until the crowd is stopped.
func (c *crowd) run(t *testing.T) {
	const workers = 8
	for w := range workers {
		c.wg.Go(func() {
			conn, err := net.Dial("udp", c.server.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			client := &dns.Conn{Conn: conn}
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for turn := 0; ; turn++ {
				for i := w; i < len(c.clients); i += workers {
					if i/workers%10 == turn%10 && !c.clients[i].ask(t, c, client) {
						return
					}
				}
				select {
				case <-c.stop:
					return
				case <-tick.C:
				}
			}
		})
	}
}

func (one *crowdClient) ask(t *testing.T, c *crowd, conn *dns.Conn) bool {
	conn.SetDeadline(time.Now().Add(deadline))
	one.msg.Id = dns.Id()
	if err := conn.WriteMsg(one.msg); err != nil {
		t.Error(err)
		return false
	}
	reply, err := conn.ReadMsg()
	if err != nil || len(reply.Answer) != 1 {
		t.Errorf("%v, %v", reply, err)
		return false
	}
	to := c.backends[reply.Answer[0].(*dns.A).A.String()]
	bears := one.weight
	if one.first {
		bears = bears * c.factor.Load() / 100
	}
	if one.at != nil {
		one.at.weight.Add(-one.bears)
	}
	one.at, one.bears = to, bears
	if now := to.weight.Add(bears); now > to.highest.Load() {
		to.highest.Store(now)
	}
	return true
}

const crowdCorefile = `example.com:53 {
    prometheus LISTEN
    gslb {
        check web {
            http :PORT /healthz
            interval 2s
            timeout 2s
            fall 2
            rise 1
        }
        region a {
            clients prefix 20.0.0.0/8
            next b c
            CAPACITYA
        }
        region b {
            clients prefix 60.0.0.0/8
            next c a
            CAPACITYB
        }
        region c {
            clients rest
            next b a
            CAPACITYC
        }
        host api.example.com {
            check web
            ttl 1
            ttl_floor off
            spread sticky 24 56
            pool a 127.0.81.1
            pool b 127.0.81.2
            pool c 127.0.81.3
        }
    }
}`

// crowded starts three backends, a server that reads their loads in three ways, and the crowd.
func crowded(t *testing.T, lawful bool, of [3]int) (backends []*busy, c *crowd, listen string) {
	t.Helper()
	port := freePort(t)
	listen = "127.0.0.1:" + freePort(t)
	for i := range 3 {
		backends = append(backends, newBusy(t, fmt.Sprint("127.0.81.", i+1), port))
	}
	words := []string{"PORT", port, "LISTEN", listen, "CAPACITYA", "", "CAPACITYB", "", "CAPACITYC", ""}
	if lawful {
		words[5] = "capacity 1000\nload http http://127.0.81.1:" + port + "/load json .clients every 1s"
		words[7] = "capacity 1000\nload http http://127.0.81.2:" + port + "/metrics metric \"clients{of=\\\"all\\\"}\" every 1s"
		words[9] = "capacity 1000\nload header web X-Clients"
	}
	s := serve(t, strings.NewReplacer(words...).Replace(crowdCorefile))
	eventually(t, "the backends are known to be up", func() bool {
		return scrape(t, listen)[`coredns_gslb_probed_endpoints{verdict="up"}`] == 3
	})
	c = newCrowd(s, backends, of)
	c.run(t)
	t.Cleanup(func() { close(c.stop); c.wg.Wait() })
	return backends, c, listen
}

// follow waits until the loads are those that the law wants, within 5 % of a capacity.
func follow(t *testing.T, what string, backends []*busy, listen string, holds func(loads []float64) bool) {
	t.Helper()
	state := ""
	eventuallyOr(t, what, func() string { return state }, func() bool {
		series := scrape(t, listen)
		loads := make([]float64, len(backends))
		as := true
		state = ""
		for i, b := range backends {
			loads[i] = float64(b.weight.Load())
			wanted := series[fmt.Sprintf(`coredns_gslb_flow_wanted{host="",region="%c"}`, 'a'+i)]
			state += fmt.Sprintf("%c has %.0f, wanted %.0f; ", 'a'+i, loads[i], wanted)
			as = as && math.Abs(loads[i]-wanted) <= 50
		}
		return as && holds(loads)
	})
}

// eventuallyOr is eventually that says how far it has come.
func eventuallyOr(t *testing.T, what string, state func() string, is func() bool) {
	t.Helper()
	began := time.Now()
	for end := began.Add(deadline); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if is() {
			t.Logf("%s after %s: %s", what, time.Since(began).Round(time.Second/10), state())
			return
		}
	}
	t.Errorf("%s: not within %s: %s", what, deadline, state())
}

// TestCapacityEndToEnd: three real backends whose load is what the answers send them. One is over
// its capacity and spills, takes back when demand falls, and dies: nobody is above 100 %.
func TestCapacityEndToEnd(t *testing.T) {
	t.Parallel()
	backends, c, listen := crowded(t, true, [3]int{80, 60, 50})
	eventually(t, "all are where they belong", func() bool {
		return backends[0].weight.Load() == 800 && backends[1].weight.Load() == 600 && backends[2].weight.Load() == 500
	})
	c.factor.Store(130) // 1040 at a, which has 1000 and is to have 900
	follow(t, "a spills", backends, listen, func(l []float64) bool { return l[0] <= 950 && l[1] >= 690 })
	c.factor.Store(80)
	follow(t, "a takes back", backends, listen, func(l []float64) bool { return l[0] == 640 && l[1] == 600 && l[2] == 500 })

	backends[0].dead.Store(true) // 640 come to b, which has room for 300
	eventually(t, "the dead one's clients have moved", func() bool { return backends[0].weight.Load() == 0 })
	for _, b := range backends[1:] {
		n := b.highest.Load()
		t.Logf("%s had %d of 1000", b.addr, n)
		if n > 1000 {
			t.Errorf("%s had %d of 1000", b.addr, n)
		}
	}
	follow(t, "b and c share", backends, listen, func(l []float64) bool { return l[0] == 0 && l[1] <= 950 && l[2] <= 950 })
}

// TestNearestOnlyOverloads is the same death without a word of capacity. It is not parallel: the
// law is one for all servers of a process, and would lay both crowds on the same regions.
func TestNearestOnlyOverloads(t *testing.T) {
	backends, _, _ := crowded(t, false, [3]int{64, 60, 50})
	eventually(t, "all are somewhere", func() bool {
		return backends[0].weight.Load() == 640 && backends[1].weight.Load() == 600 && backends[2].weight.Load() == 500
	})
	backends[0].dead.Store(true)
	eventually(t, "the dead one's clients have moved", func() bool { return backends[0].weight.Load() == 0 })
	if n := backends[1].weight.Load(); n <= 1000 {
		t.Errorf("b has %d, so the test of capacity shows nothing", n)
	}
}
