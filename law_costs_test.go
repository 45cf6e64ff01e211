package gslb

import (
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// costsBlock has the clients of 20.0.0.0/7 and of 22.0.0.0/7 at eu by its map; the former
// have us next, which is nearer to eu than ap.
const costsBlock = `gslb {
	region eu {
		location 50.1 8.7
		capacity 100
		load file DIR/eu every 5s
	}
	region us {
		location 39.0 -77.5
		capacity 100
		load file DIR/us every 5s
	}
	region ap {
		location 1.4 103.8
		capacity 100
		load file DIR/ap every 5s
	}
	clients rest {
		order us ap eu
	}
	latency DIR/map.txt
	host api.example.com {
		pool eu 192.0.2.1
		pool us 192.0.2.2
		pool ap 192.0.2.3
	}
}`

// parts are what eu gets of the clients of both entries.
func parts(t *testing.T, g *GSLB) (got [2]float64) {
	t.Helper()
	for i := range 512 {
		for side := range got {
			subnet := fmt.Sprintf("%d.%d.1.0/24", 20+2*side+i/256, i%256)
			if strings.HasPrefix(told(t, g, "api A", subnet), "192.0.2.1 ") {
				got[side] += 1.0 / 512
			}
		}
	}
	return got
}

// TestLawGoesByRoundTrips: where there is no room for all, those stay who would lose most
// time, which distances don't tell.
func TestLawGoesByRoundTrips(t *testing.T) {
	for _, tc := range []struct {
		name, entries string
		want          [2]float64
	}{
		{"by distance", "20.0.0.0/7 eu us\n22.0.0.0/7 eu ap\n", [2]float64{0.5, 1}},
		{"measured", "20.0.0.0/7 eu:20/900 us:150/900\n22.0.0.0/7 eu:20/900 ap:60/900\n", [2]float64{1, 0.5}},
		{"one measured, the other by distance", "20.0.0.0/7 eu:20/900 us:100/900\n22.0.0.0/7 eu ap\n", [2]float64{0.5, 1}},
		{"the same, and worse than that", "20.0.0.0/7 eu:20/900 us:300/900\n22.0.0.0/7 eu ap\n", [2]float64{1, 0.5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := loadDir(t)
			replace(t, filepath.Join(dir, "map.txt"), []byte("gslb-latency 1\nbuilt 1999-12-31T12:00:00Z\nregions eu us ap\nclients\n"+tc.entries))
			synctest.Test(t, func(t *testing.T) {
				r := newWorld().registry()
				gen, g := r.mustStart(t, strings.ReplaceAll(costsBlock, "DIR", dir))
				defer r.stop(gen)
				run := func(demand float64, span time.Duration) (got [2]float64) {
					for range span / (5 * time.Second) {
						got = parts(t, g)
						for name, load := range map[string]float64{
							"eu": demand * (got[0] + got[1]), "us": demand * (1 - got[0]), "ap": demand * (1 - got[1]),
						} {
							replace(t, filepath.Join(dir, name), fmt.Appendln(nil, load))
						}
						time.Sleep(5 * time.Second)
						synctest.Wait()
					}
					return parts(t, g)
				}
				hold := func(what string, got [2]float64) {
					t.Helper()
					for side := range got {
						if math.Abs(got[side]-tc.want[side]) > 0.1 {
							t.Errorf("%s: eu gets %.3g of its clients, want %.3g", what, got, tc.want)
							return
						}
					}
				}
				if got := run(40, time.Minute); got != [2]float64{1, 1} {
					t.Fatalf("with room for all, eu gets %.3g", got)
				}
				hold("in the end", run(60, 10*time.Minute))
				r.mu.Lock()
				heard := r.steering.hear(time.Now())
				r.mu.Unlock()
				foreseen, h := [2]float64{1, 1}, g.live.Load().plan.Hosts[0]
				if held := heard.settle().admitted[0].admission(h, 0); held != nil {
					for side := range foreseen {
						subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(20 + 2*side)}), 24)
						foreseen[side] = held[h.Locate(subnet, subnet.Addr()).List]
					}
				}
				hold("what-if", foreseen)
			})
		})
	}
}

// TestLawCosts holds that all costs of a step are of one unit, whatever is known of places.
func TestLawCosts(t *testing.T) {
	const text = `gslb {
	region eu {
		location 50.1 8.7
		capacity 100
	}
	region us {
		location 39.0 -77.5
	}
	region x y
	host api.example.com {
		pool eu 192.0.2.1
		pool us 192.0.2.2
		pool x 192.0.2.3
	}
	host www.example.com {
		pool x 192.0.2.4
		pool y 192.0.2.5
		pool eu 192.0.2.6
		clients rest {
			order x y eu
		}
	}
	host shed.example.com {
		shed to origin.example.net
		pool eu 192.0.2.7
	}
}`
	g := load(t, text, nil)
	live := g.live.Load()
	h := (&law{}).hear([]view{{g, live.plan, live.snapshots, live.demand}}, start)
	h.judge()
	var got []string
	for _, group := range h.in.Groups {
		got = append(got, fmt.Sprintf("%.0f", group.Cost))
	}
	if want := "[0 131 191] [0 60 120] [0 60]"; strings.Join(got, " ") != want {
		t.Errorf("costs %s, want %s", strings.Join(got, " "), want)
	}
}
