package steer

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestDecideFollowsModel(t *testing.T) {
	by := make(map[By]int)
	for seed := range uint64(3000) {
		compare(t, seed, by)
	}
	t.Log(by)
	for b := ByNone; b <= ByForced; b++ {
		if by[b] < 100 {
			t.Errorf("%d decisions by %q; too few to trust the comparison", by[b], b)
		}
	}
}

func FuzzDecide(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(1<<32 + seed)
	}
	f.Fuzz(compareWithModel)
}

func compareWithModel(t *testing.T, seed uint64) { compare(t, seed, make(map[By]int)) }

// compare compares decisions and their traces on one random host, and counts what
// decided.
func compare(t *testing.T, seed uint64, by map[By]int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg := randomHost(rng)
	h := mustHost(t, cfg)
	state := randomState(rng, cfg)
	levers := randomLevers(rng, cfg)
	s := h.NewSnapshot(state, levers)
	m := newModel(cfg, state, levers)
	if s.HeldUp() != len(m.kept) {
		t.Fatalf("seed %d: %d regions held up; want %d", seed, s.HeldUp(), len(m.kept))
	}
	for range 12 {
		c := randomClient(rng, cfg)
		for f := range Family(families) {
			m.c, m.f = c, f
			want := m.decide()
			got := h.Decide(s, &c, f, nil)
			by[got.By]++
			var addrs []netip.Addr
			name := ""
			if got.Answer != nil {
				addrs, name = got.Answer.Addrs, got.Answer.Name
			}
			is := modelDecision{got.Outcome, got.Region, addrs, name, got.By, got.Class, got.Scope, got.Reason, got.FamilyMoved}
			if got.Shed != (got.By == ByShed) || is.name != want.name || is.by != want.by || is.outcome != want.outcome || is.region != want.region || is.class != want.class || is.scope != want.scope ||
				is.reason != want.reason || is.moved != want.moved || !slices.Equal(is.addrs, want.addrs) {
				t.Fatalf("seed %d, %v %+v:\n got %+v\nwant %+v\nhost %+v", seed, f, c, is, want, cfg)
			}
			var tr Trace
			if traced := h.Decide(s, &c, f, &tr); traced != got {
				t.Fatalf("seed %d: with a trace %+v, without %+v", seed, traced, got)
			}
			checkTrace(t, seed, h, &m, got, &tr)
		}
	}
}

// checkTrace holds a trace to the decision and to the model's order.
func checkTrace(t *testing.T, seed uint64, h *Host, m *model, d Decision, tr *Trace) {
	t.Helper()
	if d.Outcome == OutcomeNoFamily || d.Outcome == OutcomeRefused {
		if len(tr.Candidates) > 0 {
			t.Fatalf("seed %d: candidates for outcome %v", seed, d.Outcome)
		}
		return
	}
	var order, want []string
	chosen := 0
	for _, c := range tr.Candidates {
		if c.Tier != "last_resort" {
			order = append(order, c.Region)
		}
		if c.Status == statusChosen {
			chosen++
			if c.Region != h.regionName(d.Region) {
				t.Fatalf("seed %d: trace chose %s, decision %s", seed, c.Region, h.regionName(d.Region))
			}
		}
		r := Region(slices.Index(m.cfg.Regions, c.Region))
		spilled := m.candidate(r, m.f, m.usable) && !m.takes(r, m.f)
		if c.Tier != "last_resort" && c.Why != "trickled" && (c.Why == "spilled") != spilled {
			t.Fatalf("seed %d: %s is %q", seed, c.Region, c.Why)
		}
		if m.cfg.Pools[r] != nil {
			checkLevers(t, m.levers(r), &c)
		}
		if m.usable(r, m.f) {
			if want, _ := m.available(r, m.f).Float64(); (c.Availability > 0) != (want < 1) || c.Availability > 0 && math.Abs(c.Availability-want) > 1e-4 {
				t.Fatalf("seed %d: %s has availability %v; want %v", seed, c.Region, c.Availability, want)
			}
		}
		if c.Status == statusPassed && c.Why == "" {
			t.Fatalf("seed %d: %s passed over without a reason", seed, c.Region)
		}
		if c.Status == statusNext && chosen == 0 && d.By != ByShare && d.By != ByTrickle {
			t.Fatalf("seed %d: %s is next before anything was chosen", seed, c.Region)
		}
	}
	for _, r := range m.order() {
		if name := m.cfg.Regions[r]; !slices.Contains(want, name) {
			want = append(want, name)
		}
	}
	if strings.Join(order, " ") != strings.Join(want, " ") {
		t.Fatalf("seed %d: trace orders %v, model %v", seed, order, want)
	}
	if (chosen == 1) != (d.Region != NoRegion) {
		t.Fatalf("seed %d: %d chosen in the trace, region %v", seed, chosen, d.Region)
	}
}

// checkLevers holds a candidate's levers to those that are moved.
func checkLevers(t *testing.T, l Levers, c *TraceCandidate) {
	t.Helper()
	parts := make(map[string]float64)
	for _, x := range c.Levers {
		parts[x.Lever] = x.Part
	}
	_, shared := parts["share"]
	dial, dialled := parts["dial"]
	trickle, trickles := parts["trickle"]
	if shared != l.Shared || dialled != (l.Dial < 1) || dialled && dial != l.Dial || trickles != (l.Trickle > 0) || trickle != l.Trickle {
		t.Fatalf("%s has levers %+v; want %+v", c.Region, c.Levers, l)
	}
}
