package gslb

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/mmdbtest"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// countryFile writes a database that puts 198.51.100.0/24, and n networks
// besides, into a country.
func countryFile(t *testing.T, path, country string, n int) {
	t.Helper()
	nets := []mmdbtest.Network{{Prefix: "198.51.100.0/24", Record: mmdbtest.Country("EU", country)}}
	for i := range n {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(2 * i), 0, 0}), 16)
		nets = append(nets, mmdbtest.Network{Prefix: p.String(), Record: mmdbtest.Country("EU", "DE")})
	}
	db := mmdbtest.Database{Type: "Test-Country", Networks: nets}
	data, err := db.Build()
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, data)
}

// replace renames a new file over path.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestReloadOfData(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.mmdb")
	countryFile(t, path, "DE", 10)
	synctest.Test(t, func(t *testing.T) {
		g := load(t, "gslb {\ngeoip country "+path+"\nregion de fr\nclients country DE {\norder de fr\n}\nclients rest {\norder fr de\n}\n"+
			"host api.example.com {\npool de 192.0.2.1\npool fr 192.0.2.2\n}\n}", nil)
		gen := &generation{loaded: []*GSLB{g}}
		running.start(gen, g)
		defer running.stop(gen)

		region := func() string {
			m, _ := serve(t, g, ask("api.example.com.", dns.TypeA, "198.51.100.0/24"))
			return addrs(m)
		}
		settle := func() { // two looks and some
			time.Sleep(3 * watchEvery)
			synctest.Wait()
		}
		check := func(what, want string, failing, good, bad float64) {
			t.Helper()
			settle()
			if got := region(); got != want {
				t.Errorf("%s: got %s, want %s", what, got, want)
			}
			f := testutil.ToFloat64(fileFailing.WithLabelValues(path))
			s := testutil.ToFloat64(fileReloads.WithLabelValues(path, "success"))
			e := testutil.ToFloat64(fileReloads.WithLabelValues(path, "error"))
			if f != failing || s != good || e != bad {
				t.Errorf("%s: failing %v, reloads %v, errors %v; want %v, %v, %v", what, f, s, e, failing, good, bad)
			}
		}
		check("at first", "192.0.2.1", 0, 0, 0)
		countryFile(t, path, "FR", 10)
		check("new content", "192.0.2.2", 0, 1, 0)
		replace(t, path, []byte("garbage"))
		check("a broken file", "192.0.2.2", 1, 1, 1)
		countryFile(t, path, "DE", 2)
		check("a shrunk file", "192.0.2.2", 1, 1, 2)
		countryFile(t, path, "DE", 9)
		check("a good file again", "192.0.2.1", 0, 2, 2)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		check("no file", "192.0.2.1", 1, 2, 3)
	})
	if n := testutil.CollectAndCount(databaseNetworks); n != 0 {
		t.Errorf("%d databases are still shown after the end", n)
	}
}

// TestReloadUnderQueries asks while plans are replaced; run it with -race.
func TestReloadUnderQueries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.mmdb")
	countryFile(t, path, "DE", 10)
	g := load(t, "gslb {\ngeoip country "+path+"\nregion de fr\nclients country DE {\norder de fr\n}\nclients rest {\norder fr de\n}\n"+
		"host api.example.com {\npool de 192.0.2.1\npool fr 192.0.2.2\n}\n}", nil)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				m, _ := serve(t, g, ask("api.example.com.", dns.TypeA, "198.51.100.0/24"))
				if got := addrs(m); !strings.HasPrefix(got, "192.0.2.") {
					t.Errorf("got %s", m)
					return
				}
			}
		})
	}
	for i := range 50 {
		countryFile(t, path, []string{"FR", "DE"}[i%2], 10)
		if err := g.reloadFile(path); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}
