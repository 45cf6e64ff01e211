package probe

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadable(t *testing.T) {
	a := &attempt{secrets: []string{"Bearer token-1", "token-1"}}
	for _, tc := range []struct{ name, reason, want string }{
		{"plain", "status 503, expected 200-299", "status 503, expected 200-299"},
		{"lines", "a\nb\tc\r", "a b c"},
		{"terminal", "\x1b[31mred\x1b[0m \u202e\u2028\x00\x7f", "[31mred[0m "},
		{"not UTF-8", "a\xff\xfeb", "ab"},
		{"secrets", "x Bearer token-1 y token-1", "x [hidden] y [hidden]"},
		{"at the bound", strings.Repeat("a", MaxReason), strings.Repeat("a", MaxReason)},
		{"beyond", strings.Repeat("a", MaxReason+1), strings.Repeat("a", MaxReason-3) + "…"},
		{"beyond, in a letter", strings.Repeat("é", MaxReason), strings.Repeat("é", (MaxReason-3)/2) + "…"},
	} {
		got := a.readable(tc.reason)
		if got != tc.want || len(got) > MaxReason || !utf8.ValidString(got) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
