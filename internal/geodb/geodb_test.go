package geodb

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/oschwald/geoip2-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/seed-945f90c5/gslb/internal/mmdbtest"
)

// fixtures are all test databases with the kinds that they are for.
var fixtures = []struct {
	name string
	kind Kind
}{
	{"city.mmdb", City}, {"city.mmdb", Country}, {"asn.mmdb", ASN}, {"corners.mmdb", Country},
	{"ipv4only.mmdb", Country}, {"world-country.mmdb", Country},
}

func TestOpenFixtures(t *testing.T) {
	for _, f := range fixtures {
		t.Run(fmt.Sprintf("%s as %s", f.name, f.kind), func(t *testing.T) {
			checkConsistent(t, mustOpen(t, f.name, f.kind))
		})
	}
}

func TestInfo(t *testing.T) {
	info := mustOpen(t, "ipv4only.mmdb", Country).Info()
	data := mustRead(t, "ipv4only.mmdb")
	want := Info{
		Path: filepath.Join(testdata, "ipv4only.mmdb"), Type: "GeoLite2-Country", BuildTime: mmdbtest.BuildTime,
		Networks: 4, Size: int64(len(data)), Hash: xxhash.Sum64(data),
	}
	if info != want {
		t.Errorf("Info() = %+v, want %+v", info, want)
	}
}

func TestNetworksOfCorners(t *testing.T) {
	db := mustOpen(t, "corners.mmdb", Country)
	var got []string
	for p, i := range db.Networks() {
		r := db.Records()[i]
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s%s", p, r.Continent, r.Country)))
	}
	// The tree has many more pieces of 10/9: count what matters by a few.
	for _, want := range []string{
		"0.0.0.0/32 EUDE", "10.1.2.3/32 NAUS", "10.1.2.2/32 NAMX", "100.64.0.0/11 EU", "100.96.0.0/12 FR",
		"255.255.255.255/32 OCAU", "::1:0:0:0/80 AFZA", "2001:db8::/33 ASJP", "2001:db8:8000::1/128 ASKR",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 ANAQ",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("Networks() lacks %q: %q", want, got)
		}
	}
	for _, hole := range []string{"10.1.2.4", "10.200.0.1", "100.112.0.1", "2001:db8:8000::2", "11.0.0.0"} {
		if _, network, found, _ := db.Lookup(netip.MustParseAddr(hole)); found {
			t.Errorf("Lookup(%s) found %s", hole, network)
		}
	}
}

func TestNetworksStops(t *testing.T) {
	for _, stopAt := range []int{1, 3, 20} {
		n := 0
		for range mustOpen(t, "city.mmdb", City).Networks() {
			if n++; n == stopAt {
				break
			}
		}
		if n != stopAt {
			t.Errorf("%d networks, want %d", n, stopAt)
		}
	}
}

// TestNetworksAgreeWithReader compares the walk with the reader's own one.
func TestNetworksAgreeWithReader(t *testing.T) {
	for _, name := range []string{"city.mmdb", "corners.mmdb", "ipv4only.mmdb", "world-country.mmdb"} {
		t.Run(name, func(t *testing.T) {
			reader, err := maxminddb.OpenBytes(mustRead(t, name))
			if err != nil {
				t.Fatal(err)
			}
			db := mustOpen(t, name, Country)
			next := 0
			records := map[uintptr]Record{}
			var want []netip.Prefix
			var wantRecords []Record
			for result := range reader.Networks() {
				record, ok := records[result.Offset()]
				if !ok {
					var c geoip2.Country
					if err := result.Decode(&c); err != nil {
						t.Fatal(err)
					}
					record = Record{Continent: letters(c.Continent.Code), Country: letters(c.Country.ISOCode)}
					records[result.Offset()] = record
				}
				if record.tells() {
					want, wantRecords = append(want, result.Prefix()), append(wantRecords, record)
				}
			}
			for p, i := range db.Networks() {
				if next >= len(want) || p != want[next] || !reflect.DeepEqual(db.Records()[i], wantRecords[next]) {
					t.Fatalf("network %d is %s %v, the reader's differs", next, p, db.Records()[i])
				}
				next++
			}
			if next != len(want) {
				t.Errorf("%d networks, the reader has %d", next, len(want))
			}
		})
	}
}
