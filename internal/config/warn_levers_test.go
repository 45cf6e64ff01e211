package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// told compares warnings, written "line: text", with parts of what is wanted.
func told(t *testing.T, got []config.Warning, want []string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		line, text, _ := strings.Cut(want[i], ": ")
		ok = fmt.Sprint(got[i].Line) == line && strings.Contains(got[i].Text, text)
	}
	if !ok {
		t.Errorf("warnings %v, want %q", got, want)
	}
}

// TestLeverWarnings holds what is told of levers that nothing can come of.
func TestLeverWarnings(t *testing.T) {
	const (
		two  = "region us\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"
		one  = "host a.example.com { pool eu 192.0.2.1 }\n"
		web  = "check web { http / }\ncheck web\n"
		pool = "region eu us\nhost b.example.com { pool us 192.0.2.2 }\nhost a.example.com {\npool eu {\nendpoint 192.0.2.1\nTEXT\n}\n}\n"
	)
	in := func(text, levers string) string { return strings.Replace(text, "TEXT", levers, 1) }
	eu := func(levers, rest string) string { return "region eu {\n" + levers + "\n}\n" + rest }
	tests := []struct {
		name, text string
		want       []string
	}{
		{"levers with an effect", eu("dial 5%\ntrickle 5%\nramp 1m\ncapacity 5\nload file f", web+two), nil},
		{"trickle of the only region", eu("trickle 5%", one), []string{`4: trickle of region "eu", the only region: there is no next one to get it`}},
		{"no trickle of the only region", eu("trickle 0%", one), nil},
		{"dial of the only region", eu("dial 50%", one), []string{`4: dial of region "eu", the only region: no other can take what it leaves`}},
		{"full dial of the only region", eu("dial 100%", one), nil},
		{"ramp of the only region", eu("ramp 1m", web+one), []string{`4: ramp of region "eu", the only region: no other can serve meanwhile`}},
		{"ramp without a check", eu("ramp 1m", two), []string{`4: ramp of region "eu": no pool there has a check, so there is no return from an outage`}},
		{"no ramp", eu("ramp 0s", two), nil},
		{"of a pool without another", in(pool, "trickle 5%\ndial 1%"), []string{
			`8: trickle of the pool of region "eu", the only pool of its host`, `9: dial of the pool of region "eu", the only pool of its host`}},
		{"ramp of a pool without a check", in(pool, "ramp 1m\n}\npool us {\nendpoint 192.0.2.9"), []string{`8: ramp of the pool of region "eu": no pool there has a check`}},
		{"drains beside one without a time", eu("drain until 2026-12-01T12:00:00Z\ndrain", two), []string{`5: region "eu" is drained without a time, so its other lines of drain have no effect`}},
		{"max_use without a capacity", "region eu\nguard max_use 80%\n" + one, []string{"4: guard max_use: no region or pool has a capacity to compare with"}},
		{"max_use of a pool's", in(pool, "capacity 5\nload file f\n}\n}\nguard max_use 80%\npolicy x {\npool us {\nendpoint 192.0.2.1"), nil},
		{"resolvers without a target", "region eu\nresolvers ::1\n" + one, []string{"4: no pool has a target, which is all that resolvers are for"}},
		{"shed without a capacity", "region eu\nshed to edge.example.net\n" + one, []string{"4: shed to edge.example.net. of host a.example.com.: no region or pool of it has a capacity, so none is ever full"}},
		{"shed with one", eu("capacity 5\nload file f", "shed to edge.example.net\n"+one), nil},
		{"capacity of a region without a load", eu("capacity 5", two), []string{`4: capacity of region "eu" has no ` + "`load`: it is taken for filled to its target, so what others spill finds no room there"}},
		{"capacity of a pool without a load", in(pool, "capacity 5"), []string{`8: capacity of the pool of region "eu" has no ` + "`load`"}},
		{"probe of a target without a check", "resolvers ::1\n" + in(pool, "target lb.example.net probe :80"), []string{"9: target lb.example.net. says where its probes go, but its pool has no check"}},
		{"probe of a drained target", "resolvers ::1\n" + web + in(pool, "target lb.example.net probe :80 drain"), []string{"11: target lb.example.net. says where its probes go, but with `drain` written it is not probed"}},
		{"region drained", eu("drain", one), []string{"6: host a.example.com.: every endpoint is drained: SERVFAIL"}},
		{"region drained, another left", eu("drain", two), nil},
		{"region drained for a time", eu("drain daily 00:00-01:00 Z", one), nil},
		{"pool drained", in(pool, "drain"), []string{"5: host a.example.com.: every endpoint is drained: SERVFAIL"}},
		{"pool drained, addresses", in(pool, "drain\n}\nlast_resort addresses 192.0.2.7\npool us {\nendpoint 192.0.2.9 drain"), []string{"5: every endpoint is drained: clients get the addresses of last_resort"}},
		{"target drained", "resolvers ::1\nregion eu\nhost a.example.com {\npool eu { target lb.example.net drain }\n}", []string{"5: every endpoint is drained: SERVFAIL"}},
		{"target left", "resolvers ::1\n" + in(pool, "target lb.example.net\n}\npool us {\nendpoint 192.0.2.3 drain"), nil},
		{"last_resort region drained", eu("drain", two+"host b.example.com {\npool eu 192.0.2.3\npool us 192.0.2.4\nlast_resort regions eu\n}"),
			[]string{"14: last_resort regions eu of host b.example.com.: every endpoint is drained: SERVFAIL"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { told(t, mustParse(t, inBlock(tt.text)).Warnings, tt.want) })
	}
}

// TestWarningsAt holds what is told of schedules by the time of the load.
func TestWarningsAt(t *testing.T) {
	const hosts = "region us\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"
	soak := "share 1% from 2026-12-01T08:00:00Z\nshare off from 2026-12-01T20:00:00Z"
	drains := "region eu { drain from 2026-12-01T08:00:00Z until 2026-12-01T12:00:00Z }\nregion us { drain TIME }\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"
	in := func(when string) string { return strings.Replace(drains, "TIME", when, 1) }
	tests := []struct {
		name, text, at string
		want           []string
	}{
		{"nothing", hosts + "region eu", "12:00", nil},
		{"over at its end", "region eu { drain until 2026-12-01T12:00:00Z }\n" + hosts, "12:00", []string{"3: drain is over since 2026-12-01T12:00:00Z: remove it"}},
		{"not yet over", "region eu { drain until 2026-12-01T12:00:00Z }\n" + hosts, "11:59", nil},
		{"dial and share", "region eu {\ndial 5% until 2026-12-01T12:00:00Z\nshare 5% until 2026-12-01T13:00:00Z\n}\n" + hosts, "23:00",
			[]string{"4: dial is over since 2026-12-01T12:00:00Z", "5: share is over since 2026-12-01T13:00:00Z"}},
		{"of a pool", "region eu us\nhost a.example.com {\npool us 192.0.2.2\npool eu {\nendpoint 192.0.2.1\ndial 5% until 2026-12-01T12:00:00Z\n}\n}", "12:00", []string{"8: dial is over"}},
		{"of a policy, told once", "region eu us\npolicy x {\npool us 192.0.2.2\npool eu {\nendpoint 192.0.2.1\ndial 5% until 2026-12-01T12:00:00Z\n}\n}\nhost a.example.com { policy x }\nhost b.example.com { policy x }", "12:00", []string{"8: dial is over"}},
		{"daily is never over", "region eu { drain daily 00:00-01:00 Z }\n" + hosts, "12:00", nil},
		{"accept", hosts + "region eu\nguard accept x until 2026-12-01T12:00:00Z", "12:00", []string{"9: guard accept is over since 2026-12-01T12:00:00Z: remove it"}},
		{"accept holds", hosts + "region eu\nguard accept x until 2026-12-01T12:00:00Z", "11:59", nil},
		{"before a soak", "region eu {\n" + soak + "\n}\n" + hosts, "07:59", []string{"4: until 2026-12-01T08:00:00Z region \"eu\" is an ordinary candidate: to keep clients away until then, write `share 0%` as well"}},
		{"in a soak", "region eu {\n" + soak + "\n}\n" + hosts, "08:00", nil},
		{"before a soak, share 0%", "region eu {\nshare 0%\n" + soak + "\n}\n" + hosts, "07:59", nil},
		{"before share off", "region eu {\nshare off from 2026-12-01T08:00:00Z\n}\n" + hosts, "07:59", nil},
		{"before a soak of a pool", "region eu us\nhost a.example.com {\npool us 192.0.2.2\npool eu {\nendpoint 192.0.2.1\n" + soak + "\n}\n}", "07:59", []string{"8: until 2026-12-01T08:00:00Z the pool of region \"eu\" is"}},
		{"drained together", in("from 2026-12-01T11:59:00Z"), "07:00", []string{"5: host a.example.com.: at 2026-12-01T11:59:00Z every endpoint is drained: SERVFAIL"}},
		{"drained together for all time, told by Parse", "region eu us\nhost a.example.com {\npool eu { endpoint 192.0.2.1 drain }\npool us {\nendpoint 192.0.2.2\ndrain\n}\n}", "07:00", nil},
		{"drained one after the other", in("from 2026-12-01T12:00:00Z"), "07:00", nil},
		{"drained together every day", in("daily 11:00-11:30 Z"), "07:00", []string{"5: host a.example.com.: at 2026-12-01T11:00:00Z every"}},
		{"drained together in the past", in("daily 11:00-11:30 Z"), "11:30", nil},
		{"drained together now", in("daily 11:00-11:30 Z"), "11:29", []string{"5: host a.example.com.: at 2026-12-01T11:29:00Z every"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustParse(t, inBlock(tt.text))
			before := len(b.Warnings)
			told(t, b.WarningsAt(at(tt.at)), tt.want)
			if len(b.Warnings) != before {
				t.Error("the block has other warnings than before")
			}
		})
	}
}
