package failover

import (
	"math"
	"testing"
	"time"
)

const s = time.Second

// article is the outage worked through in public write-ups of DNS failover: 30 s of
// detection, 10 s of publication, TTL 60. Three times the interval are what it takes from
// where the first failed probe begins if each takes the whole interval to fail.
func article() Model {
	return Model{Interval: 10 * s, Timeout: 10 * s, Fall: 3, Publish: 10 * s, Populations: Customary(60 * s), Horizon: 340 * s, Rate: 40000}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > within {
		t.Errorf("%s: got %.4f, want %.4f", what, got, want)
	}
}

func TestIntegralOfTheArticle(t *testing.T) {
	m := article()
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	near(t, "seconds lost", m.Lost(), 101.5, 1e-9)
	near(t, "requests failed", m.Failed(), 4.06e6, 1)
	near(t, "rate left at 340 s", m.Rate*m.Left(340), 2000, 1e-6)
}

func TestCurveOfTheArticle(t *testing.T) {
	m := article()
	for at, want := range map[float64]float64{
		0: 100, 39.9: 100, 40: 100, 70: 58.5, 100: 17, 160: 14, 220: 11, 280: 8, 340: 5, 600: 5, 1799: 5, 1800: 0,
	} {
		near(t, "left", 100*m.Left(at), want, 1e-9)
	}
}

func TestAlternativesOfTheArticle(t *testing.T) {
	short := article()
	short.Populations = Customary(30 * s)
	near(t, "TTL 30", short.Lost(), 89.5, 1e-9)

	fast := article()
	fast.Fall, fast.Detection = 0, 15*s
	near(t, "detection 15 s, same horizon", fast.Lost(), 87.25, 1e-9)
	fast.Horizon = 325 * s
	near(t, "detection 15 s, same window after it", fast.Lost(), 86.5, 1e-9)

	whole := article()
	whole.Horizon = 0
	near(t, "the whole tail", whole.Lost(), 174.5, 1e-9)
	near(t, "its requests", whole.Failed(), 6.98e6, 1)
	near(t, "the last one moves", whole.Moved(), 1800, 1e-9)

	anycast := Model{Detection: 3 * s, Rate: 40000, Populations: []Population{
		{Name: "routed", Share: 0.9, Keep: 15 * s}, {Name: "slow", Share: 0.1, Keep: 90 * s},
	}}
	near(t, "anycast", anycast.Lost(), 14.25, 1e-9)
	near(t, "its requests", anycast.Failed(), 570000, 1e-3)
	near(t, "how many times less", article2().Lost()/anycast.Lost(), 7.12, 0.005)
}

func article2() *Model { m := article(); return &m }

// TestDetection works the times out by hand: from where the first failed probe begins two
// intervals to the third, and what that takes to fail.
func TestDetection(t *testing.T) {
	for _, c := range []struct {
		model          Model
		start, refused float64
	}{
		{Model{Interval: 4 * s, Fall: 3}, 8, 8},
		{Model{Interval: 4 * s, Fall: 3, Phase: true}, 10, 10},
		{Model{Interval: 4 * s, Fall: 3, Phase: true, Timeout: 2 * s, Publish: 1 * s}, 13, 11},
		{Model{Interval: 8 * s, Fall: 3, Timeout: 3 * s, Retry: true}, 23, 17},
		{Model{Interval: 8 * s, Fall: 1, Timeout: 3 * s}, 3, 0},
		{Model{Interval: 8 * s, Phase: true, Detection: 5 * s, Publish: 1 * s}, 6, 6},
		{Model{Interval: 8 * s, Phase: true}, 0, 0},
	} {
		c.model.Populations = Customary(60 * s)
		if err := c.model.Check(); err != nil {
			t.Error(err)
		}
		near(t, "first new answer", c.model.Start(), c.start, 1e-9)
		near(t, "of one that refuses", c.model.Refused(), c.refused, 1e-9)
		near(t, "mean of those that keep nothing", c.model.Spread(0, 0, 0).Mean(), c.start, 1e-9)
	}
}

// TestLostIsTheIntegralOfLeft compares the closed form with a sum of thin slices.
func TestLostIsTheIntegralOfLeft(t *testing.T) {
	r := rng(7)
	for range 200 {
		a, b := r.unit(), r.unit()
		if a > b {
			a, b = b, a
		}
		m := Model{
			Interval: time.Duration(1+20*r.unit()) * s, Timeout: time.Duration(r.unit() * 1e9), Fall: 1 + int(4*r.unit()), Phase: r.unit() < 0.5,
			Publish: time.Duration(20 * r.unit() * 1e9),
			Populations: []Population{
				{Share: a, Keep: time.Duration(100*r.unit()) * s},
				{Share: b - a, Keep: time.Duration(300*r.unit()) * s},
				{Share: 1 - b, Keep: time.Duration(500*r.unit()) * s, Fixed: true},
			},
			Horizon: time.Duration(1+400*r.unit()) * s,
		}
		const slice = 0.01
		sum := 0.0
		for i := range int(m.Horizon.Seconds() / slice) {
			sum += m.Left((float64(i)+0.5)*slice) * slice
		}
		near(t, "integral", m.Lost(), sum, 0.05)
	}
}

