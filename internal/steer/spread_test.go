package steer

import (
	"encoding/binary"
	"math"
	"net/netip"
	"sync"
	"testing"
)

// nthClient is one of 65,536 clients with distinct keys at grain 16, with ECS.
func nthClient(n int) *Client {
	var b [4]byte
	binary.BigEndian.PutUint16(b[:], uint16(n))
	return &Client{Addr: netip.AddrFrom4(b), Bits: 24, Source: ECS, Transport: addr("198.51.100.53"), Block: 8}
}

const clients = 1 << 16

// poolOf makes a pool in 192.0.net.0/24 with these weights.
func poolOf(net byte, answers int, weights ...uint32) *PoolConfig {
	p := &PoolConfig{Answers: answers}
	for i, w := range weights {
		p.Endpoints = append(p.Endpoints, EndpointConfig{netip.AddrFrom4([4]byte{192, 0, net, byte(i)}), w})
	}
	return p
}

// splitHost has one region for each weight, with one endpoint each.
func splitHost(spread Spread, weights ...uint32) HostConfig {
	cfg := HostConfig{Name: "h", Spread: spread, Grain: [2]int{16, 32}, TTL: 30, MaxDown: 100, Lists: make([]List, 1)}
	for i, w := range weights {
		cfg.Regions = append(cfg.Regions, "r"+string(rune('a'+i)))
		cfg.Pools = append(cfg.Pools, poolOf(byte(i), 0, 1))
		cfg.Lists[0].Split = append(cfg.Lists[0].Split, Weighted{Region(i), w})
	}
	return cfg
}

// poolHost has one region with one endpoint for each weight.
func poolHost(spread Spread, answers int, weights ...uint32) HostConfig {
	return HostConfig{
		Name: "h", Regions: []string{"ra"}, Pools: []*PoolConfig{poolOf(0, answers, weights...)},
		Lists: []List{{Order: []Region{0}}}, Spread: spread, Grain: [2]int{16, 32}, TTL: 30, MaxDown: 100,
	}
}

// chosen is which weight each client got: the region of splitHost or the endpoint
// of poolHost with answers 1.
func chosen(t *testing.T, cfg HostConfig, state func(Region, int) EndpointState) []int {
	h := mustHost(t, cfg)
	s := h.NewSnapshot(state, nil)
	got := make([]int, clients)
	for n := range got {
		d := h.Decide(s, nthClient(n), V4, nil)
		if got[n] = int(d.Region); len(cfg.Regions) == 1 {
			got[n] = int(d.Answer.Addrs[0].As4()[3])
		}
	}
	return got
}

// checkShares is a chi-square test that one set of clients in a million fails. They and
// their hashes are the same in every run, and so is what it finds.
func checkShares(t *testing.T, counts []int, weights []uint32) {
	t.Helper()
	n, total, kinds := 0.0, 0.0, 0.0
	for i, w := range weights {
		n += float64(counts[i])
		total += float64(w)
		if w > 0 {
			kinds++
		} else if counts[i] > 0 {
			t.Errorf("weights %v: weight 0 was chosen: %v", weights, counts)
		}
	}
	chi2 := 0.0
	for i, w := range weights {
		if w > 0 {
			want := n * float64(w) / total
			chi2 += (float64(counts[i]) - want) * (float64(counts[i]) - want) / want
		}
	}
	df := kinds - 1
	limit := df * math.Pow(1-2/(9*df)+4.753*math.Sqrt(2/(9*df)), 3) // Wilson-Hilferty, p = 1e-6
	t.Logf("weights %v: counts %v, chi-square %v of at most %v", weights, counts, chi2, limit)
	if chi2 > limit {
		t.Errorf("weights %v: counts %v, chi-square %.1f; want at most %.1f", weights, counts, chi2, limit)
	}
}

func count(chosen []int, kinds int) []int {
	counts := make([]int, kinds)
	for _, i := range chosen {
		counts[i]++
	}
	return counts
}

var weightCases = [][]uint32{{1, 1}, {70, 30}, {1, 0, 1}, {5, 3, 2, 0}, {1000, 1}, {10000, 10000, 10}, {1, 2, 3, 4, 5, 6, 7, 8}}

func TestSharesFollowWeights(t *testing.T) {
	for _, spread := range []Spread{Sticky, Resolver} {
		for _, weights := range weightCases {
			split := splitHost(spread, weights...)
			pool := poolHost(spread, 1, weights...)
			if spread == Resolver { // blocks tell clients apart, not the grain
				checkShares(t, count(chosenAtBlock(t, split, 16), len(weights)), weights)
				continue
			}
			checkShares(t, count(chosen(t, split, allUp), len(weights)), weights)
			checkShares(t, count(chosen(t, pool, allUp), len(weights)), weights)
		}
	}
}

// chosenAtBlock is chosen with clients in blocks of their own.
func chosenAtBlock(t *testing.T, cfg HostConfig, block int) []int {
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, nil)
	got := make([]int, clients)
	for n := range got {
		c := nthClient(n)
		c.Block = block
		got[n] = int(h.Decide(s, c, V4, nil).Region)
	}
	return got
}

