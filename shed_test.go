package gslb

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

const shedBlock = `gslb {
	region a {
		capacity 1000
		load file LOAD every 5s
	}
	region b
	clients prefix 198.51.100.0/24 {
		order b a
	}
	clients rest {
		order a b
	}
	host api.example.com {
		shed to layer2.example.net
		pool a 192.0.2.1 2001:db8:a::1
		pool b 192.0.2.2 2001:db8:b::1
	}
	host v4.example.com {
		shed to layer2.example.net
		pool a 192.0.2.1
		pool b 192.0.2.2
	}
}`

// shedNet is the client subnet of one of 1024 clients.
func shedNet(i int) string {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(20 + i/256), byte(i), 1, 0}), 24).String()
}

// shedClients tells who of 1024 clients of the first region is shed, and holds that each
// is told the same in every type.
func shedClients(t *testing.T, g *GSLB) (shed map[string]bool) {
	t.Helper()
	const name = "CNAME layer2.example.net. ttl 30 /16"
	shed = make(map[string]bool)
	for i := range 1024 {
		net := shedNet(i)
		told := func(host, typ string) string {
			reply, _ := serve(t, g, ask(host+".example.com.", dns.StringToType[typ], net))
			return briefly(reply)
		}
		first := told("api", "A")
		shed[net] = first == name
		if !shed[net] && first != "192.0.2.1 ttl 30 /16" {
			t.Errorf("%s: got %s", net, first)
		}
		if i%8 > 0 {
			continue
		}
		for _, question := range []string{"api AAAA", "api TXT", "api HTTPS", "v4 A", "v4 AAAA", "v4 CNAME"} {
			host, typ, _ := strings.Cut(question, " ")
			if got := told(host, typ); (got == name) != shed[net] || !shed[net] && strings.HasPrefix(got, "CNAME") {
				t.Errorf("%s: A is %s, %s is %s", net, first, question, got)
			}
		}
	}
	return shed
}

func count(of map[string]bool) (n int) {
	for _, is := range of {
		if is {
			n++
		}
	}
	return n
}

// TestShed has twice as much come to a region as it can take: it keeps what it can, and
// sends the same clients away each time, none to another region.
func TestShed(t *testing.T) {
	file := filepath.Join(loadDir(t), "load")
	synctest.Test(t, func(t *testing.T) {
		demand := 500.0
		shed := 0.0 // part of the clients
		report := func() {
			if err := os.WriteFile(file, fmt.Appendf(nil, "%f\n", demand*(1-shed)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		report()
		r := newWorld().registry()
		gen, g := r.mustStart(t, strings.Replace(shedBlock, "LOAD", file, 1))
		defer r.stop(gen)
		// The region's load follows what it is sent, as long as a TTL later.
		run := func(d time.Duration) (last map[string]bool) {
			for until := time.Now().Add(d); time.Now().Before(until); {
				last = shedClients(t, g)
				t.Logf("%d of 1024 are shed", count(last)) // the same in every run
				later(15 * time.Second)
				shed = (shed + float64(count(last))/1024) / 2
				report()
				later(15 * time.Second)
			}
			return last
		}
		if n := count(run(5 * time.Minute)); n > 0 {
			t.Errorf("%d of 1024 are shed at half of the capacity", n)
		}
		demand = 2000
		full := run(15 * time.Minute)
		if part := float64(count(full)) / 1024; part < 0.47 || part > 0.63 {
			t.Errorf("%.2f are shed at twice the capacity, want 0.55, which leaves 90 %%", part)
		}
		again := shedClients(t, g)
		for net, is := range full {
			if again[net] != is && count(full) == count(again) {
				t.Errorf("%s is shed %v, and then %v", net, is, again[net])
			}
		}
		demand = 1500
		less := run(15 * time.Minute)
		if part := float64(count(less)) / 1024; part < 0.3 || part > 0.5 {
			t.Errorf("%.2f are shed at one and a half times the capacity, want 0.4", part)
		}
		for net, is := range less {
			if is && !full[net] {
				t.Errorf("%s is shed of less, but not of more", net)
			}
		}
		for _, typ := range []uint16{dns.TypeA, dns.TypeTXT} { // those of b
			if reply, _ := serve(t, g, ask("api.example.com.", typ, "198.51.100.0/24")); strings.HasPrefix(briefly(reply), "CNAME") {
				t.Errorf("a client of the other region is shed: %s", briefly(reply))
			}
		}
		demand = 300
		if n := count(run(15 * time.Minute)); n > 0 {
			t.Errorf("%d of 1024 are shed after the rush", n)
		}
	})
}
