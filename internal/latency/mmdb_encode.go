package latency

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// metadataMarker stands before the metadata of a MaxMind DB file.
const metadataMarker = "\xab\xcd\xefMaxMind.com"

// Types of values in a MaxMind DB file (MaxMind DB file format specification 2.0).
const (
	typePointer = 1
	typeText    = 2
	typeUint16  = 5
	typeUint32  = 6
	typeMap     = 7
	typeUint64  = 9
	typeArray   = 11
	typeFloat32 = 15
)

// encoder appends values in the form of MaxMind DB files.
type encoder struct{ b []byte }

// control begins a value of a type and a size.
func (e *encoder) control(typ byte, size int) {
	at := len(e.b)
	if typ < 8 {
		e.b = append(e.b, typ<<5)
	} else {
		e.b = append(e.b, 0, typ-7)
	}
	switch {
	case size < 29:
		e.b[at] |= byte(size)
	case size < 285:
		e.b[at] |= 29
		e.b = append(e.b, byte(size-29))
	default: // up to 65820: longer than any text here
		e.b[at] |= 30
		e.b = binary.BigEndian.AppendUint16(e.b, uint16(size-285))
	}
}

func (e *encoder) mapOf(pairs int) { e.control(typeMap, pairs) }

func (e *encoder) text(s string) {
	e.control(typeText, len(s))
	e.b = append(e.b, s...)
}

// number appends an unsigned integer without leading zero bytes.
func (e *encoder) number(typ byte, v uint64) {
	n := (bits.Len64(v) + 7) / 8
	e.control(typ, n)
	for n--; n >= 0; n-- {
		e.b = append(e.b, byte(v>>(8*n)))
	}
}

func (e *encoder) float(f float32) {
	e.control(typeFloat32, 4)
	e.b = binary.BigEndian.AppendUint32(e.b, math.Float32bits(f))
}

// pointer appends a pointer to a place in the data, in the smallest form.
func (e *encoder) pointer(at uint32) {
	const ( // what longer forms begin at
		first2 = 1 << 11
		first3 = 1<<19 + first2
	)
	switch {
	case at < first2:
		e.b = append(e.b, typePointer<<5|byte(at>>8), byte(at))
	case at < first3:
		at -= first2
		e.b = append(e.b, typePointer<<5|1<<3|byte(at>>16), byte(at>>8), byte(at))
	case at < 1<<27+first3:
		at -= first3
		e.b = append(e.b, typePointer<<5|2<<3|byte(at>>24), byte(at>>16), byte(at>>8), byte(at))
	default:
		e.b = binary.BigEndian.AppendUint32(append(e.b, typePointer<<5|3<<3), at)
	}
}

// encodeRecord appends the record of a client's and a resolver's entry; either may be nil.
func (t *treeWriter) encodeRecord(pair [2]*Entry) {
	e := encoder{t.data}
	defer func() { t.data = e.b }()
	n := 0
	for _, entry := range pair {
		if entry != nil {
			n++
		}
	}
	e.mapOf(n)
	for i, entry := range pair {
		switch {
		case entry == nil:
			continue
		case t.last[i] == entry:
			t.key(&e, sideNames[i])
			e.pointer(t.at[i])
			continue
		}
		t.key(&e, sideNames[i])
		t.last[i], t.at[i] = entry, uint32(len(e.b))
		t.encodeEntry(&e, entry)
	}
}

func (t *treeWriter) encodeEntry(e *encoder, entry *Entry) {
	fields, failures := 2, false
	if entry.Cells != nil {
		fields = 4
		for _, c := range entry.Cells {
			failures = failures || c.Failed != 0
		}
	}
	if failures {
		fields++
	}
	n := len(entry.Order)
	e.mapOf(fields)
	t.key(e, fieldBits)
	e.number(typeUint16, uint64(entry.Prefix.Bits()))
	t.key(e, fieldRegions)
	e.control(typeArray, n)
	for _, r := range entry.Order {
		t.key(e, t.regions[r])
	}
	if entry.Cells == nil {
		return
	}
	t.key(e, fieldP75)
	e.control(typeArray, n)
	for _, c := range entry.Cells {
		e.float(c.P75)
	}
	t.key(e, fieldSamples)
	e.control(typeArray, n)
	for _, c := range entry.Cells {
		e.number(typeUint32, uint64(c.Samples))
	}
	if !failures {
		return
	}
	t.key(e, fieldFailed)
	e.control(typeArray, n)
	for _, c := range entry.Cells {
		e.float(c.Failed)
	}
}

// key appends a text that comes again and again: the first time whole, then as
// a pointer. Checkers want nothing in the data that no record holds.
func (t *treeWriter) key(e *encoder, s string) {
	if at, ok := t.strings[s]; ok {
		e.pointer(at)
		return
	}
	t.strings[s] = uint32(len(e.b))
	e.text(s)
}