func TestEarlyHorizon(t *testing.T) {
	m := article()
	m.Horizon = 20 * s
	near(t, "a horizon before detection", m.Lost(), 20, 1e-9)
}

// oracle is the model with uniform delays and stragglers; ttl is what differs.
func oracle(ttl time.Duration) *Spread {
	m := Model{Interval: 10 * s, Timeout: 10 * s, Fall: 3, Phase: true, Publish: 5 * s}
	return m.Spread(ttl, 0.03, 900*s)
}

func TestPercentiles(t *testing.T) {
	for _, c := range []struct {
		ttl           time.Duration
		p50, p90, p99 float64
	}{{60 * s, 70.9, 95.6, 669}, {30 * s, 55.5, 68.4, 654}, {5 * s, 42.7, 47.3, 641}, {300 * s, 194.5, 317, 791}} {
		o := oracle(c.ttl)
		near(t, "p50", o.Percentile(0.5), c.p50, 0.5)
		near(t, "p90", o.Percentile(0.9), c.p90, 0.7)
		near(t, "p99", o.Percentile(0.99), c.p99, 5)
		draws := o.Draws(100000, 1)
		t.Logf("TTL %s: drawn %v, %v, %v", c.ttl, Drawn(draws, 0.5), Drawn(draws, 0.9), Drawn(draws, 0.99))
		near(t, "drawn p50", Drawn(draws, 0.5), o.Percentile(0.5), 0.5)
		near(t, "drawn p90", Drawn(draws, 0.9), o.Percentile(0.9), 0.7)
		near(t, "drawn p99", Drawn(draws, 0.99), o.Percentile(0.99), 30)
	}
	o := oracle(60 * s)
	near(t, "p95", o.Percentile(0.95), 99.9, 0.3)
	near(t, "p99.9", o.Percentile(0.999), 939, 3)
	near(t, "mean", o.Mean(), 83.5, 1e-9)
	near(t, "within two minutes", 100*o.CDF(120), 97.15, 0.02)
	low, high := o.Range()
	near(t, "least", low, 35, 1e-9)
	near(t, "greatest", high, 1005, 1e-9)
	near(t, "what TTL 30 saves at the median", o.Percentile(0.5)-oracle(30*s).Percentile(0.5), 15.4, 0.1)
}

// TestTailIsBoundedByTheStragglers: with stragglers of up to 15 minutes the 99th
// percentile is 11 minutes and nothing takes 17; tens of minutes need an hour.
func TestTailIsBoundedByTheStragglers(t *testing.T) {
	o := oracle(60 * s)
	if p, _ := o.Percentile(0.99), 0; p/60 < 10.9 || p/60 > 11.4 {
		t.Errorf("p99 is %.1f minutes", p/60)
	}
	if _, high := o.Range(); high > 16.75*60 {
		t.Errorf("the longest takes %.2f minutes", high/60)
	}
	o.Beyond = 3600 * s
	near(t, "p99 with an hour, in minutes", o.Percentile(0.99)/60, 41, 0.5)
}

func TestDrawsFollowTheSeed(t *testing.T) {
	a, b, c := oracle(60*s).Draws(1000, 3), oracle(60*s).Draws(1000, 3), oracle(60*s).Draws(1000, 4)
	same := true
	for i := range a {
		if a[i] != b[i] {
			t.Fatal("equal seeds, other draws")
		}
		same = same && a[i] == c[i]
	}
	if same {
		t.Error("other seeds, equal draws")
	}
}

func TestCompliantClients(t *testing.T) {
	m := Model{Detection: 40 * s}
	o := m.Spread(60*s, 0, 0)
	_, worst := o.Range()
	near(t, "worst", worst, 100, 1e-9)
	near(t, "mean", o.Mean(), 70, 1e-9)
}

func TestQueriesAndCost(t *testing.T) {
	near(t, "queries", Queries(200000, 60*s), 3333.33, 0.01)
	near(t, "5 s against 300 s", Queries(1, 5*s)/Queries(1, 300*s), 60, 1e-9)
	near(t, "100 million at $0.40", Cost(100e6/Month.Seconds(), 0.40), 40, 1e-9)
	near(t, "100 million at $0.70", Cost(100e6/Month.Seconds(), 0.70), 70, 1e-9)
	if !math.IsInf(Queries(1, 0), 1) {
		t.Error("TTL 0 has a bound")
	}
}

