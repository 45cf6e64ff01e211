package latency

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/oschwald/maxminddb-golang/v2"
)

// TestRoundTrip: a map is the same map, and the same bytes, in every form.
func TestRoundTrip(t *testing.T) {
	r := seeded(1)
	for range 3000 {
		m := randomMap(r, 12)
		if err := m.Validate(now); err != nil {
			t.Fatal(err)
		}
		for _, format := range []Format{MMDB, Text} {
			data := write(t, m, format)
			got, is, err := ReadBytes("test", data)
			if err != nil || is != format {
				t.Fatalf("%s read as %q: %v\n%+v", format, is, err, m)
			}
			same(t, got, m)
			if again := write(t, got, format); !bytes.Equal(again, data) {
				t.Fatalf("%s: the same map gives other bytes", format)
			}
		}
	}
}

// TestAnyToolReads: a file is a whole MaxMind DB file to others, which find the
// same entries in it that Lookup finds.
func TestAnyToolReads(t *testing.T) {
	r := seeded(2)
	for range 300 {
		m := randomMap(r, 12)
		db, err := maxminddb.OpenBytes(write(t, m, MMDB))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Verify(); err != nil && len(m.Clients)+len(m.Resolvers) > 0 {
			t.Fatalf("%v\n%+v", err, m)
		}
		if got := db.Metadata.BuildTime().UTC(); !got.Equal(m.Built) || db.Metadata.DatabaseType != databaseType {
			t.Fatalf("metadata: %+v", db.Metadata)
		}
		for range 50 {
			addr := randomPrefix(r).Addr()
			if embeds4(addr) && addr.Is6() {
				continue
			}
			var got record
			if err := db.Lookup(addr).Decode(&got); err != nil {
				t.Fatal(err)
			}
			client, isClient := m.Lookup(addr)
			resolver, isResolver := m.LookupResolver(addr)
			checkRecord(t, m, got.Client, client, isClient)
			checkRecord(t, m, got.Resolver, resolver, isResolver)
		}
	}
}

func checkRecord(t *testing.T, m *Map, got *recordEntry, want Entry, found bool) {
	t.Helper()
	if (got != nil) != found {
		t.Fatalf("found %+v, want %t %v", got, found, want)
	}
	if !found {
		return
	}
	var regions []string
	var p75 []float32
	for i, r := range want.Order {
		regions = append(regions, m.Regions[r])
		if want.Cells != nil {
			p75 = append(p75, want.Cells[i].P75)
		}
	}
	if !slices.Equal(got.Regions, regions) || !slices.Equal(got.P75, p75) || int(got.Bits) != want.Prefix.Bits() {
		t.Fatalf("found %+v, want %v", got, want)
	}
}

// TestOtherWriter: what a general writer makes of a file is the same map.
func TestOtherWriter(t *testing.T) {
	r := seeded(3)
	for range 50 {
		m := randomMap(r, 12)
		for i := range m.Clients { // it merges equal neighbours
			m.Clients[i].Cells = make([]Cell, len(m.Clients[i].Order))
			m.Clients[i].Cells[0].Samples = uint32(i)
		}
		m.Resolvers = m.Resolvers[:min(len(m.Resolvers), 1)]
		path := filepath.Join(t.TempDir(), "map.mmdb")
		if err := os.WriteFile(path, write(t, m, MMDB), 0o644); err != nil {
			t.Fatal(err)
		}
		tree, err := mmdbwriter.Load(path, mmdbwriter.Options{
			BuildEpoch: m.Built.Unix(), DisableIPv4Aliasing: true, IncludeReservedNetworks: true, RecordSize: 32,
		})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := tree.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		got, _, err := ReadBytes("rewritten", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, m)
	}
}

