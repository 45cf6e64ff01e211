package geodb

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/oschwald/geoip2-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2"
)

// BenchmarkOpenWorld measures loading a database of a million networks: read,
// check, walk and decode. One pass of Networks is BenchmarkNetworksWorld.
func BenchmarkOpenWorld(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustOpen(b, "world-country.mmdb", Country)
	}
}

// BenchmarkNetworksWorld measures one pass over a million networks.
func BenchmarkNetworksWorld(b *testing.B) {
	db := mustOpen(b, "world-country.mmdb", Country)
	for b.Loop() {
		sum := 0
		for p, record := range db.Networks() {
			sum += p.Bits() + record
		}
		if sum == 0 {
			b.Fatal("no networks")
		}
	}
}

// BenchmarkLookupDecode is the yardstick of a decision's cost, which has to be
// under half of it: what a server does per query that asks the database itself,
// one look-up and decode for a random IPv4 address. "geoip2" decodes a
// geoip2.Country, "two codes" only what steering needs, the least there is.
// Addresses without data are part of it. Addresses come from a table made
// beforehand, so drawing them costs nothing to speak of.
func BenchmarkLookupDecode(b *testing.B) {
	reader, err := maxminddb.OpenBytes(mustRead(b, "world-country.mmdb"))
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	addrs := make([]netip.Addr, 1<<16)
	for i := range addrs {
		addrs[i] = netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, random.Uint32())))
	}
	b.Run("geoip2", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			var c geoip2.Country
			if err := reader.Lookup(addrs[i%len(addrs)]).Decode(&c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("two codes", func(b *testing.B) {
		b.ReportAllocs()
		var c struct {
			Continent struct {
				Code string `maxminddb:"code"`
			} `maxminddb:"continent"`
			Country struct {
				ISOCode string `maxminddb:"iso_code"`
			} `maxminddb:"country"`
		}
		for i := 0; b.Loop(); i++ {
			if err := reader.Lookup(addrs[i%len(addrs)]).Decode(&c); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReadPrefixes measures a prefix file of a million lines.
func BenchmarkReadPrefixes(b *testing.B) {
	var text strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&text, "%d.%d.%d.0/24 eu us\n", i>>16+1, i>>8&255, i&255)
	}
	data := []byte(text.String())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePrefixes("nets", data, WithWords); err != nil {
			b.Fatal(err)
		}
	}
}
