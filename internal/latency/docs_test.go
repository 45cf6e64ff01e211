package latency

import (
	"strings"
	"testing"
)

// TestDocs holds that the example of the documentation is a map, written as the
// writer writes it.
func TestDocs(t *testing.T) {
	page := string(mustRead(t, "../../docs/latency-map.md"))
	_, rest, _ := strings.Cut(page, "    gslb-latency 1\n")
	example, _, ok := strings.Cut("    gslb-latency 1\n"+rest, "\n\nThe grammar")
	if !ok {
		t.Fatal("no example")
	}
	text := strings.ReplaceAll("\n"+example+"\n", "\n    ", "\n")[1:]
	if got := string(write(t, parse(t, text), Text)); got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
}
