package capacity

import (
	"cmp"
	"slices"
)

// offer is a row's demand before one of its candidates.
type offer struct {
	row, at int
	amount  float64 // what comes, of what the candidate is open for
	refused float64 // part of it that goes on to the next
}

// place is deferred acceptance (Gale and Shapley 1962) with amounts: every row offers its
// demand to its first open candidate; a sink keeps what it regrets most to send
// on, up to its limit, and the rest is offered to the next. A sink never takes back what it
// sent on: offers only grow, so the regret from which on it keeps them only rises, and the
// rounds end in a placement where nobody would rather be where somebody keeps a
// place with a smaller regret. With one preference for all of a sink's demand that
// is the waterfall: the nearest region to its limit, the excess to the next.
//
// It sets the rows' flows; what it returns is what no limit admits, by row, as an
// amount, and what still looked for a place when the rounds were over.
func (w *work) place() (residue []float64) {
	offers, books := w.book()
	for range placeRounds {
		if w.propose(offers) <= tiny {
			break
		}
		for r := range books {
			w.accept(r, offers, &books[r])
		}
	}
	residue = make([]float64, len(w.rows))
	next := 0
	for i := range w.rows {
		r := &w.rows[i]
		left := r.demand
		for k := range r.sinks {
			r.flow[k] = 0
			if r.open[k] == 0 {
				continue
			}
			o := &offers[next]
			next++
			taken := max(0, min(w.comes(r, k, left), o.amount)-o.refused) // no more than it was asked for
			left -= taken
			if r.demand > 0 {
				r.flow[k] = taken / r.demand
			}
		}
		if residue[i] = left; left <= mul(r.demand, tiny) {
			residue[i] = 0
		}
	}
	return residue
}

// book is a sink's offers, in the order in which it keeps them once it has to
// choose: by regret, then whose earlier candidate it is.
type book struct {
	offers []int
	ends   []int // of the runs of equal ones, which share; nil: not in order yet
}

// book makes all offers, by row and candidate, and the sinks' books.
func (w *work) book() ([]offer, []book) {
	var offers []offer
	books := make([]book, len(w.sinks))
	for i := range w.rows {
		for k, open := range w.rows[i].open {
			if open > 0 {
				b := &books[w.rows[i].sinks[k]]
				b.offers = append(b.offers, len(offers))
				offers = append(offers, offer{row: i, at: k})
			}
		}
	}
	return offers, books
}

// order puts the book in order.
func (w *work) order(offers []offer, b *book) {
	slices.SortStableFunc(b.offers, func(x, y int) int { return w.before(&offers[x], &offers[y]) })
	for i := 1; i < len(b.offers); i++ {
		if w.before(&offers[b.offers[i-1]], &offers[b.offers[i]]) != 0 {
			b.ends = append(b.ends, i)
		}
	}
	b.ends = append(b.ends, len(b.offers))
}

// before is the order of two offers in a sink's book; equal ones share.
func (w *work) before(a, b *offer) int {
	if c := cmp.Compare(w.rows[b.row].regret[b.at], w.rows[a.row].regret[a.at]); c != 0 {
		return c
	}
	return cmp.Compare(a.at, b.at)
}

// propose makes every row's offers anew from what was refused of the last ones, and
// says by which part of the row's demand they changed at most.
func (w *work) propose(offers []offer) (change float64) {
	next := 0
	for i := range w.rows {
		r := &w.rows[i]
		left, moved := r.demand, 0.0
		for k := range r.open {
			if r.open[k] == 0 {
				continue
			}
			o := &offers[next]
			next++
			comes := w.comes(r, k, left)
			moved = max(moved, comes-o.amount, o.amount-comes)
			o.amount = comes
			left -= max(0, comes-o.refused)
		}
		if moved > 0 {
			change = max(change, moved/r.demand)
		}
	}
	return change
}

// comes is what of the amount before candidate k may go there: the part that it is
// open for, and no more than went there if it is damped (but someone must be last).
func (w *work) comes(r *row, k int, left float64) float64 {
	comes := mul(left, r.open[k])
	if k < r.last && r.before != nil && w.sinks[r.sinks[k]].damped {
		comes = min(comes, mul(r.before[k], r.demand))
	}
	return comes
}

// accept takes what comes to sink r, in the order of its book, up to its limit, and
// refuses the rest. What others spill has a limit of its own beside that, where growth has one.
func (w *work) accept(r int, offers []offer, b *book) {
	k := &w.sinks[r]
	room, spilled := max(0, k.limit-k.base), k.growth-k.base
	own, foreign := w.split(r, offers, b.offers)
	if spilled = max(0, spilled-own); own+foreign <= room && foreign <= spilled {
		return // nothing is refused
	}
	if b.ends == nil {
		w.order(offers, b)
	}
	begin := 0
	for _, end := range b.ends {
		class := b.offers[begin:end]
		begin = end
		// Foreigners share what is left of their limit, then all share the room.
		own, foreign := w.split(r, offers, class)
		keep := 1.0
		if foreign > spilled {
			keep = spilled / foreign
		}
		all := 1.0
		if comes := own + mul(foreign, keep); comes > room {
			all = room / comes
		}
		keep = mul(keep, all)
		for _, i := range class {
			o := &offers[i]
			if w.rows[o.row].home == r {
				o.refused = max(o.refused, o.amount-mul(o.amount, all))
			} else {
				o.refused = max(o.refused, o.amount-mul(o.amount, keep))
			}
		}
		room = max(0, room-mul(own, all)-mul(foreign, keep))
		spilled = max(0, spilled-mul(foreign, keep))
	}
}

// split is what the offers at sink r come to, by whether r is the row's home.
func (w *work) split(r int, offers []offer, of []int) (own, foreign float64) {
	for _, o := range of {
		if w.rows[offers[o].row].home == r {
			own += offers[o].amount
		} else {
			foreign += offers[o].amount
		}
	}
	return own, foreign
}
