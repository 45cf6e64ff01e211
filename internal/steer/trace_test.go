package steer

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
)

func traceOf(t *testing.T, cfg HostConfig, state func(Region, int) EndpointState, c *Client, f Family) *Trace {
	t.Helper()
	h := mustHost(t, cfg)
	tr := new(Trace)
	h.Decide(h.NewSnapshot(state, nil), c, f, tr)
	return tr
}

// why is the candidates of a trace in words.
func why(tr *Trace) string {
	var words []string
	for _, c := range tr.Candidates {
		w := c.Region + ":" + c.Status
		if c.Why != "" {
			w += "(" + c.Why + ")"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func TestTraceReasons(t *testing.T) {
	cfg := HostConfig{
		Name: "h", Regions: []string{"a", "b", "c", "d", "e", "f", "g"}, TTL: 30, MaxDown: 100,
		Pools: pools("", "2001:db8::1", "192.0.2.1", "192.0.2.2", "192.0.2.3 192.0.2.4 192.0.2.5", "192.0.2.6", "192.0.2.7"),
		Lists: []List{{Order: []Region{0, 1, 2, 3, 4, 5, 6}}, {Order: []Region{0, 1, 2, 3, 4}}, {Order: []Region{3}, Allowed: make([]bool, 7)}},
	}
	cfg.Pools[4].MinHealthy = 2
	cfg.Lists[2].Allowed[3] = true
	state := states(&cfg, map[string]EndpointState{"192.0.2.1": isDrained, "192.0.2.2": isDown, "192.0.2.3": isDown, "192.0.2.4": isDown})
	named := LastResort{Kind: Regions, Regions: []Region{5, 3}}
	tests := []struct {
		name   string
		list   int
		resort LastResort
		want   string
	}{
		{"usable", 0, LastResort{}, "a:passed(no_pool) b:passed(no_family) c:passed(drained) d:passed(down) e:passed(min_healthy) f:chosen g:next"},
		{"open", 1, LastResort{}, "a:passed(no_pool) b:passed(no_family) c:passed(drained) d:chosen(down) e:next(min_healthy)"},
		{"closed", 1, LastResort{Kind: Closed}, "a:passed(no_pool) b:passed(no_family) c:passed(drained) d:passed(down) e:passed(min_healthy)"},
		{"regions", 1, named, "a:passed(no_pool) b:passed(no_family) c:passed(drained) d:passed(down) e:passed(min_healthy) f:chosen d:passed(down)"},
		{"regions in a fence", 2, named, "d:passed(down) f:passed(fenced) d:chosen(down)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg.LastResort = tt.resort
			c := nthClient(1)
			c.List = tt.list
			tr := traceOf(t, cfg, state, c, V4)
			if got := why(tr); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if (tr.LastResort != "") != (tt.list > 0) {
				t.Errorf("last resort %q", tr.LastResort)
			}
		})
	}
}

func TestTraceJSON(t *testing.T) {
	cfg := two(pools("192.0.2.1 2001:db8::1", "198.51.100.1 198.51.100.2 2001:db8:1::1"))
	cfg.Lists[0].Fence = []string{"gdpr"}
	state := states(&cfg, map[string]EndpointState{
		"192.0.2.1": {Verdict: Down, Reason: "status 503"}, "198.51.100.1": {Streak: true}, "198.51.100.2": isDown,
	})
	tr := traceOf(t, cfg, state, nthClient(3), V4)
	text, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"host":"h","family":"v4","client":"0.3.0.0/24","source":"ecs","transport":"198.51.100.53",` +
		`"list":0,"fences":["gdpr"],"spread":"sticky","key":["0.3.0.0/16"],` +
		`"candidates":[{"region":"eu","tier":"order","status":"passed","why":"down","other_family":true,` +
		`"endpoints":[{"addr":"192.0.2.1","weight":1,"verdict":"down","reason":"status 503"}]},` +
		`{"region":"us","tier":"order","status":"chosen",` +
		`"endpoints":[{"addr":"198.51.100.1","weight":1,"verdict":"up","streak":true,"answered":true},` +
		`{"addr":"198.51.100.2","weight":1,"verdict":"down"}]}],` +
		`"outcome":"answer","by":"choice","region":"us","answer":["198.51.100.1"],"family_moved":true,` +
		`"scope":16,"scope_why":"grain","ttl":15,"ttl_class":"streak"}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	back := new(Trace)
	if err := json.Unmarshal(text, back); err != nil || !reflect.DeepEqual(back, tr) {
		t.Errorf("read back as %+v, %v", back, err)
	}
}

// A trace replaces whatever was in it before.
func TestTraceIsReset(t *testing.T) {
	cfg := two(pools("192.0.2.1", "198.51.100.1"))
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, nil)
	var tr Trace
	h.Decide(s, nthClient(1), V4, &tr)
	h.Decide(s, nthClient(1), V6, &tr)
	if tr.Outcome != "no_family" || tr.Answer != nil || tr.Candidates != nil || tr.ScopeWhy != "no_data" {
		t.Errorf("%+v", tr)
	}
}

