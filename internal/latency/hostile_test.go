package latency

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// TestDamage cuts a file at every length and turns over every byte: each gives an
// error or a whole map.
func TestDamage(t *testing.T) {
	opens := func(data []byte) bool {
		m, _, err := ReadBytes("damaged", data)
		if err == nil {
			checkWhole(t, m)
		} else if !strings.HasPrefix(err.Error(), "damaged:") {
			t.Errorf("error %q doesn't name the file", err)
		}
		return err == nil
	}
	whole := write(t, parse(t, small), MMDB)
	for n := range whole {
		if opens(whole[:n:n]) && n < len(whole)-2 {
			t.Errorf("reads when cut to %d of %d bytes", n, len(whole))
		}
	}
	for i := range whole {
		for _, flip := range []byte{0x01, 0x20, 0xff} {
			data := slices.Clone(whole)
			data[i] ^= flip
			opens(data)
		}
	}
}

// checkWhole: what was read is valid, can be written, and is read again as the same.
func checkWhole(t *testing.T, m *Map) {
	t.Helper()
	if err := m.validate(); err != nil {
		t.Fatal(err)
	}
	if len(m.Clients)+len(m.Resolvers) > 1000 {
		return
	}
	for _, format := range []Format{MMDB, Text} {
		again, _, err := ReadBytes("again", write(t, m, format))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		same(t, again, m)
	}
}

