package target

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestStates compares whole histories with a model that remembers, of each
// family, every round and looks back.
func TestStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pool := [2][]netip.Addr{addrs("192.0.2.", 1, 4), addrs("2001:db8::", 1, 4)}
	random := func(family int) finding {
		switch rng.IntN(3) {
		case 0:
			var some []netip.Addr
			for _, a := range pool[family] {
				if rng.IntN(2) == 0 {
					some = append(some, a)
				}
			}
			if some != nil {
				return finding{addrs: some, ttl: time.Duration(5+rng.IntN(600)) * time.Second}
			}
			fallthrough
		case 1:
			return finding{none: true, ttl: time.Duration(5+rng.IntN(56)) * time.Second}
		}
		return finding{err: errors.New("broken")}
	}
	type past struct {
		at    time.Time
		found [2]finding
	}
	kept, dropped := 0, 0
	for range 300 {
		state, now := &State{}, noon
		var history []past
		for range 30 {
			p := past{now, [2]finding{random(0), random(1)}}
			history = append(history, p)
			state = state.after(p.found[0], p.found[1], now)
			later := now.Add(time.Duration(rng.IntN(7200)) * time.Second)
			keep := time.Duration(rng.IntN(7200)) * time.Second
			var want []netip.Addr
			failing := false
			for family := range 2 {
				believed := func(p past) bool {
					f, other := p.found[family], p.found[1-family]
					return f.addrs != nil || f.none && other.addrs != nil
				}
				i := len(history) - 1
				for i >= 0 && !believed(history[i]) {
					i--
				}
				fails := i < len(history)-1
				failing = failing || fails
				if i < 0 {
					continue
				}
				f := history[i].found[family]
				age := later.Sub(history[i].at)
				switch {
				case !fails || age < keep || age < f.ttl:
					want = append(want, f.addrs...)
					if fails {
						kept++
					}
				case f.addrs != nil:
					dropped++
				}
			}
			if got := state.Addresses(later, keep); !slices.Equal(got, want) {
				t.Fatalf("%v after %v with keep %v: got %v, want %v", later.Sub(now), history, keep, got, want)
			}
			if (state.Failures > 0) != failing {
				t.Fatalf("%d failures, failing %v", state.Failures, failing)
			}
			compareExpiry(t, state, later, keep)
			now = now.Add(time.Duration(1+rng.IntN(900)) * time.Second)
		}
	}
	t.Logf("%d kept, %d dropped", kept, dropped)
	if kept < 100 || dropped < 100 {
		t.Errorf("%d kept, %d dropped: nothing is tested", kept, dropped)
	}
}

// compareExpiry holds that Expires is when Addresses change next.
func compareExpiry(t *testing.T, s *State, now time.Time, keep time.Duration) {
	t.Helper()
	have := s.Addresses(now, keep)
	at, ok := s.Expires(now, keep)
	if !ok {
		if got := s.Addresses(now.Add(1000*time.Hour), keep); !slices.Equal(got, have) {
			t.Fatalf("%v become %v", have, got)
		}
		return
	}
	if got := s.Addresses(at.Add(-1), keep); !slices.Equal(got, have) {
		t.Fatalf("%v become %v too early", have, got)
	}
	if got := s.Addresses(at, keep); slices.Equal(got, have) {
		t.Fatalf("%v don't change", have)
	}
}

func TestErrors(t *testing.T) {
	good := finding{addrs: addrs("192.0.2.", 1, 1), ttl: time.Minute}
	partly := finding{addrs: good.addrs, ttl: time.Minute, err: errors.New("some left out")}
	none, bad := finding{none: true, ttl: time.Minute}, finding{err: errors.New("broken")}
	for i, tc := range []struct {
		v4, v6   finding
		failures int
		want     string
	}{
		{good, good, 0, "<nil>"},
		{good, none, 0, "<nil>"},
		{partly, none, 0, "type A: some left out"},
		{good, bad, 1, "type AAAA: broken"},
		{none, bad, 1, "type AAAA: broken"},
		{bad, bad, 1, "type A: broken; type AAAA: broken"},
		{none, none, 1, errNothing.Error()},
	} {
		s := (&State{}).after(tc.v4, tc.v6, noon)
		if fmt.Sprint(s.Err) != tc.want || s.Failures != tc.failures || !s.Asked.Equal(noon) {
			t.Errorf("%d: %v, %d failures", i, s.Err, s.Failures)
		}
	}
}

func TestWaits(t *testing.T) {
	of := func(seconds int) finding {
		return finding{addrs: addrs("192.0.2.", 1, 1), ttl: time.Duration(seconds) * time.Second}
	}
	none := func(seconds int) finding { return finding{none: true, ttl: time.Duration(seconds) * time.Second} }
	bad := finding{err: errors.New("broken")}
	for i, tc := range []struct {
		v4, v6   finding
		failures int // before
		want     time.Duration
	}{
		{of(300), of(60), 0, 60 * time.Second},
		{of(300), none(30), 0, 30 * time.Second},
		{of(3600), of(3600), 7, time.Hour},
		{of(300), bad, 0, 5 * time.Second},
		{of(8), bad, 9, 8 * time.Second},
		{bad, bad, 0, 5 * time.Second},
		{bad, bad, 1, 10 * time.Second},
		{bad, none(5), 2, 20 * time.Second},
		{bad, bad, 3, 40 * time.Second},
		{none(5), none(5), 4, time.Minute},
		{bad, bad, 1 << 40, time.Minute},
	} {
		s := (&State{Failures: tc.failures}).after(tc.v4, tc.v6, noon)
		if got := s.wait(tc.v4, tc.v6); got != tc.want {
			t.Errorf("%d: %v, want %v", i, got, tc.want)
		}
	}
}
