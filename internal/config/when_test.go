package config_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// at reads a time; short ones are of 1 December 2026, a Tuesday, in UTC.
func at(text string) time.Time {
	if len(text) == len("15:04") {
		text = "2026-12-01T" + text + ":00Z"
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// mustWhen reads a schedule.
func mustWhen(t *testing.T, text string) config.When {
	t.Helper()
	return leversOf(t, "drain "+text).Drain[0].When
}

// leversOf gives the levers that lines in the block of region eu make.
func leversOf(t *testing.T, lines string) *config.Levers {
	t.Helper()
	b, err := parseLevers(t, lines)
	if err != nil {
		t.Fatal(err)
	}
	return &b.Regions[0].Levers
}

func parseLevers(t *testing.T, lines string) (*config.Block, error) {
	t.Helper()
	return parse(t, inBlock("region eu {\n"+lines+"\n}\nregion us\narea x file f\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}"))
}

// TestWhen holds when schedules begin and end.
func TestWhen(t *testing.T) {
	tests := []struct {
		when, at string
		active   bool
		next     string // empty: never
	}{
		{"", "12:00", true, ""},
		{"from 2026-12-01T12:00:00Z", "11:59", false, "12:00"},
		{"from 2026-12-01T12:00:00Z", "12:00", true, ""},
		{"until 2026-12-01T12:00:00Z", "11:59", true, "12:00"},
		{"until 2026-12-01T12:00:00Z", "12:00", false, ""},
		{"from 2026-12-01T12:00:00+01:00 until 2026-12-01T12:00:00Z", "10:59", false, "11:00"},
		{"from 2026-12-01T12:00:00+01:00 until 2026-12-01T12:00:00Z", "11:00", true, "12:00"},
		{"from 2026-12-01T12:00:00+01:00 until 2026-12-01T12:00:00Z", "12:00", false, ""},
		{"daily 09:00-17:00 Z", "08:59", false, "09:00"},
		{"daily 09:00-17:00 Z", "09:00", true, "17:00"},
		{"daily 09:00-17:00 Z", "17:00", false, "2026-12-02T09:00:00Z"},
		{"daily 22:00-06:00 Z", "05:59", true, "06:00"},
		{"daily 22:00-06:00 Z", "06:00", false, "22:00"},
		{"daily 22:00-06:00 Z", "22:00", true, "2026-12-02T06:00:00Z"},
		{"daily 22:00-06:00 Z tue", "05:59", false, "22:00"}, // Monday's night
		{"daily 22:00-06:00 Z Mon", "05:59", true, "06:00"},
		{"daily 22:00-06:00 Z MON", "06:00", false, "2026-12-07T22:00:00Z"},
		{"daily 00:30-01:00 +14:00 Wed", "10:30", true, "11:00"},
		{"daily 23:00-23:30 -12:00 Mon", "11:00", true, "11:30"},
		{"daily 22:00-24:00 Z", "23:59", true, "2026-12-02T00:00:00Z"},
		{"daily 00:00-24:00 Z Tue Wed", "12:00", true, "2026-12-03T00:00:00Z"}, // one into the other
		{"daily 00:00-24:00 +05:45 Sat", "12:00", false, "2026-12-04T18:15:00Z"},
		{"daily 12:00-11:00 Z", "11:30", false, "12:00"},
		{"daily 12:00-11:00 Z", "12:00", true, "2026-12-02T11:00:00Z"},
	}
	for _, tt := range tests {
		w := mustWhen(t, tt.when)
		var next time.Time
		if tt.next != "" {
			next = at(tt.next)
		}
		if active, got := w.Active(at(tt.at)), w.Next(at(tt.at)); active != tt.active || !got.Equal(next) {
			t.Errorf("%q at %s: active %t until %s, want %t until %s", tt.when, tt.at, active, got, tt.active, next)
		}
	}
}

// TestWhenText holds that a schedule is written as it was read.
func TestWhenText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"from 2026-12-01T12:00:00+01:30":      "from 2026-12-01T10:30:00Z",
		"until 2026-12-01T12:00:00Z":          "until 2026-12-01T12:00:00Z",
		"daily 22:05-24:00 -09:30 sat MON":    "daily 22:05-24:00 -09:30 Mon Sat",
		"daily 22:05-06:00 +00:00":            "daily 22:05-06:00 Z",
		"daily 00:00-00:01 +05:45":            "daily 00:00-00:01 +05:45",
		"daily 1:00-2:00 Z":                   "error",
		"daily 01:00-02:00 Z " + everyDay:     "daily 01:00-02:00 Z",
		"daily 01:00-02:00 Z " + everyDay[4:]: "daily 01:00-02:00 Z " + everyDay[4:],
	} {
		b, err := parseLevers(t, "drain "+text)
		if (err != nil) != (want == "error") {
			t.Errorf("%q: %v", text, err)
		} else if err == nil && b.Regions[0].Levers.Drain[0].When.String() != want {
			t.Errorf("%q: got %q, want %q", text, b.Regions[0].Levers.Drain[0].When, want)
		}
	}
}

const everyDay = "Sun Mon Tue Wed Thu Fri Sat"

