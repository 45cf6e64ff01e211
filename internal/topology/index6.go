package topology

import "math/bits"

// index6 narrows a look-up in two steps: by the first bits, and among the blocks that
// share those by as many more as make a slot for every few of them. Few of the first 16
// bits are in use in IPv6, so an index of one step would leave most blocks to a search.
type index6 struct {
	leads []uint32 // by the first leadBits: the first slot, and in the low moreBits by how many more bits slots are told apart
	slots []uint32 // for each the number of blocks that start below it, and at the end all
}

const (
	leadBits = 12
	moreBits = 5
)

// newIndex6 takes the upper halves of the starts, ascending.
func newIndex6(his []uint64) (x index6) {
	i := 0
	for lead := range uint64(1 << leadBits) {
		n := 0
		for n < len(his)-i && his[i+n]>>(64-leadBits) == lead {
			n++
		}
		more := max(0, bits.Len(uint(n))-4) // 8 to 16 blocks for each slot
		x.leads = append(x.leads, uint32(len(x.slots)<<moreBits|more))
		end := i + n
		for slot := range uint64(1) << more {
			for i < end && his[i] < lead<<(64-leadBits)|slot<<(64-leadBits-more) {
				i++
			}
			x.slots = append(x.slots, uint32(i))
		}
		i = end
	}
	x.slots = append(x.slots, uint32(len(his)))
	return x
}

// narrow gives the range in which an address with these upper bits may have its block,
// which may also start just before it.
func (x *index6) narrow(hi uint64) (from, to int) {
	lead := x.leads[hi>>(64-leadBits)]
	slot := uint64(lead>>moreBits) + hi<<leadBits>>(64-lead&(1<<moreBits-1))
	return int(x.slots[slot]), int(x.slots[slot+1])
}

func (x *index6) bytes() int { return 4 * (len(x.leads) + len(x.slots)) }
