package guard

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// piece is a block of the model: of both partitions together.
type piece struct {
	view    int
	block   netip.Prefix
	was, is block
}

type block struct{ bits, list int }

// pieces cuts the space naively: each block of either side that lies in one of the other.
// They are in order, so that the same clients are asked in every run.
func pieces(o, h *plan.Host, off bool) (list []piece) {
	for view := range 2 {
		if view == subnets && off {
			continue
		}
		a, b := make(map[netip.Prefix]int), make(map[netip.Prefix]int)
		for p, l := range o.Need.Topology.Blocks(view == resolvers) {
			a[p] = l
		}
		for p, l := range h.Need.Topology.Blocks(view == resolvers) {
			b[p] = l
		}
		add := func(p netip.Prefix) {
			one := piece{view, p, above(a, p), above(b, p)}
			if one.was.list < 0 || one.is.list < 0 || view == subnets && h.Locate(p, p.Addr()).Fixed {
				return
			}
			list = append(list, one)
		}
		for p := range a {
			add(p)
		}
		for p := range b {
			if _, both := a[p]; !both {
				add(p)
			}
		}
	}
	slices.SortFunc(list, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.view, b.view), a.block.Addr().Compare(b.block.Addr()), cmp.Compare(a.block.Bits(), b.block.Bits()))
	})
	return list
}

// group is what blocks that are compared with each other have in common.
type group struct {
	view, list int
	v4         bool
}

func (p *piece) group() group { return group{p.view, p.was.list, p.block.Addr().Is4()} }

// above is the block that holds p; list -1: none does.
func above(blocks map[netip.Prefix]int, p netip.Prefix) block {
	for bits := p.Bits(); bits >= 0; bits-- {
		q, _ := p.Addr().Prefix(bits)
		if l, ok := blocks[q]; ok {
			return block{bits, l}
		}
	}
	return block{0, -1}
}

// model is what a comparison comes to, counted client by client.
type model struct {
	total, moved  [8]float64
	space, left   [8]float64 // IPv4 addresses, and those that move
	before, after [8]map[string]float64
	demand, gone  float64
	stranded      map[string]float64 // blocks, by host and family
	lists         map[string]map[int]bool
	use           map[string]*Use
}

// most is the greatest part of any kind of blocks, but for small ones, that moves.
func (m *model) most() (most float64) {
	for k := range m.total {
		if m.total[k] >= 0.01*sum(m.total[:]) {
			most = max(most, ratio(m.moved[k], m.total[k]))
		}
	}
	return most
}

// mostSpace is the greatest part of the addresses of any kind that moves.
func (m *model) mostSpace() (most float64) {
	for k := range m.space {
		most = max(most, ratio(m.left[k], m.space[k]))
	}
	return most
}

const (
	keys    = 30   // of a block are asked at least
	clients = 4000 // of a group of blocks: a share of them is within 0.8 % (standard deviation)
)

func count(r *rand.Rand, old, now *Side) *model {
	m := &model{stranded: make(map[string]float64), lists: make(map[string]map[int]bool), use: make(map[string]*Use)}
	for i := range m.before {
		m.before[i], m.after[i] = make(map[string]float64), make(map[string]float64)
	}
	for i, h := range now.Plan.Hosts {
		o := slices.IndexFunc(old.Plan.Hosts, func(o *plan.Host) bool { return o.Config.Names[0] == h.Config.Names[0] })
		if o < 0 {
			m.host(r, nil, nil, h, now.Snapshots[i], now.Plan.Block.ECS.Off, nil)
			continue
		}
		m.host(r, old.Plan.Hosts[o], old.Snapshots[o], h, now.Snapshots[i], now.Plan.Block.ECS.Off, old.Demand[o])
	}
	return m
}

