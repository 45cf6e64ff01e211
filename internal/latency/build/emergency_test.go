package build

import (
	"fmt"
	"io"
	"testing"
	"time"
)

// cutWorld writes six days of adjacent /24s, all of them in us. On the last, us is slower by cut
// milliseconds to those below so many.
func cutWorld(seed uint64, perDay, prefixes, below int, cut float64) (inputs []io.Reader) {
	for day := range 6 {
		b := newBeacons(seed*100 + uint64(day))
		b.at = noon.Add(time.Duration(day-6) * 24 * time.Hour)
		for p := range prefixes {
			slower := 0.0
			if day == 5 && p < below {
				slower = cut
			}
			b.many(perDay, fmt.Sprintf("20.0.%d.0/24", p), "us", slower)
			b.many(perDay, fmt.Sprintf("20.0.%d.0/24", p), "eu", 0)
		}
		inputs = append(inputs, b)
	}
	return inputs
}

// urgentIn is how many prefixes a build of a world moves as emergencies.
func urgentIn(t *testing.T, o Options, inputs ...io.Reader) int {
	t.Helper()
	o.Geography, o.Budget = to(us, eu, ap), -1
	for _, y := range mapOf(t, o, inputs...).Report.Clients.Why {
		if y.Reason == reasonNames[urgent] {
			return y.Prefixes
		}
	}
	return 0
}

// TestCutOfThinPrefixes holds that a cut of 30 ms and more is acted on in one build however few
// measurements each prefix has, alone or with its neighbours, and that chance makes none up.
func TestCutOfThinPrefixes(t *testing.T) {
	for _, perDay := range []int{20, 60, 150, 250} {
		for _, cut := range []float64{0, 30, 35, 50} {
			for seed := range uint64(5) {
				want := 0
				if cut > 0 {
					want = 11
				}
				if n := urgentIn(t, Options{Emergency: 1}, cutWorld(seed, perDay, 11, 11, cut)...); n != want {
					t.Errorf("%d a day, slower by %v ms, seed %d: %d prefixes are emergencies, want %d", perDay, cut, seed, n, want)
				}
			}
		}
	}
}

// TestCutOfSome holds that prefixes whose own measurements show no cut stay while neighbours
// move, with enough for themselves or not.
func TestCutOfSome(t *testing.T) {
	for _, perDay := range []int{150, 250} {
		for _, cut := range []float64{50, 100} {
			if n := urgentIn(t, Options{Emergency: 1}, cutWorld(1, perDay, 11, 3, cut)...); n != 3 {
				t.Errorf("%d a day, slower by %v ms: %d prefixes are emergencies, want 3", perDay, cut, n)
			}
		}
	}
}

// TestCutInBudget holds that emergencies of pooled prefixes keep to their budget.
func TestCutInBudget(t *testing.T) {
	o := Options{Geography: to(us, eu, ap), Budget: -1}
	if s := mapOf(t, o, cutWorld(1, 60, 11, 11, 50)...).Report.Clients; s.Emergency > 0.2 || s.Emergency < 0.1 {
		t.Errorf("emergencies moved %v of the demand, want at most 0.2 and nearly so", s.Emergency)
	}
}

// TestOutageOfThinPrefixes holds the same for failures: where neighbours together show them,
// and not where a prefix's own measurements don't.
func TestOutageOfThinPrefixes(t *testing.T) {
	for _, c := range []struct{ below, failed, want int }{{11, 0, 0}, {11, 10, 11}, {11, 60, 11}, {3, 60, 3}} {
		inputs := cutWorld(2, 60, 11, 0, 0)
		b := newBeacons(99)
		for p := range c.below {
			b.fail(c.failed, fmt.Sprintf("20.0.%d.0/24", p), "us")
		}
		if n := urgentIn(t, Options{Emergency: 1}, append(inputs, b)...); n != c.want {
			t.Errorf("%d prefixes with %d failures each: %d are emergencies, want %d", c.below, c.failed, n, c.want)
		}
	}
}

