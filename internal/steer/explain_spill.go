package steer

import "slices"

// regionPart is the part of resolutions that a region gets.
type regionPart struct {
	region Region
	part   float64
}

// spillParts is how spread Balanced distributes resolutions among the usable
// candidates of l, in their order; nil if none of them spills.
func (q *query) spillParts(l *List, d *Decision) (list []regionPart) {
	if d.Outcome != OutcomeAnswer || !q.snapshot.any(l, partial.of(q.family)) {
		return nil
	}
	sp := &q.snapshot.splits[q.family][q.client.List]
	weights := make([]float64, len(sp.regions))
	for i := range weights {
		weights[i] = float64(sp.size(i)) / float64(sp.total())
	}
	parts := make([]float64, len(q.host.regions))
	left := q.among(sp.regions, weights, 1, parts)
	for _, r := range l.regions() {
		if !q.snapshot.has(r, usable.of(q.family)) {
			continue
		}
		if !slices.Contains(sp.regions, r) {
			parts[r] = left * q.snapshot.Region(r, q.family).Availability
			left -= parts[r]
		}
		list = append(list, regionPart{r, parts[r]})
	}
	// What nobody takes goes to the region drawn first, or to the first candidate.
	for i := range list {
		if len(weights) == 0 {
			list[i].part += left
			break
		}
		if k := slices.Index(sp.regions, list[i].region); k >= 0 {
			list[i].part += left * weights[k]
		}
	}
	return list
}

// among adds to parts how mass, a part of resolutions, is distributed among
// regions by their weights, and returns what none of them takes. A branch too
// small to be seen is given up.
func (q *query) among(regions []Region, weights []float64, mass float64, parts []float64) (left float64) {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	if len(regions) == 0 || mass < 1e-7 {
		return mass
	}
	for i, r := range regions {
		share := mass * weights[i] / total
		taken := share * q.snapshot.Region(r, q.family).Availability
		parts[r] += taken
		if taken < share {
			others := slices.Delete(slices.Clone(regions), i, i+1)
			left += q.among(others, slices.Delete(slices.Clone(weights), i, i+1), share-taken, parts)
		}
	}
	return left
}

// regions is every candidate of l once, as written: the weighted ones of the
// split, its standbys, the order.
func (l *List) regions() (list []Region) {
	var seen regionSet
	add := func(r Region) {
		if !seen.has(r) {
			seen.add(r)
			list = append(list, r)
		}
	}
	for _, w := range l.Split {
		if w.Weight > 0 {
			add(w.Region)
		}
	}
	for _, w := range l.Split {
		add(w.Region)
	}
	for _, r := range l.Order {
		add(r)
	}
	return list
}
