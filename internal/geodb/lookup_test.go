package geodb

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, test := range []struct {
		file, addr, network string
		found               bool
		want                Record
	}{
		{"city.mmdb", "127.1.2.3", "127.1.0.0/16", true, Record{"EU", "DE", []string{"DE-HE"}, 50.1109, 8.6821, true, 0}},
		{"city.mmdb", "::ffff:127.1.2.3", "127.1.0.0/16", true, Record{"EU", "DE", []string{"DE-HE"}, 50.1109, 8.6821, true, 0}},
		{"city.mmdb", "127.11.0.0", "127.11.0.0/16", true, Record{"EU", "GB", []string{"GB-ENG", "GB-LND"}, 51.5074, -0.1278, true, 0}},
		{"city.mmdb", "127.5.0.1", "127.5.0.0/16", true, Record{Continent: "NA", Country: "US"}}, // the country's default point
		{"city.mmdb", "127.7.0.1", "127.7.0.0/16", true, Record{"AS", "SG", nil, 1.3521, 103.8198, true, 0}},
		{"city.mmdb", "192.0.2.1", "192.0.2.0/25", false, Record{}}, // nothing but a point at 0,0
		{"city.mmdb", "192.0.2.193", "192.0.2.192/26", true, Record{"AN", "AQ", nil, -90, 0, true, 0}},
		{"city.mmdb", "198.51.100.130", "198.51.100.128/26", true, Record{"NA", "US", []string{"US-CA"}, 36.7783, -119.4179, true, 0}},
		{"city.mmdb", "203.0.113.1", "203.0.113.0/26", true, Record{Continent: "EU"}},
		{"city.mmdb", "203.0.113.65", "203.0.113.64/26", true, Record{Continent: "EU", Country: "FR", Subdivisions: []string{"FR-IDF"}}},
		{"city.mmdb", "203.0.113.129", "203.0.113.128/26", true, Record{Continent: "EU", Country: "PL", Subdivisions: []string{"PL-14"}}},
		{"city.mmdb", "2001:db8:1:ff::1", "2001:db8:1:80::/57", true, Record{"NA", "US", []string{"US-CA"}, 34.0522, -118.2437, true, 0}},
		{"city.mmdb", "2002:7f01::1", "2002::/15", false, Record{}}, // 6to4 is an alias
		{"city.mmdb", "8.8.8.8", "0.0.0.0/2", false, Record{}},
		{"city.mmdb", "fe80::1%eth0", "8000::/1", false, Record{}},
		{"asn.mmdb", "127.1.128.1", "127.1.128.0/17", true, Record{ASN: 3320}},
		{"asn.mmdb", "127.1.127.1", "127.1.0.0/17", false, Record{}},
		{"asn.mmdb", "203.0.113.5", "203.0.113.0/24", true, Record{ASN: 4294967294}},
		{"ipv4only.mmdb", "127.1.2.3", "127.1.0.0/16", true, Record{Continent: "EU", Country: "DE"}},
		{"ipv4only.mmdb", "2001:db8::1", "::/0", false, Record{}},
	} {
		t.Run(test.file+" "+test.addr, func(t *testing.T) {
			kind := map[string]Kind{"city.mmdb": City, "asn.mmdb": ASN}[test.file]
			if kind == "" {
				kind = Country
			}
			rec, network, found, err := mustOpen(t, test.file, kind).Lookup(netip.MustParseAddr(test.addr))
			if err != nil || !reflect.DeepEqual(rec, test.want) || network.String() != test.network || found != test.found {
				t.Errorf("Lookup = %+v, %s, %t, %v; want %+v, %s, %t", rec, network, found, err, test.want, test.network, test.found)
			}
		})
	}
	if _, _, _, err := mustOpen(t, "city.mmdb", City).Lookup(netip.Addr{}); err == nil {
		t.Error("no error for an invalid address")
	}
}

// TestLookupIsNetworks: a look-up finds what a search of all networks finds,
// and what it calls empty overlaps none, while its parent does.
func TestLookupIsNetworks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, f := range fixtures {
		t.Run(fmt.Sprintf("%s as %s", f.name, f.kind), func(t *testing.T) {
			db := mustOpen(t, f.name, f.kind)
			for range min(1000, 5_000_000/db.Info().Networks) {
				checkLookup(t, db, randomAddr(random, db))
			}
		})
	}
}

func checkLookup(t *testing.T, db *DB, addr netip.Addr) {
	t.Helper()
	rec, network, found, err := db.Lookup(addr)
	if err != nil || !network.Contains(addr) {
		t.Fatalf("Lookup(%s) = %s, %v", addr, network, err)
	}
	wider, _ := addr.Prefix(max(network.Bits()-1, 0))
	overlaps := false
	for p, i := range db.Networks() {
		if p.Contains(addr) && (!found || p != network || !reflect.DeepEqual(rec, db.Records()[i])) {
			t.Fatalf("Lookup(%s) = %v, %s, %t; Networks has %s %v", addr, rec, network, found, p, db.Records()[i])
		}
		if !found && p.Overlaps(network) {
			t.Fatalf("Lookup(%s) says %s is empty; Networks has %s", addr, network, p)
		}
		overlaps = overlaps || p.Overlaps(wider)
	}
	if !overlaps && network.Bits() > 0 {
		t.Fatalf("Lookup(%s) says %s is empty; so is %s", addr, network, wider)
	}
}

// randomAddr is near a network of the database as often as not.
func randomAddr(random *rand.Rand, db *DB) netip.Addr {
	var a [16]byte
	for i := range a {
		a[i] = byte(random.Uint32())
	}
	if len(db.v6) > 0 && random.IntN(2) == 0 {
		if near := db.v6[random.IntN(len(db.v6))].prefix().Addr().As16(); random.IntN(2) == 0 {
			copy(a[:], near[:random.IntN(17)])
		}
		return netip.AddrFrom16(a).Unmap()
	}
	if near := db.v4[random.IntN(len(db.v4))].prefix().Addr().As4(); random.IntN(2) == 0 {
		copy(a[:], near[:random.IntN(5)])
	}
	return netip.AddrFrom4([4]byte(a[:4]))
}
