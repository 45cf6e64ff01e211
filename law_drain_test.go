package gslb

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/steer"
)

// shared is three regions that two hosts share, whose loads are what the answers make of
// demand.
type shared struct {
	dir     string
	demands map[string]float64 // of api's clients, by the region nearest to them
	loads   map[string]float64 // as the answers make them
	busy    float64            // demand of batch's clients, which are nearest to us; 0: nobody asks
	noise   float64            // 0..1
}

const sharedBlock = `gslb {
	guard max_move 100%
	region eu {
		clients prefix 0.0.0.0/2
		next us ap
		capacity 100
		load file DIR/eu every 1s
		ramp 0s
	}
	region us {
		clients prefix 64.0.0.0/2
		next eu ap
		capacity 200
		load file DIR/us every 1s
		ramp 0s
	}
	region ap {
		clients rest
		next eu us
		capacity 100
		load file DIR/ap every 1s
		ramp 0s
	}
	check web {
		http :8080 /healthz
		interval 1s
	}
	host api.example.com {
		ttl 5
		check web
		pool eu 192.0.2.1
		pool us {
			endpoint 192.0.2.2 MORE
		}
		pool ap 192.0.2.3
	}
	host batch.example.com {
		ttl 5
		order us eu
		pool us 192.0.2.4
		pool eu 192.0.2.5
	}
}`

// home is a region, and the first byte of the clients nearest to it.
type home struct {
	region string
	net    byte
}

var homes = []home{{"eu", 20}, {"us", 70}, {"ap", 150}}

// given is the region whose address a client of a net gets; empty: none. That is decided and counted as
// a query is, but without messages, as clients ask millions of times.
func given(g *GSLB, host string, net byte, i int) string {
	s := g.live.Load()
	h, _ := s.plan.Find("example.com.", host+".example.com.")
	q := query{transport: netip.AddrFrom4([4]byte{10, 240, 0, 1})}
	q.subnet.present, q.subnet.prefix = true, netip.PrefixFrom(netip.AddrFrom4([4]byte{net, byte(2 * i), 1, 0}), 24)
	var client steer.Client
	var d steer.Decision
	g.decide(&q, s, h, steer.V4, nil, &client, &d)
	if d.Shed {
		d.Region = steer.NoRegion
	}
	s.demand.count(h.Index, &client, d.Region)
	if d.Region == steer.NoRegion {
		return ""
	}
	return s.plan.Block.Regions[d.Region].Name
}

func newShared(t *testing.T) *shared {
	return &shared{dir: loadDir(t), demands: map[string]float64{"eu": 60, "us": 80, "ap": 30}}
}

func (p *shared) block() string {
	return strings.ReplaceAll(strings.ReplaceAll(sharedBlock, "DIR", p.dir), " MORE", "")
}

// run lets time go by, with loads that follow the answers every second.
func (p *shared) run(t *testing.T, g *GSLB, span time.Duration) {
	t.Helper()
	const clients = 128
	if p.loads == nil { // just after a beat: what happens at one moment happens in any order
		time.Sleep(beat / 100)
	}
	for range span / time.Second {
		p.loads = map[string]float64{"eu": 0, "us": 0, "ap": 0}
		for i := range int(clients * p.busy / p.demands["us"]) {
			p.loads[given(g, "batch", 70, i)] += p.demands["us"] / clients
		}
		for _, from := range homes {
			for i := range clients {
				p.loads[given(g, "api", from.net, i)] += p.demands[from.region] / clients
			}
		}
		delete(p.loads, "")
		for _, region := range slices.Sorted(maps.Keys(p.loads)) {
			load := p.loads[region]
			p.noise = math.Mod(p.noise+0.618, 1) // no two readings of a real load are the same to the last bit
			if err := os.WriteFile(filepath.Join(p.dir, region), fmt.Appendln(nil, load*(0.999+0.002*p.noise)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		later(time.Second)
	}
}

// TestLawOfAHostAway has one host leave a region that it shares with another, in every way: the
// law has to know that nothing of its demand stays there.
func TestLawOfAHostAway(t *testing.T) {
	for _, tc := range []struct {
		away string // a change; empty: its checks fail
		back string
		busy float64
	}{
		{"drain on region=us host=api.example.com", "cancel 1", 0},
		{"drain on region=us host=api.example.com", "cancel 1", 20},
		{"dial 0% region=us host=api.example.com", "cancel 1", 0},
		{"drain on endpoint=192.0.2.2", "cancel 1", 0},
		{"force down endpoint=192.0.2.2", "cancel 1", 0},
		{"", "", 0},
		{"", "", 20},
	} {
		t.Run(fmt.Sprint(tc.away, tc.busy), func(t *testing.T) {
			p := newShared(t)
			p.busy = tc.busy
			synctest.Test(t, func(t *testing.T) {
				logged := logTo(t)
				w := newWorld()
				c := w.clerk(t, t.TempDir())
				gen, g := c.start(t, p.block())
				defer c.stop(gen)
				p.run(t, g, 2*time.Minute)
				before := maps.Clone(p.loads)
				if tc.away != "" {
					c.must(t, tc.away)
				} else {
					w.set("192.0.2.2 fail")
				}
				p.run(t, g, 30*time.Second)
				low, high := maps.Clone(p.loads), maps.Clone(p.loads)
				for range 600 {
					p.run(t, g, time.Second)
					for region, load := range p.loads {
						low[region], high[region] = min(low[region], load), max(high[region], load)
					}
				}
				t.Logf("from %v to %v", low, high) // the same in every run, to the last digit
				for region := range high {
					if swing := high[region] - low[region]; swing > 5 || high[region] > 100 {
						t.Errorf("%s has %.1f to %.1f", region, low[region], high[region])
					}
				}
				p.knows(t, c)
				if log := logged.String(); strings.Contains(log, "damps") || strings.Contains(log, "more than all") {
					t.Errorf("logged\n%s", log)
				}
				if tc.back != "" {
					p.comesBack(t, c, g, tc.back, before)
				}
			})
		})
	}
}

// knows holds that the law knows the natural demands.
func (p *shared) knows(t *testing.T, c *clerk) {
	t.Helper()
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	l := &c.registry.steering.law
	for i := range l.sinks.list {
		region := l.sinks.keys[i].region
		want := p.demands[region]
		if region == "us" {
			want += p.busy
		}
		if got := l.out.Sinks[i].Demand; math.Abs(got-want) > want/10 {
			t.Errorf("demand of %s is said to be %.1f, and is %.1f", region, got, want)
		}
	}
}

// comesBack holds what is foretold of a change that brings all back against what comes of it.
func (p *shared) comesBack(t *testing.T, c *clerk, g *GSLB, change string, before map[string]float64) {
	t.Helper()
	result, err := c.desk.store.WhatIf(t.Context(), clerkHerself, asked(change))
	if err != nil {
		t.Fatal(err)
	}
	c.must(t, change)
	p.run(t, g, 5*time.Minute)
	for region, load := range p.loads {
		if math.Abs(load-before[region]) > 3 {
			t.Errorf("back again %s has %.1f, had %.1f", region, load, before[region])
		}
		for _, one := range result.Report.Regions {
			capacity := map[string]float64{"eu": 100, "us": 200, "ap": 100}[region]
			if foretold := *one.UtilisationAfter / 100 * capacity; one.Name == region && math.Abs(foretold-load) > 8 {
				t.Errorf("it was foretold that %s gets %.1f; it got %.1f", region, foretold, load)
			}
		}
	}
	p.knows(t, c)
}
