package build

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// worker takes rows in and keeps what they say, sorted, in memory and beyond it
// in runs on disk. Each is for one goroutine at a time.
type worker struct {
	b                *Builder
	from, until, now int64 // seconds
	records          []record
	maxRecords       int
	cells            cellBuffer
	maxCells         int                  // bytes
	oldest, newest   uint16               // days
	days             [1 << dayBits]uint64 // about how much was measured on each
	bad              badLines
	scratch          cell
	err              error // of a run that couldn't be written
}

// cellBuffer is cells in their coded form.
type cellBuffer struct {
	refs []cellRef
	code []byte
}

type cellRef struct {
	key    key
	order  uint64
	offset int
}

const (
	recordSize  = 16
	cellRefSize = 24
)

func newWorker(b *Builder) *worker {
	from := b.o.Until.Add(-b.o.Window)
	share := b.o.Memory / int64(b.o.Workers)
	return &worker{
		b: b, oldest: math.MaxUint16, from: from.Unix(), until: b.o.Until.Add(time.Second - 1).Unix(), now: b.o.Now.Unix(),
		// A quarter is for what runs are read with, and for the rest.
		maxRecords: int(max(share/2/recordSize, 16)),
		maxCells:   int(share / 4),
	}
}

func (w *worker) addRecord(r record) {
	w.oldest, w.newest = min(w.oldest, r.day()), max(w.newest, r.day())
	w.days[r.day()]++
	if len(w.records) >= w.maxRecords {
		w.spillRecords()
	}
	if cap(w.records) == len(w.records) {
		// In large steps and not beyond the limit: what isn't used takes no memory, what is left behind does.
		grown := make([]record, len(w.records), min(max(8*len(w.records), 1024), w.maxRecords))
		copy(grown, w.records)
		w.records = grown
	}
	w.records = append(w.records, r)
}

func (w *worker) addCell(c *cell) {
	w.oldest, w.newest = min(w.oldest, c.day), max(w.newest, c.day)
	w.days[c.day] += min(c.demand(), maxExact) // one line can't make the others look thin
	if len(w.cells.code)+cellRefSize*len(w.cells.refs) >= w.maxCells {
		w.spillCells()
	}
	w.cells.refs = append(w.cells.refs, cellRef{c.key, c.order(), len(w.cells.code)})
	w.cells.code = c.encode(w.cells.code)
}

// compare orders cells; what is equal adds up, so its order doesn't matter.
func (r cellRef) compare(s cellRef) int {
	return cmp.Or(cmp.Compare(r.key, s.key), cmp.Compare(r.order, s.order))
}

func (w *worker) sort() {
	slices.SortFunc(w.records, record.compare)
	slices.SortFunc(w.cells.refs, cellRef.compare)
}

func (w *worker) spillRecords() {
	slices.SortFunc(w.records, record.compare)
	if err := w.b.runs.spillRecords(&sliceSource[record]{w.records}); err != nil && w.err == nil {
		w.err = err
	}
	w.records = w.records[:0]
}

func (w *worker) spillCells() {
	slices.SortFunc(w.cells.refs, cellRef.compare)
	if err := w.b.runs.spillCells(&bufferSource{buffer: &w.cells}); err != nil && w.err == nil {
		w.err = err
	}
	w.cells.refs, w.cells.code = w.cells.refs[:0], w.cells.code[:0]
}
