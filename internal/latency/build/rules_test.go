package build

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
)

// before makes a map that was in service, of clients.
func before(entries ...string) *latency.Map {
	m, err := latency.ReadText("before", strings.NewReader(
		"gslb-latency 1\nbuilt 2026-11-01T00:00:00Z\nfrom 2026-10-30T00:00:00Z\nuntil 2026-11-01T00:00:00Z\nregions ap us eu gone\n\nclients\n"+
			strings.Join(entries, "\n")+"\n"))
	if err != nil {
		panic(err)
	}
	return m
}

// lots is options under which no budget binds.
func lots(geo ...uint8) Options { return Options{Geography: to(geo...), Force: true} }

// wide writes n measurements of an exponential distribution with mean 100 ms, without
// chance: p75 is 149 ms, and its interval of 200 samples wider than tolerance.
func (b *beacons) wide(n int, client, region string, extra float64) {
	for i := range n {
		b.one(client, region, 10-100*math.Log(1-(float64(i)+0.5)/float64(n))+extra, fmt.Sprint(i))
	}
}

// TestProven holds that an override takes a gain over geography that is beyond tolerance and
// chance, and measurements of what it is to beat.
func TestProven(t *testing.T) {
	for _, c := range []struct {
		name          string
		euMs, usMs    float64
		euN, usN      int
		want, because string
	}{
		{"much better", 80, 0, 250, 250, "192.0.2.0/24 us eu", "emergency"},
		{"better by less than 10 %", 5, 0, 3000, 3000, "", "within tolerance"},
		{"better, perhaps by chance", 20, 0, 200, 200, "", "not proven"},
		{"the same from more samples", 20, 0, 3000, 3000, "192.0.2.0/24 us eu", "better"},
		{"worse", 0, 80, 300, 300, "", "within tolerance"},
		{"geography is hardly measured", 50, 0, 150, 1000, "", "too few samples"},
		{"the other is hardly measured", 50, 0, 1000, 150, "", "too few samples"},
	} {
		b := newBeacons(1)
		b.wide(c.euN, "192.0.2.0/24", "eu", c.euMs)
		b.wide(c.usN, "192.0.2.0/24", "us", c.usMs)
		r := mapOf(t, lots(eu, us), b)
		if got := textOf(r.Map.Clients); got != c.want || r.Report.Clients.Why[0].Reason != c.because {
			t.Errorf("%s: %q since %v, want %q since %s", c.name, got, r.Report.Clients.Why, c.want, c.because)
		}
	}
}

// TestKept holds that what is in service stays until something is clearly better, that it goes
// when it is no candidate any more, and when nothing is measured of it.
func TestKept(t *testing.T) {
	for _, c := range []struct {
		name    string
		entry   string
		us, ap  float64 // slower than eu by
		want    string
		expired int
	}{
		{"near the best", "192.0.2.0/24 us eu", 3, 60, "192.0.2.0/24 us eu ap", 0},
		{"clearly worse than geography", "192.0.2.0/24 us eu", 20, 60, "", 0},
		{"clearly worse than another", "192.0.2.0/24 ap eu", -20, 5, "192.0.2.0/24 us eu ap", 0},
		{"of a region that is no more", "192.0.2.0/24 gone eu", -20, 5, "192.0.2.0/24 us eu ap", 0},
		{"of elsewhere", "198.51.100.0/24 us eu", 0, 0, "", 1},
		{"of a larger prefix", "192.0.0.0/20 us eu", -3, 60, "192.0.2.0/24 us eu ap", 0},
	} {
		b := newBeacons(2)
		b.many(400, "192.0.2.0/24", "eu", 0)
		b.many(400, "192.0.2.0/24", "us", c.us)
		b.many(400, "192.0.2.0/24", "ap", c.ap)
		o := lots(eu, us, ap)
		o.Previous = before(c.entry)
		r := mapOf(t, o, b)
		if got := textOf(r.Map.Clients); got != c.want || r.Report.Clients.Expired != c.expired {
			t.Errorf("%s: %q with %d expired, want %q with %d", c.name, got, r.Report.Clients.Expired, c.want, c.expired)
		}
	}
}