// TestPoisonedDay holds that one source can't make an emergency of thin prefixes, nor hide one.
func TestPoisonedDay(t *testing.T) {
	for _, cut := range []float64{0, 50} {
		for _, ms := range []float64{0, 0.1, 59999} { // 0 is a failure
			b := newBeacons(98)
			for range 5000 {
				b.one("20.0.4.0/24", "us", ms, "attacker")
				b.one("20.0.4.0/24", "eu", 60000-ms, "attacker")
			}
			want := 0
			if cut > 0 {
				want = 11
			}
			if n := urgentIn(t, Options{Emergency: 1}, append(cutWorld(3, 20, 11, 11, cut), b)...); n != want {
				t.Errorf("slower by %v ms, an attacker says %v ms: %d prefixes are emergencies, want %d", cut, ms, n, want)
			}
		}
	}
}

// cutNextDay holds that all 11 prefixes of a world are emergencies after one more day, on which us
// is slower by 30 ms.
func cutNextDay(t *testing.T, seed uint64, world []io.Reader) {
	t.Helper()
	b := newBeacons(seed)
	b.at = noon
	for p := range 11 {
		b.many(60, fmt.Sprintf("20.0.%d.0/24", p), "us", 30)
		b.many(60, fmt.Sprintf("20.0.%d.0/24", p), "eu", 0)
	}
	o := Options{Emergency: 1, Now: noon.Add(24 * time.Hour)}
	if n := urgentIn(t, o, append(world, b)...); n != 11 {
		t.Errorf("%d prefixes are emergencies, want 11", n)
	}
}

// TestCutLater holds that a cut whose first day waited for the budget is one on the second, too.
func TestCutLater(t *testing.T) {
	cutNextDay(t, 97, cutWorld(4, 60, 11, 11, 30))
}

// TestCutBehindDaysOfOwn holds that what a prefix knows of the days before doesn't keep it from
// what its neighbours show of the last.
func TestCutBehindDaysOfOwn(t *testing.T) {
	cutNextDay(t, 96, cutWorld(5, 250, 11, 0, 0))
}

// TestThinAlone holds that a thin prefix without neighbours goes by all days, and that it doesn't
// where its neighbours show of the last day that all is well.
func TestThinAlone(t *testing.T) {
	for _, neighbours := range []int{0, 10} {
		for _, fails := range []bool{false, true} {
			var inputs, again []io.Reader
			for day := range 6 {
				b := newBeacons(uint64(80 + day))
				b.at = noon.Add(time.Duration(day-6) * 24 * time.Hour)
				for p := range 1 + neighbours {
					client, slower := fmt.Sprintf("20.0.%d.0/24", p), 0.0
					if healed := day == 5 && neighbours > 0; !healed && fails {
						b.fail(30, client, "us")
					} else if !healed {
						slower = 150
					}
					b.many(90, client, "us", slower)
					b.many(90, client, "eu", 0)
				}
				inputs, again = append(inputs, b.again()), append(again, b)
			}
			want := 1
			if neighbours > 0 {
				want = 0
			}
			if n := urgentIn(t, Options{Emergency: 1}, inputs...); n != want {
				t.Errorf("%d neighbours, fails %t: %d prefixes are emergencies, want %d", neighbours, fails, n, want)
			}
			if r := mapOf(t, lots(us, eu, ap), again...); fails && len(r.Map.Clients) != want {
				t.Errorf("%d neighbours: %d entries, want %d", neighbours, len(r.Map.Clients), want)
			}
		}
	}
}

// TestCutBetweenUnlike holds that a thin prefix isn't moved by neighbours that are clearly unlike
// each other on the day.
func TestCutBetweenUnlike(t *testing.T) {
	inputs := cutWorld(6, 250, 9, 0, 0)
	thin, last := newBeacons(95), newBeacons(94)
	thin.at, last.at = noon.Add(-24*time.Hour), noon
	for _, region := range []string{"us", "eu"} {
		thin.many(250, "20.0.12.0/24", region, 0)
		last.many(15, "20.0.12.0/24", region, 0)
		for p := range 9 {
			extra := 0.0
			if region == "us" {
				extra = 100
				if p == 8 {
					extra = -20
				}
			}
			last.many(250, fmt.Sprintf("20.0.%d.0/24", p), region, extra)
		}
	}
	o := Options{Emergency: 1, Now: noon.Add(24 * time.Hour)}
	if n := urgentIn(t, o, append(inputs, thin, last)...); n != 8 {
		t.Errorf("%d prefixes are emergencies, want 8", n)
	}
}
