package config_test

import (
	"fmt"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// describe writes a state and its next change. Lines of region eu begin at 4.
func describe(s config.LeverState) string {
	text := fmt.Sprintf("dial %v", s.Dial)
	if s.DialPos.Line > 0 {
		text += fmt.Sprintf(" by %d", s.DialPos.Line)
	}
	if s.Drain {
		text += fmt.Sprintf(", drained by %d", s.DrainPos.Line)
	}
	if s.Share != nil {
		text += fmt.Sprintf(", share %v%s by %d", s.Share.Percent, s.Share.Area, s.Share.Line)
	}
	if s.Trickle > 0 {
		text += fmt.Sprintf(", trickle %v", s.Trickle)
	}
	return text
}

// TestLeversAt holds which line of a lever counts, and until when.
func TestLeversAt(t *testing.T) {
	const (
		soak = "share 1% area x from 2026-12-01T08:00:00Z\nshare off from 2026-12-01T20:00:00Z\nshare 5% from 2026-12-01T12:00:00Z"
		dial = "dial 80%\ndial 50% from 2026-12-01T08:00:00Z until 2026-12-01T16:00:00Z\ndial 20% from 2026-12-01T12:00:00Z"
	)
	tests := []struct{ lines, at, want, next string }{
		{"", "12:00", "dial 100", ""},
		{"trickle 5%\nramp 1m", "12:00", "dial 100, trickle 5", ""},
		{"drain", "12:00", "dial 100, drained by 4", ""},
		{"dial 100%", "12:00", "dial 100 by 4", ""},
		{"drain from 2026-12-01T08:00:00Z until 2026-12-01T09:00:00Z\ndrain daily 22:00-06:00 Z", "05:59", "dial 100, drained by 5", "06:00"},
		{"drain from 2026-12-01T08:00:00Z until 2026-12-01T09:00:00Z\ndrain daily 22:00-06:00 Z", "06:00", "dial 100", "08:00"},
		{"drain from 2026-12-01T08:00:00Z until 2026-12-01T09:00:00Z\ndrain daily 22:00-06:00 Z", "08:00", "dial 100, drained by 4", "09:00"},
		{"drain from 2026-12-01T08:00:00Z until 2026-12-01T09:00:00Z\ndrain daily 22:00-06:00 Z", "09:00", "dial 100", "22:00"},
		{soak, "07:59", "dial 100", "08:00"},
		{soak, "08:00", "dial 100, share 1x by 4", "12:00"},
		{soak, "12:00", "dial 100, share 5 by 6", "20:00"},
		{soak, "20:00", "dial 100", ""},
		{dial, "07:59", "dial 80 by 4", "08:00"},
		{dial, "08:00", "dial 50 by 5", "12:00"},
		{dial, "12:00", "dial 50 by 5", "16:00"}, // a window with an end wins
		{dial, "16:00", "dial 20 by 6", ""},
		{"share 5%\nshare off daily 00:00-08:00 Z", "07:59", "dial 100", "08:00"},
		{"share 5%\nshare off daily 00:00-08:00 Z", "08:00", "dial 100, share 5 by 4", "2026-12-02T00:00:00Z"},
		{"share 0%", "08:00", "dial 100, share 0 by 4", ""},
		{"dial 0% from 2026-12-01T12:00:00Z\nshare 5% from 2026-12-01T11:00:00Z\ndrain from 2026-12-01T13:00:00Z", "10:00", "dial 100", "11:00"},
	}
	for _, tt := range tests {
		state, next := leversOf(t, tt.lines).At(at(tt.at))
		if got := describe(state); got != tt.want {
			t.Errorf("at %s: got %s, want %s, of\n%s", tt.at, got, tt.want, tt.lines)
		}
		if tt.next == "" && !next.IsZero() || tt.next != "" && !next.Equal(at(tt.next)) {
			t.Errorf("at %s: the next change is at %s, want %q, of\n%s", tt.at, next, tt.next, tt.lines)
		}
	}
}

// TestLeversOf holds how the levers of a pool and of its region come together.
func TestLeversOf(t *testing.T) {
	b := mustParse(t, inBlock(`
		region eu {
			drain from 2026-12-01T12:00:00Z
			dial 10%
			share 1%
			trickle 1%
			ramp 1m
			capacity 10
			load file region.load
		}
		region us
		host a.example.com {
			pool eu {
				endpoint 192.0.2.1
				drain until 2026-12-01T08:00:00Z
				dial 20%
				share off
				trickle 2%
				ramp 2m
				capacity 20
			}
			pool us 192.0.2.2
		}
		host b.example.com {
			pool eu 192.0.2.3
			pool us {
				endpoint 192.0.2.4
				dial 30%
			}
		}`))
	tests := []struct {
		host, pool int
		at, want   string
	}{
		{0, 0, "07:00", "dial 20 by 18, drained by 17, trickle 2; 2m0s 20"},
		{0, 0, "08:00", "dial 20 by 18, trickle 2; 2m0s 20"},
		{0, 0, "12:00", "dial 20 by 18, drained by 5, trickle 2; 2m0s 20"},
		{0, 1, "12:00", "dial 100; none"},
		{1, 0, "12:00", "dial 10 by 6, drained by 5, share 1 by 7, trickle 1; 1m0s 10 region.load"},
		{1, 1, "12:00", "dial 30 by 30; none"},
	}
	for _, tt := range tests {
		l := b.LeversOf(&b.Hosts[tt.host].Pools[tt.pool])
		state, _ := l.At(at(tt.at))
		got := describe(state) + "; none"
		if l.Ramp != nil {
			got = fmt.Sprintf("%s; %s %v", describe(state), l.Ramp.Value, l.Capacity.Value)
		}
		if l.Load != nil {
			got += " " + l.Load.File
		}
		if got != tt.want {
			t.Errorf("pool %d of host %d at %s: got %s, want %s", tt.pool, tt.host, tt.at, got, tt.want)
		}
	}
	if got := len(b.Regions[0].Levers.Drain); got != 1 {
		t.Errorf("the region has %d lines of drain after its levers were asked for", got)
	}
	unknown := config.Pool{Region: "ap", Levers: config.Levers{Trickle: &config.Percent{Value: 5}}}
	if l := b.LeversOf(&unknown); l.Trickle == nil {
		t.Error("a pool of an unknown region has lost its own levers")
	}
}
