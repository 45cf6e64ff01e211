package plan_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// fixtures is where the databases are.
const fixtures = "../../testdata"

// words reads the text of a gslb block the way a Corefile is read, as far as
// these tests need: words by blanks, comments from "#" on.
func words(file, text string) (list []config.Token) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for word := range strings.FieldsSeq(line) {
			list = append(list, config.Token{Text: word, Pos: config.Pos{File: file, Line: i + 1}})
		}
	}
	return list
}

// parse reads statements as the gslb block of zones; it starts on line 1.
func parse(zones, statements string) (*config.Block, error) {
	return config.Parse(strings.Fields(zones), words("Corefile", "gslb {\n"+statements+"\n}"))
}

func mustParse(t *testing.T, zones, statements string) *config.Block {
	t.Helper()
	b, err := parse(zones, statements)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// build makes the plan of statements in the zone example.com.
func build(t *testing.T, root, statements string) *plan.Plan {
	t.Helper()
	p, err := plan.Build(mustParse(t, "example.com", statements), plan.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// buildError is the error that building gives.
func buildError(t *testing.T, root, statements string) string {
	t.Helper()
	_, err := plan.Build(mustParse(t, "example.com", statements), plan.Options{Root: root})
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

// put writes a file and returns its path.
func put(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// snapshots are the written verdicts.
func snapshots(p *plan.Plan) []*steer.Snapshot { return p.Snapshots(plan.Written, nil) }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
