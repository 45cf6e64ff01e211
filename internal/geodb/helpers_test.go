package geodb

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/mmdbtest"
)

const testdata = "../../testdata"

func mustOpen(t testing.TB, name string, want Kind) *DB {
	t.Helper()
	db, err := Open(filepath.Join(testdata, name), want)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustBuild(t testing.TB, database mmdbtest.Database) []byte {
	t.Helper()
	data, err := database.Build()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkConsistent holds db to what its documentation promises of any database.
func checkConsistent(t testing.TB, db *DB) {
	t.Helper()
	count, last := 0, netip.Prefix{}
	for p, record := range db.Networks() {
		count++
		switch {
		case !p.IsValid() || p != p.Masked() || p.Addr().Is4In6():
			t.Fatalf("network %s isn't a proper prefix", p)
		case p.Addr().Is6() && p.Overlaps(netip.MustParsePrefix("::/96")):
			t.Fatalf("network %s reaches into ::/96", p)
		case record < 0 || record >= len(db.Records()):
			t.Fatalf("network %s has record %d of %d", p, record, len(db.Records()))
		case last.IsValid() && (!last.Addr().Less(p.Addr()) || last.Overlaps(p)):
			t.Fatalf("network %s follows %s", p, last)
		}
		last = p
	}
	if got := db.Info().Networks; got != count {
		t.Fatalf("Info says %d networks, Networks yields %d", got, count)
	}
	for _, r := range db.Records() {
		if !r.tells() || r.HasCoordinates && !onEarth(r.Lat, r.Lon) || !r.HasCoordinates && (r.Lat != 0 || r.Lon != 0) {
			t.Fatalf("record %+v", r)
		}
	}
}

// craft makes a database file of the given tree whose only record, at offset 0
// of the data section, is data. It makes files that no writer would.
func craft(version byte, nodes [][2]uint32, data string) []byte {
	text := func(s string) string { return string(rune(0x40|len(s))) + s }
	var file []byte
	for _, n := range nodes {
		for _, pointer := range n {
			file = append(file, byte(pointer>>16), byte(pointer>>8), byte(pointer))
		}
	}
	file = append(file, make([]byte, dataSeparator)...)
	file = append(file, data...)
	file = append(file, "\xab\xcd\xefMaxMind.com"...)
	file = append(file, 0xe0|6)
	file = append(file, text("binary_format_major_version")+"\xa1\x02"...)
	file = append(file, text("binary_format_minor_version")+"\xa1\x00"...)
	file = append(file, text("database_type")+text("Crafted")...)
	file = append(file, text("ip_version")+"\xa1"+string(rune(version))...)
	file = append(file, text("node_count")+"\xc1"+string(rune(len(nodes)))...)
	return append(file, text("record_size")+"\xa1\x18"...)
}

// germany is {"country": {"iso_code": "DE"}}.
const germany = "\xe1\x47country\xe1\x48iso_code\x42DE"