// TestCableCut holds that a region that is slower by 30 ms since yesterday is left in the
// next build, though a week of measurements says otherwise, and that it can be while
// changes of other kinds are over budget.
func TestCableCut(t *testing.T) {
	var inputs []io.Reader
	for day := range 6 {
		b := newBeacons(uint64(day))
		b.at = noon.Add(time.Duration(day-6) * 24 * time.Hour)
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
	r := mapOf(t, Options{Geography: to(us, eu, ap)}, inputs...)
	expect(t, r, "20.0.0.0/24 eu us", "20.1.0.0/24 eu us", "20.2.0.0/24 eu us")
	if s := r.Report.Clients; s.Emergency < 0.14 || s.Emergency > 0.16 {
		t.Errorf("emergencies moved %v of the demand, want 0.15", s.Emergency)
	}
	if c := r.Map.Clients[0].Cells; c[1].P75-c[0].P75 < 25 {
		t.Errorf("the entry doesn't show what it was made for: %+v", c)
	}
}

// TestFailures holds that a fast region with 5 % more failures than another loses, at once
// where it is in use, and that a region that only fails can be left, too.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		ok, failed int
		want       string
	}{{400, 4, ""}, {400, 40, "192.0.2.0/24 us eu"}, {0, 400, "192.0.2.0/24 us eu"}, {5, 250, "192.0.2.0/24 us eu"}} {
		b := newBeacons(3)
		b.many(c.ok, "192.0.2.0/24", "eu", 0)
		b.fail(c.failed, "192.0.2.0/24", "eu")
		b.many(400, "192.0.2.0/24", "us", 30)
		b.fail(4, "192.0.2.0/24", "us")
		r := mapOf(t, Options{Geography: to(eu, us), Emergency: 1}, b)
		if got := textOf(r.Map.Clients); got != c.want {
			t.Errorf("%d well, %d failed: %q, want %q", c.ok, c.failed, got, c.want)
		}
		// A region that is not in use isn't taken for its speed either.
		if r = mapOf(t, lots(us, eu), b.again()); c.failed > 10 && len(r.Map.Clients) > 0 {
			t.Errorf("%d well, %d failed: %q takes the region that fails", c.ok, c.failed, textOf(r.Map.Clients))
		}
	}
}

// TestReportsFailures holds that a region that is left for its failures, for a slower one, shows
// as that.
func TestReportsFailures(t *testing.T) {
	b := newBeacons(3)
	b.many(400, "192.0.2.0/24", "eu", 0)
	b.fail(100, "192.0.2.0/24", "eu")
	b.many(400, "192.0.2.0/24", "us", 80)
	r := mapOf(t, lots(eu, us), b).Report
	var text strings.Builder
	r.WriteText(&text)
	if s := r.Clients; s.OverrideGain > -65 || math.Abs(s.OverrideFailed-0.2) > 1e-6 ||
		!strings.Contains(text.String(), fmt.Sprintf("p75 there higher by %.1f ms", -s.OverrideGain)) || !strings.Contains(text.String(), "failures there lower by 20.00 % of") {
		t.Errorf("report is %s", &text)
	}
}

// TestNoData holds that a region without measurements is neither taken nor, where it is
// geography's, overridden.
func TestNoData(t *testing.T) {
	b := newBeacons(4)
	b.many(400, "192.0.2.0/24", "eu", 0)
	b.many(400, "192.0.2.0/24", "us", 30)
	expect(t, mapOf(t, lots(ap, eu, us), b.again()))
	expect(t, mapOf(t, lots(eu, ap, us), b.again()))
	expect(t, mapOf(t, lots(us, ap, eu), b.again()), "192.0.2.0/24 eu us")
	// Nor is one that is no candidate.
	expect(t, mapOf(t, lots(us, ap), b.again()))
}

