package capacity

import "math"

// detour is the cheapest way to make room at one sink by using another: a row
// that has flow at the first and may use the second.
type detour struct {
	row, from, to int // positions in its list
	cost          float64
}

// augment places residue that has no room where it may go, by moving others on
// from there: a fenced group's only region may be full of clients that have another.
// It looks for the shortest chain of such moves to a sink with room (augmenting paths;
// Edmonds and Karp 1972), so that as few as possible are moved. Candidates that are
// open for a part only are left out: room is not what keeps clients from those.
func (w *work) augment(residue []float64) {
	loads := w.wanted()
	room := func(r int) float64 {
		k := &w.sinks[r]
		if k.damped {
			return 0
		}
		return max(0, min(k.limit, k.growth)-loads[r])
	}
	nothing := mul(w.total, tiny)
	left := augmentRounds
	for i := range w.rows {
		for residue[i] > mul(w.rows[i].demand, tiny) && left > 0 {
			if !w.anyRoom(room, nothing) {
				return
			}
			left--
			moved := w.chain(&w.rows[i], residue[i], loads, func(r int) bool { return room(r) > nothing }, room)
			if moved == 0 {
				break
			}
			residue[i] -= moved
		}
	}
}

func (w *work) anyRoom(room func(int) float64, nothing float64) bool {
	for r := range w.sinks {
		if room(r) > nothing {
			return true
		}
	}
	return false
}

// chain finds one chain of moves for the row and makes it; it returns the amount.
func (w *work) chain(g *row, amount float64, loads []float64, free func(int) bool, room func(int) float64) float64 {
	by := w.detours()
	// Breadth first from the sinks that g may use.
	from := make([]int, len(w.sinks)) // the sink before; -1: a start; -2: not reached
	for r := range from {
		from[r] = -2
	}
	var queue []int
	start := make(map[int]int)
	for k, r := range g.sinks {
		if g.open[k] == 1 {
			from[r] = -1
			start[r] = k
			queue = append(queue, r)
		}
	}
	end := -1
	for ; len(queue) > 0 && end < 0; queue = queue[1:] {
		r := queue[0]
		if free(r) {
			end = r
			break
		}
		for s := range w.sinks {
			if from[s] == -2 && by[r*len(w.sinks)+s].row >= 0 {
				from[s] = r
				queue = append(queue, s)
			}
		}
	}
	if end < 0 {
		return 0
	}
	amount = min(amount, room(end))
	for s := end; from[s] >= 0; s = from[s] {
		d := &by[from[s]*len(w.sinks)+s]
		amount = min(amount, mul(w.rows[d.row].flow[d.from], w.rows[d.row].demand))
	}
	loads[end] += amount
	s := end
	for ; from[s] >= 0; s = from[s] {
		d := &by[from[s]*len(w.sinks)+s]
		h := &w.rows[d.row]
		part := amount / h.demand
		h.flow[d.from] = max(0, h.flow[d.from]-part)
		h.flow[d.to] += part
	}
	g.flow[start[s]] += amount / g.demand
	return amount
}

// detours is the cheapest detour by pair of sinks.
func (w *work) detours() []detour {
	n := len(w.sinks)
	by := make([]detour, n*n)
	for i := range by {
		by[i] = detour{row: -1, cost: math.Inf(1)}
	}
	for i := range w.rows {
		r := &w.rows[i]
		for a, flow := range r.flow {
			if mul(flow, r.demand) <= mul(w.total, tiny) || r.open[a] < 1 {
				continue
			}
			for b := range r.sinks {
				if b == a || r.open[b] < 1 {
					continue
				}
				d := &by[r.sinks[a]*n+r.sinks[b]]
				if cost := r.cost[b] - r.cost[a]; cost < d.cost {
					*d = detour{i, a, b, cost}
				}
			}
		}
	}
	return by
}
