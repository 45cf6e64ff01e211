package capacity

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is what groups with the same candidates, costs and TTL are together: the law
// gives them the same admission.
type row struct {
	key    string    // of State.Rows
	sinks  []int     // candidates; -1 where the index is none, or comes again
	open   []float64 // what each takes before its admission
	cost   []float64 // what it costs the group to go there
	regret []float64 // what it costs more to go on to the next open candidate
	first  int       // position of the first open candidate; -1: none
	last   int       // position of the last one
	home   int       // the sink its natural demand belongs to; -1: none
	weight float64
	ttl    time.Duration
	forced bool    // its only open candidate is so as a last resort
	share  float64 // part of the home's demand
	demand float64

	before    []float64 // part of the demand that each candidate got by the last step; nil: none
	flow      []float64 // part of the demand that each candidate gets, as wanted and then as made
	admission []float64
}

// makeRows merges the groups. rowOf is the row of every group.
func (w *work) makeRows() {
	byKey := make(map[string]int, 64)
	count := make(map[string]int, 64)
	w.rowOf = make([]int, len(w.in.Groups))
	var key []byte
	for g := range w.in.Groups {
		group := &w.in.Groups[g]
		key = key[:0]
		for _, r := range group.Sinks {
			key = binary.AppendVarint(key, int64(r))
		}
		if len(group.Cost) == len(group.Sinks) {
			key = append(key, '/')
			for _, c := range group.Cost {
				key = binary.LittleEndian.AppendUint64(key, math.Float64bits(c))
			}
		}
		if len(group.Open) == len(group.Sinks) {
			key = append(key, '|')
			for _, p := range group.Open {
				key = binary.LittleEndian.AppendUint64(key, math.Float64bits(p))
			}
		}
		if group.Forced {
			key = append(key, '!')
		}
		key = binary.AppendVarint(append(key, '~'), int64(w.kept(group)))
		i, ok := byKey[string(key)]
		if !ok {
			i = len(w.rows)
			byKey[string(key)] = i
			w.rows = append(w.rows, w.newRow(group))
			// The state knows a row by its candidates' names; costs change all the time.
			r := &w.rows[i]
			count[r.key]++
			if n := count[r.key]; n > 1 {
				r.key += "\n" + strconv.Itoa(n)
			}
		}
		w.rows[i].weight += amount(group.Weight)
		w.rowOf[g] = i
	}
	for i := range w.rows {
		r := &w.rows[i]
		r.weight = min(r.weight, MaxLoad)
		if r.home >= 0 {
			w.sinks[r.home].rows++
			w.sinks[r.home].weight += r.weight
		}
	}
	w.setShares()
}

// kept is how long resolvers keep a group's answers.
func (w *work) kept(g *Group) time.Duration {
	if g.TTL <= 0 {
		return w.ttl
	}
	return max(time.Second, min(g.TTL, time.Hour))
}

func (w *work) newRow(g *Group) row {
	n := len(g.Sinks)
	buf := make([]float64, 5*n)
	r := row{
		sinks: make([]int, n), open: buf[:n:n], regret: buf[n : 2*n : 2*n],
		flow: buf[2*n : 3*n : 3*n], admission: buf[3*n : 4*n : 4*n], cost: buf[4*n:], first: -1, last: -1, home: -1, ttl: w.kept(g), forced: g.Forced,
	}
	var key strings.Builder
	for k, i := range g.Sinks {
		r.sinks[k] = -1
		if i < 0 || i >= len(w.sinks) || w.seen[i] {
			continue
		}
		w.seen[i] = true
		r.sinks[k] = i
		r.open[k] = w.sinks[i].open
		if len(g.Open) == n {
			r.open[k] = clamp(g.Open[k], 0, 1)
		}
		key.WriteString(w.in.Sinks[i].Name)
		key.WriteByte('\n')
		if r.home < 0 && !w.in.Sinks[i].Soak {
			r.home = i
		}
		if r.open[k] > 0 {
			if r.first < 0 {
				r.first = k
			}
			r.last = k
		}
	}
	for _, i := range r.sinks {
		if i >= 0 {
			w.seen[i] = false
		}
	}
	r.key = key.String()
	r.setCost(g.Cost)
	return r
}

// setCost sets costs and regrets. The last open candidate's regret is nothing, since it
// can send nobody on: whoever comes there from elsewhere must not drive out those who
// are at home. But a row's only one keeps it before all others.
func (r *row) setCost(cost []float64) {
	usable := len(cost) == len(r.sinks)
	for _, c := range cost {
		usable = usable && c >= -MaxLoad && c <= MaxLoad
	}
	next := -1
	for k := len(r.sinks) - 1; k >= 0; k-- {
		r.cost[k] = float64(k)
		if usable {
			r.cost[k] = cost[k]
		}
		if r.open[k] == 0 {
			continue
		}
		if next >= 0 {
			r.regret[k] = r.cost[next] - r.cost[k]
		} else if k == r.first {
			r.regret[k] = math.Inf(1)
		}
		next = k
	}
}

// setShares sets every row's part of its home's natural demand, by weight, and what becomes of
// the whole. No row is without: a weight of nothing is the smallest part.
func (w *work) setShares() {
	for r := range w.sinks {
		if k := &w.sinks[r]; k.rows == 0 {
			k.keeps = k.open
		}
	}
	for i := range w.rows {
		r := &w.rows[i]
		if r.home < 0 {
			continue
		}
		k := &w.sinks[r.home]
		least, total := 1.0, float64(k.rows)
		if k.weight > 0 {
			least, total = mul(k.weight, tiny), k.weight
		}
		r.share = min(1, max(r.weight, least)/total)
		if r.first < 0 {
			k.lost = min(1, k.lost+r.share)
		}
		k.keeps = min(1, k.keeps+mul(r.share, r.open[slices.Index(r.sinks, r.home)]))
	}
}

// splitDemand gives every row its part of its home's natural demand.
func (w *work) splitDemand() {
	for r := range w.sinks {
		if w.sinks[r].rows == 0 && w.in.Sinks[r].Health > 0 {
			w.sinks[r].base = w.sinks[r].demand // no candidate list moves it
		}
	}
	for i := range w.rows {
		if r := &w.rows[i]; r.home >= 0 {
			r.demand = mul(w.sinks[r.home].demand, r.share)
		}
	}
}
