package plan_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

// largeMap writes a map of n entries, three quarters of them IPv4, with measurements of
// 3 regions in random orders, so that hardly any two neighbours are alike.
func largeMap(b *testing.B, path string, n int) {
	b.Helper()
	m := &latency.Map{Built: mapDay, Regions: []string{"eu", "us", "ap"}}
	r := rand.New(rand.NewPCG(1, 1))
	entry := func(addr netip.Addr, bits int) latency.Entry {
		e := latency.Entry{Prefix: netip.PrefixFrom(addr, bits), Order: []uint8{0, 1, 2}}
		r.Shuffle(3, func(i, j int) { e.Order[i], e.Order[j] = e.Order[j], e.Order[i] })
		for range 3 {
			e.Cells = append(e.Cells, latency.Cell{P75: float32(r.IntN(2000)) / 10, Samples: r.Uint32N(100000)})
		}
		return e
	}
	for i := range n * 3 / 4 {
		at := uint32(16<<16 + i) // without gaps, as a builder makes them
		m.Clients = append(m.Clients, entry(netip.AddrFrom4([4]byte{byte(at >> 16), byte(at >> 8), byte(at), 0}), 24))
	}
	for i := range n - n*3/4 {
		m.Clients = append(m.Clients, entry(netip.AddrFrom16([16]byte{0x2a, 0, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}), 48))
	}
	var out bytes.Buffer
	if err := latency.WriteMMDB(&out, m); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLatencyMap reads and compiles a map of a million entries beside the
// world's countries, and tells what the map adds to what is held.
func BenchmarkLatencyMap(b *testing.B) {
	path := filepath.Join(b.TempDir(), "map.mmdb")
	largeMap(b, path, 1_000_000)
	block, err := parse("example.com", `
		geoip country `+worldFile+`
		clients continent EU AF {
			order eu us ap
		}
		clients rest {
			order us ap eu
		}
		region eu us ap
		latency `+path+`
		host www.example.com {
			pool eu 192.0.2.1
			pool us 192.0.2.2
			pool ap 192.0.2.3
		}`)
	if err != nil {
		b.Fatal(err)
	}
	without := *block
	without.Hosts = append(without.Hosts[:0:0], block.Hosts...)
	without.Hosts[0].Latency = nil
	base, _ := heldBy(b, func() *plan.Plan { return mustPlan(b, &without) })
	for b.Loop() {
		began := time.Now()
		held, p := heldBy(b, func() *plan.Plan { return mustPlan(b, block) })
		whole := time.Since(began)
		began = time.Now()
		if _, err := plan.Compile(block, p.Data, plan.Options{Now: mapDay}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-compile")
		b.ReportMetric(whole.Seconds(), "s-all")
		b.ReportMetric(float64(held-base)/(1<<20), "MiB-held")
		blocks := 0
		for _, n := range p.Needs {
			blocks += n.Topology.Stats().ECS4 + n.Topology.Stats().ECS6
		}
		b.ReportMetric(float64(blocks), "blocks")
	}
}

func mustPlan(b *testing.B, block *config.Block) *plan.Plan {
	b.Helper()
	p, err := plan.Build(block, plan.Options{Now: mapDay})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// heldBy is the memory that a plan keeps.
func heldBy(b *testing.B, make func() *plan.Plan) (int, *plan.Plan) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(p)
	return int(after.HeapAlloc) - int(before.HeapAlloc), p
}
