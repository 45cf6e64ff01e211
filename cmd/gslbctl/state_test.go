package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
)

const checkedCorefile = `example.com {
    gslb {
        STATE
        nets nets.txt
        region eu us
        check web {
            http /healthz
        }
        host www.example.com {
            check web
            order eu us
            pool eu 192.0.2.1
            pool us 192.0.2.2
        }
    }
}
`

// TestSavedVerdicts: explain goes by what a server saved, works on its copies of
// data files, and says when it can't know.
func TestSavedVerdicts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nets := write("nets.txt", "203.0.113.0/24 us\n")
	state := filepath.Join(dir, "state")
	explain := func(corefile string) string {
		t.Helper()
		conf := write("Corefile", strings.NewReplacer("nets.txt", nets).Replace(corefile))
		var out, errs bytes.Buffer
		if code := run([]string{"explain", "-conf", conf, "-type", "A", "www.example.com", "198.51.100.1"}, &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		return out.String()
	}
	if out := explain(strings.Replace(checkedCorefile, "STATE", "", 1)); !strings.Contains(out, "NOT KNOWN: the block has no state directory") {
		t.Errorf("without a state directory:\n%s", out)
	}

	with := strings.Replace(checkedCorefile, "STATE", "state "+state, 1)
	blocks, err := readCorefile(write("Corefile", strings.NewReplacer("nets.txt", nets).Replace(with)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := blocks[0].build()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Data.Keep(state, time.Now()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	key := keyOfFirst(p)
	if err := probe.NewStore(state).Save(map[string]probe.Saved{key: {
		Verdict: probe.VerdictDown, Since: now.Add(-time.Minute), At: now, Notes: []probe.Note{{At: now, Reason: "status 500"}},
	}}); err != nil {
		t.Fatal(err)
	}
	write("nets.txt", "no prefix\n")
	out := explain(with)
	for _, want := range []string{"192.0.2.2  ttl", "web: down since", "status 500", "passed over: down"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// keyOfFirst is the key of the first endpoint's probe.
func keyOfFirst(p *plan.Plan) string {
	h := &p.Block.Hosts[0]
	return probe.KeyOf(p.Checks(&h.Pools[0])[0], plan.Target(h, &h.Pools[0].Endpoints[0])).String()
}
