package topology

import (
	"math/rand/v2"
	"testing"
)

// TestDigestsStay holds the digests of inputs without latency maps and marks:
// instances of different versions that have the same topology must agree.
func TestDigestsStay(t *testing.T) {
	if got := mustCompile(t, fixture()).Digest(); got != 0xecb52c05a5ef8742 {
		t.Errorf("the fixture has digest %#x", got)
	}
	for seed, want := range []uint64{
		0xd4c705f454423542, 0xf79802fc82fa91c, 0xe8bfe7ebace95333, 0xcc1db9928affb9df, 0xd6e50bf2ff543805, 0xdf01ac9cd8ccd175,
		0x1684b924e78cba58, 0xccc5f7af3f257005, 0xf0405d61d05c07db, 0xce136fa6828defc4, 0xffff68244a0000c9, 0xd73fbdfefc60e9ae,
	} {
		in := world(rand.New(rand.NewPCG(uint64(seed), 77)))
		if seed%2 == 0 {
			in.Max4 = 10
		}
		if got := mustCompile(t, in).Digest(); got != want {
			t.Errorf("world %d has digest %#x", seed, got)
		}
		// What says nothing changes nothing.
		in.Clients, in.Resolvers = &Measured{Networks: networks(nil, nil, 0)}, &Measured{Networks: networks(nil, nil, 0)}
		in.Marks = []Mark{{Name: "nobody", Match: [][]Alt{{{Kind: ASN, ASNs: []uint32{4_000_000_000}}}}}}
		if got := mustCompile(t, in).Digest(); got != want {
			t.Errorf("world %d with empty maps has digest %#x", seed, got)
		}
	}
}
