package plan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/control"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// leverNow is within some of the windows that withLevers writes, and before others.
var leverNow = time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)

// withLevers writes random levers into the regions and pools of a random block.
func withLevers(r *rand.Rand, text string) string {
	w := &writer{Rand: r}
	when := func() string {
		return w.pick("", "", "from 2026-12-01T22:00:00Z", "until 2026-12-01T22:30:00Z", "daily 22:00-06:00 Z", "from 2026-12-02T00:00:00Z until 2026-12-02T04:00:00Z")
	}
	for line := range strings.Lines(text) {
		w.WriteString(line)
		if !strings.HasPrefix(line, "region ") && !strings.HasPrefix(line, "pool ") {
			continue
		}
		if w.maybe(15) {
			w.line("drain %s", when())
		}
		if w.maybe(30) {
			w.line("dial %d%% %s", w.IntN(101), when())
		}
		if w.maybe(15) {
			w.line("share %d%% %s %s", w.IntN(40), w.pick("", "area some"), when())
		}
		if w.maybe(20) {
			w.line("trickle %d%%", w.IntN(51))
		}
		if w.maybe(20) {
			w.line("ramp %ds", w.IntN(100))
		}
	}
	return w.String()
}

// anything is a backend for which every object exists.
type anything struct{ control.Backend }

func (anything) Digest() string { return "d" }
func (anything) Base(_ context.Context, l control.Lever, o control.Object) (control.Base, error) {
	return control.Base{Object: o, Value: "none"}, nil
}
func (anything) WhatIf(context.Context, *control.Overrides) (control.Report, error) {
	return control.Report{}, nil
}
func (anything) Publish(context.Context, control.Publication) error { return nil }

// overridden makes overrides: lines "LEVER OBJECT… VALUE [area NAME]", where an object
// is region=NAME, host=NAME or endpoint=ADDRESS.
func overridden(t *testing.T, lines ...string) *control.Overrides {
	t.Helper()
	store, err := control.Open(control.StoreOptions{Dir: t.TempDir(), Backend: anything{}, Now: func() time.Time { return leverNow }, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	request := control.Request{Change: control.Change{Terms: control.Terms{Why: "test", Never: true}}}
	for _, line := range lines {
		words := strings.Fields(line)
		c := control.Change{Lever: control.Lever(words[0])}
		for i := 1; i < len(words); i++ {
			key, value, named := strings.Cut(words[i], "=")
			switch {
			case key == "region":
				c.Region = value
			case key == "host":
				c.Host = value
			case key == "endpoint":
				c.Endpoint = netip.MustParseAddr(value)
			case key == "area":
				c.Area = value
			case !named:
				c.Value = control.Value(key)
			}
		}
		request.Changes = append(request.Changes, c)
	}
	if len(lines) > 0 {
		if _, err := store.Do(t.Context(), control.Author{Name: "alice"}, &request); err != nil {
			t.Fatal(err)
		}
	}
	return store.Overrides()
}

// randomOverrides are some for the regions, pools and endpoints of a plan.
func randomOverrides(t *testing.T, r *rand.Rand, p *plan.Plan) *control.Overrides {
	w := &writer{Rand: r}
	lines := make(map[string]string)
	for range r.IntN(8) {
		h := p.Hosts[r.IntN(len(p.Hosts))]
		pool := &h.Config.Pools[r.IntN(len(h.Config.Pools))]
		region := "region=" + pool.Region + w.pick("", " host="+h.Config.Names[0])
		endpoint := "endpoint=" + pool.Endpoints[r.IntN(len(pool.Endpoints))].Addr.String() + w.pick("", " region="+pool.Region, " host="+h.Config.Names[0])
		one := [][2]string{
			{"drain " + region, w.pick("on", "off")}, {"dial " + region, fmt.Sprintf("%d%%", r.IntN(101))},
			{"share " + region, w.pick("off", "7%", "40%", "5% area=some")}, {"trickle " + region, fmt.Sprintf("%d%%", r.IntN(51))},
			{"drain " + endpoint, w.pick("on", "off")}, {"weight " + endpoint, fmt.Sprint(r.IntN(9))}, {"force " + endpoint, w.pick("up", "down")},
		}[r.IntN(7)]
		lines[one[0]] = one[0] + " " + one[1]
	}
	var all []string
	for _, line := range lines {
		all = append(all, line)
	}
	slices.Sort(all)
	return overridden(t, all...)
}

// randomMoves are levers of a plan at some time, with what comes on top.
func randomMoves(t *testing.T, r *rand.Rand, p *plan.Plan) *plan.Moves {
	m := &plan.Moves{Now: leverNow.Add(time.Duration(r.IntN(24)-4) * time.Hour), Overrides: randomOverrides(t, r, p)}
	seed := r.Uint64()
	part := func(x ...any) float64 {
		h := seed
		for _, b := range []byte(fmt.Sprint(x...)) {
			h = (h ^ uint64(b)) * 0x100000001b3
		}
		return float64(h>>11) / (1 << 53)
	}
	if r.IntN(2) == 0 {
		m.Ramp = func(h *plan.Host, r steer.Region) float64 { return part("ramp", h.Index, r) }
	}
	if r.IntN(2) == 0 {
		m.Admission = func(h *plan.Host, r steer.Region) (all []float64) {
			for l := range h.Need.Topology.Lists {
				all = append(all, part("admission", h.Index, r, l))
			}
			return all
		}
	}
	return m
}

// TestLeversKeepScopes holds that neither levers nor overrides, ramps, admissions and
// verdicts ever change the scope of an answer, and that they do move clients.
func TestLeversKeepScopes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	valid, answers, moved := 0, 0, 0
	for tries := 0; valid < 60; tries++ {
		if tries > 20000 {
			t.Fatalf("only %d blocks are valid", valid)
		}
		text := withLevers(r, randomBlock(r))
		b, err := parse("example.com", text)
		if err != nil {
			continue
		}
		p, err := plan.Build(b, plan.Options{Root: fixtures})
		if err != nil {
			continue
		}
		valid++
		calm := snapshots(p)
		for range 4 {
			verdict := func(e *config.Endpoint) steer.EndpointState {
				if st := plan.Written(e); r.IntN(3) > 0 {
					return st
				}
				return steer.EndpointState{Verdict: steer.Down, Reason: "test"}
			}
			others := p.Snapshots(verdict, randomMoves(t, r, p))
			for range 40 {
				h := p.Hosts[r.IntN(len(p.Hosts))]
				subnet, transport := randomClient(r)
				c := h.Locate(subnet, transport)
				f := steer.Family(r.IntN(2))
				before, after := h.Steer.Decide(calm[h.Index], &c, f, nil), h.Steer.Decide(others[h.Index], &c, f, nil)
				if before.Scope != after.Scope {
					t.Fatalf("client %v of %s: scope %d, and with levers %d\n%s", subnet, h.Config.Names[0], before.Scope, after.Scope, text)
				}
				answers++
				if before.Region != after.Region {
					moved++
				}
			}
		}
	}
	t.Logf("levers moved %d of %d clients", moved, answers)
	if moved < answers/20 {
		t.Errorf("levers moved %d of %d clients: they are not tested", moved, answers)
	}
}
