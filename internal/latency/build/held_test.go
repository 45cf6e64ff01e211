package build

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// cut writes six days on 20 prefixes, of which three are slower by 55 ms to us on the last.
func cut(until time.Time) (inputs []io.Reader) {
	for day := range 6 {
		b := newBeacons(uint64(day))
		b.at = until.Add(time.Duration(day-6) * 24 * time.Hour)
		for p := range 20 {
			client := fmt.Sprintf("20.%d.0.0/24", p)
			slower := 0.0
			if day == 5 && p < 3 {
				slower = 55
			}
			b.many(250, client, "us", slower)
			b.many(250, client, "eu", 8)
		}
		inputs = append(inputs, b)
	}
	return inputs
}

// TestCableCutBehindThinDay holds that what is new of a day, a line or the first of its
// minutes or only one side of a prefix, doesn't hide what the day before showed.
func TestCableCutBehindThinDay(t *testing.T) {
	today := noon.Add(time.Hour)
	line := func(n int, regions ...string) io.Reader {
		var text strings.Builder
		text.WriteString("time,client,region,rtt_ms,source\n")
		for i := range n {
			for _, region := range regions {
				fmt.Fprintf(&text, "%d,20.%d.0.0/24,%s,55,%d\n", noon.Unix()+int64(i%3000), i%20, region, i)
			}
		}
		return strings.NewReader(text.String())
	}
	for name, thin := range map[string]io.Reader{
		"a line": line(1, "us"), "some minutes": line(100, "us", "eu"), "half of a day": line(20*150, "us", "eu"), "one side": line(20*250, "us"),
	} {
		inputs := append(cut(noon), thin)
		r := mapOf(t, Options{Geography: to(us, eu, ap), Now: today}, inputs...)
		if got, want := textOf(r.Map.Clients), "20.0.0.0/24 eu us\n20.1.0.0/24 eu us\n20.2.0.0/24 eu us"; got != want {
			t.Errorf("%s: entries are\n%s\nwant\n%s", name, got, want)
		}
	}
	// What is behind by days is the same.
	inputs := append(cut(noon.Add(-72*time.Hour)), line(1, "us"))
	r := mapOf(t, Options{Geography: to(us, eu, ap), Now: today, Window: 14 * 24 * time.Hour}, inputs...)
	if len(r.Map.Clients) != 3 {
		t.Errorf("old data and a line of today: entries are\n%s", textOf(r.Map.Clients))
	}
	// And one row of very many doesn't make the days before it thin.
	row := strings.NewReader(fmt.Sprintf("day,client,region,n,p75\n%s,198.51.100.0/24,us,1000000000,50\n", noon.Format(time.DateOnly)))
	r = mapOf(t, Options{Geography: to(us, eu, ap), Now: today, Emergency: 1}, append(cut(noon), row)...)
	if len(r.Map.Clients) != 3 {
		t.Errorf("a huge row of today: entries are\n%s", textOf(r.Map.Clients))
	}
}

// TestHealedCut holds that of two recent days with enough the newer one counts.
func TestHealedCut(t *testing.T) {
	b := newBeacons(78)
	b.at = noon
	for p := range 20 {
		b.many(250, fmt.Sprintf("20.%d.0.0/24", p), "us", 0)
		b.many(250, fmt.Sprintf("20.%d.0.0/24", p), "eu", 8)
	}
	expect(t, mapOf(t, Options{Geography: to(us, eu, ap), Now: noon.Add(24 * time.Hour)}, append(cut(noon), b)...))
}

func buildError(t *testing.T, o Options, inputs ...io.Reader) error {
	t.Helper()
	_, err := builderFor(t, o, inputs...).Build()
	return err
}

// TestNothingMeasured holds that inputs of which nothing counts make no map.
func TestNothingMeasured(t *testing.T) {
	head := "time,client,region,rtt_ms\n"
	for name, text := range map[string]string{
		"nothing": "", "names alone": head, "too old": head + "2026-01-02,192.0.2.1,eu,5\n", "too new": head + "2026-11-02,192.0.2.1,eu,5\n",
		"special space": head + "2026-10-30,10.0.2.1,eu,5\n2026-10-30,fe80::1,eu,5\n2026-10-30,::1,eu,5\n",
	} {
		o := Options{Until: noon.Add(-48 * time.Hour)}
		if err := buildError(t, o, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "no measurements from 2026-10-25") {
			t.Errorf("%s: %v", name, err)
		}
		o.Force = true
		if r := mapOf(t, o, strings.NewReader(text)); len(r.Map.Clients) > 0 {
			t.Errorf("%s: %v", name, r.Map.Clients)
		}
	}
}

