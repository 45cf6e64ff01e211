package gslb

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// A host that two views have is told apart in status, what-if and explanations. An
// override of it holds in both.
func TestViewsAreToldApart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newWorld().clerk(t, dir)
		outside := strings.Replace(guarded("b"), "pool a 192.0.2.1\n", "", 1)
		c.desk.users++
		gen := &generation{desk: c.desk, loaded: []*GSLB{
			servedAt(t, ":53 inside example.com.", guarded("a")), servedAt(t, ":53 outside example.com.", outside),
		}}
		for _, g := range gen.loaded {
			if err := c.registry.start(gen, g); err != nil {
				t.Fatal(err)
			}
		}
		defer c.stop(gen)
		back := backend{c.registry, c.desk.store}

		status, err := back.Status(t.Context())
		if err != nil || len(status.Hosts) != 2 || status.Hosts[0].View != "inside" || status.Hosts[1].View != "outside" {
			t.Errorf("the status has %+v, %v", status.Hosts, err)
		}

		r := c.must(t, "dial 0 region=a host=api.example.com")
		if h := r.Report.Hosts; len(h) != 1 || h[0].Host != "api.example.com." || h[0].View != "inside" || h[0].MovedBlocks != 100 || r.Report.MovedBlocks != 50 {
			t.Errorf("%g %% move, of hosts %+v", r.Report.MovedBlocks, h)
		}
		parts := 0.0
		for _, k := range r.Report.Kinds {
			if parts += k.Blocks; k.MovedBlocks != 50 || !strings.HasSuffix(k.Kind, " asking for A") {
				t.Errorf("of a kind moves %+v", k)
			}
		}
		if len(r.Report.Kinds) != 4 || math.Abs(parts-100) > 1e-9 || r.Report.Kind != "IPv6 resolvers asking for A" { // of which there are most
			t.Errorf("%q of %+v", r.Report.Kind, r.Report.Kinds)
		}
		c.must(t, "dial 100 region=a host=api.example.com")
		r, err = c.do("drain on endpoint=192.0.2.2")
		if s := r.Report.Stranded; err == nil || len(s) != 1 || s[0].View != "outside" {
			t.Errorf("stranded are %+v, %v", s, err)
		}

		question := control.Question{Host: "api.example.com.", Client: netip.MustParsePrefix("198.51.100.0/24")}
		for view, want := range map[string]int{"": 2, "inside": 1, "outside": 1} {
			question.View = view
			e, err := back.Explain(t.Context(), question)
			if err != nil || len(e.Blocks) != want || want == 1 && e.Blocks[0].View != view {
				t.Errorf("view %q: %+v, %v", view, e.Blocks, err)
			}
		}
		question.View = "insid"
		if _, err := back.Explain(t.Context(), question); err == nil || !strings.Contains(err.Error(), `view: there is no view insid; did you mean "inside"?`) {
			t.Errorf("an unknown view: %v", err)
		}
	})
}
