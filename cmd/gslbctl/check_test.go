package main

import (
	"errors"
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

// TestCheckOfState holds that check warns of a state directory that can't be, and leaves
// one alone that isn't there yet.
func TestCheckOfState(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "Corefile")
	for state, want := range map[string]string{
		dir:                                  "",
		filepath.Join(dir, "new", "deep"):    "",
		file:                                 file + " is no directory",
		filepath.Join(file, "below", "that"): file + " is no directory",
	} {
		if err := os.WriteFile(conf, []byte(strings.Replace(failoverCorefile, "region a b", "region a b\nstate "+state, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		if code := run([]string{"check", "-conf", conf}, &out, &errs); code != exitOK {
			t.Errorf("state %s: exit code %d: %s", state, code, errs.String())
		}
		if want != "" {
			want = "state " + state + " can't be made or written to: " + want
		}
		if got := out.String(); strings.Contains(got, "can't be made") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("state %s: want %q\n%s", state, want, got)
		}
	}
	if made, _ := os.ReadDir(dir); len(made) != 2 {
		t.Errorf("%s has %v", dir, made)
	}
}

// TestUnwritable asks for access to the first directory that exists.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	denied := errors.New("denied")
	for _, state := range []string{dir, filepath.Join(dir, "new"), filepath.Join(dir, "new", "deep")} {
		if err := unwritable(state, func(at string) error { return errors.Join(denied, errors.New(at)) }); !errors.Is(err, denied) || !strings.HasPrefix(err.Error(), dir+": ") {
			t.Errorf("%s: %v", state, err)
		}
		if err := unwritable(state, access); err != nil {
			t.Errorf("%s: %v", state, err)
		}
	}
}
