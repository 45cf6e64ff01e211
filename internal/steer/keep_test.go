package steer

import (
	"strings"
	"testing"
)

// failed makes a state from a word for each region: "up", "drained", or when its
// only endpoint failed, as a digit.
func failed(regions ...string) func(Region, int) EndpointState {
	return func(r Region, _ int) EndpointState {
		switch w := regions[r]; w {
		case "up":
			return EndpointState{}
		case "drained":
			return isDrained
		default:
			return EndpointState{Verdict: Down, Since: int64(w[0] - '0')}
		}
	}
}

func TestMaxDown(t *testing.T) {
	tests := []struct {
		name    string
		maxDown float64
		states  string
		want    string // the usable regions
		held    int
	}{
		{"no limit", 100, "1 2 3 4", "", 0},
		{"within the limit", 50, "1 up 2 up", "b d", 0},
		{"one too many: the last to fail stays", 50, "1 3 2 up", "b d", 1},
		{"all but half", 50, "1 4 2 3", "b d", 2},
		{"rounded down", 49.99, "1 up 2 up", "b c d", 1},
		{"exactly a part", 25, "1 up up up", "b c d", 0},
		{"none may go", 0, "1 2 3 up", "a b c d", 3},
		{"ties go by the order written", 50, "1 1 1 1", "a b", 2},
		{"unknown times too", 75, "0 0 0 0", "a", 1},
		{"a drain is no failure", 25, "drained drained 1 up", "d", 0},
		{"a drain is never undone", 0, "drained 1 2 drained", "b c", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := orderHost(Sticky, 50, 1, 1, 1, 1)
			cfg.MaxDown = tt.maxDown
			h := mustHost(t, cfg)
			s := h.NewSnapshot(failed(strings.Fields(tt.states)...), nil)
			var got []string
			for r, name := range cfg.Regions {
				st := s.Region(Region(r), V4)
				if st.Usable {
					got = append(got, name[1:])
				}
				if st.HeldUp && (st.Availability != 1 || st.Healthy != 0) {
					t.Errorf("%s is held with %+v", name, st)
				}
			}
			if strings.Join(got, " ") != tt.want || s.HeldUp() != tt.held || s.Usable(V4) != len(got) {
				t.Errorf("usable %v, held up %d; want %s, %d", got, s.HeldUp(), tt.want, tt.held)
			}
		})
	}
}

// Both families of a region count, come and go together.
func TestMaxDownOfFamilies(t *testing.T) {
	cfg := two(pools("192.0.2.1 2001:db8::1", "198.51.100.1 2001:db8:1::1"))
	cfg.MaxDown = 0
	tests := []struct {
		name   string
		rule   FamilyRule
		down   string
		v4, v6 string
		held   int
	}{
		{"one family is lost", FamiliesSame, "2001:db8::1", "answer eu 192.0.2.1", "answer us 2001:db8:1::1 moved", 0},
		{"both are lost", FamiliesSame, "192.0.2.1 2001:db8::1", "answer eu 192.0.2.1", "answer eu 2001:db8::1", 1},
		{"the only one offered is lost", FamiliesV6, "2001:db8::1", "no_family", "answer eu 2001:db8::1", 1},
		{"one not offered is lost", FamiliesV4, "2001:db8::1", "answer eu 192.0.2.1", "no_family", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg.Families = tt.rule
			h := mustHost(t, cfg)
			words := map[string]EndpointState{}
			for _, a := range strings.Fields(tt.down) {
				words[a] = isDown
			}
			s := h.NewSnapshot(states(&cfg, words), nil)
			for f, want := range []string{tt.v4, tt.v6} {
				if got := outcome(h, h.Decide(s, nthClient(1), Family(f), nil)); got != want {
					t.Errorf("%v: %s; want %s", Family(f), got, want)
				}
			}
			if s.HeldUp() != tt.held {
				t.Errorf("held up %d; want %d", s.HeldUp(), tt.held)
			}
		})
	}
}

