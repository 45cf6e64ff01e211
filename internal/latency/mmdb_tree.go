package latency

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
)

var errTree = errors.New("search tree is corrupt")

// tree is the search tree of a file: a binary trie whose nodes are pairs of
// pointers. A pointer below count is a node, count means no data, and one
// above it is a place in the data.
type tree struct {
	nodes    []byte
	count    uint32
	nodeSize int // bytes: 6, 7 or 8
	dataSize int // bytes
}

// newTree finds the search tree in a file. The walk is our own because that of
// readers of location databases can't be bounded, and takes what is shared
// with IPv4 for aliases, of which these files have none.
func newTree(data []byte, meta maxminddb.Metadata) (*tree, error) {
	switch {
	case meta.BinaryFormatMajorVersion != 2:
		return nil, fmt.Errorf("format version is %d, expected 2", meta.BinaryFormatMajorVersion)
	case meta.IPVersion != 6:
		return nil, fmt.Errorf("IP version is %d, expected 6", meta.IPVersion)
	case meta.RecordSize != 24 && meta.RecordSize != 28 && meta.RecordSize != 32:
		return nil, fmt.Errorf("record size is %d, expected 24, 28 or 32", meta.RecordSize)
	}
	size := meta.RecordSize / 4
	if meta.NodeCount == 0 || meta.NodeCount > uint(len(data))/size {
		return nil, fmt.Errorf("%d nodes don't fit into %d bytes", meta.NodeCount, len(data))
	}
	nodes := data[:meta.NodeCount*size]
	return &tree{
		nodes: nodes, count: uint32(meta.NodeCount), nodeSize: int(size),
		dataSize: len(data) - len(nodes) - dataSeparator,
	}, nil
}

// children are a node's pointers for bit 0 and bit 1. The node must be below count.
func (t *tree) children(node uint32) (zero, one uint32) {
	b := t.nodes[int(node)*t.nodeSize:][:t.nodeSize]
	switch t.nodeSize {
	case 6:
		return binary.BigEndian.Uint32(b[0:]) >> 8, binary.BigEndian.Uint32(b[2:]) & 0xffffff
	case 7: // the middle byte holds the high bits of both
		return binary.BigEndian.Uint32(b[0:])>>8 | uint32(b[3]&0xf0)<<20, binary.BigEndian.Uint32(b[3:]) & 0xfffffff
	default:
		return binary.BigEndian.Uint32(b[0:]), binary.BigEndian.Uint32(b[4:])
	}
}

// walk calls leaf for every network with data, and the place of its record in
// the data, in address order, IPv4 in its own form.
func (t *tree) walk(leaf func(p netip.Prefix, offset uint32) error) error {
	w := walker{tree: t, leaf: leaf, left: t.count}
	return w.visit(0, 0)
}

// walker is one walk over a tree.
type walker struct {
	*tree
	leaf func(p netip.Prefix, offset uint32) error
	left uint32 // nodes that may still be visited: each once
	path [16]byte
}

func (w *walker) visit(pointer uint32, bits int) error {
	if pointer == w.count {
		return nil
	}
	if pointer > w.count {
		return w.data(pointer, bits)
	}
	if bits == 128 || w.left == 0 {
		return fmt.Errorf("%w: its paths are too long or too many", errTree)
	}
	w.left--
	zero, one := w.children(pointer)
	if err := w.visit(zero, bits+1); err != nil {
		return err
	}
	w.path[bits/8] |= 0x80 >> (bits % 8)
	err := w.visit(one, bits+1)
	w.path[bits/8] &^= 0x80 >> (bits % 8)
	return err
}

func (w *walker) data(pointer uint32, bits int) error {
	offset := int64(pointer) - int64(w.count) - dataSeparator
	if offset < 0 || offset >= int64(w.dataSize) {
		return fmt.Errorf("%w: it points outside of the data", errTree)
	}
	p := netip.PrefixFrom(netip.AddrFrom16(w.path), bits)
	if [12]byte(w.path[:12]) == [12]byte{} {
		if bits < 96 {
			return fmt.Errorf("%w: %s has a record and contains ::/96, where IPv4 is", errTree, p)
		}
		p = netip.PrefixFrom(netip.AddrFrom4([4]byte(w.path[12:])), bits-96)
	}
	return w.leaf(p, uint32(offset))
}