// TestPoison holds that one client can't move its prefix: not with nearly all of its
// measurements, whatever they say, and whether it has an address or its name.
func TestPoison(t *testing.T) {
	for _, source := range []bool{true, false} {
		for _, fails := range []bool{true, false} {
			b := newBeacons(5)
			honest := func(region string, extra float64) {
				for i := range 25 {
					for range 10 {
						client, name := fmt.Sprintf("192.0.2.%d", i+1), ""
						if source {
							client, name = "192.0.2.0/24", fmt.Sprint("client", i)
						}
						b.one(client, region, 40+b.rng.ExpFloat64()*20+extra, name)
					}
				}
			}
			honest("eu", 0)
			honest("us", 12)
			o := lots(eu, us)
			o.Window = 24 * time.Hour
			clean := mapOf(t, o, b.again())
			expect(t, clean)
			for range 5000 {
				client, name := "192.0.2.200", ""
				if source {
					client, name = "192.0.2.0/24", "attacker"
				}
				if ms := 59999.0; fails {
					b.one(client, "eu", 0, name)
				} else {
					b.one(client, "eu", ms, name)
				}
				b.one(client, "us", 0.1, name)
			}
			r := mapOf(t, o, b.again())
			expect(t, r)
			if want := uint64(2 * (5000 - 10)); r.Report.Capped[Clients] != want {
				t.Errorf("%d measurements didn't count, want %d", r.Report.Capped[Clients], want)
			}
			if o.SourceShare = -1; len(mapOf(t, o, b).Map.Clients) == 0 {
				t.Error("without the cap the attack does nothing, so this test shows nothing")
			}
		}
	}
}

// TestSourceCap holds that a source has its share of a decision over the window, not more for
// coming every day.
func TestSourceCap(t *testing.T) {
	for _, c := range []struct {
		window, half time.Duration
		want         [2]int
	}{
		{24 * time.Hour, 0, [2]int{10, 50}},
		{0, 0, [2]int{3, 16}}, // weights of 7 days sum up to 3.1
		{7 * 24 * time.Hour, -1, [2]int{1, 7}},
	} {
		o := Options{Regions: regions, Now: noon, Window: c.window, HalfLife: c.half}
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		if got := [2]int{o.sourceCap(Clients), o.sourceCap(Resolvers)}; got != c.want {
			t.Errorf("window %v, half-life %v: caps are %v, want %v", c.window, c.half, got, c.want)
		}
	}
}

// TestBudget holds that no more demand moves than allowed, that what gains most moves first,
// that the rest follows, and that force moves all.
func TestBudget(t *testing.T) {
	b := newBeacons(6)
	for p := range 50 {
		b.many(400, fmt.Sprintf("20.%d.0.0/24", p), "eu", float64(16+p%7))
		b.many(400, fmt.Sprintf("20.%d.0.0/24", p), "us", 0)
	}
	o := Options{Geography: to(eu, us), Budget: 0.1}
	moved := 0
	for night := range 11 {
		r := mapOf(t, o, b.again())
		s := r.Report.Clients
		if s.Moved > 0.1001 || night < 10 && s.Moved < 0.099 {
			t.Errorf("night %d moved %v of the demand, want 0.1", night, s.Moved)
		}
		if n := len(r.Map.Clients); n < moved {
			t.Errorf("night %d has %d entries after %d", night, n, moved)
		} else if moved = n; night == 0 {
			if n != 5 || len(s.Waiting) != shownChanges || s.Waiting[0].Gain > s.Changes[len(s.Changes)-1].Gain {
				t.Errorf("%d entries; changes %v, waiting %v", n, s.Changes, s.Waiting)
			}
		}
		o.Previous = r.Map
	}
	if moved != 50 {
		t.Errorf("%d of 50 prefixes moved in the end", moved)
	}
	if r := mapOf(t, lots(eu, us), b); len(r.Map.Clients) != 50 {
		t.Errorf("by force %d of 50 prefixes moved", len(r.Map.Clients))
	}
}