func TestTraceOfBalanced(t *testing.T) {
	cfg := splitHost(Balanced, 7, 3, 0)
	cfg.Regions = append(cfg.Regions, "rd")
	cfg.Pools = append(cfg.Pools, nil)
	cfg.Lists[0].Order = []Region{3}
	cfg.Pools[0] = poolOf(0, 1, 3, 1)
	cfg.Pools[1] = poolOf(1, 2, 1, 1, 1)
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, nil)
	var tr Trace
	for range 5 {
		h.Decide(s, nthClient(1), V4, &tr)
	}
	var shares []string
	sum := new(big.Rat)
	for _, sh := range tr.Shares {
		shares = append(shares, fmt.Sprintf("%s %s %d/%d", sh.Region, join(sh.Answer), sh.Part, sh.Of))
		sum.Add(sum, big.NewRat(int64(sh.Part), int64(sh.Of)))
	}
	want := []string{
		"ra 192.0.0.0 21/40", "ra 192.0.0.1 7/40",
		"rb 192.0.1.0 192.0.1.1 1/10", "rb 192.0.1.0 192.0.1.2 1/10", "rb 192.0.1.1 192.0.1.2 1/10",
	}
	if len(shares) != len(want) || sum.Cmp(big.NewRat(1, 1)) != 0 {
		t.Fatalf("shares %v, sum %v; want %v", shares, sum, want)
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(shares, ";"), w) {
			t.Errorf("no share %q in %v", w, shares)
		}
	}
	if got, want := why(&tr), "ra:chosen rb:shared rc:next rd:passed(no_pool)"; got != want {
		t.Errorf("candidates %s; want %s", got, want)
	}
	if len(tr.Key) != 0 {
		t.Errorf("key %v for a choice made in turn", tr.Key)
	}
	counts := make([]int, 2)
	for n := range 10 {
		counts[h.Decide(s, nthClient(n), V4, nil).Region]++
		h.Decide(s, nthClient(n), V4, &tr)
	}
	if counts[0] != 7 || counts[1] != 3 {
		t.Errorf("traces took turns: regions got %v of 10", counts)
	}
}

// When all of a split is down, turns are taken among the open regions; a last
// resort of named regions takes none.
func TestBalancedLastResort(t *testing.T) {
	cfg := splitHost(Balanced, 1, 1)
	allDown := func(Region, int) EndpointState { return isDown }
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allDown, nil)
	counts := make([]int, 2)
	for n := range 10 {
		counts[h.Decide(s, nthClient(n), V4, nil).Region]++
	}
	if counts[0] != 5 || counts[1] != 5 {
		t.Errorf("open: regions got %v of 10", counts)
	}
	cfg.LastResort = LastResort{Kind: Regions, Regions: []Region{1}}
	tr := traceOf(t, cfg, allDown, nthClient(1), V4)
	if got, want := why(tr), "ra:passed(down) rb:passed(down) rb:chosen(down)"; got != want || len(tr.Shares) != 1 {
		t.Errorf("named: %s, shares %v; want %s and one share", got, tr.Shares, want)
	}
}
