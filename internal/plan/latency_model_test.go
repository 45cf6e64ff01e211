package plan_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// measuredEntry is an entry of a random map.
type measuredEntry struct {
	prefix  netip.Prefix
	regions []string
}

// randomEntries makes entries that don't overlap, around what the fixtures know.
func randomEntries(r *rand.Rand, regions []string) (entries []measuredEntry) {
	w := &writer{Rand: r, regions: regions}
	for range 1 + r.IntN(30) {
		subnet, transport := randomClient(r)
		p := netip.PrefixFrom(transport, r.IntN(transport.BitLen()+1)).Masked()
		if subnet.IsValid() && r.IntN(2) == 0 {
			p = subnet.Masked()
		}
		embedded := p.Addr().Is6() && (p.Addr().Is4In6() || p.Bits() >= 96 && p.Addr().As16()[2] == 0)
		overlaps := slices.ContainsFunc(entries, func(e measuredEntry) bool { return e.prefix.Overlaps(p) })
		if !embedded && !overlaps {
			entries = append(entries, measuredEntry{p, w.some(regions)})
		}
	}
	return entries
}

func entriesText(entries []measuredEntry) string {
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&text, e.prefix, strings.Join(e.regions, " "))
	}
	return text.String()
}

// holding is the entry that holds an address; nil: none does.
func holding(entries []measuredEntry, a netip.Addr) *measuredEntry {
	i := slices.IndexFunc(entries, func(e measuredEntry) bool { return e.prefix.Contains(a) })
	if i < 0 {
		return nil
	}
	return &entries[i]
}

// reordered is what an entry makes of a list; it says no if nothing.
func reordered(l plan.CandidateList, e *measuredEntry) (plan.CandidateList, bool) {
	if e == nil || l.Refuse || len(l.Split) > 0 {
		return l, false
	}
	var first, rest []string
	for _, r := range e.regions {
		if slices.Contains(l.Order, r) && len(first) < 3 { // depth
			first = append(first, r)
		}
	}
	for _, r := range l.Order {
		if !slices.Contains(first, r) {
			rest = append(rest, r)
		}
	}
	if first == nil {
		return l, false
	}
	return plan.CandidateList{Order: append(first, rest...)}, true
}

// TestLatencyModel compares random blocks and maps with the same without the map, put
// in order by hand; and holds that every address of a block has the block's list.
func TestLatencyModel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	decided := make(map[string]int)
	for valid, tries := 0, 0; valid < 50; tries++ {
		if tries > 20000 {
			t.Fatal("too few blocks are valid")
		}
		text := randomBlock(r)
		b, err := parse("example.com", text)
		if err != nil {
			continue
		}
		without, err := plan.Build(b, plan.Options{Root: fixtures, Now: mapDay})
		if err != nil {
			continue
		}
		valid++
		var regions []string
		for _, region := range b.Regions {
			regions = append(regions, region.Name)
		}
		clients, resolvers := randomEntries(r, regions), randomEntries(r, regions)
		file := put(t, t.TempDir(), "map.txt", mapText(entriesText(clients), entriesText(resolvers)))
		p := mustBuildAt(t, fixtures, text+"\nlatency "+filepath.ToSlash(file), mapDay)
		for i, h := range p.Hosts {
			for range 40 {
				subnet, transport := randomClient(r)
				checkScope(t, r, h, subnet, transport)
				checkModel(t, p, without, i, transport, resolvers, decided)
			}
		}
		if t.Failed() {
			t.Fatalf("%s\nclients\n%sresolvers\n%s", text, entriesText(clients), entriesText(resolvers))
		}
	}
	t.Log(decided)
	for _, why := range []string{"", "prefix_rule", "refused", "special_space", "split", "not_listed", "no entry"} {
		if decided[why] == 0 {
			t.Errorf("no client for which the map is ignored as %q: %v", why, decided)
		}
	}
}

// checkScope: another client of the same block gets the same list.
func checkScope(t *testing.T, r *rand.Rand, h *plan.Host, subnet netip.Prefix, transport netip.Addr) {
	t.Helper()
	c := h.Locate(subnet, transport)
	bytes := c.Addr.AsSlice()
	for i := range bytes {
		if known := c.Block - 8*i; known < 8 {
			bytes[i] ^= byte(r.Uint32()) & (0xff >> max(0, known))
		}
	}
	y, _ := netip.AddrFromSlice(bytes)
	other := netip.PrefixFrom(y, c.Block+r.IntN(y.BitLen()-c.Block+1))
	if c.Source != steer.ECS {
		other, transport = netip.Prefix{}, y
	}
	switch d := h.Locate(other, transport); {
	case c.Fixed || d.Fixed || d.Source != c.Source || c.ScopeBase > 0: // special-purpose or embedding space: its scope has rules of its own
	case d.Addr.Is4() != c.Addr.Is4():
	case d.List != c.List || d.Block != c.Block:
		t.Errorf("%s in %s/%d has list %d and block %d, want %d", other, c.Addr, c.Block, d.List, d.Block, c.List)
	}
}

// checkModel compares what a transport address gets, and the explanation.
func checkModel(t *testing.T, p, without *plan.Plan, i int, transport netip.Addr, entries []measuredEntry, decided map[string]int) {
	t.Helper()
	h, h0 := p.Hosts[i], without.Hosts[i]
	e := p.Explain(h, snapshots(p)[i], nil, netip.Prefix{}, transport)
	e0 := without.Explain(h0, snapshots(without)[i], nil, netip.Prefix{}, transport)
	entry := holding(entries, e.Client.Prefix.Addr())
	byPrefix := e0.List.By == "rule" && strings.HasPrefix(e0.List.Rule.Match, "prefix ")
	want, does := reordered(e0.List.CandidateList, entry)
	if byPrefix || e0.Facts.Special {
		want, does = e0.List.CandidateList, false
	}
	if fmt.Sprint(e.List.CandidateList) != fmt.Sprint(want) || does != (e.List.By == "latency") {
		t.Errorf("%s gets %v by %s, want %v (%t)", transport, e.List.CandidateList, e.List.By, want, does)
	}
	w := e.List.Latency
	switch {
	case w == nil || w.Side != "resolver" || (entry != nil) != w.Entry.IsValid():
		t.Errorf("%s: explained by %+v, want %v", transport, w, entry)
		return
	case entry == nil:
		decided["no entry"]++
		return
	}
	decided[w.Ignored]++
	var measured []string
	for _, m := range w.Measured {
		measured = append(measured, m.Region)
	}
	if w.Entry != entry.prefix || !slices.Equal(measured, entry.regions) || (w.Ignored == "") != does || (w.Without != nil) != does {
		t.Errorf("%s: explained by %+v, want %v", transport, w, entry)
	}
	if does && w.Without != nil && (fmt.Sprint(*w.Without) != fmt.Sprint(e0.List.CandidateList) || w.By != e0.List.By) {
		t.Errorf("%s: without the map %v by %s, want %v by %s", transport, w.Without, w.By, e0.List.CandidateList, e0.List.By)
	}
}
