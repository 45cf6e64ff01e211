package plan_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
)

// randomSchedule writes lines of levers; some blocks with them are not valid.
func randomSchedule(r *rand.Rand) string {
	w := &writer{Rand: r}
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	moment := func() string { return day.Add(time.Duration(r.IntN(4*24)) * time.Hour).Format(time.RFC3339) }
	when := func() string {
		switch r.IntN(5) {
		case 0:
			return ""
		case 1:
			return "from " + moment()
		case 2:
			return "until " + moment()
		case 3:
			return "from " + moment() + " until " + moment()
		}
		return fmt.Sprintf("daily %02d:00-%02d:30 Z %s", r.IntN(24), r.IntN(24), w.pick("", "Tue", "Wed Thu"))
	}
	for range 1 + r.IntN(3) {
		switch r.IntN(4) {
		case 0:
			w.line("drain %s", when())
		case 1:
			w.line("dial %d%% %s", 25*r.IntN(5), when())
		case 2:
			w.line("share %s %s", w.pick("5%", "7% area beta", "off"), when())
		case 3:
			w.line("dial 50%% %s", when())
		}
	}
	return w.String()
}

// TestLeversWhy compares what is said of the levers with what they are at every half
// hour of the days to come.
func TestLeversWhy(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const step = 30 * time.Minute
	told, moved := 0, 0
	for valid, tries := 0, 0; valid < 60; tries++ {
		if tries > 5000 {
			t.Fatalf("only %d of %d blocks are valid", valid, tries)
		}
		schedule := randomSchedule(r)
		b, err := parse("example.com", "region eu us\narea beta prefix 198.51.100.0/24\nhost a.example.com {\npool eu {\nendpoint 192.0.2.1\n"+schedule+"}\npool us 192.0.2.2\n}")
		if err != nil {
			continue
		}
		p, err := plan.Build(b, plan.Options{})
		if err != nil {
			continue
		}
		valid++
		h := p.Hosts[0]
		values := func(now time.Time) map[string]string {
			s := p.Settings(h, h.Pool(0), &plan.Moves{Now: now})
			v := map[string]string{"drain": "off", "dial": fmt.Sprintf("%g%%", s.Dial.Percent), "share": "off", "trickle": fmt.Sprintf("%g%%", s.Trickle.Percent)}
			if s.Drain.On {
				v["drain"] = "on"
			}
			if s.Share.On {
				v["share"] = strings.TrimSuffix(fmt.Sprintf("%g%% area %s", s.Share.Percent, s.Share.Area), " area ")
			}
			return v
		}
		still := map[string]string{"drain": "off", "dial": "100%", "share": "off", "trickle": "0%"}
		start := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(48)) * step)
		m := &plan.Moves{Now: start}
		now := make(map[string]plan.LeverWhy)
		for _, l := range p.Explain(h, p.Snapshot(0, plan.Written, m), m, netip.Prefix{}, addr("192.0.2.53")).Levers {
			now[l.Lever] = l
		}
		is := values(start)
		var later []map[string]string
		for d := step; d < 15*24*time.Hour; d += step {
			later = append(later, values(start.Add(d)))
		}
		for lever := range still {
			next, then := time.Time{}, ""
			for i, v := range later {
				if v[lever] != is[lever] {
					next, then = start.Add(time.Duration(i+1)*step), v[lever]
					break
				}
			}
			l, listed := now[lever]
			if !l.Next.Equal(next) || l.Then != then {
				t.Errorf("%s at %s: next %s %s, want %s %s", lever, start, l.Next, l.Then, next, then)
			}
			if listed != (is[lever] != still[lever] || !next.IsZero()) {
				t.Errorf("%s at %s: listed is %t", lever, start, listed)
			}
			if listed && l.Value != is[lever] {
				t.Errorf("%s is %s, want %s", lever, l.Value, is[lever])
			}
			if listed && is[lever] != still[lever] && (l.From == "" || !strings.HasPrefix(l.From, "Corefile:")) {
				t.Errorf("%s is %s from %q", lever, l.Value, l.From)
			}
			if listed {
				told++
			}
			if !next.IsZero() {
				moved++
			}
		}
		if t.Failed() {
			t.Fatal(schedule)
		}
	}
	t.Logf("%d levers were told of, and %d change", told, moved)
	if told < 30 || moved < 20 {
		t.Errorf("%d levers were told of, and %d change", told, moved)
	}
}
