package main

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/target"
)

const targetCorefile = `example.com {
    gslb {
        STATE
        resolvers 127.0.0.53
        region us eu
        host www.example.com {
            order us eu
            pool us {
                target lb.example.net
            }
            pool eu 192.0.2.9
        }
        host only.example.com {
            order us
            pool us { target missing.example.net }
        }
    }
}
`

// Targets are what the server saved, and nothing is resolved here.
func TestSavedTargets(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	file := filepath.Join(state, target.File)
	conf := filepath.Join(dir, "Corefile")
	put := func(path string, content []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says := func(what string, args []string, wants ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(append(args[:1:1], append([]string{"-conf", conf}, args[1:]...)...), &out, &errs); code != 0 {
			t.Fatalf("%s: exit code %d: %s", what, code, errs.String())
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: want %q in\n%s", what, want, out.String())
			}
		}
	}
	ask := []string{"explain", "-type", "A", "www.example.com", "198.51.100.1"}
	put(conf, []byte(strings.Replace(targetCorefile, "STATE", "", 1)))
	says("no state", []string{"check"}, "lb.example.net. missing.example.net.: unresolved here, as the block has no state directory")
	says("no state", ask, "192.0.2.9  ttl")

	put(conf, []byte(strings.Replace(targetCorefile, "STATE", "state "+state, 1)))
	says("nothing saved", []string{"check"}, "lb.example.net. missing.example.net.: unresolved here, as the server has saved no address")
	saved := func(age time.Duration) {
		t.Helper()
		data, err := target.Encode(map[string]target.Saved{"lb.example.net. 127.0.0.53:53": {
			V4: target.Family{Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, At: time.Now().Add(-age), TTL: time.Minute},
		}})
		if err != nil {
			t.Fatal(err)
		}
		put(file, data)
	}
	saved(10 * time.Minute)
	says("saved", []string{"check"}, "missing.example.net.: unresolved here")
	says("saved", ask, "192.0.2.1  ttl")
	saved(2 * time.Hour)
	says("too old", ask, "192.0.2.9  ttl")
	put(file, []byte("damaged"))
	says("damaged", []string{"check"}, "as what the server saved can't be read: ")
	says("damaged", ask, "192.0.2.9  ttl", "CAN'T BE READ")
	if content, err := os.ReadFile(file); err != nil || string(content) != "damaged" {
		t.Errorf("the file was touched: %q, %v", content, err)
	}
}
