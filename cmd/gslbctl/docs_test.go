package main

import (
	"os"
	"strings"
	"testing"
)

// TestDocs holds that the examples on pages are what the commands print.
func TestDocs(t *testing.T) {
	holdExample(t, "../../docs/explain.md", "json", "explain -json -type AAAA -view public -conf testdata/Corefile -resolver 192.0.2.53 api.example.com 2001:db8::/40")
}

func holdExample(t *testing.T, file, kind, command string) {
	t.Helper()
	begin, end := "<!-- example -->\n```"+kind+"\n", "```\n<!-- end -->\n"
	_, example, stderr := call(t, command)
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
