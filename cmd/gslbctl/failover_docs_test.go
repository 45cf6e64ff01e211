package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFailoverDocs holds every example in docs/failover.md, a command and what it prints
// for the Corefile on the page. After a line of [...] only the end of that is shown.
func TestFailoverDocs(t *testing.T) {
	const file, more = "../../docs/failover.md", "[...]\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	corefile := regexp.MustCompile("(?s)```corefile\n(.*?)```\n").FindStringSubmatch(page)
	if corefile == nil {
		t.Fatal("no Corefile on the page")
	}
	conf := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(conf, []byte(corefile[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile("(?s)```sh\ngslbctl ([^\n]+)\n```\n\n<!-- example -->\n```txt\n(.*?)```\n<!-- end -->")
	found := form.FindAllStringSubmatch(page, -1)
	if len(found) != strings.Count(page, "<!-- example -->") || len(found) < 4 {
		t.Errorf("%d examples with their commands", len(found))
	}
	for _, m := range found {
		code, printed, stderr := call(t, strings.ReplaceAll(m[1], "-conf Corefile", "-conf "+conf))
		if code != exitOK {
			t.Fatalf("%s: %s", m[1], stderr)
		}
		want := strings.ReplaceAll(printed, conf, "Corefile")
		if shown, cut := strings.CutPrefix(m[2], more); cut {
			first, _, _ := strings.Cut(shown, "\n")
			_, rest, ok := strings.Cut(want, first)
			if !ok {
				t.Errorf("%s: it prints no %q", m[1], first)
			}
			want = more + first + rest
		}
		if m[2] == want {
			continue
		}
		if !*update {
			t.Errorf("the example in %s is not what `gslbctl %s` prints; run with -update\n%s", file, m[1], want)
		}
		page = strings.Replace(page, m[0], strings.Replace(m[0], m[2], want, 1), 1)
	}
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
