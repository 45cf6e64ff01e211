package latency

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
)

// now is the present time of the tests.
var now = time.Date(2026, time.November, 30, 4, 0, 0, 0, time.UTC)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// randomMap makes a map of about n entries, crowded so that both sides cut each
// other and siblings meet.
func randomMap(r *rand.Rand, n int) *Map {
	m := &Map{Built: now.Add(-time.Duration(r.IntN(1000)) * time.Hour)}
	if r.IntN(2) == 0 {
		m.From, m.Until = m.Built.Add(-48*time.Hour), m.Built.Add(-time.Hour)
	}
	if r.IntN(2) == 0 {
		m.Demand = [2]uint64{r.Uint64(), uint64(r.IntN(3))}
	}
	if r.IntN(3) == 0 {
		m.Rollback = &Rollback{At: m.Built.Add(time.Hour), Why: `loss in "eu" # again`, By: "night shift é"}
	}
	for i := range 1 + r.IntN(5) {
		m.Regions = append(m.Regions, []string{"eu", "us", "ap", "sa-east", "x"}[i])
	}
	m.Clients, m.Resolvers = randomSide(r, n, len(m.Regions)), randomSide(r, n, len(m.Regions))
	return m
}

func randomSide(r *rand.Rand, n, regions int) (entries []Entry) {
	for range r.IntN(n + 1) {
		p := randomPrefix(r)
		if validPrefix(p) != nil || slices.ContainsFunc(entries, func(e Entry) bool { return e.Prefix.Overlaps(p) }) {
			continue
		}
		entries = append(entries, randomEntry(r, p, regions))
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
	return entries
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	if r.IntN(2) == 0 {
		a := [4]byte{byte(r.IntN(2)) * 192, byte(r.IntN(2)), byte(r.IntN(4)) << 6, byte(r.IntN(256))}
		return netip.PrefixFrom(netip.AddrFrom4(a), r.IntN(33)).Masked()
	}
	var a [16]byte
	binary.BigEndian.PutUint32(a[:], []uint32{0, 0x20010db8, 0x20010db9, 0x20020000}[r.IntN(4)])
	a[5+r.IntN(11)] = byte(r.IntN(256))
	return netip.PrefixFrom(netip.AddrFrom16(a), []int{0, 16, 31, 32, 33, 48, 56, 64, 95, 96, 127, 128}[r.IntN(12)]).Masked()
}

func randomEntry(r *rand.Rand, p netip.Prefix, regions int) Entry {
	e := Entry{Prefix: p}
	for _, i := range r.Perm(regions)[:1+r.IntN(regions)] {
		e.Order = append(e.Order, uint8(i))
	}
	if r.IntN(3) > 0 {
		e.Cells = make([]Cell, len(e.Order))
		for i := range e.Cells {
			e.Cells[i] = Cell{P75: float32(r.IntN(4000)) / 16, Samples: uint32(r.IntN(3)) * r.Uint32N(1000)}
			switch r.IntN(4) {
			case 0:
				e.Cells[i].Failed = r.Float32()
			case 1:
				e.Cells[i].Failed, e.Cells[i].P75 = float32(r.IntN(200))/200, r.Float32()*maxP75
			}
		}
	}
	return e
}

// write is a map as bytes.
func write(t testing.TB, m *Map, format Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m, format); err != nil {
		t.Fatalf("%v\n%+v", err, m)
	}
	return b.Bytes()
}

// same fails the test unless two maps are equal. nil and empty count as equal.
func same(t testing.TB, got, want *Map) {
	t.Helper()
	if !reflect.DeepEqual(clean(got), clean(want)) || got.Digest() != want.Digest() {
		t.Fatalf("got\n%+v\nwant\n%+v", got, want)
	}
}

func clean(m *Map) Map {
	c := *m
	if len(c.Clients) == 0 {
		c.Clients = nil
	}
	if len(c.Resolvers) == 0 {
		c.Resolvers = nil
	}
	if len(c.Regions) == 0 {
		c.Regions = nil
	}
	return c
}

// parse reads a map from text that is right.
func parse(t testing.TB, text string) *Map {
	t.Helper()
	m, format, err := ReadBytes("test", []byte(text))
	if err != nil || format != Text {
		t.Fatal(format, err)
	}
	return m
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const small = `gslb-latency 1
built 2026-11-30T03:00:00Z
from 2026-11-23T00:00:00Z
until 2026-11-30T00:00:00Z
regions eu us ap

clients
192.0.2.0/24 eu:12.5/4000 us:90/3900/1.5%
198.51.100.0/24 us:20/500 eu:31.25/600
2001:db8::/32 ap eu

resolvers
192.0.2.128/25 us:15/1200
`
