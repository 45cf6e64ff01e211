package steer

import (
	"encoding/json"
	"strings"
	"testing"
)

// A pool with a name answers it for both families, and any endpoint of any family
// keeps it in use.
func TestNamedPools(t *testing.T) {
	named := func() HostConfig {
		cfg := two(pools("192.0.2.1 2001:db8::1", "198.51.100.1 2001:db8:1::1"))
		cfg.Pools[0].Name = "lb.example."
		return cfg
	}
	onlyV4 := func() HostConfig {
		cfg := two(pools("192.0.2.1", "198.51.100.1"))
		cfg.Pools[0].Name = "lb.example."
		return cfg
	}
	tests := []struct {
		name   string
		cfg    HostConfig
		states map[string]EndpointState
		v4, v6 string
	}{
		{"up", named(), nil, "answer eu lb.example.", "answer eu lb.example."},
		{"one family down", named(), map[string]EndpointState{"192.0.2.1": isDown}, "answer eu lb.example.", "answer eu lb.example."},
		{"down", named(), map[string]EndpointState{"192.0.2.1": isDown, "2001:db8::1": isDown}, "answer us 198.51.100.1", "answer us 2001:db8:1::1"},
		{"drained", named(), map[string]EndpointState{"192.0.2.1": isDrained, "2001:db8::1": isDrained}, "answer us 198.51.100.1", "answer us 2001:db8:1::1"},
		{"all down", named(), map[string]EndpointState{"192.0.2.1": isDown, "2001:db8::1": isDown, "198.51.100.1": isDown, "2001:db8:1::1": isDown},
			"last_resort eu lb.example.", "last_resort eu lb.example."},
		{"IPv4 endpoints only", onlyV4(), nil, "answer eu lb.example.", "answer eu lb.example."},
		{"IPv4 endpoints only, down", onlyV4(), map[string]EndpointState{"192.0.2.1": isDown}, "answer us 198.51.100.1", "last_resort eu lb.example."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prepared := 0
			tt.cfg.Prepare = func(a *Answer) any { prepared++; return a.Name }
			h := mustHost(t, tt.cfg)
			s := h.NewSnapshot(states(&tt.cfg, tt.states), nil)
			for f, want := range []string{tt.v4, tt.v6} {
				d := h.Decide(s, nthClient(1), Family(f), nil)
				if got := strings.TrimSuffix(outcome(h, d), " moved"); got != want {
					t.Errorf("%v: %s; want %s", Family(f), got, want)
				}
				if d.Answer.Name != "" && d.Answer.Prepared != d.Answer.Name {
					t.Errorf("prepared as %v", d.Answer.Prepared)
				}
			}
			if a := h.Decide(s, nthClient(1), V4, nil).Answer; a.Name != "" && a != h.Decide(s, nthClient(1), V6, nil).Answer {
				t.Error("the families have a name each")
			}
			if prepared > h.MaxSets() {
				t.Errorf("%d prepared; MaxSets is %d", prepared, h.MaxSets())
			}
		})
	}
	cfg := named()
	if got := mustHost(t, cfg).MaxSets(); got != 3 { // the name, and us in both families
		t.Errorf("MaxSets is %d; want 3", got)
	}
	cfg.Shed = "lb.example."
	if got := mustHost(t, cfg).MaxSets(); got != 3 { // the same name
		t.Errorf("MaxSets with the same name to shed to is %d; want 3", got)
	}
}

// Parts of a named pool's health are those of all its endpoints.
func TestNamedPoolIsPartial(t *testing.T) {
	cfg := two(pools("192.0.2.1 192.0.2.2 192.0.2.3 2001:db8::1", "198.51.100.1"))
	cfg.Pools[0].Name, cfg.SpillBelow, cfg.Pools[0].MinHealthy = "lb.example.", 50, 2
	h := mustHost(t, cfg)
	state := map[string]EndpointState{"192.0.2.1": isDown, "192.0.2.2": isDown, "192.0.2.3": isFull}
	s := h.NewSnapshot(states(&cfg, state), nil)
	for f := range Family(families) {
		if got := s.Region(0, f); got.Healthy != 0.5 || got.Availability != 0.75 {
			t.Errorf("%v: %+v", f, got)
		}
	}
	state["2001:db8::1"] = isDown
	s = h.NewSnapshot(states(&cfg, state), nil)
	if s.Region(0, V4).Usable || s.Region(0, V6).Usable {
		t.Error("usable with one endpoint alive of the two it needs")
	}
}