// stranger makes a MaxMind DB file as another writer would.
func stranger(t *testing.T, o mmdbwriter.Options, about, prefix string, record mmdbtype.Map) []byte {
	t.Helper()
	o.Description, o.IncludeReservedNetworks, o.BuildEpoch = map[string]string{"en": about}, true, now.Unix()
	if o.DatabaseType == "" {
		o.DatabaseType = databaseType
	}
	tree, err := mmdbwriter.New(o)
	if err != nil {
		t.Fatal(err)
	}
	_, network, err := net.ParseCIDR(prefix)
	if err != nil || tree.Insert(network, record) != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestStrangers: MaxMind DB files that are no maps.
func TestStrangers(t *testing.T) {
	const about = `{"format":1,"regions":["eu","us"]}`
	plain := mmdbwriter.Options{DisableIPv4Aliasing: true}
	entry := func(bits uint16, more ...mmdbtype.DataType) mmdbtype.Map {
		e := mmdbtype.Map{"bits": mmdbtype.Uint16(bits), "regions": mmdbtype.Slice{mmdbtype.String("eu")}}
		for i, field := range []mmdbtype.String{"regions", "p75_ms", "samples", "failed"} {
			if i < len(more) && more[i] != nil {
				e[field] = more[i]
			}
		}
		return mmdbtype.Map{"client": e}
	}
	numbers := mmdbtype.Slice{mmdbtype.Float32(1)}
	for name, c := range map[string]struct {
		options mmdbwriter.Options
		about   string
		prefix  string
		record  mmdbtype.Map
		want    string
	}{
		"a location database": {mmdbwriter.Options{DatabaseType: "GeoLite2-City"}, about, "10.0.0.0/8", entry(8), `database of type "GeoLite2-City", expected "gslb-latency"`},
		"no description":      {plain, "", "10.0.0.0/8", entry(8), "description: "},
		"a later format":      {plain, `{"format":2}`, "10.0.0.0/8", entry(8), "format 2, expected 1"},
		"a region twice":      {plain, `{"format":1,"regions":["eu","eu"]}`, "10.0.0.0/8", entry(8), "region eu is named twice"},
		"a time":              {plain, `{"format":1,"from":"2026-11-30T04:00:00.5Z"}`, "10.0.0.0/8", entry(8), "expected whole seconds"},
		"IPv4 alone":          {mmdbwriter.Options{IPVersion: 4}, about, "10.0.0.0/8", entry(8), "IP version is 4, expected 6"},
		"aliases":             {mmdbwriter.Options{}, about, "10.0.0.0/24", entry(24), "of ::ffff:10.0.0.0/120: "},
		"unknown region":      {plain, about, "10.0.0.0/24", entry(24, mmdbtype.Slice{mmdbtype.String("ap")}), `record of 10.0.0.0/24: region "ap" is not in the file's list`},
		"a region again":      {plain, about, "10.0.0.0/24", entry(24, mmdbtype.Slice{mmdbtype.String("eu"), mmdbtype.String("eu")}), `a region is in its order twice`},
		"another type":        {plain, about, "10.0.0.0/24", entry(24, mmdbtype.String("eu")), `record of 10.0.0.0/24: `},
		"no region":           {plain, about, "10.0.0.0/24", entry(24, mmdbtype.Slice{}), `expected at least one region`},
		"p75 alone":           {plain, about, "10.0.0.0/24", entry(24, nil, numbers), `expected as many measurements as regions`},
		"failed of two":       {plain, about, "10.0.0.0/24", entry(24, nil, numbers, mmdbtype.Slice{mmdbtype.Uint32(1)}, append(numbers, numbers...)), `expected as many measurements as regions`},
		"an empty record":     {plain, about, "2001:db8::/32", mmdbtype.Map{}, "expected client or resolver"},
		"half an entry":       {plain, about, "2001:db8::/33", entry(32), "2001:db8::/32 is not whole"},
		"the other half":      {plain, about, "2001:db8:8000::/33", entry(32), "2001:db8::/32 is not whole"},
		"too few bits":        {plain, about, "2001:db8::/33", entry(34), "client of 2001:db8::/33: record of a /34"},
		"around IPv4":         {plain, about, "::/1", entry(1), "contains ::/96, where IPv4 is"},
	} {
		data := stranger(t, c.options, c.about, c.prefix, c.record)
		if _, _, err := ReadBytes("f", data); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "f: not a whole steering map") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	m, _, err := ReadBytes("f", stranger(t, plain, about, "10.0.0.0/24", entry(24, nil, numbers, mmdbtype.Slice{mmdbtype.Uint32(7)})))
	if err != nil || len(m.Clients) != 1 || m.Clients[0].Cells[0] != (Cell{1, 7, 0}) {
		t.Errorf("what is a map: %v %v", m, err)
	}
}

// craft makes a file of nodes as they are, with a record of a /24 of clients. Pointers
// are as a treeWriter's.
func craft(t *testing.T, nodes [][2]uint32) []byte {
	t.Helper()
	m := &Map{Built: now, Regions: []string{"eu"}}
	w := treeWriter{regions: m.Regions, nodes: nodes, strings: map[string]uint32{}, records: map[string]uint32{}}
	w.encodeRecord([2]*Entry{{Prefix: netip.MustParsePrefix("10.0.0.0/24"), Order: []uint8{0}}, nil})
	meta, err := w.metadata(m)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(w.encodeTree(), make([]byte, dataSeparator), w.data, meta)
}

// TestCraftedTrees: trees that no writer makes.
func TestCraftedTrees(t *testing.T) {
	chain := func(n int, end uint32) (nodes [][2]uint32) { // both halves of all space are the same, again and again
		for i := range n {
			nodes = append(nodes, [2]uint32{uint32(i + 1), uint32(i + 1)})
		}
		nodes[n-1] = [2]uint32{end, end}
		return nodes
	}
	deep := make([][2]uint32, 130) // one path longer than an address
	for i := range deep {
		deep[i] = [2]uint32{noData, uint32(min(i+1, len(deep)-1))}
	}
	for name, c := range map[string]struct {
		nodes [][2]uint32
		want  string
	}{
		"nothing":        {[][2]uint32{{noData, noData}}, ""},
		"doubling":       {chain(100, noData), "too many"},
		"doubling data":  {chain(50, leafFlag), "contains ::/96"},
		"cycle":          {[][2]uint32{{noData, 0}}, "too long or too many"},
		"too deep":       {deep, "too long or too many"},
		"into a record":  {[][2]uint32{{noData, leafFlag + 3}}, "record of 8000::/1: "},
		"after the data": {[][2]uint32{{noData, leafFlag + 5000}}, "points outside of the data"},
	} {
		m, _, err := ReadBytes("f", craft(t, c.nodes))
		if c.want == "" && (err != nil || len(m.Clients) > 0) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v %v, want %q", name, m, err, c.want)
		}
	}
}

func FuzzMMDB(f *testing.F) {
	f.Add(write(f, parse(f, small), MMDB))
	for seed := range uint64(5) {
		f.Add(write(f, randomMap(seeded(seed), 5), MMDB))
	}
	f.Fuzz(fuzz)
}

func FuzzText(f *testing.F) {
	f.Add([]byte(small))
	for seed := range uint64(5) {
		f.Add(write(f, randomMap(seeded(seed), 5), Text))
	}
	f.Fuzz(fuzz)
}

func FuzzForeign(f *testing.F) {
	f.Add([]byte(netsFile))
	f.Add([]byte(zonesFile))
	f.Fuzz(fuzz)
}

func fuzz(t *testing.T, data []byte) {
	before := bytes.Clone(data)
	if m, _, err := ReadBytes("fuzz", data); err == nil {
		checkWhole(t, m)
	}
	if !bytes.Equal(before, data) {
		t.Error("ReadBytes changed its input")
	}
}