// The choice of an endpoint must not depend on the choice of its region.
func TestChoicesAreIndependent(t *testing.T) {
	cfg := splitHost(Sticky, 2, 1)
	cfg.Pools = []*PoolConfig{poolOf(0, 1, 1, 1, 2), poolOf(1, 1, 1, 1, 2)}
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, nil)
	counts := make([]int, 6)
	for n := range clients {
		b := h.Decide(s, nthClient(n), V4, nil).Answer.Addrs[0].As4()
		counts[int(b[2])*3+int(b[3])]++
	}
	checkShares(t, counts, []uint32{2, 2, 4, 1, 1, 2})
}

// down is a state in which the given weight's region or endpoint is down.
func down(which int) func(Region, int) EndpointState {
	return func(r Region, i int) EndpointState {
		if int(r)+i == which {
			return EndpointState{Verdict: Down}
		}
		return EndpointState{}
	}
}

func TestOnlyTheFailedMembersClientsMove(t *testing.T) {
	ten := []uint32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	for name, cfg := range map[string]HostConfig{"regions": splitHost(Sticky, ten...), "endpoints": poolHost(Sticky, 1, ten...)} {
		before, after := chosen(t, cfg, allUp), chosen(t, cfg, down(3))
		moved := 0
		for n := range before {
			if before[n] != after[n] {
				moved++
				if before[n] != 3 {
					t.Fatalf("%s: client %d moved from %d, which is up", name, n, before[n])
				}
			}
			if after[n] == 3 {
				t.Fatalf("%s: client %d got the failed one", name, n)
			}
		}
		checkShares(t, []int{moved, clients - moved}, []uint32{1, 9})
		checkShares(t, count(after, 10), []uint32{1, 1, 1, 0, 1, 1, 1, 1, 1, 1})
	}
}

// A greater weight draws clients to itself and moves nobody between others.
func TestOnlyTheNewShareMoves(t *testing.T) {
	make := map[string]func(...uint32) HostConfig{
		"regions":   func(w ...uint32) HostConfig { return splitHost(Sticky, w...) },
		"endpoints": func(w ...uint32) HostConfig { return poolHost(Sticky, 1, w...) },
	}
	for name, host := range make {
		before, after := chosen(t, host(5, 3, 2), allUp), chosen(t, host(5, 3, 12), allUp)
		moved := 0
		for n := range before {
			if before[n] != after[n] {
				moved++
				if after[n] != 2 {
					t.Fatalf("%s: client %d moved to %d, whose weight stayed", name, n, after[n])
				}
			}
		}
		checkShares(t, []int{moved, clients - moved}, []uint32{4, 6}) // 12/20 - 2/10
	}
}

func TestBalancedIsExactUnderConcurrency(t *testing.T) {
	cfg := splitHost(Balanced, 5, 3, 0, 2)
	cfg.Pools[0] = poolOf(0, 1, 3, 1)
	cfg.Pools[1] = poolOf(1, 2, 1, 1, 2)
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, nil)
	const workers, each = 8, 10 * 4 * 5
	var mu sync.Mutex
	regions := make(map[Region]int)
	members := make(map[netip.Addr]int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := range each {
				d := h.Decide(s, nthClient(n), V4, nil)
				mu.Lock()
				regions[d.Region]++
				for _, a := range d.Answer.Addrs {
					members[a]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	const all = workers * each
	for r, want := range map[Region]int{0: all * 5 / 10, 1: all * 3 / 10, 2: 0, 3: all * 2 / 10} {
		if regions[r] != want {
			t.Errorf("region %d: %d resolutions; want %d", r, regions[r], want)
		}
	}
	eu, us := all*5/10, all*3/10
	for a, want := range map[string]int{"192.0.0.0": eu * 3 / 4, "192.0.0.1": eu / 4, "192.0.1.0": us / 2, "192.0.1.1": us / 2, "192.0.1.2": us} {
		if members[addr(a)] != want {
			t.Errorf("endpoint %s: %d resolutions; want %d", a, members[addr(a)], want)
		}
	}
}

// Interleaved queries for another list, or for AAAA, must not take this list's turns.
func TestBalancedCountsListsAndFamiliesApart(t *testing.T) {
	cfg := splitHost(Balanced, 1, 1)
	cfg.Lists = append(cfg.Lists, cfg.Lists[0])
	for _, p := range cfg.Pools {
		p.Endpoints = append(p.Endpoints, EndpointConfig{addr("2001:db8::1"), 1})
	}
	h := mustHost(t, cfg)
	s := h.NewSnapshot(allUp, nil)
	counts := make([]int, 2)
	for n := range 100 {
		c := nthClient(n)
		counts[h.Decide(s, c, V4, nil).Region]++
		h.Decide(s, c, V6, nil)
		c.List = 1
		h.Decide(s, c, V4, nil)
	}
	if counts[0] != 50 || counts[1] != 50 {
		t.Errorf("regions got %v of 100; want 50 each", counts)
	}
}
