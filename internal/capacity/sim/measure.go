package sim

// Utilisation of region r at a second. A dead region has none.
func (res *Result) Utilisation(r, at int) float64 {
	if res.Dead[r][at] {
		return 0
	}
	return res.Load[r][at] / res.Scenario.Regions[r].Capacity
}

// Above is for how many seconds in from..to, in all, some region is utilised above
// level.
func (res *Result) Above(level float64, from, to int) (seconds int) {
	for t := from; t < to; t++ {
		for r := range res.Load {
			if res.Utilisation(r, t) > level {
				seconds++
				break
			}
		}
	}
	return seconds
}

// Longest is the longest time in seconds in from..to for which one region is
// utilised above level without a break.
func (res *Result) Longest(level float64, from, to int) (longest int) {
	for r := range res.Load {
		run := 0
		for t := from; t < to; t++ {
			if run++; res.Utilisation(r, t) <= level {
				run = 0
			}
			longest = max(longest, run)
		}
	}
	return longest
}

// Peak is the highest utilisation in from..to.
func (res *Result) Peak(from, to int) (peak float64) {
	for r := range res.Load {
		for t := from; t < to; t++ {
			peak = max(peak, res.Utilisation(r, t))
		}
	}
	return peak
}

// Range is the lowest and the highest utilisation of region r in from..to.
func (res *Result) Range(r, from, to int) (low, high float64) {
	low = res.Utilisation(r, from)
	for t := from; t < to; t++ {
		u := res.Utilisation(r, t)
		low, high = min(low, u), max(high, u)
	}
	return low, high
}

// Amplitude is half of the largest difference, over the regions, between the
// highest and the lowest utilisation in from..to.
func (res *Result) Amplitude(from, to int) (amplitude float64) {
	for r := range res.Load {
		low, high := res.Range(r, from, to)
		amplitude = max(amplitude, (high-low)/2)
	}
	return amplitude
}

// Mean is the mean utilisation of region r in from..to.
func (res *Result) Mean(r, from, to int) float64 {
	sum := 0.0
	for t := from; t < to; t++ {
		sum += res.Utilisation(r, t)
	}
	return sum / float64(to-from)
}

// Overload is the load above capacity, summed over regions and seconds of from..to, in
// units x seconds.
func (res *Result) Overload(from, to int) (sum float64) {
	for r := range res.Load {
		for t := from; t < to; t++ {
			if over := res.Utilisation(r, t) - 1; over > 0 {
				sum += over * res.Scenario.Regions[r].Capacity
			}
		}
	}
	return sum
}

// Apart is the largest difference of a region's share between two instances in
// from..to.
func (res *Result) Apart(a, b, from, to int) (apart float64) {
	for r := range res.Load {
		for t := from; t < to; t++ {
			d := res.Shares[a][r][t] - res.Shares[b][r][t]
			apart = max(apart, d, -d)
		}
	}
	return apart
}
