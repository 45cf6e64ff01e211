package build

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// spillName is that of directories of this user's builds.
func spillName() string { return fmt.Sprintf("gslb-map-%d-*", os.Getuid()) }

// sweep removes what builds that were killed left behind: directories of this user's that
// nothing was written to for a day.
func sweep(dir string, now time.Time) {
	if dir == "" {
		dir = os.TempDir()
	}
	left, _ := filepath.Glob(filepath.Join(dir, spillName()))
	for _, path := range left {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || now.Sub(info.ModTime()) < day {
			continue
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*")); !slices.ContainsFunc(files, func(f string) bool {
			info, err := os.Lstat(f)
			return err != nil || !strings.HasPrefix(filepath.Base(f), "run-") || now.Sub(info.ModTime()) < day
		}) {
			os.RemoveAll(path) // the next build tries again
		}
	}
}

// runs are sorted files in the builder's directory. Any number of goroutines may
// spill at once.
type runs struct {
	dir     string
	mu      sync.Mutex
	made    int
	records []string // paths
	cells   []string
	open    []*os.File
}

// fanIn is how many runs are merged at once, each with a buffer of its own.
const (
	fanIn     = 64
	runBuffer = 64 << 10
)

func (r *runs) close() {
	for _, f := range r.open {
		f.Close()
	}
	r.open = nil
}

// write makes a run of what fill writes.
func (r *runs) write(list *[]string, fill func(*bufio.Writer) error) error {
	r.mu.Lock()
	r.made++
	path := filepath.Join(r.dir, fmt.Sprintf("run-%d", r.made))
	*list = append(*list, path)
	r.mu.Unlock()
	f, err := os.Create(path)
	if err == nil {
		w := bufio.NewWriterSize(f, runBuffer)
		err = errors.Join(fill(w), w.Flush(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("writing what doesn't fit into memory: %w", err)
	}
	return nil
}

func (r *runs) spillRecords(from source[record]) error {
	return r.write(&r.records, func(w *bufio.Writer) error {
		var rec record
		var b [recordSize]byte
		for from.next(&rec) {
			binary.LittleEndian.PutUint64(b[:], uint64(rec.key))
			binary.LittleEndian.PutUint64(b[8:], rec.rest)
			if _, err := w.Write(b[:]); err != nil {
				return err
			}
		}
		return from.fault()
	})
}

func (r *runs) spillCells(from source[cell]) error {
	return r.write(&r.cells, func(w *bufio.Writer) error {
		var c cell
		var b []byte
		for from.next(&c) {
			b = c.encode(append(b[:0], 0, 0, 0, 0))
			binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		return from.fault()
	})
}

// recordRun and cellRun read runs.
type recordRun struct {
	r   *bufio.Reader
	err error
}

func (s *recordRun) next(out *record) bool {
	b, err := s.r.Peek(recordSize)
	if err != nil {
		if len(b) > 0 || err != io.EOF {
			s.err = fmt.Errorf("reading what didn't fit into memory: %w", io.ErrUnexpectedEOF)
		}
		return false
	}
	*out = record{key(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}
	s.r.Discard(recordSize)
	return true
}

func (s *recordRun) fault() error { return s.err }

type cellRun struct {
	r   *bufio.Reader
	buf []byte
	err error
}

func (s *cellRun) next(out *cell) bool {
	err := s.read(out)
	if err != nil && err != io.EOF {
		s.err = fmt.Errorf("reading what didn't fit into memory: %w", err)
	}
	return err == nil
}

func (s *cellRun) read(out *cell) error {
	var size [4]byte
	if _, err := io.ReadFull(s.r, size[:]); err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(size[:]))
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	s.buf = s.buf[:n]
	if _, err := io.ReadFull(s.r, s.buf); err != nil {
		return io.ErrUnexpectedEOF
	}
	_, err := out.decode(s.buf)
	return err
}

func (s *cellRun) fault() error { return s.err }

// read opens runs of one kind, after merging so many of them that the rest can be
// read at once.
func read[T any](r *runs, list *[]string, reader func(*bufio.Reader) source[T], compare func(*T, *T) int, spill func(source[T]) error) ([]source[T], error) {
	for len(*list) > fanIn {
		some, err := open(r, (*list)[:fanIn], reader)
		if err == nil {
			err = spill(newMerger(compare, some...))
		}
		r.close()
		for _, path := range (*list)[:fanIn] {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			return nil, err
		}
		*list = (*list)[fanIn:]
	}
	return open(r, *list, reader)
}

func open[T any](r *runs, paths []string, reader func(*bufio.Reader) source[T]) (some []source[T], err error) {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		r.open = append(r.open, f)
		some = append(some, reader(bufio.NewReaderSize(f, runBuffer)))
	}
	return some, nil
}

// sorted merges what the workers hold and what they have spilled.
func (b *Builder) sorted() (*merger[record], *merger[cell], error) {
	r := &b.runs
	cells, err := read(r, &r.cells, func(r *bufio.Reader) source[cell] { return &cellRun{r: r} }, compareCells, r.spillCells)
	if err != nil {
		return nil, nil, err
	}
	// The runs of cells that are open now have their own place in the list of open ones.
	kept := r.open
	r.open = nil
	records, err := read(r, &r.records, func(r *bufio.Reader) source[record] { return &recordRun{r: r} }, compareRecords, r.spillRecords)
	r.open = append(r.open, kept...)
	if err != nil {
		return nil, nil, err
	}
	var wait sync.WaitGroup
	for _, w := range b.workers {
		wait.Go(w.sort)
	}
	wait.Wait()
	for _, w := range b.workers {
		records = append(records, &sliceSource[record]{w.records})
		cells = append(cells, &bufferSource{buffer: &w.cells})
	}
	return newMerger(compareRecords, records...), newMerger(compareCells, cells...), nil
}
