package build

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// truth is a world of prefixes with two regions whose true round trips differ by a gap of
// N(0, 10 ms), seen through the noise of 40 ms and a lognormal with median 15 ms and sigma 0.9.
type truth struct {
	gaps   []float64 // of us over eu, by prefix
	rng    *rand.Rand
	nights int
	n      int // samples a night, for each prefix and region
}

// outcome is what some nights of choices did to such a world.
type outcome struct {
	churn  float64 // percent of prefixes that changed regions in a night
	regret float64 // milliseconds over the better region
	wrong  float64 // percent in a region that is worse by 10 ms or more
}

func newTruth(prefixes, nights, n int) *truth {
	w := &truth{rng: rand.New(rand.NewPCG(11, 12)), nights: nights, n: n}
	for range prefixes {
		w.gaps = append(w.gaps, 10*w.rng.NormFloat64())
	}
	return w
}

func (w *truth) prefix(p int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(p >> 8), byte(p), 0}), 24)
}

// night adds a day of samples without a detour through text, and tells the p75 of each prefix.
func (w *truth) night(b *Builder) (p75 [][2]float64) {
	worker := b.workers[0]
	d := b.calendar.day(b.o.Now.Add(-time.Hour).Unix())
	for p, gap := range w.gaps {
		k := newKey(Clients, w.prefix(p).Addr(), 24)
		var tallies [2]tally
		for range w.n {
			for region, extra := range []float64{0, gap} {
				units := uint32(unitsPerMs * min(max(40+15*math.Exp(0.9*w.rng.NormFloat64())+extra, 1), maxRTT))
				worker.addRecord(newRecord(k, uint8(region), d, w.rng.Uint32(), false, units))
				tallies[region].add(units, 1, weightOne)
			}
		}
		p75 = append(p75, [2]float64{tallies[0].stat().p75, tallies[1].stat().p75})
	}
	b.oldest, b.newest = min(b.oldest, worker.oldest), max(b.newest, worker.newest)
	return p75
}

// score counts what choices do, from the second night on.
func (w *truth) score(out *outcome, night int, before, after []uint8) {
	if night == 0 {
		return
	}
	part := 100 / float64(len(w.gaps)*(w.nights-1))
	for p, gap := range w.gaps {
		loss := gap
		if after[p] == eu {
			loss = -gap
		}
		if before[p] != after[p] {
			out.churn += part
		}
		if loss > 0 {
			out.regret += loss * part / 100
		}
		if loss >= 10 {
			out.wrong += part
		}
	}
}

// run lives through the nights, each with a map of its window, and beside it with plain
// rules that switch to the better region at a gap.
func (w *truth) run(t *testing.T, o Options, rules ...func(better float64) float64) (ours outcome, plain []outcome) {
	t.Helper()
	o.Regions, o.Workers, o.Force = regions[:2], 1, true
	o.Shortest4 = 24 // prefixes have nothing to do with each other
	plain = make([]outcome, len(rules))
	choices := make([][]uint8, len(rules)+1)
	var days [][]byte
	for night := range w.nights {
		o.Now = noon.Add(time.Duration(night) * 24 * time.Hour)
		var sketches bytes.Buffer
		o.Sketches = &sketches
		today := builderFor(t, o)
		p75 := w.night(today)
		r, err := today.Build()
		if err != nil {
			t.Fatal(err)
		}
		today.Close()
		if days = append(days, sketches.Bytes()); o.Window > 24*time.Hour {
			o.Sketches = nil
			var files []io.Reader
			for _, d := range days[max(0, len(days)-7):] {
				files = append(files, bytes.NewReader(d))
			}
			r = mapOf(t, o, files...)
		}
		o.Previous = r.Map
		after := make([]uint8, len(w.gaps))
		for p := range w.gaps {
			if e, ok := r.Map.Lookup(w.prefix(p).Addr()); ok {
				after[p] = e.Order[0]
			} else if o.Geography == nil {
				t.Fatalf("%s is not in the map", w.prefix(p))
			}
		}
		w.score(&ours, night, choices[0], after)
		choices[0] = after
		for i, rule := range rules {
			after := switched(p75, choices[i+1], rule)
			w.score(&plain[i], night, choices[i+1], after)
			choices[i+1] = after
		}
	}
	return ours, plain
}

// switched is a plain rule.
func switched(p75 [][2]float64, before []uint8, rule func(float64) float64) (after []uint8) {
	for p, ms := range p75 {
		best := uint8(eu)
		if ms[us] < ms[eu] {
			best = us
		}
		if before != nil && ms[before[p]]-ms[best] < rule(ms[best]) {
			best = before[p]
		}
		after = append(after, best)
	}
	return after
}

// anyGap is the rule by which the best of each night wins.
func anyGap(float64) float64 { return 0 }

func (o outcome) String() string {
	return fmt.Sprintf("%.2f %% change in a night, regret %.2f ms, %.2f %% worse by 10 ms", o.churn, o.regret, o.wrong)
}

// TestWorld holds maps in a known world to the best of the plain rules: never to change for
// less than 5 ms or 10 %. The table in docs/latency.md is what this and the next test log.
func TestWorld(t *testing.T) {
	ours, plain := newTruth(250, 40, 200).run(t, Options{Window: 24 * time.Hour}, tolerance, anyGap)
	t.Logf("the best p75 of each night: %v", plain[1])
	t.Logf("the plain rule: %v", plain[0])
	t.Logf("-regions, window of a day: %v", ours)
	if ours.churn > plain[0].churn || ours.regret > plain[0].regret || ours.wrong > plain[0].wrong {
		t.Errorf("the map: %v; the plain rule: %v", ours, plain[0])
	}
	if ours.churn > 0.1*plain[1].churn || ours.regret > plain[1].regret {
		t.Errorf("the map: %v; the best of each night: %v", ours, plain[1])
	}
}

// TestWorldOfWeeks holds that maps of a week, and those that must prove their gain over geography
// first, from a day or a week, are as quiet, and leave nobody long in a region that is much worse.
func TestWorldOfWeeks(t *testing.T) {
	for _, c := range []struct {
		name      string
		window    time.Duration
		geography Geography
	}{
		{"-regions, window of 7 days", 7 * 24 * time.Hour, nil},
		{"-default-order, window of a day", 24 * time.Hour, to(eu, us)},
		{"-default-order, window of 7 days", 7 * 24 * time.Hour, to(eu, us)},
	} {
		ours, plain := newTruth(250, 40, 200).run(t, Options{Window: c.window, Geography: c.geography}, anyGap)
		t.Logf("%s: %v", c.name, ours)
		if ours.churn > 0.1*plain[0].churn || ours.regret > 0.4 || ours.wrong > 0.2 {
			t.Errorf("%s: %v; the best of each night: %v", c.name, ours, plain[0])
		}
	}
}
