package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// benchInput is 200 hosts of 60 candidate lists each, over 30 regions, a third of
// which spill. With shared lists all hosts have the same ones.
func benchInput(shared bool) *Input {
	rng := rand.New(rand.NewPCG(1, 1))
	in := &Input{Now: t0, TTL: time.Minute}
	for r := range 30 {
		in.Sinks = append(in.Sinks, Sink{
			Name: fmt.Sprint("region-", r), Capacity: 100, Health: 1, Dial: 1,
			Signal: Signal{Value: 40 + 80*rng.Float64(), Valid: true},
		})
	}
	var lists [][]int
	for range 200 {
		for l := range 60 {
			if l >= len(lists) || !shared {
				lists = append(lists, rng.Perm(30))
			}
			in.Groups = append(in.Groups, Group{Weight: rng.Float64(), Sinks: lists[len(lists)-1]})
			if shared {
				in.Groups[len(in.Groups)-1].Sinks = lists[l]
			}
		}
	}
	return in
}

func BenchmarkStep(b *testing.B) {
	for _, shared := range []bool{true, false} {
		b.Run(fmt.Sprintf("hosts=200/lists=60/regions=30/shared=%v", shared), func(b *testing.B) {
			in := benchInput(shared)
			s, _ := Step(nil, in)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				in.Now = t0.Add(time.Duration(n) * 15 * time.Second)
				for r := range in.Sinks {
					in.Sinks[r].Signal.Value *= 1 + 0.01*float64((n+r)%3-1)
				}
				s, _ = Step(s, in)
			}
		})
	}
}
