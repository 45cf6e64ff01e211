package latency

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// smallMaps are maps inside 10.0.0.0/24, so that a model can look at every address.
func smallMaps(seed uint64) (old, new *Map) {
	r := seeded(seed)
	side := func(regions int) (entries []Entry) {
		for at := 0; at < 256; {
			bits := 24 + r.IntN(9)
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(at)}), bits)
			if p != p.Masked() {
				continue
			}
			if r.IntN(4) > 0 {
				entries = append(entries, randomEntry(r, p, regions))
			}
			at += 1 << (32 - bits)
		}
		return entries
	}
	old = &Map{Built: now, Regions: []string{"eu", "us", "ap"}}
	new = &Map{Built: now.Add(1), Regions: []string{"ap", "eu"}}
	old.Clients, old.Resolvers = side(3), side(3)
	new.Clients, new.Resolvers = side(2), side(2)
	return old, new
}

// TestOverlay: pieces are in order, as large as can be, and held by what holds them.
func TestOverlay(t *testing.T) {
	for seed := range uint64(300) {
		old, new := smallMaps(seed)
		held := 0
		var previous netip.Prefix
		overlay(old.Clients, new.Clients, func(p netip.Prefix, a, b *Entry) {
			if previous.IsValid() && !last(previous).Less(p.Addr()) {
				t.Fatalf("%s after %s", p, previous)
			}
			previous = p
			if a == nil && b == nil || a != nil && b != nil && a.Prefix != p && b.Prefix != p && !a.Prefix.Overlaps(b.Prefix) {
				t.Fatalf("%s: held by %v and %v", p, a, b)
			}
			for addr := p.Addr(); p.Contains(addr); addr = addr.Next() {
				held++
				checkHeld(t, old, addr, a)
				checkHeld(t, new, addr, b)
			}
		})
		for i := range 256 {
			addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			_, a := old.Lookup(addr)
			_, b := new.Lookup(addr)
			if a || b {
				held--
			}
		}
		if held != 0 {
			t.Fatalf("%d addresses too many", held)
		}
	}
}

func checkHeld(t *testing.T, m *Map, addr netip.Addr, e *Entry) {
	t.Helper()
	want, ok := m.Lookup(addr)
	if ok != (e != nil) || ok && !reflect.DeepEqual(want, *e) {
		t.Fatalf("%s: %v, want %v", addr, e, want)
	}
}

// TestCompareModel compares with the same counted address by address.
func TestCompareModel(t *testing.T) {
	for seed := range uint64(300) {
		old, new := smallMaps(seed)
		var given func(netip.Prefix) float64
		if seed%2 == 0 {
			given = func(p netip.Prefix) float64 { return float64(int(1) << (32 - p.Bits())) }
		}
		got := Compare(old, new, CompareOptions{Demand: given})
		for i, c := range []SideChange{got.Clients, got.Resolvers} {
			want := model(old.Regions, new.Regions, old.sides()[i], new.sides()[i], given != nil)
			for _, pair := range [][2]float64{{c.Moved, want.Moved}, {c.Entered, want.Entered}, {c.Left, want.Left}, {c.P75, want.P75}, {c.Predicted, want.Predicted}} {
				if math.Abs(pair[0]-pair[1]) > 1e-6*(1+math.Abs(pair[1])) {
					t.Fatalf("seed %d side %d: got %+v\nwant %+v", seed, i, c, want)
				}
			}
			before := c.Left + c.Moved
			for _, s := range c.Shares {
				before += min(s.Before, s.After) - s.Before // what stayed at most
			}
			if before < -1e-9 && c.Moved == 0 && c.Left == 0 {
				t.Fatalf("seed %d: shares %+v without moves", seed, c.Shares)
			}
		}
	}
}

func model(oldRegions, newRegions []string, old, new []Entry, given bool) (s SideChange) {
	total, measured := 0.0, 0.0
	for i := range 256 {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		a, inOld := lookup(old, addr)
		b, inNew := lookup(new, addr)
		e := b
		if !inNew || inOld && b.samples() == 0 {
			e = a
		}
		d := float64(e.samples()) / float64(int(1)<<(32-max(e.Prefix.Bits(), 0)))
		if given {
			d = 1
		}
		switch {
		case !inOld && !inNew:
			continue
		case !inOld:
			s.Entered += d
		case !inNew:
			s.Left += d
		case oldRegions[a.Order[0]] != newRegions[b.Order[0]]:
			s.Moved += d
			for j, r := range b.Order {
				if b.Cells != nil && newRegions[r] == oldRegions[a.Order[0]] && b.Cells[j].Samples > 0 && b.Cells[0].Samples > 0 {
					s.P75 += d * float64(b.Cells[0].P75-b.Cells[j].P75)
					measured += d
				}
			}
		}
		total += d
	}
	if measured > 0 {
		s.P75 /= measured
	}
	if total > 0 {
		s.Moved, s.Entered, s.Left, s.Predicted = s.Moved/total, s.Entered/total, s.Left/total, measured/total
	}
	return s
}

