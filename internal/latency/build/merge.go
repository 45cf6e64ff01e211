package build

import "cmp"

// source gives items in order. next is false at the end, and after an error.
type source[T any] interface {
	next(*T) bool
	fault() error
}

// sliceSource gives the items of a slice.
type sliceSource[T any] struct{ items []T }

func (s *sliceSource[T]) next(out *T) bool {
	if len(s.items) == 0 {
		return false
	}
	*out, s.items = s.items[0], s.items[1:]
	return true
}

func (s *sliceSource[T]) fault() error { return nil }

// bufferSource gives the cells of a sorted buffer. The points of a cell are valid
// until the next one.
type bufferSource struct {
	buffer *cellBuffer
	i      int
	err    error
}

func (s *bufferSource) next(out *cell) bool {
	if s.i == len(s.buffer.refs) || s.err != nil {
		return false
	}
	_, s.err = out.decode(s.buffer.code[s.buffer.refs[s.i].offset:])
	s.i++
	return s.err == nil
}

func (s *bufferSource) fault() error { return s.err }

// merger makes one source of many, by a heap of their first items.
type merger[T any] struct {
	compare func(*T, *T) int
	heads   []head[T]
	last    bool // the first head has been given out
	err     error
}

type head[T any] struct {
	item *T
	from source[T]
}

func newMerger[T any](compare func(*T, *T) int, from ...source[T]) *merger[T] {
	m := &merger[T]{compare: compare}
	for _, s := range from {
		h := head[T]{new(T), s}
		if s.next(h.item) {
			m.heads = append(m.heads, h)
		} else if m.err == nil {
			m.err = s.fault()
		}
	}
	for i := len(m.heads)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m
}

func (m *merger[T]) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heads); c++ {
			if m.compare(m.heads[c].item, m.heads[least].item) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}

// peek gives the next item, which is valid until the next call; nil at the end.
func (m *merger[T]) peek() *T {
	if m.last {
		m.last = false
		if h := m.heads[0]; !h.from.next(h.item) {
			if err := h.from.fault(); err != nil && m.err == nil {
				m.err = err
			}
			end := len(m.heads) - 1
			m.heads[0] = m.heads[end]
			m.heads = m.heads[:end]
		}
		m.sink(0)
	}
	if len(m.heads) == 0 || m.err != nil {
		return nil
	}
	return m.heads[0].item
}

// skip goes on to the item after the one peeked at.
func (m *merger[T]) skip() { m.last = true }

// next makes a merger a source; what a cell points at is valid until the next call.
func (m *merger[T]) next(out *T) bool {
	p := m.peek()
	if p == nil {
		return false
	}
	*out = *p
	m.skip()
	return true
}

func (m *merger[T]) fault() error { return m.err }

func compareRecords(a, b *record) int { return a.compare(*b) }

func compareCells(a, b *cell) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.order(), b.order()))
}
