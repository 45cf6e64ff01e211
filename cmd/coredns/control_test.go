package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/control"
)

// TestControlMoves makes every kind of change on a server that is being asked: what
// what-if has foretold is what then happens, and only those move who had to.
func TestControlMoves(t *testing.T) {
	o := newOperator(t)
	s := serve(t, o.controlled(controlledHost))
	before := served(t, s)
	o.must(t, "weight 192.0.2.1 1 -never -why settle") // demand is what was asked until now
	for _, step := range []struct {
		do    string
		from  string // regions that lose clients
		moved float64
	}{
		{"drain a", "a", 50},
		{"undrain a", "bc", 50},
		{"dial a 25%", "a", 37.5},
		{"dial a 10% -host api.example.com", "a", 7.5},
		{"cancel LAST", "b", 7.5},
		{"dial a 100%", "b", 37.5},
		{"share c 5%", "abc", 27.5},
		{"share c 90% -area near", "abc", 25.5},
		{"share c off", "abc", 48},
		{"trickle b 20%", "b", 5},
		{"trickle b 0%", "c", 5},
		{"force 192.0.2.2 down", "b", 25},
		{"drain 192.0.2.1", "a", 50},
		{"undrain 192.0.2.1", "c", 50},
		{"weight 192.0.2.1 9", "", 0},
	} {
		if before, after, ok := strings.Cut(step.do, "LAST"); ok {
			step.do = before + last(t, o) + after
		}
		line := step.do + " -quiet"
		if !strings.HasPrefix(line, "cancel") {
			line += " -never"
		}
		foretold := o.must(t, "whatif "+step.do).Report
		result := o.must(t, line+" -why test")
		after := served(t, s)
		moved := percent(len(after), func(i int) bool { return before[i] != after[i] })
		t.Logf("%s: %.2f%% have moved, foretold were %s", step.do, moved, shown(foretold.MovedDemand))
		if foretold.MovedDemand == nil || math.Abs(*foretold.MovedDemand-moved) > 1.5 || math.Abs(step.moved-moved) > 3 {
			t.Errorf("%s: %.2f%% have moved, foretold were %s, expected %.2f%%", step.do, moved, shown(foretold.MovedDemand), step.moved)
		}
		for i := range after {
			if before[i] != after[i] && !strings.Contains(step.from, before[i]) {
				t.Errorf("%s: %s has moved from %s to %s", step.do, population()[i], before[i], after[i])
				break
			}
		}
		for _, r := range foretold.Regions {
			is := percent(len(after), func(i int) bool { return after[i] == r.Name })
			if r.DemandAfter == nil || math.Abs(*r.DemandAfter-is) > 1.5 {
				t.Errorf("%s: region %s has %.2f%%, foretold were %s", step.do, r.Name, is, shown(r.DemandAfter))
			}
		}
		if fmt.Sprint(foretold.Flows) == "" || len(result.Applied) != 1 {
			t.Errorf("%s: %+v", step.do, result)
		}
		before = after
	}
}

func shown(v *float64) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprintf("%.2f%%", *v)
}

// last is the ID of the newest override.
func last(t *testing.T, o *operator) string {
	t.Helper()
	list := reply[control.OverrideList](t, o, "overrides").Overrides
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].ID
}

