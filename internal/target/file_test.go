package target

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	good, err := Encode(map[string]Saved{"lb.test. 192.0.2.53:53": {V4: Family{Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, At: now, TTL: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, content string // "-": there is none
		at            time.Time
		n             int
		wrong         string
	}{
		{"none", "-", now, 0, ""},
		{"good", string(good), now, 1, ""},
		{"old", string(good), now.Add(2 * time.Hour), 0, ""},
		{"empty", "", now, 0, `the first line is ""`},
		{"damaged", strings.Replace(string(good), "192.0.2.1", "192.0.2.2", 1), now, 0, "the checksum is wrong"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, File)
			if tc.content != "-" {
				if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			check := func(all map[string]Saved, err error, wrong string) {
				t.Helper()
				if len(all) != tc.n || (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
					t.Errorf("got %v, %v; want %d and %q", all, err, tc.n, wrong)
				}
			}
			all, err := Peek(dir, tc.at, time.Hour)
			check(all, err, tc.wrong)
			if _, err := os.Stat(path); tc.content != "-" && err != nil {
				t.Error("Peek has moved the file")
			}
			all, err = Load(dir, tc.at, time.Hour)
			check(all, err, tc.wrong)
			aside, err := os.ReadFile(path + ".bad")
			if moved := err == nil; moved != (tc.wrong != "") || moved && string(aside) != tc.content {
				t.Errorf("set aside: %q, %v", aside, err)
			}
			all, err = Load(dir, tc.at, time.Hour)
			check(all, err, "")
		})
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, File), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, now, time.Hour); err == nil {
		t.Error("a directory is read as a file")
	}
	if _, err := os.Stat(filepath.Join(dir, File)); err != nil {
		t.Error("what could not be read was set aside")
	}
}
