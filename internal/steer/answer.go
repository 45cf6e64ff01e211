package steer

import (
	"net/netip"
	"slices"
	"sync"
)

// Answer is one set of addresses to give, in canonical (ascending) order, or a name
// instead. It is immutable. Equal sets of one family, or equal names, in consecutive
// snapshots of a host are the same Answer.
type Answer struct {
	Family Family // of Addrs; a name answers both, and has V4 here
	Addrs  []netip.Addr
	// Name, if not empty, is given as a CNAME, fully qualified; there are no Addrs.
	Name string
	// Prepared is what [HostConfig.Prepare] made of it: the caller's own form of
	// the answer, made once and ready for every query.
	Prepared any
}

// answers keeps equal answers of a host one object, for as long as the latest
// snapshot uses them.
type answers struct {
	mu      sync.Mutex
	prepare func(*Answer) any
	known   map[string]*Answer
}

// batch interns the answers of one snapshot.
type batch struct {
	answers *answers
	known   map[string]*Answer
}

// begin starts a batch and excludes all others until it is kept.
func (a *answers) begin() *batch {
	a.mu.Lock()
	return &batch{a, make(map[string]*Answer)}
}

// keep makes the batch the known answers; those that it did not use are forgotten.
func (b *batch) keep() {
	b.answers.known = b.known
	b.answers.mu.Unlock()
}

// answer is the one Answer with these addresses, of which there is at least one.
func (b *batch) answer(addrs []netip.Addr) *Answer {
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, netip.Addr.Compare)
	f := familyOf(addrs[0])
	id := make([]byte, 0, 1+16*len(addrs))
	id = append(id, byte(f))
	for _, a := range addrs {
		id = append(id, a.AsSlice()...)
	}
	return b.intern(id, Answer{Family: f, Addrs: addrs})
}

// named is the one Answer with this name.
func (b *batch) named(name string) *Answer {
	return b.intern(append([]byte{families}, name...), Answer{Name: name})
}

// intern is the known Answer with this id, or else a.
func (b *batch) intern(id []byte, a Answer) *Answer {
	if known := b.known[string(id)]; known != nil {
		return known
	}
	ans := b.answers.known[string(id)]
	if ans == nil {
		fresh := a // so that a itself needs no place of its own where it is known
		ans = &fresh
		if b.answers.prepare != nil {
			ans.Prepared = b.answers.prepare(ans)
		}
	}
	b.known[string(id)] = ans
	return ans
}
