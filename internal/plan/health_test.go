package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// seen is what a check named after its verdict says.
func seen(verdict, assumed probe.Verdict, streak bool, reasons ...string) plan.Seen {
	s := &probe.State{Verdict: verdict, Assumed: assumed, Streak: streak, Since: noon, LastAt: noon}
	for _, r := range reasons {
		s.Notes = append(s.Notes, probe.Note{Reason: r})
	}
	return plan.Seen{Check: &check.Check{Name: "c-" + verdict.String()}, State: s}
}

func TestJudge(t *testing.T) {
	up := seen(probe.VerdictUp, probe.VerdictUp, false)
	ailing := seen(probe.VerdictUp, probe.VerdictUp, true, "refused")
	full := seen(probe.VerdictFull, probe.VerdictFull, false, "busy")
	down := seen(probe.VerdictDown, probe.VerdictDown, false, "refused", "timeout", "refused")
	stale := seen(probe.VerdictUnknown, probe.VerdictDown, false, "refused")
	held := seen(probe.VerdictDown, probe.VerdictDown, false, "refused")
	held.State.Held = true
	waiting := seen(probe.VerdictDown, probe.VerdictDown, false, "refused")
	waiting.State.Waiting = true
	never := seen(probe.VerdictUnknown, probe.VerdictUp, false)
	never.State.LastAt = time.Time{}
	const since = " since 2026-03-01T12:00:00Z"
	for _, tc := range []struct {
		name   string
		state  config.EndpointState
		seen   []plan.Seen
		want   steer.Verdict
		streak bool
		reason string
	}{
		{"no checks", config.StateAuto, nil, steer.Up, false, ""},
		{"up", config.StateAuto, []plan.Seen{up}, steer.Up, false, "c-up: up" + since},
		{"a streak", config.StateAuto, []plan.Seen{ailing}, steer.Up, true, "c-up: up" + since + ": refused"},
		{"a streak of the second", config.StateAuto, []plan.Seen{up, ailing}, steer.Up, true, "c-up: up" + since},
		{"full and up", config.StateAuto, []plan.Seen{up, full}, steer.Full, false, "c-full: full" + since + ": busy"},
		{"full and down", config.StateAuto, []plan.Seen{full, down, up}, steer.Down, false, "c-down: down" + since + ": refused; before that timeout"},
		{"unknown", config.StateAuto, []plan.Seen{stale}, steer.Down, false, "c-unknown: unknown, last probed 2026-03-01T12:00:00Z, taken for down: refused"},
		{"never probed", config.StateAuto, []plan.Seen{never}, steer.Up, false, "c-unknown: never probed, taken for up"},
		{"held down", config.StateAuto, []plan.Seen{held}, steer.Down, false, "c-down: down" + since + ", held down: it changed too often within the hour: refused"},
		{"waiting", config.StateAuto, []plan.Seen{waiting}, steer.Down, false, "c-down: down" + since + ", until an operator returns it: refused"},
		{"written up", config.StateUp, []plan.Seen{down}, steer.Up, false, "written up"},
		{"written down", config.StateDown, []plan.Seen{up}, steer.Down, false, "written down"},
		{"written drain", config.StateDrain, []plan.Seen{up}, steer.Drained, false, "written drain"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := plan.Judge(&config.Endpoint{State: tc.state}, tc.seen)
			if got.Verdict != tc.want || got.Streak != tc.streak || got.Reason != tc.reason {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestRemembered judges by what a server saved.
func TestRemembered(t *testing.T) {
	p := build(t, "", `region a
check web {
	http :8080 /
}
host api.example.com {
	check web
	pool a {
		endpoint 192.0.2.1
		endpoint 192.0.2.2 probe 10.0.0.2:81
		endpoint 192.0.2.3 drain
		endpoint 192.0.2.4
	}
}`)
	host := &p.Block.Hosts[0]
	pool := &host.Pools[0]
	c := p.Checks(pool)[0]
	saved := make(map[string]probe.Saved)
	for i := range 3 {
		saved[probe.KeyOf(c, plan.Target(host, &pool.Endpoints[i])).String()] = probe.Saved{
			Verdict: probe.VerdictDown, Since: noon, At: noon, Notes: []probe.Note{{Reason: "refused"}},
		}
	}
	for _, tc := range []struct {
		name  string
		after time.Duration
		want  []steer.Verdict
		says  []string // in the reason
	}{
		{"young", time.Minute, []steer.Verdict{steer.Down, steer.Down, steer.Drained, steer.Up}, []string{"web: down since", "refused", "written drain", "never probed"}},
		{"old", time.Hour, []steer.Verdict{steer.Up, steer.Up, steer.Drained, steer.Up}, []string{"last probed", "taken for up", "written drain", "never probed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := p.Remembered(saved, noon.Add(tc.after))
			for i := range pool.Endpoints {
				if got := state(&pool.Endpoints[i]); got.Verdict != tc.want[i] || !strings.Contains(got.Reason, tc.says[i]) {
					t.Errorf("endpoint %d: got %+v", i, got)
				}
			}
		})
	}
}
