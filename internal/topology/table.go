package topology

import (
	"encoding/binary"
	"net/netip"
	"sort"
)

// cell is what a table holds for a block, from the top: whether it lies in
// special-purpose or embedding space, the list, what decided that, and the
// block's length, 0 to 128: with a cap of 0 one block is all of a family.
type cell uint32

const (
	barrierBit = 1 << 31
	lengthBits = 8
	listShift  = lengthBits + kindBits
)

// maxLists bounds the number of distinct lists, so that one fits a cell.
const maxLists = barrierBit >> listShift

func newCell(list, bits int, decided Kind, barrier bool) cell {
	c := cell(list)<<listShift | cell(decided)<<lengthBits | cell(bits)
	if barrier {
		c |= barrierBit
	}
	return c
}

func (c cell) barrier() bool { return c&barrierBit != 0 }

func (c cell) match() Match {
	return Match{
		List: int(c >> listShift & (maxLists - 1)), Bits: c.bits(), Decided: Kind(c >> lengthBits & kindMask),
	}
}

func (c cell) bits() int { return int(c & (1<<lengthBits - 1)) }

// table4 and table6 are the partition of one family as sorted starts. The
// index narrows a look-up to the blocks that share the first bits; the
// blocks leave no gap, so the last start at or below an address is its block.
type table4 struct {
	index  []uint32
	starts []uint32
	cells  []cell
}

type table6 struct {
	index index6
	his   []uint64
	los   []uint64 // nil when no block is longer than 64 bits
	cells []cell
}

// There is an index when there are enough blocks to pay for it, that of IPv4 of
// 2^indexBits entries.
const (
	indexBits   = 16
	indexBlocks = 1024
)

func newTable4(blocks []block, cellOf func(block) cell) table4 {
	t := table4{starts: make([]uint32, len(blocks)), cells: make([]cell, len(blocks))}
	for i, b := range blocks {
		t.starts[i] = uint32(b.start.hi >> 32)
		t.cells[i] = cellOf(b)
	}
	if len(blocks) >= indexBlocks {
		t.index = newIndex4(t.starts)
	}
	return t
}

func newTable6(blocks []block, cellOf func(block) cell) table6 {
	t := table6{his: make([]uint64, len(blocks)), cells: make([]cell, len(blocks))}
	for i, b := range blocks {
		t.his[i] = b.start.hi
		t.cells[i] = cellOf(b)
		if b.bits > 64 && t.los == nil {
			t.los = make([]uint64, len(blocks))
		}
	}
	if t.los != nil {
		for i, b := range blocks {
			t.los[i] = b.start.lo
		}
	}
	if len(blocks) >= indexBlocks {
		t.index = newIndex6(t.his)
	}
	return t
}

// newIndex4 gives for each leading value v the number of blocks that start
// below v; entry v+1 ends the range in which an address with that value may
// have its block, which may also start before the range.
func newIndex4(starts []uint32) []uint32 {
	index := make([]uint32, 1<<indexBits+1)
	i := 0
	for v := range index {
		for i < len(starts) && int(starts[i]>>(32-indexBits)) < v {
			i++
		}
		index[v] = uint32(i)
	}
	return index
}

func (t *table4) lookup(a netip.Addr) cell {
	b := a.As4()
	v := binary.BigEndian.Uint32(b[:])
	lo, hi := 0, len(t.starts)
	if t.index != nil {
		lead := v >> (32 - indexBits)
		lo, hi = int(t.index[lead]), int(t.index[lead+1])
	}
	for lo < hi { // first start above v
		mid := int(uint(lo+hi) >> 1)
		if t.starts[mid] <= v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return t.cells[lo-1]
}

func (t *table6) lookup(a netip.Addr) cell {
	k := keyOf(a)
	lo, hi := 0, len(t.his)
	if t.index.leads != nil {
		lo, hi = t.index.narrow(k.hi)
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if h := t.his[mid]; h < k.hi || h == k.hi && (t.los == nil || t.los[mid] <= k.lo) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return t.cells[lo-1]
}

func (t *table4) prefix(i int) netip.Prefix {
	return netip.PrefixFrom(key{hi: uint64(t.starts[i]) << 32}.addr(true), t.cells[i].bits())
}

func (t *table6) prefix(i int) netip.Prefix {
	k := key{hi: t.his[i]}
	if t.los != nil {
		k.lo = t.los[i]
	}
	return netip.PrefixFrom(k.addr(false), t.cells[i].bits())
}

func (t *table4) bytes() int { return 4*len(t.index) + 8*len(t.starts) }
func (t *table6) bytes() int { return t.index.bytes() + 12*len(t.his) + 8*len(t.los) }

// sortBlocks puts blocks into address order.
func sortBlocks(b []block) {
	sort.Slice(b, func(i, j int) bool { return b[i].start.less(b[j].start) })
}
