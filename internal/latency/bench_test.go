package latency

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"testing"
)

// benchEntries are those of the maps that benchmarks use: /24 prefixes, each with three
// regions measured. They are shuffled into as few orders as there can be.
const benchEntries = 1 << 20

func benchMap() *Map {
	r := seeded(9)
	m := &Map{Built: now, Regions: []string{"eu", "us", "ap"}}
	for i := range benchEntries {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{1 + byte(i>>16), byte(i >> 8), byte(i), 0}), 24)
		first := uint8(r.IntN(3))
		m.Clients = append(m.Clients, Entry{Prefix: p, Order: []uint8{first, (first + 1) % 3, (first + 2) % 3}, Cells: []Cell{
			{P75: r.Float32() * 50, Samples: 200 + r.Uint32N(2000)}, {P75: 50 + r.Float32()*50, Samples: 200 + r.Uint32N(2000)},
			{P75: 100 + r.Float32()*50, Samples: 200 + r.Uint32N(2000), Failed: 0.01},
		}})
	}
	return m
}

func BenchmarkForms(b *testing.B) {
	m := benchMap()
	for _, format := range []Format{MMDB, Text} {
		b.Run(fmt.Sprintf("write-%s", format), func(b *testing.B) {
			for range b.N {
				if err := Write(io.Discard, m, format); err != nil {
					b.Fatal(err)
				}
			}
		})
		var data bytes.Buffer
		if err := Write(&data, m, format); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("read-%s", format), func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(data.Len())/benchEntries, "B/entry")
			for range b.N {
				if _, _, err := ReadBytes("bench", data.Bytes()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("compare", func(b *testing.B) {
		for range b.N {
			Compare(m, m, CompareOptions{Top: 20})
		}
	})
	b.Run("digest", func(b *testing.B) {
		for range b.N {
			m.Digest()
		}
	})
}