// Too few endpoints because of drains is nothing that MaxDown could undo.
func TestMaxDownKeepsMinHealthy(t *testing.T) {
	cfg := orderHost(Sticky, 50, 3, 1)
	cfg.MaxDown, cfg.Pools[0].MinHealthy = 0, 2
	h := mustHost(t, cfg)
	for states, want := range map[string]int{"udd": 1, "uod": 1, "ood": 0, "uoo": 0} {
		if s := h.NewSnapshot(words(states, "u"), nil); s.HeldUp() != want || s.Region(0, V4).Usable != (want == 1) {
			t.Errorf("%s: held up %d; want %d", states, s.HeldUp(), want)
		}
	}
}

func TestLists(t *testing.T) {
	cfg := orderHost(Sticky, 50, 1, 1, 1)
	cfg.Lists = []List{
		{Order: []Region{0, 1, 2}},
		{Split: []Weighted{{0, 1}, {1, 0}}, Order: []Region{0, 1}},
		{Split: []Weighted{{1, 1}}, Order: []Region{1}},
		{Order: []Region{1}, Refuse: true},
		{Order: []Region{2}},
	}
	h := mustHost(t, cfg)
	for states, want := range map[string]int{"u u u": 2, "d u u": 3, "u d u": 2, "d d u": 2, "d d d": 0, "u d d": 2} {
		s := h.NewSnapshot(words(strings.Fields(states)...), nil)
		without := map[string]int{"u d u": 1, "d d u": 2, "d d d": 4, "u d d": 2}[states]
		if none, one := h.Lists(s, V4); one != want || none != without {
			t.Errorf("%s: %d lists without a candidate and %d with one; want %d and %d", states, none, one, without, want)
		}
		if none, one := h.Lists(s, V6); none+one != 0 {
			t.Errorf("%s: %d and %d lists of a family not offered", states, none, one)
		}
	}
}

// The trace names who spilled, and why one serves though it declined.
func TestTraceOfSpill(t *testing.T) {
	cfg := orderHost(Sticky, 50, 4, 4, 4, 1)
	cfg.LastResort = LastResort{Kind: Regions, Regions: []Region{3}}
	tests := []struct {
		name   string
		states []string
		want   map[string]bool // all that ever come
	}{
		{"two spill", []string{"uddd", "uuff", "uuuu", "d"}, map[string]bool{
			"ra:chosen rb:next rc:next rd:passed(down)":                       true,
			"ra:chosen rb:passed(spilled) rc:next rd:passed(down)":            true,
			"ra:passed(spilled) rb:chosen rc:next rd:passed(down)":            true,
			"ra:passed(spilled) rb:passed(spilled) rc:chosen rd:passed(down)": true,
		}},
		{"nobody takes a part", []string{"dddd", "uddd", "ffff", "o"}, map[string]bool{
			"ra:passed(down) rb:chosen rc:next rd:passed(drained)":                   true,
			"ra:passed(down) rb:chosen rc:passed(spilled) rd:passed(drained)":        true,
			"ra:passed(down) rb:passed(spilled) rc:chosen rd:passed(drained)":        true,
			"ra:passed(down) rb:chosen(spilled) rc:next(spilled) rd:passed(drained)": true,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := mustHost(t, cfg)
			s := h.NewSnapshot(words(tt.states...), nil)
			seen := map[string]bool{}
			var tr Trace
			for n := range 500 {
				h.Decide(s, nthClient(n), V4, &tr)
				seen[why(&tr)] = true
			}
			for w := range seen {
				if !tt.want[w] {
					t.Errorf("unexpected %s", w)
				}
			}
			if len(seen) != len(tt.want) {
				t.Errorf("%d kinds of traces; want %d", len(seen), len(tt.want))
			}
			if c := tr.Candidates[1]; c.Availability != map[byte]float64{'u': 0.75, 'd': 0.5}[tt.states[1][1]] || c.Endpoints[0].Verdict != "up" {
				t.Errorf("candidate %+v", c)
			}
		})
	}
	cfg.MaxDown = 50
	tr := traceOf(t, cfg, words("dddd", "dddd", "uuuu", "d"), nthClient(1), V4)
	if got, want := why(tr), "ra:chosen(held_up) rb:passed(down) rc:next rd:passed(down)"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
