package geodb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/oschwald/maxminddb-golang/v2"
)

// dataSeparator is the number of zero bytes between search tree and data.
const dataSeparator = 16

// maxRevisits bounds how many nodes a walk visits per node of the file. Nodes
// may be shared, but a hostile file can share until a walk never ends.
const maxRevisits = 4

var errTree = errors.New("search tree is corrupt")

// tree is the search tree of a database: a binary trie whose nodes are pairs of
// pointers. A pointer below count is a node, count means no data, and one
// above it is a place in the data section.
type tree struct {
	nodes    []byte
	count    uint32
	nodeSize int // bytes: 6, 7 or 8
	version  int // 4 or 6
	dataSize int // bytes
	root4    uint32
}

// newTree finds the search tree in a database file. The walk is our own because
// the reader's can't be bounded, and takes records shared with IPv4 for aliases.
func newTree(data []byte, meta maxminddb.Metadata) (*tree, error) {
	switch {
	case meta.RecordSize != 24 && meta.RecordSize != 28 && meta.RecordSize != 32:
		return nil, fmt.Errorf("record size is %d, expected 24, 28 or 32", meta.RecordSize)
	case meta.IPVersion != 4 && meta.IPVersion != 6:
		return nil, fmt.Errorf("IP version is %d, expected 4 or 6", meta.IPVersion)
	case meta.BinaryFormatMajorVersion != 2:
		return nil, fmt.Errorf("format version is %d, expected 2", meta.BinaryFormatMajorVersion)
	}
	nodeSize := meta.RecordSize / 4
	if meta.NodeCount >= math.MaxUint32-dataSeparator || meta.NodeCount > uint(len(data))/nodeSize {
		return nil, fmt.Errorf("%d nodes don't fit into %d bytes", meta.NodeCount, len(data))
	}
	treeSize := int(meta.NodeCount * nodeSize)
	t := &tree{
		nodes: data[:treeSize], count: uint32(meta.NodeCount), nodeSize: int(nodeSize),
		version: int(meta.IPVersion), dataSize: len(data) - treeSize - dataSeparator,
	}
	t.root4 = t.findRoot4()
	return t, nil
}

// findRoot4 is the node that IPv4 addresses start at, if an IPv6 tree has one.
// Other pointers to it are aliases. Without one it is count, which points nowhere.
func (t *tree) findRoot4() uint32 {
	if t.version == 4 {
		return t.count
	}
	node := uint32(0)
	for range 96 {
		if node >= t.count {
			return t.count
		}
		node, _ = t.children(node)
	}
	return min(node, t.count)
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

// leafFunc gets a network (IPv4 as in ::/96) and its record's offset in the data section.
type leafFunc func(hi, lo uint64, bits uint8, offset uint32) error

// walk calls leaf for every network with data in address order, aliases left
// out. A network that contains ::/96 is split around it.
func (t *tree) walk(leaf leafFunc) error {
	w := walker{tree: t, leaf: leaf, left: maxRevisits * int64(t.count)}
	if t.version == 4 {
		return w.visit(0, 0, 0, 96)
	}
	return w.visit(0, 0, 0, 0)
}

// walker is one walk over a tree.
type walker struct {
	*tree
	leaf leafFunc
	left int64 // nodes that may still be visited
}

func (w *walker) visit(pointer uint32, hi, lo uint64, bits uint8) error {
	switch aboveIPv4 := bits < 96 && hi == 0 && lo == 0; {
	case pointer == w.count || w.isAlias(pointer, hi, lo, bits):
		return nil
	case pointer > w.count && aboveIPv4:
		return w.visitBoth(pointer, pointer, hi, lo, bits)
	case pointer > w.count:
		offset := int64(pointer) - int64(w.count) - dataSeparator
		if offset < 0 || offset >= int64(w.dataSize) {
			return fmt.Errorf("%w: it points outside of the data", errTree)
		}
		return w.leaf(hi, lo, bits, uint32(offset))
	}
	w.left--
	if bits == 128 || w.left < 0 {
		return fmt.Errorf("%w: its paths are too long or too many", errTree)
	}
	zero, one := w.children(pointer)
	return w.visitBoth(zero, one, hi, lo, bits)
}

func (w *walker) visitBoth(zero, one uint32, hi, lo uint64, bits uint8) error {
	if err := w.visit(zero, hi, lo, bits+1); err != nil {
		return err
	}
	if bits < 64 {
		hi |= 1 << (63 - bits)
	} else {
		lo |= 1 << (127 - bits)
	}
	return w.visit(one, hi, lo, bits+1)
}

// isAlias tells whether what is below holds IPv4 addresses again.
func (w *walker) isAlias(pointer uint32, hi, lo uint64, bits uint8) bool {
	mapped := bits == 96 && hi == 0 && lo == 0xffff<<32
	isRoot4 := bits == 96 && hi == 0 && lo == 0
	return mapped || pointer == w.root4 && !isRoot4
}
