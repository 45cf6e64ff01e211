package capacity

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"
)

// reader makes values of any kind of bytes; after the end it gives zeros.
type reader []byte

func (r *reader) byte() byte {
	if len(*r) == 0 {
		return 0
	}
	b := (*r)[0]
	*r = (*r)[1:]
	return b
}

func (r *reader) float() float64 {
	switch b := r.byte(); b % 16 {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(int(b) - 64)
	case 2:
		return -float64(b)
	case 3:
		var raw [8]byte
		for i := range raw {
			raw[i] = r.byte()
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(raw[:]))
	case 4:
		return 0
	case 5:
		return 1
	case 6:
		return 1e15
	default:
		return float64(b) * float64(r.byte()) / 1000
	}
}

// input is any input at all.
func (r *reader) input(now time.Time) *Input {
	in := &Input{Now: now, TTL: time.Duration(r.float()), Delay: time.Duration(r.float())}
	if r.byte()%4 > 0 {
		in.TTL, in.Delay = time.Minute, 5*time.Second
	}
	n := int(r.byte())
	if n < 255 {
		n %= 9
	}
	for range min(n, 254) {
		flags := r.byte()
		in.Sinks = append(in.Sinks, Sink{
			Name: string(rune('a' + len(in.Sinks)%200)), Capacity: r.float(), Target: r.float(), Growth: r.float(),
			Health: r.float(), Dial: r.float(), Drained: flags&1 > 0, Soak: flags&2 > 0, Full: flags&4 > 0,
			Signal: Signal{Value: r.float(), Age: time.Duration(r.byte()) * time.Second, Period: time.Duration(r.float()), Valid: flags&8 == 0},
		})
	}
	for range r.byte() % 6 {
		g := Group{Weight: r.float()}
		for range r.byte() % 8 {
			g.Sinks = append(g.Sinks, int(int8(r.byte()%12))-1)
			if r.byte()%2 == 0 {
				g.Cost = append(g.Cost, r.float())
			}
		}
		in.Groups = append(in.Groups, g)
	}
	return in
}

// check holds what is true of every output.
func check(t *testing.T, in *Input, s *State, out *Output) {
	t.Helper()
	in01 := func(what string, v float64) {
		if !(v >= 0 && v <= 1) {
			t.Fatalf("%s: %v", what, v)
		}
	}
	finite := func(what string, v float64) {
		if !(v >= 0 && v <= math.MaxFloat64) {
			t.Fatalf("%s: %v", what, v)
		}
	}
	if len(out.Admission) != len(in.Groups) || len(out.Sinks) != len(in.Sinks) {
		t.Fatal("sizes differ")
	}
	for g, row := range out.Admission {
		if len(row) != len(in.Groups[g].Sinks) {
			t.Fatalf("group %d: %d admissions", g, len(row))
		}
		last := -1.0
		seen := make(map[int]bool)
		for k, a := range row {
			in01("admission", a)
			i := in.Groups[g].Sinks[k]
			if i >= 0 && i < len(in.Sinks) && !seen[i] && in.Sinks[i].open() > 0 {
				last = a
			}
			seen[i] = true
		}
		if last >= 0 && last != 1 {
			t.Fatalf("group %d: its last open candidate takes %v", g, last)
		}
	}
	in01("moved", out.Moved)
	in01("left", out.Left)
	finite("deficit", out.Deficit)
	finite("demand", out.Demand)
	for _, o := range out.Sinks {
		in01("trim", o.Trim)
		in01("fade", o.Fade)
		for _, v := range []float64{o.Demand, o.Load, o.Wanted, o.Expected, o.Utilisation, o.Amplitude} {
			finite("a sink's figure", v)
		}
		if math.IsNaN(o.Limit) || o.Limit < 0 {
			t.Fatalf("limit %v", o.Limit)
		}
	}
	if len(s.History) > maxMoments {
		t.Fatalf("%d moments", len(s.History))
	}
	if _, err := json.Marshal(s); err != nil {
		t.Fatal(err)
	}
}

func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x10\x10\x01\x05aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x03zzzzzzzzzzzzzzzzzzzzz"))
	f.Add([]byte("\x10\x10\x01\xff00000000000000000000000000000000"))
	f.Add([]byte("000000000000000000000007000AA00010101000000000000000000000000C0")) // a capacity of 2e-322
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader(data)
		var s *State
		now := t0
		for range 4 {
			in := r.input(now)
			var out *Output
			s, out = Step(s, in)
			check(t, in, s, out)
			now = now.Add(time.Duration(int8(r.byte())) * 3 * time.Second)
		}
	})
}

// FuzzState steps from damaged copies of a state.
func FuzzState(f *testing.F) {
	in := input([]float64{48, 36, 36}, []float64{60, 20, 20})
	s, _ := Step(nil, in)
	text, _ := json.Marshal(s)
	f.Add(text)
	f.Add([]byte(`{"names":["A","A"],"sinks":[{"demand":-1,"trim":1e300}],"history":[{"cells":[{"f":9,"t":-1,"p":7}],"demand":[1e308]}],"rows":{"A\nB\nC\n":[9,-9]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		next, out := Step(&s, in)
		check(t, in, next, out)
	})
}