func (m *model) host(r *rand.Rand, o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot, off bool, demand []float64) {
	fresh := o == nil
	if fresh {
		o, os = h, hs
	}
	all := pieces(o, h, off)
	sizes, groups := make(map[int]float64), make(map[group]float64)
	for _, p := range all {
		sizes[p.was.list]++
		groups[p.group()]++
	}
	offers := 0.0
	for f := steer.V4; f <= steer.V6; f++ {
		if o.Steer.Offers(f) || h.Steer.Offers(f) {
			offers++
		}
	}
	for _, p := range all {
		for f := steer.V4; f <= steer.V6; f++ {
			if !o.Steer.Offers(f) && !h.Steer.Offers(f) {
				continue
			}
			m.strand(p, f, o, os, h, hs, fresh, float64(len(all)))
			if !fresh {
				n := keys + int(clients/groups[p.group()])
				m.piece(r, p, f, n, o, os, h, hs, demand[p.was.list]/sizes[p.was.list]/offers)
			}
		}
	}
}

// piece asks clients of one block.
func (m *model) piece(r *rand.Rand, p piece, f steer.Family, n int, o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot, demand float64) {
	kind := 4*p.view + int(f)
	if p.block.Addr().Is6() {
		kind += 2
	}
	one := 1 / float64(n)
	size := 0.0
	if p.block.Addr().Is4() && !h.Locate(p.block, p.block.Addr()).Fixed {
		size = math.Exp2(float64(32 - p.block.Bits()))
	}
	for range n {
		a := randomAddr(r, p.block.Addr().Is4())
		was, is := placed(o, os, p, p.was, a, f), placed(h, hs, p, p.is, a, f)
		m.total[kind] += one
		m.space[kind] += size * one
		m.before[kind][was] += one
		m.after[kind][is] += one
		m.demand += demand * one
		if was != is && was != Nowhere {
			m.moved[kind] += one
			m.left[kind] += size * one
			m.gone += demand * one
		}
	}
}

func placed(h *plan.Host, s *steer.Snapshot, p piece, b block, a netip.Addr, f steer.Family) string {
	c := steer.Client{Addr: a, Bits: a.BitLen(), Transport: a, List: b.list, Block: b.bits}
	if p.view == subnets {
		c.Source = steer.ECS
	}
	d := h.Steer.Decide(s, &c, f, nil)
	if d.Region == steer.NoRegion {
		return Nowhere
	}
	return h.Need.Input.Regions[d.Region].Name
}

func randomAddr(r *rand.Rand, v4 bool) netip.Addr {
	var b [16]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if v4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b)
}

// strand counts a block whose list has no usable region any more.
func (m *model) strand(p piece, f steer.Family, o *plan.Host, os *steer.Snapshot, h *plan.Host, hs *steer.Snapshot, fresh bool, all float64) {
	if !h.Steer.Offers(f) || lives(h, hs, p.is.list, f) || h.Need.Topology.Lists[p.is.list].Refuse {
		return
	}
	if !fresh && o.Steer.Offers(f) && (o.Need.Topology.Lists[p.was.list].Refuse || !lives(o, os, p.was.list, f)) {
		return
	}
	key := h.Config.Names[0] + f.String()
	m.stranded[key] += 1 / all
	if m.lists[key] == nil {
		m.lists[key] = make(map[int]bool)
	}
	m.lists[key][p.is.list] = true
}

// lives tells whether a list has a region that takes clients.
func lives(h *plan.Host, s *steer.Snapshot, list int, f steer.Family) bool {
	l := &h.Need.Topology.Lists[list]
	for r := range h.Need.Input.Regions {
		named := false
		for _, w := range l.Split {
			named = named || int(w.Region) == r
		}
		for _, x := range l.Order {
			named = named || int(x) == r
		}
		if st := s.Region(steer.Region(r), f); named && st.Usable && st.Dial > 0 {
			return true
		}
	}
	return false
}

