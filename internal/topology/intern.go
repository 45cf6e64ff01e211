package topology

import (
	"encoding/binary"
	"slices"
)

// interner gives equal values one small number, in the order first seen.
type interner[T comparable] struct {
	ids    map[T]uint32
	values []T
}

func newInterner[T comparable]() *interner[T] {
	return &interner[T]{ids: make(map[T]uint32)}
}

func (n *interner[T]) id(v T) uint32 {
	if id, ok := n.ids[v]; ok {
		return id
	}
	id := uint32(len(n.values))
	n.ids[v] = id
	n.values = append(n.values, v)
	return id
}

// final is the value of a block of the finished partition. The block holds its
// number, with a kind.
type final struct {
	list    uint32
	barrier uint32 // number of the special block it lies in, 0 outside
}

// numberSets interns small sets of numbers; 0 is the empty one.
type numberSets struct {
	ids    map[string]uint32
	values [][]uint32
}

func newNumberSets() *numberSets {
	return &numberSets{ids: map[string]uint32{"": 0}, values: [][]uint32{nil}}
}

// id interns a set given in ascending order; equal numbers may repeat.
func (s *numberSets) id(set []uint32) uint32 {
	set = slices.Compact(set)
	var b []byte
	for _, n := range set {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	if id, ok := s.ids[string(b)]; ok {
		return id
	}
	id := uint32(len(s.values))
	s.ids[string(b)] = id
	s.values = append(s.values, set)
	return id
}

func (s *numberSets) empty(id uint32) bool { return id == 0 }

func (s *numberSets) has(id, n uint32) bool {
	_, found := slices.BinarySearch(s.values[id], n)
	return found
}
