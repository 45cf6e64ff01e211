package capacity

import (
	"cmp"
	"math"
	"slices"
)

// spread places the residue. DNS moves traffic and can't refuse it, so what no
// limit admits goes where it does least harm: every row spreads its own over the
// sinks it may use so that those it goes to are equally utilised and none of them
// is above one it leaves out. Rows take turns until nothing changes, which is
// descent on the sum of load^2/capacity, row by row; that sum is convex, so the
// end is the fairest placement: nobody's utilisation can fall but by raising a
// higher one.
func (w *work) spread(residue []float64) {
	loads := w.wanted()
	parts := make([][]float64, len(w.rows))
	for range levelSweeps {
		change := 0.0
		for i := range w.rows {
			r := &w.rows[i]
			if residue[i] == 0 || r.first < 0 {
				continue
			}
			if parts[i] == nil {
				parts[i] = make([]float64, len(r.sinks))
			}
			for k, p := range parts[i] {
				if p > 0 {
					loads[r.sinks[k]] -= p
				}
			}
			level := w.level(r, loads, residue[i], 0)
			for k, p := range level {
				change = max(change, p-parts[i][k], parts[i][k]-p)
				if p > 0 {
					loads[r.sinks[k]] += p
				}
			}
			parts[i] = level
		}
		if change <= mul(w.total, tiny) {
			break
		}
	}
	for i := range parts {
		for k, p := range parts[i] {
			w.rows[i].flow[k] += p / w.rows[i].demand
		}
	}
}

// level spreads an amount over the open candidates of r from position from on, by
// filling the least utilised first. A sink without a limit takes all of it, the
// first of them. Those that are damped get none as long as the others' capacities do.
func (w *work) level(r *row, loads []float64, amount float64, from int) []float64 {
	out := make([]float64, len(r.sinks))
	var free, all []int
	room := 0.0
	for k := from; k < len(r.sinks); k++ {
		if r.open[k] == 0 {
			continue
		}
		s := &w.sinks[r.sinks[k]]
		if math.IsInf(s.plain, 1) {
			out[k] = amount
			return out
		}
		all = append(all, k)
		if !s.damped {
			free = append(free, k)
			room += max(0, s.room()-loads[r.sinks[k]])
		}
	}
	if len(free) == len(all) || amount > room {
		free = all
	}
	w.fill(r, loads, amount, free, out)
	return out
}

// fill spreads an amount over the candidates ks of r so that those that get some end
// at one utilisation, which is of the capacity as trimmed: a sink whose load goes on to
// be more than its flow has that much less to fill.
func (w *work) fill(r *row, loads []float64, amount float64, ks []int, out []float64) {
	use := func(k int) float64 { return loads[r.sinks[k]] / w.sinks[r.sinks[k]].room() }
	slices.SortStableFunc(ks, func(a, b int) int { return cmp.Compare(use(a), use(b)) })
	filled, room := 0.0, 0.0
	for i, k := range ks {
		filled, room = filled+max(0, loads[r.sinks[k]]), room+w.sinks[r.sinks[k]].room()
		level := (amount + filled) / room
		if i+1 == len(ks) || use(ks[i+1]) >= level {
			for _, k := range ks[:i+1] {
				out[k] = max(0, mul(level, w.sinks[r.sinks[k]].room())-loads[r.sinks[k]])
			}
			return
		}
	}
}

// room is what the sink's utilisation is measured by: its capacity, or what is
// known to be left of it.
func (k *sink) room() float64 {
	if k.cap > 0 && mul(k.plain, k.trim) > 0 {
		// The limit's share of the capacity is the target; a roof and the trim
		// lower both.
		return mul(min(k.cap, k.plain/k.target), k.trim)
	}
	return mul(k.plain, k.trim)
}

// wanted is the load of every sink under the rows' flows.
func (w *work) wanted() []float64 {
	loads := make([]float64, len(w.sinks))
	for r := range w.sinks {
		loads[r] = w.sinks[r].base
	}
	for i := range w.rows {
		r := &w.rows[i]
		for k, p := range r.flow {
			if p > 0 {
				loads[r.sinks[k]] += mul(p, r.demand)
			}
		}
	}
	return loads
}
