package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckOfControl holds that check sees what a start refuses of control.
func TestCheckOfControl(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	check := func(state, want string) {
		t.Helper()
		conf := filepath.Join(dir, "Corefile")
		text := strings.Replace(failoverCorefile, "region a b", "region a b\n"+state+"control unix:"+dir+"/sock token "+tokens, 1)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		if code := run([]string{"check", "-conf", conf}, &out, &errs); (code == exitOK) != (want == "") || !strings.Contains(errs.String(), want) {
			t.Errorf("exit code %d: %s, want %s", code, errs.String(), want)
		}
	}
	state := "state " + dir + "\n"
	check(state, "no such file")
	if err := os.WriteFile(tokens, []byte("ops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(state, tokens)
	if err := os.WriteFile(tokens, []byte("ops 0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("", "state DIR")
	check(state, "")
}