// TestControlExchange follows an operator: what is told, refused, written down and over.
func TestControlExchange(t *testing.T) {
	o := newOperator(t)
	s := serve(t, o.controlled(strings.Replace(controlledHost, "max_move 100%", "max_move 40%", 1)))
	in := func(what, want string) {
		t.Helper()
		if got := brief(s.exchange(t, "api.example.com A +subnet=16.0.7.0/24")); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	in("at first", "192.0.2.1 /16")
	stale := reply[control.OverrideList](t, o, "overrides").Version
	drained := o.must(t, "drain a -for 1h -why switch~replacement")
	in("drained", "192.0.2.2 /16")
	delayed := fmt.Sprintf(`{"lever":"drain","region":"b","never":true,"why":"an old plan","version":%q}`, stale)
	if code, f := o.post(t, aliceToken, "changes", delayed); code != 409 || f.Code != "stale" {
		t.Errorf("a plan from before: %d %+v", code, f)
	}
	if f := o.refused(t, "drain b -for 1h -why one~more -host api.example.com"); f.Code != "refused" || len(f.Refusals) == 0 || f.Refusals[0].Guard != "max_move" {
		t.Errorf("what moves too much: %+v", f)
	}
	in("refused", "192.0.2.2 /16")
	o.must(t, "drain b -for 1h -why it~must~be -force")
	in("forced", "192.0.2.3 /16")
	if f := o.refused(t, "drain c -for 1h -why the~last"); f.Code != "refused" || !strings.Contains(f.Error, "guard usable") {
		t.Errorf("the last region: %+v", f)
	}
	in("with the last one", "192.0.2.3 /16")
	o.must(t, "drain c -for 1h -why all~off -force")
	in("with none", "SERVFAIL /16")
	o.must(t, "undrain c -why back")
	o.must(t, "undrain b -why back -force")
	if code, _, stderr := o.run(t, "drain a -for 1h"); code == 0 || !strings.Contains(stderr, "why") {
		t.Errorf("without a reason: %d %s", code, stderr)
	}
	o.must(t, "cancel "+drained.Applied[0].Override.ID+" -why done")
	in("cancelled", "192.0.2.1 /16")

	o.must(t, "force 192.0.2.1 down -for 1h -why long")
	in("forced down", "192.0.2.2 /16")
	o.must(t, "force 192.0.2.1 down -for 1s -why short")
	eventually(t, "it expires", func() bool { return brief(s.exchange(t, "api.example.com A +subnet=16.0.7.0/24")) == "192.0.2.1 /16" })
	eventually(t, "that is written down", func() bool {
		all := reply[control.AuditList](t, o, "audit -limit 1").Entries
		return len(all) == 1 && all[0].Action == "expire" && all[0].Who == "gslb"
	})
	o.expectAudit(t, []string{
		"alice drain on of region a: accepted, switch replacement, was off",
		"alice drain on of region b: refused, an old plan, was ",
		"alice drain on of host api.example.com in region b: refused, one more, was off",
		"alice drain on of region b: accepted forced, it must be, was off",
		"alice drain on of region c: refused, the last, was off",
		"alice drain on of region c: accepted forced, all off, was off",
		"alice drain off of region c: accepted, back, was drain on (override 3)",
		"alice drain off of region b: accepted forced, back, was drain on (override 2)",
		"alice cancel  of region a: accepted, done, was drain on (override 1)",
		"alice force down of endpoint 192.0.2.1: accepted, long, was as checked",
		"alice force down of endpoint 192.0.2.1: accepted, short, was down (override 4)",
		"gslb expire  of endpoint 192.0.2.1: accepted, short, was down",
	})
}

// expectAudit holds what the audit log says.
func (o *operator) expectAudit(t *testing.T, want []string) {
	t.Helper()
	entries := reply[control.AuditList](t, o, "audit -limit 100").Entries
	for i, e := range entries {
		outcome := e.Outcome
		if e.Forced {
			outcome += " forced"
		}
		got := fmt.Sprintf("%s %s %s of %s: %s, %s, was %s", e.Who, e.Action, e.Value, e.Object, outcome, e.Why, e.Previous)
		if i >= len(want) || got != want[i] {
			t.Errorf("entry %d: %s", i, got)
		}
		if e.Who != "gslb" && !strings.HasPrefix(e.From, "unix") || e.Time.IsZero() || e.Version == "" {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if len(entries) != len(want) {
		t.Errorf("%d entries, want %d", len(entries), len(want))
	}
}

// Who has no good token gets nothing, and who may read changes nothing.
func TestControlTokens(t *testing.T) {
	o := newOperator(t)
	s := serve(t, o.controlled(controlledHost))
	const drain = `{"lever":"drain","region":"a","never":true,"why":"test"}`
	before := metric(t, "coredns_gslb_control_wrong_tokens_total")
	for token, want := range map[string]int{"": 401, "wrong-0123456789abcdef": 401, aliceToken[1:]: 401, aliceToken + "0": 401, "old-0123456789abcdef00": 401, readToken: 403} {
		if code, f := o.post(t, token, "changes", drain); code != want || f.Error == "" {
			t.Errorf("token %q: %d %+v, want %d", token, code, f, want)
		}
	}
	if code, _ := o.post(t, readToken, "whatif", drain); code != 200 {
		t.Errorf("what if, for a reader: %d", code)
	}
	if n := metric(t, "coredns_gslb_control_wrong_tokens_total") - before; n != 5 {
		t.Errorf("%v wrong tokens", n)
	}
	if got := brief(s.exchange(t, "api.example.com A +subnet=16.0.7.0/24")); got != "192.0.2.1 /16" {
		t.Errorf("answered %s", got)
	}
	for _, body := range []string{
		"", "{", "[]", "null", `{"lever":"dial","region":"a","value":"NaN","never":true,"why":"test"}`, `{"lever":"dial","region":"a","value":-1,"never":true,"why":"test"}`,
		`{"lever":"dial","region":"a","value":1e999,"never":true,"why":"test"}`, `{"lever":"weight","endpoint":"192.0.2.1","value":10001,"never":true,"why":"test"}`,
		`{"lever":"drain","region":"a","never":true,"for":"1h","why":"test"}`, `{"lever":"drain","region":"a","why":"test"}`, `{"lever":"drain","region":"a","never":true}`,
		`{"lever":"drain","region":"a","never":true,"why":"test","more":1}`, `{"lever":"share","region":"a","value":5,"area":"none","never":true,"why":"test"}`,
	} {
		if code, f := o.post(t, aliceToken, "changes", body); code < 400 || code > 499 || f.Error == "" {
			t.Errorf("%s: %d %+v", body, code, f)
		}
	}
	if n := metric(t, "coredns_gslb_overrides_active"); n != 0 {
		t.Errorf("%v overrides", n)
	}
}
