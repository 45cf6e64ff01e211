package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commandFlags are the flags of every command, by what is typed, such as "map build".
func commandFlags(t *testing.T) map[string][]string {
	t.Helper()
	lines := slices.Collect(maps.Keys(commands))
	for name := range mapCommands {
		lines = append(lines, "map "+name)
	}
	flags := make(map[string][]string)
	for _, line := range lines {
		code, help, _ := call(t, line+" -help")
		if code != exitOK {
			t.Errorf("gslbctl %s -help: exit code %d", line, code)
		}
		flags[line] = nil
		for _, m := range regexp.MustCompile(`(?m)^  -([a-z0-9-]+)`).FindAllStringSubmatch(help, -1) {
			flags[line] = append(flags[line], m[1])
		}
	}
	return flags
}

// docPages are README.md and docs, by name.
func docPages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, name := range append(names, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(text)
	}
	return texts
}

// TestFlagsAreDocumented holds that pages tell of every command and of every flag.
func TestFlagsAreDocumented(t *testing.T) {
	all := strings.Join(slices.Collect(maps.Values(docPages(t))), "\n")
	missing := make(map[string][]string)
	there := commandFlags(t)
	for _, command := range slices.Sorted(maps.Keys(there)) {
		if !regexp.MustCompile("(gslbctl |`)" + command + `\b`).MatchString(all) {
			t.Errorf("no page tells of gslbctl %s", command)
		}
		for _, f := range there[command] {
			if !regexp.MustCompile("[ `(]-" + f + "[^a-z0-9-]").MatchString(all) {
				missing[f] = append(missing[f], command)
			}
		}
	}
	for _, f := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("no page tells of -%s, a flag of gslbctl %s", f, strings.Join(missing[f], ", "))
	}
}

var (
	commandLine = regexp.MustCompile("gslbctl ((?:map |whatif )?[a-z]+)((?:[^\n`|;&]|\\\\\n)*)")
	flagIn      = regexp.MustCompile(`(?:^|\s|\[)-([a-z][a-z0-9-]*)`)
	quotedText  = regexp.MustCompile(`"[^"\n]*"`)
)

// TestCommandLinesOnPages holds that commands that pages write out are there, with the flags
// that are written.
func TestCommandLinesOnPages(t *testing.T) {
	flags, n := commandFlags(t), 0
	for page, text := range docPages(t) {
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			command := strings.TrimPrefix(m[1], "whatif ")
			has, ok := flags[command]
			if !ok {
				t.Errorf("%s: there is no command gslbctl %s", page, command)
				continue
			}
			line, _, _ := strings.Cut(quotedText.ReplaceAllString(m[2], ""), " #")
			for _, f := range flagIn.FindAllStringSubmatch(line, -1) {
				if n++; !slices.Contains(has, f[1]) {
					t.Errorf("%s: gslbctl %s has no flag -%s: %s", page, command, f[1], m[0])
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d flags are written out", n)
	}
}
