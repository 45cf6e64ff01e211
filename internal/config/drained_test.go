package config_test

import (
	"strings"
	"testing"
)

// TestDrained holds what is told of hosts and last resorts that an operator has
// drained altogether.
func TestDrained(t *testing.T) {
	const (
		servfail = "host a.example.com.: every endpoint is drained: SERVFAIL"
		up       = "pool us 192.0.2.9"
	)
	tests := []struct {
		name, host string
		line       int
		want       string // empty: no warning
	}{
		{"all drained", "pool eu { endpoint 192.0.2.1 drain }\npool us { endpoint 192.0.2.2 drain }", 4, servfail},
		{"last_resort closed", "pool eu { endpoint 192.0.2.1 drain }\nlast_resort closed", 4, servfail},
		{"weight 0 beside drained", "pool eu {\nendpoint 192.0.2.1 drain\nendpoint 192.0.2.2 weight 0\n}", 4, servfail},
		{"a family not given", "families v4\npool eu {\nendpoint 192.0.2.1 drain\nendpoint 2001:db8::1\n}", 4, servfail},
		{"last_resort addresses", "pool eu { endpoint 192.0.2.1 drain }\nlast_resort addresses 192.0.2.5", 4,
			"every endpoint is drained: clients get the addresses of last_resort"},
		{"one told once", "pool eu { endpoint 192.0.2.1 drain }\nlast_resort regions eu", 4, servfail},
		{"one left", "pool eu { endpoint 192.0.2.1 drain }\n" + up, 0, ""},
		{"one left in the pool", "pool eu {\nendpoint 192.0.2.1 drain\nendpoint 192.0.2.2\n}", 0, ""},
		{"one down", "pool eu {\nendpoint 192.0.2.1 drain\nendpoint 192.0.2.2 down\n}", 0, ""},
		{"another family left", "pool eu {\nendpoint 192.0.2.1 drain\nendpoint 2001:db8::1\n}", 0, ""},
		{"last_resort regions", "pool eu { endpoint 192.0.2.1 drain }\n" + up + "\nlast_resort regions eu", 7,
			"last_resort regions eu of host a.example.com.: every endpoint is drained: SERVFAIL"},
		{"last_resort regions, one left", "pool eu { endpoint 192.0.2.1 drain }\n" + up + "\nlast_resort regions eu us", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustParse(t, inBlock("region eu us\nhost a.example.com {\n"+tt.host+"\n}\nhost b.example.com {\n"+up+"\n}\nhost c.example.com {\npool eu 192.0.2.8\n}"))
			switch {
			case tt.want == "" && len(b.Warnings) > 0:
				t.Errorf("warnings %v", b.Warnings)
			case tt.want != "" && (len(b.Warnings) != 1 || b.Warnings[0].Line != tt.line || !strings.Contains(b.Warnings[0].Text, tt.want)):
				t.Errorf("warnings %v, want %q at line %d", b.Warnings, tt.want, tt.line)
			}
		})
	}
}
