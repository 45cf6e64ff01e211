package steer

import (
	"net/netip"
	"slices"
)

// selector chooses an answer from the endpoints of one pool and family that may
// be answered at the moment. Its form follows from what there is to choose:
//
//	one answer     answers has length 1
//	one endpoint   salts and weights, an answer for each: weighted rendezvous
//	some endpoints draws, an answer for each share
//
// The zero selector has nothing to give.
type selector struct {
	answers []*Answer
	salts   []uint64
	weights []uint32
	equal   bool // all weights are
	draws   draws
	salt    uint64 // of the pool, for the draw by hash
}

// newSelector makes a selector that gives n (0: all) of the endpoints at a time,
// by these weights, which are positive. Endpoints are sorted by address.
func newSelector(b *batch, endpoints []*endpoint, weights []uint64, n int, spread Spread, salt uint64) selector {
	switch {
	case len(endpoints) == 0:
		return selector{}
	case n == 0 || n >= len(endpoints):
		return selector{answers: []*Answer{b.answer(addrsOf(endpoints))}}
	case n == 1:
		return singles(b, endpoints, weights, spread)
	}
	d, sets := sampleSets(weights, n)
	s := selector{draws: d, salt: salt}
	for _, set := range sets {
		var addrs []netip.Addr
		for _, i := range set {
			addrs = append(addrs, endpoints[i].addr)
		}
		s.answers = append(s.answers, b.answer(addrs))
	}
	return s
}

// singles gives one endpoint at a time: in turn for Balanced, else by rendezvous.
func singles(b *batch, endpoints []*endpoint, weights []uint64, spread Spread) selector {
	var s selector
	if spread == Balanced {
		s.draws = weightDraws(weights)
	}
	for i, e := range endpoints {
		s.answers = append(s.answers, b.answer([]netip.Addr{e.addr}))
		if spread != Balanced {
			s.salts = append(s.salts, e.salt)
			s.weights = append(s.weights, uint32(weights[i]))
		}
	}
	s.equal = len(slices.Compact(slices.Clone(s.weights))) == 1
	return s
}

// choose is the index of the answer for a key's hash.
func (s *selector) choose(hash uint64) int {
	if s.salts == nil {
		return s.draws.byHash(salted(hash, s.salt))
	}
	if s.equal {
		return highest(hash, s.salts)
	}
	best, won := bid(hash, s.salts[0], s.weights[0]), 0
	for i := 1; i < len(s.salts); i++ {
		if b := bid(hash, s.salts[i], s.weights[i]); b.before(best) {
			best, won = b, i
		}
	}
	return won
}

// highest is rendezvous for equal weights: the lowest score is that of the
// highest hash, so no score need be worked out.
func highest(hash uint64, salts []uint64) int {
	best, won := salted(hash, salts[0]), 0
	for i := 1; i < len(salts); i++ {
		if h := salted(hash, salts[i]); h > best {
			best, won = h, i
		}
	}
	return won
}

func addrsOf(endpoints []*endpoint) (addrs []netip.Addr) {
	for _, e := range endpoints {
		addrs = append(addrs, e.addr)
	}
	return addrs
}
