package probe

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*check.Check)
		want   string // part of the error; empty: none
	}{
		{"defaults", nil, ""},
		{"no interval", func(c *check.Check) { c.Interval = 0 }, "interval 0s"},
		{"no timeout", func(c *check.Check) { c.Timeout = 0 }, "timeout 0s"},
		{"timeout of an interval", func(c *check.Check) { c.Timeout = c.Interval }, ""},
		{"timeout beyond the interval", func(c *check.Check) { c.Timeout = c.Interval + 1 }, "at most the interval of 10s"},
		{"fall 0", func(c *check.Check) { c.Fall = 0 }, "fall 0"},
		{"fall 21", func(c *check.Check) { c.Fall = 21 }, "fall 21"},
		{"rise 0", func(c *check.Check) { c.Rise = 0 }, "rise 0"},
		{"negative window", func(c *check.Check) { c.FallWithin = -1 }, "within"},
		{"negative time", func(c *check.Check) { c.RiseOver = -1 }, "over"},
		{"negative flips", func(c *check.Check) { c.HoldFlips = -1 }, "hold -1"},
		{"no initial", func(c *check.Check) { c.Initial = "" }, `initial ""`},
		{"last of no age", func(c *check.Check) { c.InitialAge = 0 }, "initial last"},
		{"up needs no age", func(c *check.Check) { c.Initial, c.InitialAge = check.InitialUp, 0 }, ""},
		{"3 within 30s at 10s", func(c *check.Check) { c.FallWithin = 30 * time.Second }, ""},
		{"3 within 20s at 10s", func(c *check.Check) { c.FallWithin = 20 * time.Second }, ""},
		{"3 within 30s at 30s", func(c *check.Check) { c.Interval, c.FallWithin = 30*time.Second, 30*time.Second }, "3 failures take 1m0s"},
		{"accumulate within", func(c *check.Check) { c.Accumulate, c.FallWithin = true, time.Minute }, "leave one out"},
		{"retry", func(c *check.Check) { c.Retry = true }, ""},
		{"retry does not fit", func(c *check.Check) { c.Retry, c.Timeout = true, 5*time.Second }, "take 11s"},
		{"rise over", func(c *check.Check) { c.RiseOver = time.Minute }, ""},
		{"hold", func(c *check.Check) { c.HoldFlips = 4 }, ""},
		{"hold after one", func(c *check.Check) { c.HoldFlips = 1 }, ""},
		{"hold of more than an hour has", func(c *check.Check) { c.HoldFlips, c.Interval = 4, 10*time.Minute }, "can't come true"},
		{"hold of more than slow rises allow", func(c *check.Check) { c.HoldFlips, c.RiseOver = 4, time.Hour }, "can't come true"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate(rules(tt.change))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
