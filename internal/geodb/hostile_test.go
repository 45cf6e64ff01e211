package geodb

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestCraftedTrees: trees that no writer makes.
func TestCraftedTrees(t *testing.T) {
	chain := func(nodes int) (tree [][2]uint32) { // both halves of all space are the same subtree, again and again
		for i := range nodes {
			tree = append(tree, [2]uint32{uint32(i + 1), uint32(i + 1)})
		}
		tree[nodes-1] = [2]uint32{uint32(nodes + dataSeparator), uint32(nodes + dataSeparator)}
		return tree
	}
	for _, test := range []struct {
		name    string
		version byte
		nodes   [][2]uint32
		want    string // networks, or part of the error
	}{
		{"half of IPv4", 4, [][2]uint32{{17, 1}}, "[0.0.0.0/1]"},
		{"shared subtree", 4, [][2]uint32{{1, 1}, {2, 18}}, "[64.0.0.0/2 192.0.0.0/2]"},
		{"network above IPv4", 6, [][2]uint32{{1, 3}, {19, 3}, {3, 3}}, "[0.0.0.0/0 ::1:0:0/96 "},
		{"all IPv6", 6, [][2]uint32{{17, 17}}, "[0.0.0.0/0 ::1:0:0/96 "},
		{"no data", 6, [][2]uint32{{1, 1}}, "holds no networks"},
		{"no nodes", 4, nil, "holds no networks"},
		{"cycle", 4, [][2]uint32{{0, 17}}, "paths are too long"},
		{"cycle in IPv6", 6, [][2]uint32{{1, 2}, {2, 1}}, "not a whole MaxMind DB file"},
		{"doubling", 4, chain(32), "too many"},
		{"doubling in IPv6", 6, chain(120), "too many"},
		{"too deep", 4, append(chain(33), [2]uint32{34, 34}), "paths are too long or too many"},
		{"pointer before the data", 4, [][2]uint32{{16, 1}}, "outside of the data"},
		{"pointer after the data", 4, [][2]uint32{{17 + 500, 1}}, "outside of the data"},
		{"pointer into a record", 4, [][2]uint32{{17 + 3, 1}}, "not a whole MaxMind DB file"},
		{"IP version", 5, [][2]uint32{{17, 1}}, "IP version is 5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db, err := OpenBytes("crafted", craft(test.version, test.nodes, germany), Country)
			var got string
			if err != nil {
				got = err.Error()
			} else {
				checkConsistent(t, db)
				var networks []netip.Prefix
				for p := range db.Networks() {
					networks = append(networks, p)
				}
				got = fmt.Sprint(networks)
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestNetworkAboveIPv4: the pieces around ::/96 are the network without ::/96
// and without the mapped addresses.
func TestNetworkAboveIPv4(t *testing.T) {
	db, err := OpenBytes("crafted", craft(6, [][2]uint32{{17, 17}}, germany), Country)
	if err != nil {
		t.Fatal(err)
	}
	for addr, found := range map[string]bool{
		"::1": false, "::0.255.255.255": false, "::1:0:0": true, "::fffe:ffff:ffff": true, "::1:0:0:0": true, "::ffff:1.2.3.4": true,
		"1.2.3.4": true, "8000::": true, "7fff::": true, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": true,
	} {
		if _, network, got, _ := db.Lookup(netip.MustParseAddr(addr)); got != found {
			t.Errorf("Lookup(%s) = %s, %t", addr, network, got)
		}
	}
}

func TestBrokenRecords(t *testing.T) {
	for name, data := range map[string]string{
		"cut":             germany[:5],
		"text too long":   "\xe1\x47country\xe1\x48iso_code\x5eDE",
		"endless pointer": "\xe1\x47country\x20\x08",
		"not UTF-8":       "\xe1\x47country\xe1\x48iso_code\x42\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			db, err := OpenBytes("crafted", craft(4, [][2]uint32{{17, 1}}, data), Country)
			if err == nil {
				t.Fatalf("opened: %+v", db.Records())
			}
		})
	}
}

// TestDamage cuts fixtures at every length and turns over every byte: each
// gives an error or a consistent database.
func TestDamage(t *testing.T) {
	opens := func(data []byte, kind Kind) bool {
		db, err := OpenBytes("damaged", data, kind)
		if err == nil {
			checkConsistent(t, db)
		} else if !strings.HasPrefix(err.Error(), "damaged: ") {
			t.Errorf("error %q doesn't name the file", err)
		}
		return err == nil
	}
	for _, f := range fixtures[:5] {
		whole := mustRead(t, f.name)
		for n := range whole {
			if opens(whole[:n:n], f.kind) && n < len(whole)-2 {
				t.Errorf("%s opens when cut to %d of %d bytes", f.name, n, len(whole))
			}
		}
		for i := range whole {
			for _, flip := range []byte{0x01, 0xff} {
				data := slices.Clone(whole)
				data[i] ^= flip
				opens(data, f.kind)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	kinds := []Kind{Country, City, ASN}
	for _, fixture := range fixtures[:5] {
		f.Add(mustRead(f, fixture.name), byte(slices.Index(kinds, fixture.kind)))
	}
	f.Add(craft(4, [][2]uint32{{17, 1}}, germany), byte(0))
	f.Add(craft(6, [][2]uint32{{17, 17}}, germany), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		before := bytes.Clone(data)
		db, err := OpenBytes("fuzz", data, kinds[int(kind)%len(kinds)])
		if err == nil {
			checkConsistent(t, db)
			for _, addr := range []string{"0.0.0.0", "127.1.2.3", "::", "2001:db8::1"} {
				if _, network, _, err := db.Lookup(netip.MustParseAddr(addr)); err != nil || !network.Contains(netip.MustParseAddr(addr)) {
					t.Errorf("Lookup(%s) = %s, %v", addr, network, err)
				}
			}
		}
		if !bytes.Equal(before, data) {
			t.Error("OpenBytes changed its input")
		}
	})
}