// A comparison of random states is what their clients do.
func TestCompareFollowsDecisions(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	seen := make(map[string]int)
	worst := 0.0
	for range 40 {
		old, now, texts := randomSides(t, r, false)
		got, want := Compare([]Pair{{old, now}}), count(r, old, now)
		most := want.most()
		worst = max(worst, math.Abs(got.Blocks-most))
		if math.Abs(got.Blocks-most) > 0.015 {
			t.Fatalf("%.4f of blocks move; want %.4f\n%s", got.Blocks, most, texts)
		}
		if want.demand > 0 && math.Abs(got.Demand-want.gone/want.demand) > 0.015 {
			t.Fatalf("%.4f of demand move; want %.4f\n%s", got.Demand, want.gone/want.demand, texts)
		}
		if text := kindsLike(got, want); text != "" {
			t.Fatalf("%s\n%s", text, texts)
		}
		if !sharesLike(got, want) {
			t.Fatalf("no kind of blocks has the shares %+v\n%+v\n%s", got.Regions, want, texts)
		}
		if text := strandedLike(got, want); text != "" {
			t.Fatalf("%s\n%s", text, texts)
		}
		seen[fmt.Sprintf("moved %.1f", math.Ceil(10*most)/10)]++
		seen[fmt.Sprintf("stranded %v", len(got.Stranded) > 0)]++
		seen[fmt.Sprintf("same plan %v", old.Plan == now.Plan)]++
	}
	t.Logf("at most %.4f off; %v", worst, seen)
	if seen["stranded true"] < 5 || seen["stranded false"] < 5 || len(seen) < 8 {
		t.Errorf("too little was seen: %v", seen)
	}
}

// Where all clients of a list get the same, the comparison is exact.
func TestCompareExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	moved, spaces := 0, 0
	for range 25 {
		old, now, texts := randomSides(t, r, true)
		got, want := Compare([]Pair{{old, now}}), count(r, old, now)
		most := want.most()
		if math.Abs(got.Blocks-most) > 1e-6 || want.demand > 0 && math.Abs(got.Demand-want.gone/want.demand) > 1e-6 {
			t.Fatalf("%v of blocks move, %v of demand; want %v and %v\n%s", got.Blocks, got.Demand, most, want.gone/want.demand, texts)
		}
		if space := want.mostSpace(); math.Abs(got.Space-space) > 1e-6 {
			t.Fatalf("%v of the space move; want %v\n%s", got.Space, space, texts)
		} else if space > 0 && space < 1 {
			spaces++
		}
		flows, space := 0.0, 0.0
		for _, m := range got.Moves {
			if m.From != Nowhere {
				flows, space = flows+m.Blocks, space+m.Space
			}
		}
		if math.Abs(flows-got.Blocks) > 1e-6 || math.Abs(space-got.Space) > 1e-6 {
			t.Fatalf("flows %+v sum to other than %v and %v", got.Moves, got.Blocks, got.Space)
		}
		if most > 0 && most < 1 {
			moved++
		}
	}
	if moved < 5 || spaces < 5 {
		t.Errorf("only %d changes moved a part of the blocks, and %d of the space", moved, spaces)
	}
}

// sharesLike tells whether the shares of a report are those of a kind of blocks of which
// about the same part moves.
func sharesLike(got *Report, want *model) bool {
	for k := range want.total {
		if want.total[k] == 0 && len(got.Regions) > 0 || math.Abs(ratio(want.moved[k], want.total[k])-got.Blocks) > 0.015 {
			continue
		}
		like := true
		before, after := make(map[string]float64), make(map[string]float64)
		for _, s := range got.Regions {
			before[s.Region], after[s.Region] = s.BlocksBefore, s.BlocksAfter
		}
		for _, name := range []string{"eu", "us", "ap", "sa", Nowhere} {
			like = like && math.Abs(before[name]-ratio(want.before[k][name], want.total[k])) < 0.02 &&
				math.Abs(after[name]-ratio(want.after[k][name], want.total[k])) < 0.02
		}
		if like {
			return true
		}
	}
	return false
}

func strandedLike(got *Report, want *model) string {
	if len(got.Stranded) != len(want.stranded) {
		return fmt.Sprintf("stranded are %+v; want %v", got.Stranded, want.stranded)
	}
	for _, s := range got.Stranded {
		key := s.Host + s.Family
		if math.Abs(want.stranded[key]-s.Blocks) > 1e-9 || s.Lists != len(want.lists[key]) {
			return fmt.Sprintf("stranded %+v; want %v of blocks, %d lists", s, want.stranded[key], len(want.lists[key]))
		}
	}
	return ""
}
