package gslb

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
)

// manyHosts is a block of hosts with lists of their own, over regions with capacities.
func manyHosts(hosts, lists, regions int) string {
	var b strings.Builder
	order := rand.New(rand.NewPCG(1, 1))
	b.WriteString("gslb {\n")
	for r := range regions {
		fmt.Fprintf(&b, "region r%d {\ncapacity 1000\n}\n", r)
	}
	for l := range lists {
		fmt.Fprintf(&b, "clients prefix 20.%d.%d.0/24 {\norder", l/250, l%250)
		for _, r := range order.Perm(regions)[:min(regions, 5)] {
			fmt.Fprintf(&b, " r%d", r)
		}
		b.WriteString("\n}\n")
	}
	b.WriteString("clients rest {\norder r0 rest\n}\n")
	for h := range hosts {
		fmt.Fprintf(&b, "host h%d.example.com {\n", h)
		for r := range regions {
			fmt.Fprintf(&b, "pool r%d 203.0.%d.%d\n", r, r, h%250)
		}
		b.WriteString("}\n")
	}
	b.WriteString("}")
	return b.String()
}

// BenchmarkLawStep is what a step takes: with the lock what it gathers, and without what it
// works out; and new snapshots of all hosts, with the lock.
func BenchmarkLawStep(b *testing.B) {
	for _, size := range [][3]int{{200, 60, 30}, {200, 300, 30}} {
		g := load(b, manyHosts(size[0], size[1], size[2]), nil)
		g.admitted = admissions{}
		live := g.live.Load()
		views := []view{{g, live.plan, live.snapshots, live.demand}}
		l := &law{}
		now := start
		hear := func() *hearing {
			now = now.Add(lawEvery)
			h := l.hear(views, now)
			for i := range h.sinks.list {
				h.sinks.list[i].Signal = capacity.Signal{Value: float64(600 + 100*(i%7)), Valid: true}
			}
			return h
		}
		name := fmt.Sprintf("hosts=%d/lists=%d/regions=%d", size[0], len(live.plan.Hosts[0].Need.Topology.Lists), size[2])
		b.Run(name+"/settle", func(b *testing.B) {
			for b.Loop() {
				now = now.Add(lawEvery)
				live.demand.settle(now)
			}
		})
		b.Run(name+"/hear", func(b *testing.B) {
			for b.Loop() {
				hear()
			}
		})
		b.Run(name+"/judge", func(b *testing.B) {
			for b.Loop() {
				v := hear().judge()
				l.state, g.admitted = v.state, v.admitted[0]
			}
		})
		b.Run(name+"/snapshots", func(b *testing.B) {
			for b.Loop() {
				live.plan.Snapshots(g.verdict, g.moves(time.Now()))
			}
		})
		b.Run(name+"/shares", func(b *testing.B) {
			for i := range live.demand.hosts {
				for k := range live.demand.hosts[i].lists {
					live.demand.hosts[i].lists[k] = 1
				}
			}
			for b.Loop() {
				for i := range live.plan.Hosts {
					live.demand.shares(live, i)
				}
			}
		})
	}
}