// forty is a map of 40 entries with as much demand each.
func forty() *latency.Map {
	var lines []string
	for p := range 40 {
		lines = append(lines, fmt.Sprintf("20.%d.0.0/24 us:50/200 eu:90/200", p))
	}
	return before(lines...)
}

// TestExpiry holds that entries without measurements go as the budget allows, that
// those kept are as they were, and that most don't go at once unless forced.
func TestExpiry(t *testing.T) {
	measured := func(from, n int) *beacons {
		b := newBeacons(9)
		for p := from; p < n; p++ {
			b.many(200, fmt.Sprintf("20.%d.0.0/24", p), "us", 0)
			b.many(200, fmt.Sprintf("20.%d.0.0/24", p), "eu", 40)
		}
		return b
	}
	for _, c := range []struct {
		measured, want, expired int
		o                       Options
	}{
		{1, 40, 0, Options{}}, // one prefix alone: 2 % of it are less than an entry
		{40, 40, 0, Options{}},
		{38, 40, 0, Options{Budget: -1}},
		{38, 39, 1, Options{Budget: 0.03}},
		{38, 38, 2, Options{Budget: 0.06}},
		{38, 38, 2, Options{Force: true}},
		{1, 1, 39, Options{Force: true}},
	} {
		c.o.Previous, c.o.Geography = forty(), to(eu, us)
		r := mapOf(t, c.o, measured(0, c.measured))
		s := r.Report.Clients
		if len(r.Map.Clients) != c.want || s.Expired != c.expired || s.Kept != 40-c.measured-c.expired || s.Prefixes != c.measured {
			t.Errorf("%d measured, %+v: %d entries, %d expired, %d kept of %d prefixes", c.measured, c.o, len(r.Map.Clients), s.Expired, s.Kept, s.Prefixes)
		}
		if s.Moved > max(c.o.Budget, 0) && !c.o.Force {
			t.Errorf("%d measured: moved %v", c.measured, s.Moved)
		}
	}
	o := Options{Previous: forty(), Geography: to(eu, us)}
	kept := mapOf(t, o, measured(0, 1)).Map.Clients[39]
	if kept.Prefix.String() != "20.39.0.0/24" || textOf([]latency.Entry{kept}) != "20.39.0.0/24 us eu" || kept.Cells[1] != (latency.Cell{P75: 90, Samples: 200}) {
		t.Errorf("kept as %+v", kept)
	}
	// More than half may not go even where the budget allows it.
	o.Budget = 1
	if err := buildError(t, Options{Previous: forty(), Geography: to(eu, us), Budget: 1}, measured(0, 30)); err != nil {
		t.Error(err)
	}
	slower := newBeacons(10)
	for p := range 40 { // all of them go back to geography, by measurements
		slower.many(400, fmt.Sprintf("20.%d.0.0/24", p), "us", 90)
		slower.many(400, fmt.Sprintf("20.%d.0.0/24", p), "eu", 0)
	}
	o.Emergency = 1
	if err := buildError(t, o, slower.again()); err == nil || !strings.Contains(err.Error(), "40 entries for clients 40 would be gone") {
		t.Errorf("all entries lost: %v", err)
	}
	if o.Force = true; len(mapOf(t, o, slower).Map.Clients) > 0 {
		t.Error("not forced")
	}
	// A region that is no more takes its entries along.
	o = Options{Previous: before("20.0.0.0/24 gone eu", "20.1.0.0/24 gone eu"), Geography: to(eu, us)}
	if r := mapOf(t, o, measured(5, 6)); r.Report.Clients.Expired != 2 {
		t.Errorf("%+v", r.Report.Clients)
	}
}

// TestPooledDemand holds that samples that many entries were decided by together count once.
func TestPooledDemand(t *testing.T) {
	b := newBeacons(11)
	for p := range 16 { // far from each other for an entry, near for a decision
		b.many(15, fmt.Sprintf("20.0.%d.0/24", 16*p), "us", 0)
		b.many(15, fmt.Sprintf("20.0.%d.0/24", 16*p), "eu", 60)
	}
	r := mapOf(t, Options{Geography: to(eu, us), Force: true}, b)
	samples := uint64(0)
	for _, e := range r.Map.Clients {
		for _, c := range e.Cells {
			samples += uint64(c.Samples)
		}
	}
	if len(r.Map.Clients) != 16 || samples != r.Report.Clients.Demand || samples != 480 {
		t.Errorf("%d entries with %d samples, measured %d", len(r.Map.Clients), samples, r.Report.Clients.Demand)
	}
}

