package latency

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"time"
)

// databaseType is how a MaxMind DB file says that it is a steering map.
const databaseType = "gslb-latency"

// Names of the fields of a record.
const (
	fieldBits    = "bits"
	fieldRegions = "regions"
	fieldP75     = "p75_ms"
	fieldSamples = "samples"
	fieldFailed  = "failed"
)

// head is what the description of a MaxMind DB file says of a map, as JSON.
// What is not here is in the metadata that every such file has.
type head struct {
	Format   int        `json:"format"`
	From     *time.Time `json:"from,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	Demand   *[2]uint64 `json:"demand,omitempty"`
	Regions  []string   `json:"regions"`
	Rollback *Rollback  `json:"rollback,omitempty"`
}

// WriteMMDB writes a map as a MaxMind DB file. The same map gives the same bytes.
// It holds the whole file in memory.
//
// The writer is our own. Both sides of a map are one overlay there, in address order
// already, so the tree is made in one pass and records are encoded once; a general
// writer keeps every record as a tree of values, some 3 kB for each entry.
func WriteMMDB(w io.Writer, m *Map) error {
	if err := m.validate(); err != nil {
		return err
	}
	t := treeWriter{regions: m.Regions, strings: map[string]uint32{}, records: map[string]uint32{}}
	root := t.build(m.sides())
	if root == noData { // readers want a node
		t.nodes = append(t.nodes, [2]uint32{noData, noData})
	}
	meta, err := t.metadata(m)
	if err != nil {
		return err
	}
	tree := t.encodeTree()
	if size := len(tree) + dataSeparator + len(t.data) + len(meta); size > MaxFileSize {
		return fmt.Errorf("the file would have %d bytes, more than the %d that are read: build a map of fewer prefixes", size, MaxFileSize)
	}
	for _, part := range [][]byte{tree, make([]byte, dataSeparator), t.data, meta} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Pointers of a treeWriter's nodes: to a node, with leafFlag to data, or noData.
const (
	noData   = math.MaxUint32
	leafFlag = 1 << 31
)

// dataSeparator is the number of zero bytes between search tree and data.
const dataSeparator = 16

// treeWriter makes the search tree and the data of a file.
type treeWriter struct {
	regions []string
	nodes   [][2]uint32
	data    []byte
	strings map[string]uint32 // where each text is in data
	records map[string]uint32 // where each record without measurements is
	last    [2]*Entry         // the last entries that were written as a side of a record, by side
	at      [2]uint32         // and where
	pair    [2]*Entry         // the entries of the last record
	record  uint32            // and its pointer
}

// build makes the tree of all space: IPv6, with IPv4 in ::/96.
func (t *treeWriter) build(all sides) uint32 {
	var v4, v6 sides
	for i, entries := range all {
		n := sort.Search(len(entries), func(i int) bool { return entries[i].Prefix.Addr().Is6() })
		v4[i], v6[i] = entries[:n], entries[n:]
	}
	return t.visit(v6, 0, &v4)
}

// visit makes the tree below a network of so many bits. above is set for a
// network that contains ::/96, to what is in there.
func (t *treeWriter) visit(s sides, bits int, above *sides) uint32 {
	if above != nil && bits == 96 {
		s, bits, above = *above, 0, nil
	}
	whole, empty := true, true
	for _, entries := range s {
		empty = empty && len(entries) == 0
		whole = whole && (len(entries) == 0 || entries[0].Prefix.Bits() <= bits)
	}
	switch {
	case above != nil && empty && len(above[0]) == 0 && len(above[1]) == 0:
		return noData
	case above == nil && empty:
		return noData
	case above == nil && whole:
		return t.leaf(s)
	}
	node := len(t.nodes)
	t.nodes = append(t.nodes, [2]uint32{})
	zero, one := s.split(bits)
	z := t.visit(zero, bits+1, above)
	o := t.visit(one, bits+1, nil)
	t.nodes[node] = [2]uint32{z, o} // also when equal: they are two entries
	return uint32(node)
}

// split cuts a network of so many bits in two. An entry that covers it is in both.
func (s sides) split(bits int) (zero, one sides) {
	for i, entries := range s {
		if len(entries) == 1 && entries[0].Prefix.Bits() <= bits {
			zero[i], one[i] = entries, entries
			continue
		}
		n := sort.Search(len(entries), func(j int) bool { return bit(entries[j].Prefix.Addr(), bits) })
		zero[i], one[i] = entries[:n], entries[n:]
	}
	return zero, one
}

// leaf is the pointer to the record of the entries that cover a network.
func (t *treeWriter) leaf(s sides) uint32 {
	var pair [2]*Entry
	plain := []byte{0xff, 0xff} // the record's key among those without measurements
	for i, entries := range s {
		if len(entries) == 0 {
			continue
		}
		pair[i] = &entries[0]
		if e := pair[i]; plain != nil && e.Cells == nil {
			plain[i] = byte(e.Prefix.Bits())
			plain = append(append(plain, byte(len(e.Order))), e.Order...)
		} else {
			plain = nil
		}
	}
	if pair == t.pair {
		return t.record
	}
	if at, ok := t.records[string(plain)]; ok && plain != nil {
		return at
	}
	if len(t.data) > MaxFileSize {
		return noData // the file is too large already, and pointers would overflow
	}
	at := uint32(len(t.data)) | leafFlag
	t.encodeRecord(pair)
	if plain != nil {
		t.records[string(plain)] = at
	}
	t.pair, t.record = pair, at
	return at
}

// encodeTree is the search tree as bytes, in the smallest size of pointers.
func (t *treeWriter) encodeTree() []byte {
	count := uint32(len(t.nodes))
	size := t.nodeSize()
	tree := make([]byte, 0, size*len(t.nodes))
	for _, n := range t.nodes {
		for i, p := range n {
			switch {
			case p == noData:
				n[i] = count
			case p&leafFlag != 0:
				n[i] = p&^leafFlag + count + dataSeparator
			}
		}
		tree = appendNode(tree, size, n[0], n[1])
	}
	return tree
}

// appendNode appends a node of so many bytes.
func appendNode(b []byte, size int, zero, one uint32) []byte {
	switch size {
	case 6:
		return append(b, byte(zero>>16), byte(zero>>8), byte(zero), byte(one>>16), byte(one>>8), byte(one))
	case 7:
		return append(b, byte(zero>>16), byte(zero>>8), byte(zero), byte(zero>>24)<<4|byte(one>>24), byte(one>>16), byte(one>>8), byte(one))
	}
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, zero), one)
}

// nodeSize is the bytes of a node: two pointers, as small as they can be.
func (t *treeWriter) nodeSize() int {
	switch largest := len(t.nodes) + dataSeparator + len(t.data); {
	case largest < 1<<24:
		return 6
	case largest < 1<<28:
		return 7
	}
	return 8
}

// metadata is the end of the file.
func (t *treeWriter) metadata(m *Map) ([]byte, error) {
	h := head{Format: FormatVersion, Regions: m.Regions, Rollback: m.Rollback}
	if !m.From.IsZero() {
		h.From = &m.From
	}
	if !m.Until.IsZero() {
		h.Until = &m.Until
	}
	if m.Demand != [2]uint64{} {
		h.Demand = &m.Demand
	}
	if h.Regions == nil {
		h.Regions = []string{}
	}
	about, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var epoch uint64 // 0: not known
	if !m.Built.IsZero() {
		epoch = uint64(m.Built.Unix())
	}
	e := encoder{b: []byte(metadataMarker)}
	e.mapOf(9)
	e.text("binary_format_major_version")
	e.number(typeUint16, 2)
	e.text("binary_format_minor_version")
	e.number(typeUint16, 0)
	e.text("build_epoch")
	e.number(typeUint64, epoch)
	e.text("database_type")
	e.text(databaseType)
	e.text("description")
	e.mapOf(1)
	e.text("en")
	e.text(string(about))
	e.text("ip_version")
	e.number(typeUint16, 6)
	e.text("languages")
	e.control(typeArray, 1)
	e.text("en")
	e.text("node_count")
	e.number(typeUint32, uint64(len(t.nodes)))
	e.text("record_size")
	e.number(typeUint16, uint64(4*t.nodeSize()))
	return e.b, nil
}
