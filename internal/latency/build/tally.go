package build

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
)

// Accuracy is the relative error of round trips in sketches.
const Accuracy = 0.01

// maxExact is how many samples of a cell are kept as they are.
const maxExact = 512

// Bins are those of DDSketch (Masson, Rim and Lee, VLDB 2019) with its logarithmic
// mapping: bin i holds round trips of gamma^i to gamma^(i+1) milliseconds, with gamma =
// (1+Accuracy)/(1-Accuracy). The mapping is the library's, so sketches made elsewhere can be
// used; its stores are for values that come one by one and at any size, while here bins are a fixed
// few hundred, counted in integers that add up to the same in any order.
var bins = func() *mapping.LogarithmicMapping {
	m, err := mapping.NewLogarithmicMapping(Accuracy)
	if err != nil {
		panic(err)
	}
	return m
}()

var (
	firstBin = bins.Index(1. / unitsPerMs)
	numBins  = bins.Index(maxRTT) - firstBin + 1
	binUnits = func() (units []uint32) {
		for i := range numBins {
			units = append(units, uint32(math.Round(bins.Value(i+firstBin)*unitsPerMs)))
		}
		return units
	}()
)

// binOf gives the bin of a round trip, counted from firstBin.
func binOf(units uint32) int {
	return min(max(bins.Index(float64(units)/unitsPerMs)-firstBin, 0), numBins-1)
}

// weightOne is the weight of a sample of the newest day. Weights are integers,
// so that sums don't depend on their order.
const weightOne = 1 << 10

// weights gives the weight of a sample by its age in days.
func weights(halfLifeDays float64) (w [1 << dayBits]uint64) {
	for age := range w {
		w[age] = weightOne
		if halfLifeDays > 0 {
			w[age] = uint64(math.Round(weightOne * math.Exp2(-float64(age)/halfLifeDays)))
		}
	}
	return w
}

// sample is a round trip, in units, or that of a bin, with what it weighs.
type sample struct {
	units  uint32
	weight uint64
}

// tally is the round trips of one region from one prefix, or from what is
// below one. The zero value is empty.
type tally struct {
	samples   []sample // as they were, unless binned
	binned    bool
	bins      []uint64 // weights, when binned
	low, high int      // the bins that have any are low to high-1
	raw       uint64   // number of samples, at their full weight
	weight    uint64   // of samples
	failed    uint64   // weight of failures
}

func (t *tally) reset() {
	if t.binned && t.low < t.high {
		clear(t.bins[t.low:t.high])
	}
	*t = tally{samples: t.samples[:0], bins: t.bins}
}

// add counts n samples of a round trip.
func (t *tally) add(units uint32, n, weight uint64) {
	if !t.binned && t.raw+n > maxExact {
		t.spread()
	}
	t.raw += n
	t.weight += n * weight
	if t.binned {
		t.addBin(binOf(units), n*weight)
		return
	}
	for range n {
		t.samples = append(t.samples, sample{units, weight})
	}
}

// addBins counts n samples of a bin of a sketch.
func (t *tally) addBins(bin int, n, weight uint64) {
	t.spread()
	t.raw += n
	t.weight += n * weight
	t.addBin(bin, n*weight)
}

func (t *tally) addBin(bin int, weight uint64) {
	t.bins[bin] += weight
	t.low, t.high = min(t.low, bin), max(t.high, bin+1)
}

// spread puts samples into bins.
func (t *tally) spread() {
	if t.binned {
		return
	}
	if t.bins == nil {
		t.bins = make([]uint64, numBins)
	}
	t.binned, t.low, t.high = true, numBins, 0
	for _, s := range t.samples {
		t.addBin(binOf(s.units), s.weight)
	}
	t.samples = t.samples[:0]
}

// merge adds another tally to one that has bins.
func (t *tally) merge(u *tally) {
	t.raw += u.raw
	t.weight += u.weight
	t.failed += u.failed
	if u.raw == 0 {
		return
	}
	t.spread()
	for _, s := range u.samples {
		t.addBin(binOf(s.units), s.weight)
	}
	if u.binned {
		for i := u.low; i < u.high; i++ {
			t.bins[i] += u.bins[i]
		}
		t.low, t.high = min(t.low, u.low), max(t.high, u.high)
	}
}

// count is the number of samples by weight.
func (t *tally) count() float64 { return float64(t.weight) / weightOne }

// sort puts samples into the order that at wants.
func (t *tally) sort() {
	slices.SortFunc(t.samples, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.units, b.units), cmp.Compare(a.weight, b.weight))
	})
}

// at gives the round trip in milliseconds at each of some ranks in order, of samples
// counted from 1 by weight. Between two samples it is interpolated, so rank
// 0.75*(n+1) of equal weights is the third quartile by the exclusive method, as Python's
// statistics.quantiles has it. Exact samples must be sorted.
func (t *tally) at(ranks []float64, out []float64) {
	i, sum, before := 0, uint64(0), uint64(0)
	last := 0.0
	next := func(ms float64, weight uint64) {
		before, sum = sum, sum+weight
		for i < len(ranks) && ranks[i]*weightOne <= float64(sum) {
			out[i] = ms
			if !t.binned && before > 0 {
				part := (ranks[i]*weightOne - float64(before)) / float64(weight)
				out[i] = last + max(part, 0)*(ms-last)
			}
			i++
		}
		last = ms
	}
	if !t.binned {
		for _, s := range t.samples {
			next(float64(s.units)/unitsPerMs, s.weight)
		}
	} else {
		for b := t.low; b < t.high; b++ {
			if t.bins[b] > 0 {
				next(float64(binUnits[b])/unitsPerMs, t.bins[b])
			}
		}
	}
	for ; i < len(ranks); i++ {
		out[i] = last
	}
}

// stat is what decisions look at of a tally. Round trips are in milliseconds.
type stat struct {
	p75       float64
	low, high float64 // 95 % confidence interval of p75
	p10, p90  float64
	n         float64 // samples
	failed    float64 // failures
}

// stat sums the tally up. The interval is that of order statistics, which holds for
// any distribution: ranks n*q -+ 1.96*sqrt(n*q*(1-q)).
func (t *tally) stat() (s stat) {
	s.n, s.failed = t.count(), float64(t.failed)/weightOne
	if t.weight == 0 {
		return s
	}
	t.sort()
	half := 1.96 * math.Sqrt(s.n*0.75*0.25)
	var q [3]float64
	t.at([]float64{0.1 * (s.n + 1), 0.75 * (s.n + 1), 0.9 * (s.n + 1)}, q[:])
	s.p10, s.p75, s.p90 = q[0], q[1], q[2]
	t.at([]float64{math.Floor(0.75*s.n - half), math.Ceil(0.75*s.n + half)}, q[:2])
	s.low, s.high = q[0], q[1]
	return s
}

func (s *stat) String() string {
	return fmt.Sprintf("p75 %.2f ms [%.2f, %.2f] of %.0f, %.0f failed", s.p75, s.low, s.high, s.n, s.failed)
}
