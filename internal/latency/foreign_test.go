package latency

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const netsFile = `# made by hand
10.0.0.0/8 => [dc-a, dc-b],
10.1.0.0/16 => dc-c ; one, without brackets
"10.2.0.0/15" => [ "dc-b" dc-a ], 192.0.2.1 => [dc-a,
  dc-c,
]
2001:db8::/32=>[dc-c dc-b],
`

func TestNets(t *testing.T) {
	m, format, err := ReadBytes("nets", []byte(netsFile))
	if err != nil || format != Nets {
		t.Fatal(format, err)
	}
	for addr, want := range map[string]string{
		"10.0.0.1": "dc-a dc-b", "10.1.2.3": "dc-c", "10.3.255.255": "dc-b dc-a", "10.4.0.0": "dc-a dc-b", "192.0.2.1": "dc-a dc-c", "192.0.2.2": "",
		"2001:db8::1": "dc-c dc-b", "11.0.0.0": "",
	} {
		if got := orderOf(m, addr); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}

func orderOf(m *Map, addr string) string {
	e, _ := m.Lookup(netip.MustParseAddr(addr))
	var names []string
	for _, r := range e.Order {
		names = append(names, m.Regions[r])
	}
	return strings.Join(names, " ")
}

const zonesFile = `{
  "revision": "2026-11-30",
  "customerName": "example",
  "coverageZones": {
    "us-east": {"network": ["10.0.0.0/8", "192.0.2.7"], "network6": ["2001:db8::/32"], "coordinates": {"latitude": 39, "longitude": -77}},
    "eu-west": {"network": ["10.64.0.0/10", "10.64.0.0/10"], "localizationMethods": ["CZ"]},
    "empty": {}
  }
}`

func TestZones(t *testing.T) {
	m, format, err := ReadBytes("czf.json", []byte(zonesFile))
	if err != nil || format != CoverageZones {
		t.Fatal(format, err)
	}
	for addr, want := range map[string]string{"10.0.0.1": "us-east", "10.64.0.1": "eu-west", "10.128.0.0": "us-east", "192.0.2.7": "us-east", "2001:db8::": "us-east", "9.9.9.9": ""} {
		if got := orderOf(m, addr); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	if !slices.Equal(m.Regions, []string{"empty", "eu-west", "us-east"}) || len(m.Clients) != 3+1+1 {
		t.Errorf("%v %v", m.Regions, m.Clients)
	}
}

// TestFlattenModel: nested prefixes become entries without overlaps that give every
// address what its most specific prefix gives, in the fewest entries.
func TestFlattenModel(t *testing.T) {
	r := seeded(5)
	for range 300 {
		written := map[netip.Prefix]int{}
		var nets strings.Builder
		zones := map[string]map[string][]string{"a": {}, "b": {}, "c": {}}
		for range r.IntN(12) {
			p := randomPrefix(r)
			if _, ok := written[p]; ok || validPrefix(p) != nil {
				continue
			}
			group := r.IntN(3)
			written[p] = group
			name := string(rune('a' + group))
			fmt.Fprintf(&nets, "%s => %s\n", p, name)
			zones[name]["network"] = append(zones[name]["network"], p.String())
		}
		if len(written) == 0 {
			continue
		}
		data, _ := json.Marshal(map[string]any{zonesKey: zones})
		for _, data := range [][]byte{[]byte(nets.String()), data} {
			m, _, err := ReadBytes("test", data)
			if err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			for range 300 {
				addr := randomPrefix(r).Addr()
				if addr.Is6() && embeds4(addr) {
					continue
				}
				want, bits := "", -1
				for p, group := range written {
					if p.Contains(addr) && p.Bits() > bits {
						want, bits = string(rune('a'+group)), p.Bits()
					}
				}
				if got := orderOf(m, addr.String()); got != want {
					t.Fatalf("%s: %q, want %q\n%s", addr, got, want, data)
				}
			}
			for i := 1; i < len(m.Clients); i++ {
				a, b := m.Clients[i-1], m.Clients[i]
				if a.Prefix.Bits() == b.Prefix.Bits() && reflect.DeepEqual(a.Order, b.Order) && a.Prefix.Bits() > 0 &&
					netip.PrefixFrom(a.Prefix.Addr(), a.Prefix.Bits()-1).Masked().Contains(b.Prefix.Addr()) {
					t.Fatalf("%s and %s are halves of one\n%s", a.Prefix, b.Prefix, data)
				}
			}
		}
	}
}

// TestForeignMistakes: what is wrong, and where.
func TestForeignMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8 => [a]\n10.0.0.0/8 => [b]\n":            "f:2: 10.0.0.0/8 has another order on line 1",
		"10.0.0.0/8 => []":                                  "f:1: expected at least one region",
		"10.0.0.0/8 => [a\n, a]":                            "f:2: region a twice",
		"10.0.0.0/8 => [a\n\n":                              "f:3: expected ] to end the list",
		"10.0.0.0/8 => [a]\n10.0.0.1/8 => a":                "f:2: 10.0.0.1/8: has bits set past its length: write 10.0.0.0/8",
		"10.0.0.0/8 => [A]":                                 `f:1: "A" can't name a region`,
		"10.0.0.0/8 => {a}":                                 `f:1: unexpected "{"`,
		"10.0.0.0/8 =>":                                     `f:1: "" can't name a region`,
		"10.0.0.0/8 => a\n10.1.0.0/16 a":                    `f:2: expected => after 10.1.0.0/16, found "a"`,
		"nets => { 10.0.0.0/8 => a }":                       `f:1: expected an address or a prefix`,
		"::ffff:10.0.0.0/104 => a":                          "f:1: ",
		"\"10.0.0.0/8 => a":                                 "f:1: expected one word in the double quotes",
		`{"coverageZones": {"a": {"network": ["x"]}}}`:      `f: group a: expected an address or a prefix such as 192.0.2.0/24`,
		`{"deepCoverageZones": {}}`:                         `f:1: expected "coverageZones"`,
		"{\"coverageZones\":\n{\"a\": {\"network\": [3]}}}": "f:2: json: cannot unmarshal number",
		"{\"coverageZones\":\n{\"a\": {}, \"a\": {}}}":      `f:2: group "a" is there twice`,
		"{\"coverageZones\":\n[]}":                          "f:2: expected an object, found [",
		"{\"coverageZones\":\n{}":                           "f:2: ",
		`{"coverageZones": {}} {}`:                          "f:1: unexpected {",
		`{"coverageZones": {}, "coverageZones": {}}`:        "is there twice",
		`{"coverageZones": {"A": {}}}`:                      `f: group "A" can't name a region`,
		`{"coverageZones":{"a":{"network":["10.0.0.0/8"]},"b":{"network":["10.0.0.0/8"]}}}`: "f: 10.0.0.0/8 is in the groups a and b",
	} {
		if _, _, err := ReadBytes("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