// While a name was never resolved, no type is denied.
func TestUnresolved(t *testing.T) {
	tests := []struct {
		rule   FamilyRule
		pools  []*PoolConfig
		v4, v6 string
	}{
		{FamiliesSame, pools("", "198.51.100.1"), "answer us 198.51.100.1", "failed nothing_left moved"},
		{FamiliesMixed, pools("", ""), "failed nothing_left", "failed nothing_left"},
		{FamiliesV4, pools("", ""), "failed nothing_left", "no_family"},
	}
	for _, tt := range tests {
		cfg := two(tt.pools)
		cfg.Families, cfg.Unresolved = tt.rule, true
		h := mustHost(t, cfg)
		for f, want := range []string{tt.v4, tt.v6} {
			if got := outcome(h, h.Decide(h.NewSnapshot(allUp, nil), nthClient(1), Family(f), nil)); got != want {
				t.Errorf("%v: %s; want %s", Family(f), got, want)
			}
		}
	}
}

func TestLiveWeights(t *testing.T) {
	weighed := func(w uint32) EndpointState { return EndpointState{Weighed: true, Weight: w} }
	downAt := func(w uint32) EndpointState { return EndpointState{Verdict: Down, Weighed: true, Weight: w} }
	tests := []struct {
		name   string
		states map[string]EndpointState
		want   string
	}{
		{"none", nil, "answer eu 192.0.2.1 192.0.2.2"},
		{"one at 0", map[string]EndpointState{"192.0.2.1": weighed(0)}, "answer eu 192.0.2.2"},
		{"one raised from 0", map[string]EndpointState{"192.0.2.3": weighed(2)}, "answer eu 192.0.2.1 192.0.2.2 192.0.2.3"},
		{"all at 0", map[string]EndpointState{"192.0.2.1": weighed(0), "192.0.2.2": weighed(0)}, "answer eu 192.0.2.1 192.0.2.2"},
		{"only the one raised from 0", map[string]EndpointState{"192.0.2.1": weighed(0), "192.0.2.2": weighed(0), "192.0.2.3": weighed(1)}, "answer eu 192.0.2.3"},
		{"one at 0, the other down", map[string]EndpointState{"192.0.2.1": weighed(0), "192.0.2.2": isDown}, "answer us 198.51.100.1"},
		{"one at 0 is down", map[string]EndpointState{"192.0.2.1": downAt(0)}, "answer eu 192.0.2.2"},
		{"set but not weighed", map[string]EndpointState{"192.0.2.1": {Weight: 7}}, "answer eu 192.0.2.1 192.0.2.2"},
		{"the least healthy part counts live weights", map[string]EndpointState{"192.0.2.1": downAt(9)}, "answer us 198.51.100.1"},
		{"and so for less", map[string]EndpointState{"192.0.2.1": {Verdict: Down}}, "answer eu 192.0.2.2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := two(pools("192.0.2.1 192.0.2.2 192.0.2.3=0", "198.51.100.1"))
			cfg.Pools[0].MinHealthyPct = 50
			h := mustHost(t, cfg)
			var tr Trace
			d := h.Decide(h.NewSnapshot(states(&cfg, tt.states), nil), nthClient(1), V4, &tr)
			if got := outcome(h, d); got != tt.want {
				t.Errorf("%s; want %s", got, tt.want)
			}
			c := tr.Candidates[0]
			if c.Written != (tt.name == "all at 0") {
				t.Errorf("configured weights hold: %v", c.Written)
			}
			for _, e := range c.Endpoints {
				if st := tt.states[e.Addr.String()]; e.Weighed != (st.Weighed && !c.Written) || e.Weighed && e.Weight != st.Weight {
					t.Errorf("endpoint %+v; want weight %+v", e, st)
				}
			}
		})
	}
}

// A live weight moves clients as a configured one does.
func TestLiveWeightsAreWeights(t *testing.T) {
	live := []uint32{3, 0, 5, MaxWeight + 9}
	cfg := poolHost(Sticky, 1, 1, 1, 1, 0)
	got := chosen(t, cfg, func(_ Region, i int) EndpointState { return EndpointState{Weighed: true, Weight: live[i] & 7} })
	want := chosen(t, poolHost(Sticky, 1, 3, 0, 5, 1), allUp)
	for n := range got {
		if got[n] != want[n] {
			t.Fatalf("client %d: endpoint %d live, %d configured", n, got[n], want[n])
		}
	}
	greatest := chosen(t, cfg, func(_ Region, i int) EndpointState { return EndpointState{Weighed: true, Weight: live[i]} })
	checkShares(t, count(greatest, 4), []uint32{3, 0, 5, MaxWeight})
}