// slowActive is the meaning of a schedule, minute by minute.
func slowActive(w config.When, t time.Time) bool {
	d := w.Daily
	if d == nil {
		return (w.From.IsZero() || w.From.Unix() <= t.Unix()) && (w.Until.IsZero() || t.Unix() < w.Until.Unix())
	}
	local := t.In(time.FixedZone("", int(d.Offset/time.Second)))
	on := func(weekday time.Weekday) bool { return d.Days == [7]bool{} || d.Days[weekday] }
	hour, minute, _ := local.Clock()
	now := 60*hour + minute
	start, end := int(d.Start/time.Minute), int(d.End/time.Minute)
	today, yesterday := local.Weekday(), (local.Weekday()+6)%7
	if start < end {
		return on(today) && now >= start && now < end
	}
	return on(today) && now >= start || on(yesterday) && now < end
}

// slowDial is the dial in force; clash tells that two windows with an end are.
func slowDial(l *config.Levers, t time.Time) (percent float64, clash bool) {
	percent = 100
	var latest time.Time
	ends := 0
	for _, d := range l.Dial {
		switch {
		case !slowActive(d.When, t):
		case d.When.Daily != nil || !d.When.Until.IsZero():
			percent = d.Percent
			ends++
		case ends == 0 && !d.When.From.Before(latest):
			percent, latest = d.Percent, d.When.From
		}
	}
	return percent, ends > 1
}

// randomWhen writes a schedule within the week from 1 December 2026.
func randomWhen(r *rand.Rand) string {
	moment := func(minute int) string {
		return at("00:00").Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
	}
	first := r.IntN(7 * 24 * 60)
	switch r.IntN(6) {
	case 0:
		return "from " + moment(first)
	case 1:
		return "from " + moment(first) + " until " + moment(first+1+r.IntN(2000))
	case 2:
		return "until " + moment(first)
	}
	clock := func() string { return fmt.Sprintf("%02d:%02d", r.IntN(24), r.IntN(60)) }
	zone := []string{"Z", fmt.Sprintf("+%02d:%02d", r.IntN(14), r.IntN(60)), fmt.Sprintf("-%02d:%02d", r.IntN(14), r.IntN(60))}[r.IntN(3)]
	days := ""
	for day := range strings.SplitSeq(everyDay, " ") {
		if r.IntN(3) == 0 {
			days += " " + day
		}
	}
	end := clock()
	if r.IntN(4) == 0 {
		end = "24:00"
	}
	return "daily " + clock() + "-" + end + " " + zone + days
}

// TestSchedules compares random dials with the slow model over three weeks:
// what is in force, the next change, and which windows contradict each other.
func TestSchedules(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	sound, clashes := 0, 0
	for range 100 {
		var lines []string
		for range 1 + r.IntN(4) {
			lines = append(lines, fmt.Sprintf("dial %d%% %s", r.IntN(100), randomWhen(r)))
		}
		text := strings.Join(lines, "\n")
		b, err := parseLevers(t, text)
		if err != nil && !strings.Contains(err.Error(), "overlaps") {
			continue // the same beginning twice, or an empty window
		}
		if err != nil {
			clashes++
			if !clash(t, lines) {
				t.Errorf("%v, but no two lines of\n%s\nhold at once", err, text)
			}
			continue
		}
		sound++
		compare(t, &b.Regions[0].Levers, text)
	}
	t.Logf("%d sound and %d clashing schedules", sound, clashes)
	if sound < 20 || clashes < 20 {
		t.Errorf("%d sound and %d clashing schedules: too few to tell", sound, clashes)
	}
}

// minutes gives the instants of the weeks round that of randomWhen.
func minutes(yield func(time.Time) bool) {
	for i := range 22 * 24 * 60 {
		if !yield(at("00:00").Add(time.Duration(i-8*24*60) * time.Minute)) {
			return
		}
	}
}

// clash reports whether two windows hold at one time, each line read alone.
func clash(t *testing.T, lines []string) bool {
	var l config.Levers
	for _, line := range lines {
		l.Dial = append(l.Dial, leversOf(t, line).Dial...)
	}
	for now := range minutes {
		if _, both := slowDial(&l, now); both {
			return true
		}
	}
	return false
}

func compare(t *testing.T, l *config.Levers, text string) {
	t.Helper()
	var state config.LeverState
	var next time.Time
	due := make([]time.Time, len(l.Dial)) // next change of each line
	asked := false
	for now := range minutes {
		if !asked || !next.IsZero() && !now.Before(next) {
			state, next = l.At(now)
			asked = true
		}
		want, both := slowDial(l, now)
		if both {
			t.Fatalf("at %s two windows hold of\n%s", now, text)
		}
		if state.Dial != want {
			t.Fatalf("at %s: dial %v, want %v, next change %s, of\n%s", now, state.Dial, want, next, text)
		}
		for i, d := range l.Dial {
			is, before := slowActive(d.When, now), slowActive(d.When, now.Add(-time.Minute))
			if changes := is != before; !due[i].IsZero() && changes != now.Equal(due[i]) {
				t.Fatalf("%q at %s: changes %t, but the next change was told to be at %s", d.When, now, changes, due[i])
			}
			if is != d.When.Active(now) {
				t.Fatalf("%q at %s: active %t", d.When, now, !is)
			}
			if due[i].IsZero() || now.Equal(due[i]) {
				due[i] = d.When.Next(now)
			}
		}
	}
}
