package geodb

import (
	"errors"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/seed-945f90c5/gslb/internal/mmdbtest"
)

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fixture := func(name string) string { return filepath.Join(testdata, name) }
	build := func(name string, record mmdbtest.Record) string {
		networks := []mmdbtest.Network{{Prefix: "192.0.2.0/24", Record: record}}
		return write(name, mustBuild(t, mmdbtest.Database{Type: "Acme-Places", Networks: networks}))
	}
	city := mustRead(t, "city.mmdb")
	for _, test := range []struct {
		name, path string
		kind       Kind
		want       []string
	}{
		{"missing", filepath.Join(dir, "missing.mmdb"), City, []string{"missing.mmdb", "no such file"}},
		{"directory", dir, City, []string{dir, "expected a regular file"}},
		{"empty file", write("empty", nil), City, []string{"empty: not a whole MaxMind DB file, fetch or copy it again"}},
		{"text", write("text", []byte("192.0.2.0/24 eu\n")), City, []string{"text: not a whole MaxMind DB file"}},
		{"cut", write("cut", city[:len(city)/2]), City, []string{"cut: not a whole MaxMind DB file"}},
		{"country as city", fixture("corners.mmdb"), City,
			[]string{`"GeoLite2-Country"`, "no coordinates", "can't give distances", `write "geoip country"`}},
		{"country as asn", fixture("corners.mmdb"), ASN, []string{"no AS numbers", `write "geoip country"`}},
		{"city as asn", fixture("city.mmdb"), ASN, []string{"no AS numbers", `write "geoip city"`}},
		{"asn as country", fixture("asn.mmdb"), Country, []string{"no countries", `write "geoip asn"`}},
		{"asn as city", fixture("asn.mmdb"), City, []string{"no coordinates", `write "geoip asn"`}},
		{"neither", build("domain.mmdb", mmdbtest.Record{"domain": mmdbtest.Record{}}), City, []string{`"Acme-Places"`, "name a database that does"}},
		{"flat layout", build("flat.mmdb", mmdbtest.Record{"country": mmdbtype.String("DE")}), Country,
			[]string{"flat.mmdb: records are laid out differently", "use a database in their layout"}},
		{"long AS number", build("long.mmdb", mmdbtest.Record{"autonomous_system_number": mmdbtype.Uint64(1 << 32)}), ASN,
			[]string{"AS number 4294967296 has more than 32 bits"}},
		{"no networks", build("none.mmdb", nil), Country, []string{"holds no networks"}},
		{"only default points", build("points.mmdb", mmdbtest.Place{Country: "US", At: &mmdbtest.Point{Lat: 1, Lon: 2}}.Record()), City,
			[]string{"no coordinates of cities"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			db, err := Open(test.path, test.kind)
			if err == nil {
				t.Fatalf("opened: %+v", db.Info())
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
	if _, err := Open(filepath.Join(dir, "missing.mmdb"), City); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v, want fs.ErrNotExist", err)
	}
}

// TestOtherMakers: what differs between makers of databases in MaxMind's layout.
func TestOtherMakers(t *testing.T) {
	munich := mmdbtest.Place{Continent: "eu", Country: "de", Subdivisions: []string{"de-by", ""}, City: "Munich", At: &mmdbtest.Point{Lat: 48, Lon: 11}}
	nowhere := munich
	nowhere.At = &mmdbtest.Point{Lat: math.NaN(), Lon: 11}
	unknown := mmdbtest.Country("--", "-")
	unknown["city"] = mmdbtest.Record{"names": mmdbtest.Record{"en": mmdbtype.String("-")}}
	data := mustBuild(t, mmdbtest.Database{Type: "Acme-Places", RecordSize: 32, Networks: []mmdbtest.Network{
		{Prefix: "192.0.2.0/24", Record: munich.Record()},
		{Prefix: "198.51.100.0/24", Record: nowhere.Record()},
		{Prefix: "203.0.113.0/24", Record: unknown},
	}})
	db, err := OpenBytes("acme.mmdb", data, City)
	if err != nil {
		t.Fatal(err)
	}
	checkConsistent(t, db)
	for addr, want := range map[string]Record{
		"192.0.2.1":    {"EU", "DE", []string{"DE-BY"}, 48, 11, true, 0},
		"198.51.100.1": {Continent: "EU", Country: "DE", Subdivisions: []string{"DE-BY"}},
		"203.0.113.1":  {},
	} {
		if got, _, _, _ := db.Lookup(netip.MustParseAddr(addr)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, want %+v", addr, got, want)
		}
	}
}