// TestTwice holds that measurements don't count twice, as lines, compressed, or as
// sketches of one day, unless forced.
func TestTwice(t *testing.T) {
	b := newBeacons(12)
	b.many(250, "192.0.2.0/24", "eu", 0)
	b.many(250, "192.0.2.0/24", "us", 0)
	sketch := func(o Options, inputs ...io.Reader) *bytes.Buffer {
		out := new(bytes.Buffer)
		o.Sketches = out
		mapOf(t, o, inputs...)
		return out
	}
	other := newBeacons(13)
	other.many(10, "192.0.2.0/24", "eu", 0)
	one, two := sketch(Options{}, b.again()), sketch(Options{}, other.again())
	for name, c := range map[string]struct {
		a, b *bytes.Buffer
		want string
	}{
		"the same lines":  {&b.Buffer, &b.Buffer, "input2: has the same content as input1"},
		"one day twice":   {one, two, "input2: a file of sketches: has measurements of 2026-11-02, as input1 has"},
		"lines, sketches": {&other.Buffer, one, ""},
	} {
		x := builderFor(t, Options{}, bytes.NewReader(c.a.Bytes()))
		err := x.Add("input2", bytes.NewReader(c.b.Bytes()))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		builderFor(t, Options{Force: true}, bytes.NewReader(c.a.Bytes()), bytes.NewReader(c.b.Bytes()))
	}
	// Parts of days don't get into sketches.
	o := Options{Until: noon.Add(-2 * time.Hour), Force: true}
	part := builderFor(t, Options{Force: true}, sketch(o, strings.NewReader(b.String())))
	if part.lines != 0 {
		t.Errorf("a day that isn't over is in a file of sketches: %d cells", part.lines)
	}
}

// TestSweep holds that what a killed build left is removed a day later, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	made := func(name, file string, age time.Duration) string {
		path := filepath.Join(dir, name)
		at := noon.Add(-age)
		if os.MkdirAll(path, 0o700) != nil || os.WriteFile(filepath.Join(path, file), nil, 0o600) != nil ||
			os.Chtimes(filepath.Join(path, file), at, at) != nil || os.Chtimes(path, at, at) != nil {
			t.Fatal("can't prepare")
		}
		return path
	}
	own := strings.TrimSuffix(spillName(), "*")
	gone := made(own+"1", "run-1", 25*time.Hour)
	kept := []string{
		made(own+"2", "run-1", time.Hour), made(own+"3", "letter", 25*time.Hour),
		made("gslb-map-99999999-1", "run-1", 25*time.Hour), made("else", "run-1", 25*time.Hour),
	}
	sweep(dir, noon)
	if exists(gone) {
		t.Error("left behind:", gone)
	}
	for _, path := range kept {
		if !exists(path) {
			t.Error("removed:", path)
		}
	}
}

// TestFound holds that bad lines show what they have, bounded, and what helps.
func TestFound(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for line, want := range map[string]string{
		"1762041600000,192.0.2.1,eu,5,":        `time: in milliseconds, as JavaScript has it: divide it by 1000, found "1762041600000"`,
		"2026-11-02,192.0.2.1," + long + ",5,": `region: unknown, found "` + long[:shownBytes] + `"…`,
		"2026-11-02,192.0.2.1,eu,fast,":        `found "fast"`,
		"2026-11-02,192.0.2.1,eu,,1000000001":  `n, failed: expected whole numbers, at most 10^9, not both 0, found "1000000001", ""`,
		"2026-11-02,192.0.2.1\x01":             `found "2026-11-02,192.0.2.1\x01"`,
	} {
		err := buildError(t, Options{}, strings.NewReader("time,client,region,rtt_ms,n\n"+line+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", line, err, want)
		}
	}
}

// TestZeroParts holds that nothing may change where a budget says so, and that one bad
// line is too many where none may be.
func TestZeroParts(t *testing.T) {
	b := newBeacons(14)
	b.many(2000, "192.0.2.0/24", "eu", 20)
	b.many(2000, "192.0.2.0/24", "us", 0)
	if r := mapOf(t, Options{Geography: to(eu, us), Budget: -1, Emergency: 1}, b.again()); len(r.Map.Clients) > 0 || r.Report.Clients.Deferred != 1 {
		t.Errorf("%+v", r.Report.Clients)
	}
	if r := mapOf(t, Options{Geography: to(eu, us), Budget: 1, Emergency: -1}, b.again()); len(r.Map.Clients) != 1 {
		t.Errorf("%+v", r.Report.Clients)
	}
	b.WriteString("bad\n")
	if err := buildError(t, Options{MaxBad: -1}, b); err == nil {
		t.Error("a bad line is not too many")
	}
}
