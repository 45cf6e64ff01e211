package gslb

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/control"
)

// BenchmarkWhatIf is what a change takes: with the registry's lock what is copied, and what
// puts it into service; and without it what is foretold and the step of the law.
func BenchmarkWhatIf(b *testing.B) {
	for _, size := range [][3]int{{200, 60, 30}, {200, 300, 30}} {
		r := new(registry)
		gen := &generation{loaded: []*GSLB{load(b, manyHosts(size[0], size[1], size[2]), nil)}}
		g := gen.loaded[0]
		g.ledger = new(ledger)
		if err := r.start(gen, g); err != nil {
			b.Fatal(err)
		}
		desk := backend{r, g.ledger}
		live := g.live.Load()
		for i := range live.demand.hosts {
			for k := range live.demand.hosts[i].lists {
				live.demand.hosts[i].lists[k] = float64(1 + (7*i+k)%50)
			}
		}
		copied := func() *outlook {
			o := desk.outlook(r.views(), time.Now())
			for i := range o.heard.sinks.list {
				o.heard.sinks.list[i].Signal = capacity.Signal{Value: float64(600 + 100*(i%7)), Valid: true}
			}
			return o
		}
		drained := drainOf(b, "r0")
		h, v := copied().step(nil)
		desk.serve(&control.Publication{}, h, v, time.Now())
		name := fmt.Sprintf("hosts=%d/lists=%d/regions=%d", size[0], len(live.plan.Hosts[0].Need.Topology.Lists), size[2])
		b.Run(name+"/copy", func(b *testing.B) {
			for b.Loop() {
				copied()
			}
		})
		b.Run(name+"/foretell", func(b *testing.B) {
			for o := copied(); b.Loop(); {
				if _, err := o.foretell(b.Context(), drained); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/step", func(b *testing.B) {
			for o := copied(); b.Loop(); {
				o.step(drained)
			}
		})
		b.Run(name+"/serve", func(b *testing.B) {
			h, v := copied().step(drained)
			for b.Loop() {
				desk.serve(&control.Publication{Next: drained}, h, v, time.Now())
			}
		})
		r.stop(gen)
	}
}

// drainOf is a set of overrides that drains a region.
func drainOf(b *testing.B, region string) *control.Overrides {
	r := new(registry)
	l, err := openLedger(r, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	gen := &generation{loaded: []*GSLB{load(b, manyHosts(1, 1, 3), nil)}}
	gen.loaded[0].ledger = l
	if err := r.start(gen, gen.loaded[0]); err != nil {
		b.Fatal(err)
	}
	defer l.close()
	defer r.stop(gen)
	request := asked("drain on force region=" + region)
	if _, err := l.Do(b.Context(), clerkHerself, request); err != nil {
		b.Fatal(err)
	}
	return l.Overrides()
}
