package gslb

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/capacity"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// admit turns what the law admits to its groups into admissions by view, pool and
// list.
func (h *hearing) admit(out *capacity.Output) []admissions {
	all := make([]admissions, len(h.views))
	for i := range all {
		all[i] = admissions{make(map[admissionKey]admitted), make(map[admissionKey]bool)}
		for k, host := range h.views[i].plan.Hosts {
			for r, sink := range h.at[i][k] {
				if host.Pooled(steer.Region(r)) && h.sinks.list[sink].Full {
					all[i].full[admissionKey{host.Config.Names[0], steer.Region(r)}] = true
				}
			}
		}
	}
	known := make(map[string][]float64)
	for begin := 0; begin < len(h.rows); {
		end := begin + 1
		for end < len(h.rows) && h.rows[end].same(&h.rows[begin]) {
			end++
		}
		row := &h.rows[begin]
		host := h.views[row.view].plan.Hosts[row.host]
		for r, part := range h.together(host, begin, end, out.Admission, known) {
			if part < 1 {
				all[row.view].put(host, steer.Region(r), row.list, part)
			}
		}
		begin = end
	}
	return all
}

// same tells whether two groups are of one list.
func (g *groupOf) same(o *groupOf) bool {
	return g.view == o.view && g.host == o.host && g.list == o.list
}

func (a *admissions) put(h *plan.Host, r steer.Region, list int, part float64) {
	key := admissionKey{h.Config.Names[0], r}
	one, ok := a.parts[key]
	if !ok {
		one = admitted{h.Need, slices.Repeat([]float64{1}, len(h.Need.Topology.Lists))}
		a.parts[key] = one
	}
	one.list[list] = part
}

// together puts the admissions of a list's groups together, by region; nil: all are 1.
// There is one threshold for each region, whichever way clients come to it.
func (h *hearing) together(host *plan.Host, begin, end int, admission [][]float64, known map[string][]float64) []float64 {
	held := false
	for i := begin; i < end; i++ {
		held = held || slices.ContainsFunc(admission[i], func(p float64) bool { return p < 1 })
	}
	if !held {
		return nil
	}
	out := slices.Repeat([]float64{1}, len(host.Need.Input.Regions))
	switch {
	case h.rows[begin].sheds:
		h.shared(begin, end, admission, out)
	case end == begin+1:
		for k, r := range h.rows[begin].regions {
			if h.rows[begin].open[k] > 0 { // who is not open has 0, and may open before the next step
				out[r] = admission[begin][k]
			}
		}
	default:
		return h.raced(host, begin, end, admission, known)
	}
	return out
}

// shared is what each region of a host that sheds takes of those who come to it.
func (h *hearing) shared(begin, end int, admission [][]float64, out []float64) {
	parts := make([]float64, len(out))
	for i := begin; i < end; i++ {
		row := &h.rows[i]
		k := len(row.regions) - 1
		r := row.regions[k]
		if row.open[k+1] == 0 { // those whom it must take are never shed
			continue
		}
		out[r] = (out[r]*parts[r] + admission[i][k]*row.part) / (parts[r] + row.part)
		parts[r] += row.part
	}
}

// raced is the admissions of a list with a split, with which its regions get in sum what
// they get by all ways through it.
func (h *hearing) raced(host *plan.Host, begin, end int, admission [][]float64, known map[string][]float64) []float64 {
	n := len(host.Need.Input.Regions)
	open, wanted, ready := make([]float64, n), make([]float64, n), make([]float64, n)
	parts := make([]float64, n)
	held := false // somebody is who is come to
	for i := begin; i < end; i++ {
		row := &h.rows[i]
		left := 1.0
		for k, part := range row.flow(admission[i]) {
			r := row.regions[k]
			open[r] = row.open[k]
			wanted[r] += row.part * part
			ready[r] += row.part * admission[i][k]
			parts[r] += row.part
			if row.open[k] > 0 {
				held = held || left > 1e-9 && admission[i][k] < 1
				left -= left * row.open[k] * admission[i][k]
			}
		}
	}
	for r := range ready {
		if ready[r] /= max(parts[r], 1e-12); open[r] == 0 || !held && wanted[r] > 0 {
			ready[r] = 1
		}
	}
	if !held {
		return ready
	}
	var key []byte
	for _, list := range [][]float64{open, wanted, ready} {
		for _, p := range list {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(p))
		}
	}
	l := &host.Need.Topology.Lists[h.rows[begin].list]
	for _, w := range l.Split {
		key = binary.LittleEndian.AppendUint64(key, uint64(w.Region)<<32|uint64(w.Weight))
	}
	key = append(key, l.Order...)
	found, ok := known[string(key)]
	if !ok {
		found = host.Steer.Admit(h.rows[begin].list, open, wanted, ready)
		known[string(key)] = found
	}
	return found
}

// flow is what each candidate of a group gets of its clients: its part of those who come
// to it, and the first that is open gets those whom nobody takes.
func (g *groupOf) flow(admission []float64) []float64 {
	out := make([]float64, len(g.open))
	left, first := 1.0, -1
	for k, open := range g.open {
		if open == 0 {
			continue
		}
		if first < 0 {
			first = k
		}
		out[k] = left * open * admission[k]
		left -= out[k]
	}
	if first >= 0 {
		out[first] += left
	}
	return out[:len(g.regions)]
}

// spread gives the natural demand of every list: that of the sink it begins with, by
// weight.
func (h *hearing) spread(out *capacity.Output) [][][]float64 {
	totals := make([]float64, len(h.in.Sinks))
	weight := func(i int) float64 { return h.in.Groups[i].Weight + 1e-9 }
	for i := range h.rows {
		totals[h.in.Groups[i].Sinks[0]] += weight(i)
	}
	loads := make([][][]float64, len(h.views))
	for i, v := range h.views {
		loads[i] = make([][]float64, len(v.plan.Hosts))
		for j, host := range v.plan.Hosts {
			loads[i][j] = make([]float64, len(host.Need.Topology.Lists))
		}
	}
	for i, row := range h.rows {
		first := h.in.Groups[i].Sinks[0]
		loads[row.view][row.host][row.list] += out.Sinks[first].Demand * weight(i) / totals[first]
	}
	return loads
}