// TestNodes: nodes of all sizes.
func TestNodes(t *testing.T) {
	r := seeded(4)
	for _, size := range []int{6, 7, 8} { // bytes of two numbers
		most := uint32(1<<(4*size) - 1)
		for range 100 {
			zero, one := r.Uint32()&most, r.Uint32()&most
			tr := tree{nodes: appendNode(make([]byte, size), size, zero, one), nodeSize: size}
			if z, o := tr.children(1); z != zero || o != one {
				t.Fatalf("size %d: %x %x, want %x %x", size, z, o, zero, one)
			}
		}
	}
}

// TestLargeFiles: pointers and nodes of all sizes.
func TestLargeFiles(t *testing.T) {
	for _, entries := range []int{1, 300, 40_000, 250_000} {
		r := seeded(uint64(entries))
		m := &Map{Built: now, Regions: []string{"eu", "us", "ap"}}
		for i := range entries {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{1 + byte(i>>16), byte(i >> 8), byte(i), 0}), 24)
			m.Clients = append(m.Clients, Entry{Prefix: p, Order: []uint8{2, 0, 1}, Cells: []Cell{
				{P75: r.Float32(), Samples: r.Uint32()}, {P75: 50, Samples: r.Uint32()}, {P75: 60, Samples: 200, Failed: r.Float32()},
			}})
		}
		data := write(t, m, MMDB)
		got, _, err := ReadBytes("large", data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, m)
		if db, err := maxminddb.OpenBytes(data); err != nil || db.Verify() != nil {
			t.Fatal(err, db.Verify())
		}
	}
}

// TestSmall holds what the forms look like.
func TestSmall(t *testing.T) {
	m := parse(t, small)
	if got := string(write(t, m, Text)); got != small {
		t.Errorf("got\n%s", got)
	}
	e, ok := m.Lookup(netip.MustParseAddr("::ffff:192.0.2.200"))
	if !ok || e.Prefix.String() != "192.0.2.0/24" || e.Cells[1] != (Cell{90, 3900, 0.015}) || m.Regions[e.Order[1]] != "us" {
		t.Errorf("Lookup: %v %t", e, ok)
	}
	if e, ok := m.LookupResolver(netip.MustParseAddr("192.0.2.127")); ok {
		t.Errorf("LookupResolver: %v", e)
	}
	want := Stats{Clients4: 2, Clients6: 1, Resolvers4: 1, Measured: 3, Samples: 4000 + 3900 + 500 + 600 + 1200}
	if got := m.Stats(); got != want {
		t.Errorf("Stats: %+v", got)
	}
	if at, before, after := Around(m.Clients, netip.MustParseAddr("198.51.101.0")); at != -1 || before != 1 || after != 2 {
		t.Errorf("Around: %d %d %d", at, before, after)
	}
}

// TestDigest: everything that a map says changes its digest.
func TestDigest(t *testing.T) {
	seen := map[uint64]string{parse(t, small).Digest(): "the map itself"}
	for _, edit := range []string{
		"03:00:00|04:00:00", "from 2026-11-23|from 2026-11-22", "until 2026-11-30|until 2026-11-29", "eu us ap|us eu ap", "\n192.0.2.0/24|\n192.0.2.0/25",
		"regions|demand 5 6\nregions", "regions|demand 6 5\nregions",
		":12.5/|:12.6/", "/4000|/4001", "1.5%|1.6%", "us:20/500 eu:31.25/600|us:20/500", "\nresolvers\n|\n", " ap eu|", "\n\nclients|\nrollback 2026-11-30T05:00:00Z \"a\" \"b\"\n\nclients",
		"ap eu\n|eu ap\n",
	} {
		from, to, _ := strings.Cut(edit, "|")
		text := strings.Replace(small, from, to, 1)
		m, _, err := ReadBytes("test", []byte(text))
		if err != nil {
			continue // the edit makes no map, as two of them must
		}
		if other, ok := seen[m.Digest()]; ok {
			t.Errorf("%q: same digest as %s", edit, other)
		}
		seen[m.Digest()] = edit
	}
	if len(seen) < 13 {
		t.Errorf("only %d maps", len(seen))
	}
}
