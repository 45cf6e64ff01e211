package build

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// world is measurements of many prefixes over some days, as CSV by day.
func world(seed uint64, prefixes, days int) []string {
	var out []string
	for day := range days {
		b := newBeacons(seed + uint64(day))
		b.at = noon.Add(time.Duration(day-days) * 24 * time.Hour)
		for p := range prefixes {
			client := netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(p / 1024), byte(p % 1024 / 4 * 4), 0}), 24).String()
			if p%5 == 0 {
				client = fmt.Sprintf("2001:db8:%x:%x00::/56", p/200, p%200)
			}
			for r, name := range regions {
				n := b.rng.IntN(120)
				if p%7 == 0 {
					n *= 8
				}
				b.many(n, client, name, float64((p/64+r*7)%3)*12)
				b.fail(b.rng.IntN(3), client, name)
			}
		}
		out = append(out, b.String())
	}
	return out
}

// bytesOf builds and writes the map and the report down.
func bytesOf(t *testing.T, o Options, inputs ...io.Reader) string {
	t.Helper()
	r := mapOf(t, o, inputs...)
	var b strings.Builder
	if err := latency.WriteText(&b, r.Map); err != nil {
		t.Fatal(err)
	}
	if err := r.Report.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSame holds that neither memory nor goroutines nor the order of lines change
// the map, the report or the sketches.
func TestSame(t *testing.T) {
	days := world(1, 300, 2)
	all := days[0] + days[1][strings.IndexByte(days[1], '\n')+1:]
	var sketches bytes.Buffer
	want := bytesOf(t, Options{Sketches: &sketches, Workers: 1, Geography: to(eu, us, ap), Budget: 0.5}, strings.NewReader(all))
	if strings.Count(want, "\n") < 25 {
		t.Fatalf("not much of a map:\n%s", want)
	}
	head, lines, _ := strings.Cut(all, "\n")
	shuffled := strings.Split(strings.TrimSpace(lines), "\n")
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	mixed := head + "\n" + strings.Join(shuffled, "\n")
	for _, c := range []struct {
		memory  int64
		workers int
		text    string
	}{{1 << 16, 1, all}, {1 << 16, 7, all}, {1 << 20, 3, mixed}, {0, 2, mixed}, {1 << 16, 2, mixed}} {
		var s bytes.Buffer
		before := runtime.GOMAXPROCS(c.workers)
		got := bytesOf(t, Options{Memory: c.memory, Workers: c.workers, Sketches: &s, Geography: to(eu, us, ap), Budget: 0.5}, strings.NewReader(c.text))
		runtime.GOMAXPROCS(before)
		if got != want {
			t.Errorf("with %d bytes and %d workers the map is\n%.2000s\nwant\n%.2000s", c.memory, c.workers, got, want)
		}
		if !bytes.Equal(s.Bytes(), sketches.Bytes()) {
			t.Errorf("with %d bytes and %d workers the sketches differ", c.memory, c.workers)
		}
	}
}

// TestSpills holds that little memory does lead to runs on disk, and to their merging
// when they are many, and that nothing of it stays.
func TestSpills(t *testing.T) {
	day := world(3, 200, 1)[0]
	b := builderFor(t, Options{Memory: MinMemory, Workers: 4}, strings.NewReader(day))
	if n := len(b.runs.records); n <= 2*fanIn {
		t.Fatalf("%d runs, want more than can be merged at once, twice", n)
	}
	if _, err := b.Build(); err != nil {
		t.Fatal(err)
	}
	if n := len(b.runs.records); n > fanIn {
		t.Errorf("%d runs were read at once", n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if exists(b.dir) {
		t.Errorf("%s is still there", b.dir)
	}
}

// TestSketchesOfDays holds that a map of sketches of days is that of all their
// measurements, in whatever order the files come.
func TestSketchesOfDays(t *testing.T) {
	days := world(5, 200, 3)
	var raw, files []io.Reader
	for _, d := range days {
		raw = append(raw, strings.NewReader(d))
		var s bytes.Buffer
		mapOf(t, Options{Sketches: &s}, strings.NewReader(d))
		files = append([]io.Reader{bytes.NewReader(s.Bytes())}, files...)
	}
	lines := func(s string) string { return s[:strings.Index(s, "measured from")] } // but for the number of lines read
	want := lines(bytesOf(t, Options{Geography: to(us, eu, ap), Budget: 0.5}, raw...))
	if got := lines(bytesOf(t, Options{Geography: to(us, eu, ap), Budget: 0.5, Memory: MinMemory}, files...)); got != want {
		t.Errorf("the map of sketches is\n%.2000s\nwant\n%.2000s", got, want)
	}
}
