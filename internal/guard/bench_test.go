package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// big is a block of 200 hosts over the networks of the world.
func big(more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "geoip country world-country.mmdb\n%s\n", more)
	for i, r := range []string{"eu", "us", "ap", "sa", "af", "in"} {
		fmt.Fprintf(&b, "region %s {\nlocation %d %d\n}\n", r, 10*i-20, 50*i-120)
	}
	b.WriteString("clients continent EU {\norder eu us rest\n}\nclients continent NA {\norder us eu rest\n}\nclients continent AS {\nsplit ap 2 in 1\norder eu rest\n}\nclients rest {\norder sa af rest\n}\n")
	for i := range 200 {
		fmt.Fprintf(&b, "host h%d.example.com {\n", i)
		for k, r := range []string{"eu", "us", "ap", "sa", "af", "in"} {
			fmt.Fprintf(&b, "pool %s 192.0.2.%d 2001:db8::%d\n", r, k, k)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// dialled is a plan with its first region dialled to a half, so that flows alone don't
// tell everything.
func dialled(p *plan.Plan, part float64) *Side {
	s := &Side{Plan: p}
	for _, h := range p.Hosts {
		s.Snapshots = append(s.Snapshots, h.Steer.NewSnapshot(func(steer.Region, int) steer.EndpointState { return steer.EndpointState{} }, func(r steer.Region) steer.Levers {
			l := steer.NoLevers()
			if r < 3 {
				l.Dial = part
			}
			return l
		}))
		demand := make([]float64, len(h.Need.Topology.Lists))
		for i := range demand {
			demand[i] = 100
		}
		s.Demand, s.Load = append(s.Demand, demand), append(s.Load, demand)
	}
	return s
}

func BenchmarkCompare(b *testing.B) {
	one, two := build(b, big("")), build(b, big("clients prefix 198.51.100.0/24 {\norder af\n}"))
	b.Logf("%+v", one.Hosts[0].Need.Topology.Stats())
	for name, pair := range map[string]Pair{
		"lever":      {dialled(one, 1), dialled(one, 0.5)},
		"two levers": {dialled(one, 0.7), dialled(one, 0.5)},
		"reload":     {dialled(one, 1), dialled(two, 1)},
		"all":        {dialled(one, 0.7), dialled(two, 0.5)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compare([]Pair{pair})
			}
		})
	}
}

func BenchmarkMemory(b *testing.B) {
	p := build(b, big(""))
	dir := b.TempDir()
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			if err := SaveMemories(dir, []*Memory{Remember(p)}); err != nil {
				b.Fatal(err)
			}
		}
		info, err := os.Stat(filepath.Join(dir, MemoryFile))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size()), "bytes")
	})
	b.Run("refusals", func(b *testing.B) {
		for b.Loop() {
			all, err := LoadMemories(dir)
			if err != nil {
				b.Fatal(err)
			}
			all[0].Refusals(&p.Block.Guard, p)
		}
	})
}
