package main

import (
	"os"
	"strings"
	"testing"
)

// TestDocs holds that the example in docs/explain.md is what the command prints.
func TestDocs(t *testing.T) {
	const file, begin, end = "../../docs/explain.md", "<!-- example -->\n```json\n", "```\n<!-- end -->\n"
	_, example, stderr := call(t, "explain -json -type AAAA -view public -conf testdata/Corefile -resolver 192.0.2.53 api.example.com 2001:db8::/40")
	if stderr != "" {
		t.Fatal(stderr)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	written, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no example", file)
	}
	example = strings.ReplaceAll(example, "testdata/", "")
	example = strings.ReplaceAll(example, "../../", "")
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+example+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if written != example {
		t.Errorf("the example in %s is not what the command prints; run with -update\n%s", file, example)
	}
}
