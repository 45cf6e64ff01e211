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
	gaps     []float64      // of us over eu, by prefix
	sketches [][]byte       // by night
	p75      [][][2]float64 // by night, prefix and region
}

// outcome is what some nights of choices did to such a world.
type outcome struct {
	churn  float64 // percent of prefixes that changed regions in a night
	regret float64 // milliseconds over the better region
	wrong  float64 // percent in a region that is worse by 10 ms or more
}

// newTruth measures a world for some nights: n samples a night, for each prefix and region.
func newTruth(t *testing.T, prefixes, nights, n int) *truth {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 12))
	w := &truth{}
	for range prefixes {
		w.gaps = append(w.gaps, 10*rng.NormFloat64())
	}
	for night := range nights {
		var sketches bytes.Buffer
		b, err := New(Options{Regions: regions[:2], Workers: 1, Force: true, Now: midnight(night), Sketches: &sketches, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		w.p75 = append(w.p75, w.night(b, rng, n))
		if _, err := b.Build(); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		w.sketches = append(w.sketches, sketches.Bytes())
	}
	return w
}

// midnight is when a night's map is built.
func midnight(night int) time.Time { return noon.Add(time.Duration(night) * 24 * time.Hour) }

func (w *truth) prefix(p int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(p >> 8), byte(p), 0}), 24)
}

// night adds a day of samples without a detour through text, and tells the p75 of each prefix.
func (w *truth) night(b *Builder, rng *rand.Rand, n int) (p75 [][2]float64) {
	worker := b.workers[0]
	d := b.calendar.day(b.o.Now.Add(-time.Hour).Unix())
	for p, gap := range w.gaps {
		k := newKey(Clients, w.prefix(p).Addr(), 24)
		var tallies [2]tally
		for range n {
			for region, extra := range []float64{0, gap} {
				units := uint32(unitsPerMs * min(max(40+15*math.Exp(0.9*rng.NormFloat64())+extra, 1), maxRTT))
				worker.addRecord(newRecord(k, uint8(region), d, rng.Uint32(), false, units))
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
	part := 100 / float64(len(w.gaps)*(len(w.sketches)-1))
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

// run lives through the nights, each with a map of its window.
func (w *truth) run(t *testing.T, o Options) (out outcome) {
	t.Helper()
	o.Regions, o.Workers, o.Force = regions[:2], 1, true
	o.Shortest4 = 24 // prefixes have nothing to do with each other
	var before []uint8
	for night := range w.sketches {
		o.Now = midnight(night)
		var files []io.Reader
		for _, d := range w.sketches[max(0, night+1-int(o.Window/(24*time.Hour))) : night+1] {
			files = append(files, bytes.NewReader(d))
		}
		r := mapOf(t, o, files...)
		o.Previous = r.Map
		after := make([]uint8, len(w.gaps))
		for p := range w.gaps {
			if e, ok := r.Map.Lookup(w.prefix(p).Addr()); ok {
				after[p] = e.Order[0]
			} else if o.Geography == nil {
				t.Fatalf("%s is not in the map", w.prefix(p))
			}
		}
		w.score(&out, night, before, after)
		before = after
	}
	return out
}

// plain lives through them with a plain rule, which switches to the better region at a gap.
func (w *truth) plain(rule func(better float64) float64) (out outcome) {
	var before []uint8
	for night, p75 := range w.p75 {
		after := switched(p75, before, rule)
		w.score(&out, night, before, after)
		before = after
	}
	return out
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

// worldPrefixes is the size of the world of TestWorld. The race detector, with which it takes ten
// times as long, has a smaller one: nothing in it happens at once.
var worldPrefixes = 250

// TestWorld holds maps in a known world to the best of the plain rules: never to change for
// less than 5 ms or 10 %. Those of a week, and those that must prove their gain over geography
// first, from a day or a week, are as quiet, and leave nobody long in a region that is much worse.
// The table in docs/latency.md is what it logs.
func TestWorld(t *testing.T) {
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	w := newTruth(t, worldPrefixes, 40, 200)
	best, plain := w.plain(anyGap), w.plain(tolerance)
	t.Logf("the best p75 of each night: %v", best)
	t.Logf("the plain rule: %v", plain)
	ours := w.run(t, Options{Window: day})
	t.Logf("-regions, window of a day: %v", ours)
	if ours.churn > plain.churn || ours.regret > plain.regret || ours.wrong > plain.wrong {
		t.Errorf("the map: %v; the plain rule: %v", ours, plain)
	}
	if ours.churn > 0.1*best.churn || ours.regret > best.regret {
		t.Errorf("the map: %v; the best of each night: %v", ours, best)
	}
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"-regions, window of 7 days", Options{Window: week}},
		{"-default-order, window of a day", Options{Window: day, Geography: to(eu, us)}},
		{"-default-order, window of 7 days", Options{Window: week, Geography: to(eu, us)}},
	} {
		ours := w.run(t, c.o)
		t.Logf("%s: %v", c.name, ours)
		if ours.churn > 0.1*best.churn || ours.regret > 0.4 || ours.wrong > 0.2 {
			t.Errorf("%s: %v; the best of each night: %v", c.name, ours, best)
		}
	}
}
