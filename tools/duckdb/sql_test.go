package duckdb

import (
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

// root is the repository.
const root = "../.."

// query gives the SQL under a heading of docs/latency.md.
func query(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "latency.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n### "+heading+"\n")
	_, section, ok2 := strings.Cut(section, "```sql\n")
	section, _, ok3 := strings.Cut(section, "```")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("docs/latency.md has no SQL under %q", heading)
	}
	return section
}

// beacons writes measurements of 40 prefixes on two days, among them those of a source
// that has too many.
func beacons(t *testing.T, path string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("time,prefix,region,rtt_ms,ok,source\n")
	for p := range 40 {
		prefix := fmt.Sprintf("20.%d.0.0/24", p)
		if p%4 == 3 {
			prefix = fmt.Sprintf("2001:db8:%x::/56", p<<8)
		}
		for day := 1; day <= 2; day++ {
			for r, region := range []string{"eu", "us", "ap"} {
				for i := range 300 {
					ms := 40 + 15*math.Exp(0.9*rng.NormFloat64()) + float64((p+r)%3*20)
					fmt.Fprintf(&b, "2026-11-%02dT%02d:%02d:00Z,%s,%s,%.2f,%t,s%d\n", day, rng.IntN(24), rng.IntN(60), prefix, region, ms, i%50 > 0, i)
				}
				for range 200 {
					fmt.Fprintf(&b, "2026-11-%02dT12:00:00Z,%s,%s,59999,true,attacker\n", day, prefix, region)
				}
			}
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRows holds that the map of the rows that DuckDB makes is that of the
// measurements, but for the accuracy of sketches.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	gslbctl := filepath.Join(dir, "gslbctl")
	if out, err := exec.Command("go", "build", "-C", root, "-buildvcs=false", "-o", gslbctl, "./cmd/gslbctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, rows := filepath.Join(dir, "raw.csv"), filepath.Join(dir, "rows.csv")
	beacons(t, raw)
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the time zone is a session's
	for _, statement := range []string{
		"SET TimeZone = 'Pacific/Auckland'", // days are UTC's all the same
		"CREATE TABLE beacons AS SELECT * FROM read_csv('" + raw + "')",
		"COPY (" + query(t, "DuckDB") + ") TO '" + rows + "' (HEADER)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%v in\n%s", err, statement)
		}
	}
	want, got := entries(t, gslbctl, raw), entries(t, gslbctl, rows)
	if len(want) < 20 || len(got) != len(want) {
		t.Fatalf("%d entries of rows, %d of measurements", len(got), len(want))
	}
	for i := range want {
		if !near(got[i], want[i]) {
			t.Errorf("entry of rows %v, of measurements %v", got[i], want[i])
		}
	}
}

// entries builds a map and gives its entries as words.
func entries(t *testing.T, gslbctl, input string) (lines [][]string) {
	t.Helper()
	out := input + ".txt"
	text, err := exec.Command(gslbctl, "map", "build", "-default-order", "eu,us,ap", "-until", "2026-11-03", "-force", "-o", out, input).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err = os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "\nclients\n")
	for line := range strings.Lines(body) {
		if words := strings.Fields(line); len(words) > 1 {
			lines = append(lines, words)
		}
	}
	return lines
}

// near tells whether entries have the same prefix, order and samples, and p75 within
// 2 %.
func near(a, b []string) bool {
	if len(a) != len(b) || a[0] != b[0] {
		return false
	}
	for i := 1; i < len(a); i++ {
		x, y := strings.FieldsFunc(a[i], isMark), strings.FieldsFunc(b[i], isMark)
		if len(x) < 3 || len(y) < 3 || x[0] != y[0] || x[2] != y[2] {
			return false
		}
		p, err1 := strconv.ParseFloat(x[1], 64)
		q, err2 := strconv.ParseFloat(y[1], 64)
		if err1 != nil || err2 != nil || math.Abs(p-q) > 0.02*q {
			return false
		}
	}
	return true
}

func isMark(r rune) bool { return r == ':' || r == '/' }
