package probe

import (
	"net/http"
	"testing"
	"time"
)

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"", 0, false},
		{"0", 0, true},
		{" 120 ", 2 * time.Minute, true},
		{"3600", time.Hour, true},
		{"3601", time.Hour, true},
		{"99999999999999999999999", time.Hour, true},
		{"-5", 0, false},
		{"+5", 0, false},
		{"1.5", 0, false},
		{"soon", 0, false},
		{now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second, true},
		{now.Add(-time.Minute).Format(http.TimeFormat), 0, true},
		{now.AddDate(5, 0, 0).Format(http.TimeFormat), time.Hour, true},
		{now.Add(time.Minute).Format(time.ANSIC), time.Minute, true},
	} {
		if got, ok := parseRetryAfter(tc.value, now); got != tc.want || ok != tc.ok {
			t.Errorf("%q: got %v %v, want %v %v", tc.value, got, ok, tc.want, tc.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, seed := range []string{"120", "-1", "99999999999999999999", "Sun, 01 Mar 2026 12:01:00 GMT", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		d, ok := parseRetryAfter(value, now)
		if d < 0 || d > time.Hour || !ok && d != 0 {
			t.Errorf("%q: %v %v", value, d, ok)
		}
	})
}