func TestHeadroomAndBudget(t *testing.T) {
	near(t, "3 regions", Headroom(3), 0.5, 0)
	near(t, "5 regions", Headroom(5), 0.25, 0)
	if !math.IsInf(Headroom(1), 1) {
		t.Error("one region has headroom")
	}
	quarter := 90 * 24 * time.Hour
	near(t, "99.95% of a quarter, in minutes", Budget(0.9995, quarter).Minutes(), 64.8, 1e-6)
	near(t, "what ten minutes use of it", 10/Budget(0.9995, quarter).Minutes(), 0.15, 0.005)
}

// TestCascade: 40k of A go to B, whose 70k go to C, which has 90k then: all there
// is, and no more.
func TestCascade(t *testing.T) {
	steps, left := Cascade([]Region{{"a", 40000, 48000}, {"b", 30000, 36000}, {"c", 20000, 24000}})
	if len(steps) != 3 || steps[0].Load != 40000 || steps[1].Load != 70000 || steps[2].Load != 90000 || left != 0 {
		t.Errorf("got %v, %v", steps, left)
	}
	steps, left = Cascade([]Region{{"a", 40000, 48000}, {"b", 30000, 75000}, {"c", 20000, 24000}})
	if len(steps) != 1 || left != 70000 {
		t.Errorf("got %v, %v", steps, left)
	}
}

// TestRoom: with capacities 40k of A find room for 10k, and all others are at 150 %; with
// 45k each they fit to the last.
func TestRoom(t *testing.T) {
	tight := []Region{{"a", 40000, 48000}, {"b", 30000, 36000}, {"c", 20000, 24000}}
	for _, c := range []struct {
		b, c, free, short, use float64
	}{{36000, 24000, 10000, 30000, 1.5}, {45000, 45000, 40000, 0, 1}, {25000, 75000, 55000, 0, 0.9}} {
		regions := []Region{tight[0], {"b", 30000, c.b}, {"c", 20000, c.c}}
		free, short, use := Placed(regions)
		near(t, "room", free, c.free, 1e-9)
		near(t, "short", short, c.short, 1e-9)
		near(t, "utilisation", use, c.use, 1e-12)
	}
	// At the bearable utilisation the loss of a region fits exactly.
	for lost := range tight {
		at := Bearable(tight, lost)
		regions := []Region{{Load: at * tight[lost].Capacity}}
		for i, r := range tight {
			if i != lost {
				regions = append(regions, Region{Load: at * r.Capacity, Capacity: r.Capacity})
			}
		}
		_, _, use := Placed(regions)
		near(t, "utilisation after the loss", use, 1, 1e-12)
	}
	near(t, "three equal ones", Bearable([]Region{{"a", 0, 7}, {"b", 0, 7}, {"c", 0, 7}}, 1), 1/(1+Headroom(3)), 1e-12)
}

func TestLoweringInAdvance(t *testing.T) {
	day := 24 * time.Hour
	if got := OldAnswers(day, time.Minute, time.Hour); got != 23*time.Hour {
		t.Errorf("lowered an hour before: %s", got)
	}
	if got := OldAnswers(day, time.Minute, day); got != time.Minute {
		t.Errorf("lowered a day before: %s", got)
	}
}

func TestWindows(t *testing.T) {
	if err := Window(3, 30*s, 30*s); err == nil {
		t.Error("3 failures 30 s apart can't fall into 30 s")
	}
	if err := Window(3, 30*s, 60*s); err != nil {
		t.Error(err)
	}
	if probes, after := Recovery(5, 10*s, 60*s); probes != 7 || after != 60*s {
		t.Errorf("got %d probes, %s", probes, after)
	}
	if probes, after := Recovery(5, 10*s, 0); probes != 5 || after != 40*s {
		t.Errorf("got %d probes, %s", probes, after)
	}
}

func TestRefused(t *testing.T) {
	for what, change := range map[string]func(*Model){
		"no interval":      func(m *Model) { m.Interval = 0 },
		"no failures":      func(m *Model) { m.Fall = -1 },
		"a long timeout":   func(m *Model) { m.Timeout = m.Interval + 1 },
		"a long retry":     func(m *Model) { m.Timeout, m.Retry = m.Interval/2, true },
		"less than none":   func(m *Model) { m.Fall, m.Detection = 0, -1 },
		"shares beyond 1":  func(m *Model) { m.Populations[0].Share = 0.9 },
		"a negative share": func(m *Model) { m.Populations[0].Share = -1 },
		"no number":        func(m *Model) { m.Rate = math.NaN() },
		"a negative time":  func(m *Model) { m.Publish = -1 },
		"no end of probes": func(m *Model) { m.Fall = 1000000000 },
		"a year":           func(m *Model) { m.Horizon = 365 * 24 * time.Hour },
	} {
		m := article()
		change(&m)
		if m.Check() == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