// TestPooling holds that sparse prefixes are decided together, up to where they
// disagree.
func TestPooling(t *testing.T) {
	b := newBeacons(7)
	for p := range 16 { // 20.0.0.0/20 is better off with us
		b.many(30, fmt.Sprintf("20.0.%d.0/24", p), "eu", 30)
		b.many(30, fmt.Sprintf("20.0.%d.0/24", p), "us", 0)
	}
	r := mapOf(t, lots(eu, us), b.again())
	expect(t, r, "20.0.0.0/20 us eu")
	for p := range 16 { // and 20.0.16.0/20 with eu
		b.many(300, fmt.Sprintf("20.0.%d.0/24", 16+p), "eu", 0)
		b.many(300, fmt.Sprintf("20.0.%d.0/24", 16+p), "us", 30)
	}
	b.many(100, "20.0.40.0/24", "eu", 30) // alone: what is around it disagrees
	b.many(100, "20.0.40.0/24", "us", 0)
	r = mapOf(t, lots(eu, us), b.again())
	expect(t, r, "20.0.0.0/20 us eu")
	disagree := false
	for _, y := range r.Report.Clients.Why {
		disagree = disagree || y.Reason == reasonNames[disagreeing] && y.Prefixes == 1
	}
	if !disagree {
		t.Errorf("reasons are %v, want one prefix whose neighbours disagree", r.Report.Clients.Why)
	}
}

// TestNotAlong holds that a prefix whose own measurements prove no gain is left to geography
// though all around it changes, and that one with next to none changes with what is around it.
func TestNotAlong(t *testing.T) {
	b := newBeacons(9)
	for p, n := range []int{400, 3000, 400, 10} {
		slower := 30.0
		if p == 1 {
			slower = 3
		}
		b.many(n, fmt.Sprintf("20.0.%d.0/24", p), "eu", slower)
		b.many(n, fmt.Sprintf("20.0.%d.0/24", p), "us", 0)
	}
	r := mapOf(t, lots(eu, us), b)
	expect(t, r, "20.0.0.0/24 us eu", "20.0.2.0/23 us eu")
}

// TestResolvers holds that resolvers take more samples, go by the resolver's prefix, are limited
// by client, and get no entry where their clients are all over the place.
func TestResolvers(t *testing.T) {
	row := func(b *beacons, resolver string, i int, region string, ms float64) {
		fmt.Fprintf(b, "%d,20.%d.%d.7,%s,%s,%.1f,true,\n", b.at.Unix()+int64(i), i%200, i/200%200, resolver, region, ms)
	}
	b := newBeacons(8)
	for i := range 1200 {
		ms := 50 + float64(i%40)
		row(b, "192.0.2.53", i, "eu", ms+40)
		row(b, "192.0.2.99", i, "us", ms)
		far := 0.0
		if i%2 == 0 {
			far = 150
		}
		row(b, "198.51.100.53", i, "eu", ms+40+far)
		row(b, "198.51.100.53", i, "us", ms+far)
		if i < 900 {
			row(b, "203.0.113.53", i, "eu", ms+40)
			row(b, "203.0.113.53", i, "us", ms)
		}
	}
	for range 5000 { // one client prefix
		row(b, "203.0.113.53", 1, "eu", 900)
		row(b, "203.0.113.53", 1, "us", 1)
	}
	r := mapOf(t, lots(eu, us), b)
	if got := textOf(r.Map.Resolvers); got != "192.0.2.0/24 us eu" {
		t.Errorf("resolvers are %q with %+v", got, r.Report.Resolvers)
	}
}
