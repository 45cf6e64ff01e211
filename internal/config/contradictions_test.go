package config_test

import (
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// TestContradictions holds what two blocks may say of one thing.
func TestContradictions(t *testing.T) {
	tests := []struct{ name, x, y, want string }{
		{"nothing", "", "", ""},
		{"one capacity", "region eu { capacity 5 }", "region eu", ""},
		{"equal capacity", "region eu { capacity 5 target 80% }", "region eu { capacity 5.0 target 80.0% }", ""},
		{"another capacity", "region eu { capacity 5 }", "region eu { capacity 6 }", "y:4: the capacity of region \"eu\" is written with another meaning at x:4"},
		{"another target", "region eu { capacity 5 }", "region eu { capacity 5 target 80% }", "y:4: the capacity"},
		{"a score", "region eu {\ncapacity score\nload file f\n}", "region eu { capacity 6 }", "y:4: the capacity of region \"eu\" is written with another meaning at x:5"},
		{"another region", "region eu { capacity 5 }", "region ap { capacity 6 }", ""},
		{"equal load", "region eu {\ncapacity 5\nload file f\n}", "region eu {\ncapacity 5\nload file f every 15s\n}", ""},
		{"another load", "region eu {\ncapacity 5\nload file f\n}", "region eu {\ncapacity 5\nload file g\n}", "y:6: the load of region \"eu\" is written with another meaning at x:6"},
		{"another period", "region eu {\ncapacity 5\nload file f\n}", "region eu {\ncapacity 5\nload file f every 16s\n}", "y:6: the load"},
		{"load of one", "region eu {\ncapacity 5\nload file f\n}", "region eu { capacity 5 }", ""},
		{"one control", "control unix:/a token f", "", ""},
		{"equal control", "control unix:/a token f", "control unix:/a token f", ""},
		{"another control", "control unix:/a token f", "control unix:/b token f", "y:4: control is written with another meaning at x:4"},
		{"another token", "control unix:/a token f", "control unix:/a token g", "y:4: control"},
		{"other levers", "region eu { dial 5% }", "region eu { drain }", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			read := func(file, text string) *config.Block {
				if !strings.Contains(text, "region eu") {
					text += "\nregion eu"
				}
				text += "\nhost a.example.com {\npool eu 192.0.2.1\n" + map[bool]string{true: "pool ap 192.0.2.2\n"}[strings.Contains(text, "region ap")] + "}"
				list := lex(t, file, "\n"+inBlock(text))
				b, err := list[0].parse()
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			x, y := read("x", tt.x), read("y", tt.y)
			err := config.Contradictions([]*config.Block{x, y})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err := config.Contradictions([]*config.Block{x, x}); err != nil {
				t.Errorf("of itself: %v", err)
			}
		})
	}
	if err := config.Contradictions(nil); err != nil {
		t.Error(err)
	}
}