func TestCompareSmall(t *testing.T) {
	old := parse(t, small)
	next := parse(t, strings.NewReplacer("03:00:00", "04:00:00", "us:20/500 eu:31.25/600", "eu:18/700 us:22/300", "2001:db8::/32 ap eu\n", "203.0.113.0/24 ap:5/1000\n").Replace(small))
	c := Compare(old, next, CompareOptions{Top: 5, Budget: 0.02, Regions: []string{"eu", "us"}})
	if c.By != "samples" || c.Clients.Moved != 1000.0/9900 || c.Clients.Entered != 1000.0/9900 || c.Clients.Left != 0 || c.Clients.P75 != -4 {
		t.Errorf("%+v", c.Clients)
	}
	var moves []string
	for _, m := range c.Clients.Top {
		moves = append(moves, fmt.Sprintf("%s %s>%s", m.Prefix, m.From, m.To))
	}
	if got := strings.Join(moves, ", "); got != "198.51.100.0/24 us>eu, 203.0.113.0/24 >ap, 2001:db8::/32 ap>" {
		t.Errorf("top: %s", got)
	}
	if got := fmt.Sprint(c.Clients.Shares); got != "[{ap 0 0.10101010101010101} {eu 0.797979797979798 0.898989898989899} {us 0.10101010101010101 0}]" {
		t.Errorf("shares: %s", got)
	}
	want := []string{"20.2 % of the demand of clients changes its region (10.1 % moves, 10.1 % enters the map, 0.0 % leaves it): more than 2.0 %", "not known: ap"}
	if len(c.Refusals) != 2 || c.Refusals[0] != want[0] || !strings.Contains(c.Refusals[1], want[1]) {
		t.Errorf("refusals: %q", c.Refusals)
	}
	if c := Compare(old, old, CompareOptions{Budget: 1e-9, Top: 9}); len(c.Refusals) != 0 || c.Clients.changed() != 0 || len(c.Clients.Top) != 0 {
		t.Errorf("with itself: %+v", c)
	}
}

// TestCompareWhole holds that parts are of all that the new map was made from, if it says so.
func TestCompareWhole(t *testing.T) {
	old := parse(t, small)
	next := parse(t, strings.NewReplacer("03:00:00", "04:00:00", "us:20/500 eu:31.25/600", "eu:18/700 us:22/300", "regions", "demand 100000 0\nregions").Replace(small))
	c := Compare(old, next, CompareOptions{Top: 5, Budget: 0.02})
	if c.By != "samples" || c.Clients.Moved != 0.01 || c.Clients.Top[0].Demand != 0.01 || len(c.Refusals) != 0 {
		t.Errorf("%+v", c)
	}
	next.Demand[0] = 1 // less than the entries say: they count
	if c := Compare(old, next, CompareOptions{}); c.Clients.Moved != 1000.0/8900 {
		t.Errorf("%+v", c.Clients)
	}
}

func TestCompareRefuses(t *testing.T) {
	old := parse(t, small)
	rolled := *old
	rolled.Built, rolled.Rollback = hour(-30), &Rollback{At: hour(2), Why: "x", By: "y"}
	fewer := *old
	fewer.Built, fewer.Clients, fewer.Resolvers = hour(3), old.Clients[:1], nil
	merged := *old
	merged.Built, merged.Clients = hour(3), []Entry{{Prefix: netip.MustParsePrefix("192.0.0.0/3"), Order: []uint8{0}}}
	for name, c := range map[string]struct {
		old, new *Map
		want     []string
	}{
		"merged":              {old, &merged, nil},
		"older":               {versionAt(t, hour(2)), versionAt(t, hour(1)), []string{"built 2026-11-30T05:00:00Z, which is not after the map in place, built 2026-11-30T06:00:00Z: to go back"}},
		"newer":               {versionAt(t, hour(1)), versionAt(t, hour(2)), nil},
		"rolled back":         {versionAt(t, hour(1)), &rolled, nil},
		"older than rollback": {&rolled, versionAt(t, hour(1)), []string{"put back by a rollback 2026-11-30T06:00:00Z: only a map built after that"}},
		"half is lost":        {old, &fewer, []string{"1 entries of clients where the old map has 3, of which it holds only 1, merged or not", "0 entries of resolvers where the old map has 1"}},
	} {
		got := Compare(c.old, c.new, CompareOptions{}).Refusals
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], c.want[i])
			}
		}
	}
}
