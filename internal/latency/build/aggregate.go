package build

import (
	"bytes"
	"math"
	"strconv"
)

// cell is measurements of a region from a prefix on a day.
type cell struct {
	key    key
	region uint8
	day    uint16
	binned bool
	failed uint64
	points []point // by value
}

// point is how many samples have a value: a round trip in units, or a bin counted from
// firstBin when the cell is binned.
type point struct {
	value uint32
	n     uint64
}

// order is the place of the cell among those of its key.
func (c *cell) order() uint64 { return uint64(c.region)<<dayBits | uint64(c.day) }

// demand is the measurements of the cell.
func (c *cell) demand() uint64 {
	n := c.failed
	for _, p := range c.points {
		n += p.n
	}
	return n
}

// usual is the shape of round trips that rows with only a p75 are given: multiples of
// p75 at evenly spaced quantiles, of which number 46 is p75 itself. It is the shape of 40 ms plus a
// lognormal of median 15 ms and sigma 0.9, so confidence intervals are as wide as those of
// measurements usually are.
var usual = func() (times [62]float64) {
	ms := func(q float64) float64 { return 40 + 15*math.Exp(0.9*math.Sqrt2*math.Erfinv(2*q-1)) }
	for i := range times {
		times[i] = ms((float64(i)+0.5)/float64(len(times))) / ms(0.75)
	}
	return times
}()

// aggregate reads a row of many measurements.
func (w *worker) aggregate(r *row, region uint8, day uint16) (c *cell, err error) {
	c = &w.scratch
	*c = cell{region: region, day: day, binned: true, points: c.points[:0]}
	n, ok := atoi(r[fN])
	failed, okFailed := uint64(0), true
	if len(r[fFailed]) > 0 {
		failed, okFailed = atoi(r[fFailed])
	}
	if !ok || !okFailed || n > maxRow || failed > maxRow || n+failed == 0 {
		return nil, errCount
	}
	c.failed = failed
	switch {
	case n == 0:
		return c, nil
	case len(r[fSketch]) > 0:
		return c, c.readSketch(r[fSketch], n)
	case len(r[fP75]) == 0:
		return nil, errNoData
	}
	units, ok := unitsOf(r[fP75])
	if !ok {
		return nil, errP75
	}
	c.shape(units, n)
	return c, nil
}

// maxRow bounds the measurements of one row: more is a mistake that would outweigh
// all else.
const maxRow = 1e9

// shape gives n samples the usual shape around their p75.
func (c *cell) shape(units uint32, n uint64) {
	given := uint64(0)
	for i, times := range usual {
		part := (n*uint64(i+1)+uint64(len(usual))/2)/uint64(len(usual)) - given
		given += part
		if part > 0 {
			v := uint32(min(max(math.Round(float64(units)*times), 1), maxRTT*unitsPerMs))
			c.addPoint(uint32(binOf(v)), part)
		}
	}
}

// addPoint adds samples at a value not below those before.
func (c *cell) addPoint(value uint32, n uint64) {
	if last := len(c.points) - 1; last >= 0 && c.points[last].value == value {
		c.points[last].n += n
		return
	}
	c.points = append(c.points, point{value, n})
}

// readSketch reads bins by their number in the mapping.
func (c *cell) readSketch(b []byte, n uint64) error {
	sum := uint64(0)
	for len(b) > 0 {
		var pair []byte
		pair, b, _ = bytes.Cut(b, []byte{' '})
		if len(pair) == 0 {
			continue
		}
		bin, count, ok := bytes.Cut(pair, []byte{':'})
		i, err := strconv.Atoi(string(bin))
		many, okMany := atoi(count)
		if !ok || err != nil || !okMany || many == 0 || many > maxCount || i < firstBin || i >= firstBin+numBins {
			return errSketch
		}
		v := uint32(i - firstBin)
		if last := len(c.points) - 1; last >= 0 && c.points[last].value >= v {
			return errSketch
		}
		c.points = append(c.points, point{v, many})
		sum += many
	}
	if sum != n {
		return errSketch
	}
	return nil
}