func TestTraceOfLevers(t *testing.T) {
	cfg := orderHost(Sticky, 50, 1, 1, 1, 1)
	cfg.Shed = "full.example."
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, func(r Region) Levers {
		return []Levers{
			{Dial: 1, Ramp: 1, Shared: true, Share: 0.2, Mark: -1, Why: LeverWhy{Share: "Corefile:9"}},
			{Dial: 0.5, Ramp: 0.75, Mark: -1, Why: LeverWhy{Dial: "override 7 by ada", Ramp: "back since 12:00"}},
			{Dial: 1, Ramp: 1, Mark: -1, Trickle: 0.3, Admission: []float64{0.8}, Why: LeverWhy{Trickle: "Corefile:14", Admission: "the law"}},
			NoLevers(),
		}[r]
	})
	seen := make(map[string]bool)
	var tr Trace
	for n := range 2000 {
		d := h.Decide(s, nthClient(n), V4, &tr)
		seen[tr.By+" "+why(&tr)] = true
		if (tr.Name == "full.example.") != d.Shed || d.Shed && len(tr.Answer) > 0 {
			t.Fatalf("answer %v %q for %+v", tr.Answer, tr.Name, d)
		}
	}
	want := []string{
		"share ra:chosen rb:next rc:next rd:next",
		"share ra:chosen rb:passed(spilled) rc:next rd:next",
		"choice ra:passed(soak) rb:chosen rc:next rd:next",
		"spill ra:passed(soak) rb:passed(spilled) rc:chosen rd:next",
		"shed ra:passed(soak) rb:passed(spilled) rc:chosen rd:next",
		"trickle ra:passed(soak) rb:passed(spilled) rc:passed(trickled) rd:chosen",
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("never: %s", w)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("traces %v; want %d kinds", seen, len(want))
	}
	text, err := json.Marshal(tr.Candidates)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"levers":[{"lever":"share","part":0.2,"why":"Corefile:9"}]`,
		`"levers":[{"lever":"dial","part":0.5,"why":"override 7 by ada"},{"lever":"ramp","part":0.75,"why":"back since 12:00"}]`,
		`"levers":[{"lever":"admission","part":0.8,"why":"the law"},{"lever":"trickle","part":0.3,"why":"Corefile:14"}]`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	if strings.Count(string(text), "levers") != 3 || strings.Contains(string(text), "availability") {
		t.Errorf("levers that are not moved are told of: %s", text)
	}
	if got := s.Region(1, V4); got.Dial != 0.5 || got.Ramp != 0.75 || got.Availability != 1 || got.Trickle != 0 || got.Shared {
		t.Errorf("state %+v", got)
	}
	if a, b := s.Admission(0, 2), s.Admission(0, 1); a != 0.8 || b != 1 {
		t.Errorf("admission %v and %v; want 0.8 and 1", a, b)
	}
}

func TestTraceOfForce(t *testing.T) {
	tests := []struct {
		name   string
		states []string
		levers []func(*Levers)
		want   string
	}{
		{"by the dial", []string{"u", "u", "d"}, []func(*Levers){dial(0), admit(0)}, "ra:passed(spilled) rb:chosen(spilled) rc:passed(down)"},
		{"all at 0", []string{"u", "u", "d"}, []func(*Levers){dial(0), dial(0)}, "ra:chosen(spilled) rb:next(spilled) rc:passed(down)"},
		{"a soak alone", []string{"u", "d", "d"}, []func(*Levers){soak(0.1)}, "ra:chosen(alone) rb:passed(down) rc:passed(down)"},
		{"an open soak", []string{"d", "d", "d"}, []func(*Levers){soak(0.1)}, "ra:passed(down) rb:chosen(down) rc:next(down)"},
	}
	for _, tt := range tests {
		h := mustHost(t, orderHost(Sticky, 50, 1, 1, 1))
		var tr Trace
		h.Decide(h.NewSnapshot(words(tt.states...), levers(tt.levers...)), nthClient(1), V4, &tr)
		if got := why(&tr); got != tt.want {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
	}
}

// With health the same in both families, no lever parts A from AAAA.
func TestLeversKeepFamiliesTogether(t *testing.T) {
	cfg := splitHost(Sticky, 5, 3, 2)
	cfg.Lists[0].Order = []Region{2}
	cfg.Shed = "full.example."
	for r, p := range cfg.Pools {
		p.Endpoints = append(p.Endpoints, EndpointConfig{randomV6(r), 1})
	}
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, pulling)
	for n := range clients {
		c := nthClient(n)
		a, b := h.Decide(s, c, V4, nil), h.Decide(s, c, V6, nil)
		if a.Region != b.Region || a.By != b.By || a.FamilyMoved || b.FamilyMoved {
			t.Fatalf("client %d: A %+v, AAAA %+v", n, a, b)
		}
	}
}
