package plan_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/mmdbtest"
	"github.com/seed-945f90c5/gslb/internal/plan"
)

const located = `
	geoip country geo.mmdb optional
	nets nets.txt
	region eu {
		clients continent EU
	}
	region us {
		clients rest
	}
	host api.example.com {
		pool eu 203.0.113.7
		pool us 203.0.113.8
	}`

// country is a database that says one continent of n networks with gaps between.
func country(t *testing.T, n int, continent string) string {
	t.Helper()
	var nets []string
	for i := range n {
		nets = append(nets, fmt.Sprintf("198.51.%d.0/24", 2*i+1))
	}
	return countryOf(t, continent, nets...)
}

// countryOf is a database that says one continent of networks.
func countryOf(t *testing.T, continent string, nets ...string) string {
	t.Helper()
	d := mmdbtest.Database{Type: "GeoLite2-Country"}
	for _, n := range nets {
		d.Networks = append(d.Networks, mmdbtest.Network{Prefix: n, Record: mmdbtest.Country(continent, "DE")})
	}
	file, err := d.Build()
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// region is the first region of a client of the plan's only host.
func region(p *plan.Plan, client string) string {
	c := p.Hosts[0].Locate(prefix(client), addr("192.0.2.53"))
	return p.Hosts[0].First(c.List)
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	nets := put(t, dir, "nets.txt", "203.0.113.0/24 eu\n")
	geo := filepath.Join(dir, "geo.mmdb")
	b := mustParse(t, "example.com", located)
	p, err := plan.Build(b, plan.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	first := p.Digest
	for _, step := range []struct {
		why, path, content string
		mustFail           string
		client, want       string
	}{
		{"without the database", "", "", "", "198.51.1.0/24", "us"},
		{"nets are in use", "", "", "", "203.0.113.0/24", "eu"},
		{"the optional file appears", geo, country(t, 9, "EU"), "", "198.51.1.0/24", "eu"},
		{"it changes", geo, country(t, 9, "NA"), "", "198.51.1.0/24", "us"},
		{"it shrinks by less than half", geo, country(t, 5, "EU"), "", "198.51.1.0/24", "eu"},
		{"it shrinks by more", geo, country(t, 2, "NA"), "has 2 networks where the copy in use has 5, of which it holds only 2", "198.51.1.0/24", "eu"},
		{"it merges", geo, countryOf(t, "NA", "198.51.0.0/16"), "", "198.51.2.0/24", "us"},
		{"it splits again", geo, country(t, 5, "EU"), "", "198.51.1.0/24", "eu"},
		{"it breaks", geo, "no database", "not a whole MaxMind DB file", "198.51.1.0/24", "eu"},
		{"it is gone", geo, "", "no such file", "198.51.1.0/24", "eu"},
		{"it returns", geo, country(t, 4, "NA"), "", "198.51.1.0/24", "us"},
		{"nets change", nets, "203.0.113.0/24 us eu\n", "", "203.0.113.0/24", "us"},
		{"nets break", nets, "203.0.113.0/24\n", "expected \"PREFIX REGION…\"", "203.0.113.0/24", "us"},
		{"nets name a region that is none", nets, "203.0.113.0/24 eu\n192.0.2.0/24 mars\n", "unknown region \"mars\"", "203.0.113.0/24", "us"},
		{"nets are empty", nets, "# nothing\n", "has 0 prefixes where the copy in use has 1", "203.0.113.0/24", "us"},
		{"nets have neighbours", nets, "203.0.113.0/26 us\n203.0.113.64/26 us\n203.0.113.128/26 us\n203.0.113.192/26 us\n", "", "203.0.113.0/26", "us"},
		{"nets are cut", nets, "203.0.113.0/26 us\n", "has 1 prefixes where the copy in use has 4", "203.0.113.64/26", "us"},
		{"nets are cut, but for one round them for others", nets, "203.0.0.0/16 eu\n", "of which it holds only 0", "203.0.113.64/26", "us"},
		{"nets merge", nets, "203.0.113.0/24 us\n", "", "203.0.113.0/24", "us"},
		{"nets as at first", nets, "203.0.113.0/24 eu\n", "", "203.0.113.0/24", "eu"},
	} {
		if step.path != "" {
			before := *p
			next, err := change(t, p, step.path, step.content, dir)
			switch {
			case step.mustFail == "" && err != nil:
				t.Fatalf("%s: %v", step.why, err)
			case step.mustFail != "" && (err == nil || !strings.Contains(err.Error(), step.mustFail)):
				t.Fatalf("%s: got %v, want an error with %q", step.why, err, step.mustFail)
			case err == nil:
				p = next
			case p.Digest != before.Digest:
				t.Fatalf("%s: the plan in use has changed", step.why)
			}
		}
		if got := region(p, step.client); got != step.want {
			t.Errorf("%s: %s gets %s, want %s", step.why, step.client, got, step.want)
		}
	}
	if err := os.Remove(geo); err != nil {
		t.Fatal(err)
	}
	if p, err = plan.Build(b, plan.Options{Root: dir}); err != nil || p.Digest != first {
		t.Errorf("the same files give another digest, or %v", err)
	}
}

// change puts a file in place, or away when it has no content, and takes it in.
func change(t *testing.T, p *plan.Plan, path, content, root string) (*plan.Plan, error) {
	t.Helper()
	if content == "" {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	} else {
		put(t, root, filepath.Base(path), content)
	}
	data, err := p.Data.Reload(path, time.Time{})
	if err != nil {
		return nil, err
	}
	return plan.Compile(p.Block, data, plan.Options{Root: root})
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	nets := put(t, dir, "nets.txt", "203.0.113.0/24 eu\n")
	p := build(t, dir, located)
	files := p.Data.Files()
	if len(files) != 2 || files[0].Path != filepath.Join(dir, "geo.mmdb") || files[0].Loaded || files[1].Path != nets || !files[1].Loaded {
		t.Errorf("got %+v", files)
	}
	if len(p.Data.Databases()) != 0 {
		t.Error("a missing database is described")
	}
	put(t, dir, "geo.mmdb", country(t, 3, "EU"))
	p = build(t, dir, located)
	if files := p.Data.Files(); !files[0].Loaded || files[0].Hash == 0 {
		t.Errorf("got %+v", files)
	}
	if d := p.Data.Databases(); d["country"].Networks != 3 {
		t.Errorf("got %+v", d)
	}
}

func TestDataErrors(t *testing.T) {
	const host = "\nhost api.example.com {\n pool eu 203.0.113.7\n pool us 203.0.113.8\n}"
	dir := t.TempDir()
	put(t, dir, "broken.mmdb", "x")
	put(t, dir, "mars.txt", "# regions\n203.0.113.0/24 eu mars\n")
	put(t, dir, "bad.txt", "203.0.113.0/33\n")
	put(t, dir, "a.txt", "203.0.113.0/24 eu\n198.51.100.0/24 us\n")
	put(t, dir, "b.txt", "192.0.2.0/24 eu\n198.51.100.0/24 us\n")
	put(t, dir, "plain.txt", "203.0.113.0/24\n")
	for _, c := range []struct{ name, statements, want string }{
		{"missing", "geoip country none.mmdb", "Corefile:2: geoip country: "},
		{"optional but broken", "geoip country broken.mmdb optional", "not a whole MaxMind DB file"},
		{"missing nets", "nets none.txt", "Corefile:2: "},
		{"unknown region", "nets mars.txt", `mars.txt:2: unknown region "mars": expected one of eu, us`},
		{"bad prefix", "clients file bad.txt {\n order eu\n}\nclients rest {\n order us\n}", "bad.txt:1"},
		{"two nets files", "nets a.txt\nnets b.txt", "b.txt:2: prefix 198.51.100.0/24 is already written at a.txt:2: write it once"},
		{"nets and clients prefix", "clients prefix 203.0.113.0/24 {\n order eu\n}\nnets a.txt", "a.txt:1: prefix 203.0.113.0/24 is already written at Corefile:2"},
		{"nets and clients file", "clients file plain.txt {\n order eu\n}\nnets a.txt", "a.txt:1: prefix 203.0.113.0/24 is already written at Corefile:2"},
		{"nets as file", "nets a.txt\nclients file a.txt {\n order eu\n}", "a.txt is used as nets and as a file of prefixes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := buildError(t, dir, c.statements+"\nregion eu us"+host); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRoot holds that relative paths are under the root, and absolute ones not.
func TestRoot(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "nets.txt", "203.0.113.0/24 us\n")
	const rest = "\nregion eu us\nhost api.example.com {\n pool eu 203.0.113.7\n pool us 203.0.113.8\n}"
	for _, root := range []string{dir, "/nonexistent"} {
		file := "nets.txt"
		if root != dir {
			file = path
		}
		if got := region(build(t, root, "nets "+file+rest), "203.0.113.0/24"); got != "us" {
			t.Errorf("root %s: got %s", root, got)
		}
	}
}

func TestLongPrefixes(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "nets.txt", "203.0.113.0/25 us\n203.0.113.128/25 us\n198.51.100.0/24 us\n2001:db8::/57 us\n")
	put(t, dir, "plain.txt", "192.0.2.1\n192.0.2.128/25\n")
	put(t, dir, "short.txt", "10.0.0.0/8\n")
	const hosts = `
	nets nets.txt
	region eu us
	area few file short.txt
	area some file plain.txt
	policy p {
		clients file plain.txt {
			order us eu
		}
		clients rest {
			order eu us
		}
	}
	host a.example.com {
		policy p
		pool eu 203.0.113.7
		pool us 203.0.113.8
	}
	host b.example.com {
		policy p
		pool eu 203.0.113.7
		pool us 203.0.113.8
	}`
	var got []string
	for _, w := range build(t, dir, hosts).Warnings {
		got = append(got, w.Pos.String()+" "+w.Text)
	}
	want := []string{
		"Corefile:3 3 of 4 prefixes in nets.txt are longer",
		"Corefile:8 2 of 2 prefixes in plain.txt are longer",
		"Corefile:6 2 of 2 prefixes in plain.txt are longer",
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("no warning %q", w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
	for _, ecs := range []string{"ecs off", "ecs {\n max 32 64\n}"} {
		if ws := build(t, dir, hosts+"\n"+ecs).Warnings; len(ws) != 0 {
			t.Errorf("%s: %v", ecs, ws)
		}
	}
}

// TestSharedFile has one file serve as two databases: what is wrong with it is told the same
// way each time.
func TestSharedFile(t *testing.T) {
	dir := t.TempDir()
	record := mmdbtest.Place{Continent: "EU", Country: "DE", City: "Berlin", At: &mmdbtest.Point{Lat: 52, Lon: 13}}.Record()
	maps.Copy(record, mmdbtest.ASN(64496, "both"))
	file, err := mmdbtest.Database{Type: "Both", Networks: []mmdbtest.Network{{Prefix: "198.51.100.0/24", Record: record}}}.Build()
	if err != nil {
		t.Fatal(err)
	}
	both := put(t, dir, "both.mmdb", string(file))
	p := build(t, dir, "geoip city both.mmdb\ngeoip asn both.mmdb\nregion eu\nhost a.example.com {\n pool eu 203.0.113.7\n}")
	if files := p.Data.Files(); len(files) != 1 || files[0].Path != both || !files[0].Loaded {
		t.Errorf("got %+v", files)
	}
	put(t, dir, "both.mmdb", country(t, 3, "EU")) // neither cities nor AS numbers
	for range 30 {
		if _, err := p.Data.Reload(both, time.Time{}); err == nil || !strings.Contains(err.Error(), "AS numbers") {
			t.Fatalf("got %v", err)
		}
	}
}
