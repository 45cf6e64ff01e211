package build

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A file of sketches is a zstd stream of: sketchMagic; the longest lengths of IPv4 and
// IPv6 prefixes (1 byte each); the day that days are counted from (varint, days since
// 1970); the number of regions and their names, each after its length (varints, at most
// MaxRegions and 255); cells in order, each after the length of its code (varint, not 0);
// 0; and the number of cells (varint). The checksum is that of zstd.
const sketchMagic = "gslb sketches 1\n"

var (
	errGone      = errors.New("sketch: of a region that is not among those given")
	errLengths   = errors.New("was written for other lengths of prefixes")
	errTruncated = errors.New("ends too early: it was not written to its end, or is damaged; copy or write it again")
	errSketches  = errors.New("is damaged; copy or write it again")
)

func init() { notFaults[errGone] = true }

// maxCode bounds the code of a cell.
var maxCode = 64 + 15*maxPoints

type sketchWriter struct {
	z   *zstd.Encoder
	buf []byte
	n   uint64
}

func newSketchWriter(b *Builder) (*sketchWriter, error) {
	// One goroutine, so that equal measurements make equal files.
	z, err := zstd.NewWriter(b.o.Sketches, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	head := append([]byte(sketchMagic), byte(b.o.Longest4), byte(b.o.Longest6))
	head = binary.AppendVarint(head, int64(b.calendar))
	head = binary.AppendUvarint(head, uint64(len(b.o.Regions)))
	for _, name := range b.o.Regions {
		head = binary.AppendUvarint(head, uint64(len(name)))
		head = append(head, name...)
	}
	_, err = z.Write(head)
	return &sketchWriter{z: z}, err
}

func (s *sketchWriter) write(c *cell) error {
	s.buf = c.encode(s.buf[:0])
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(s.buf)))
	s.n++
	if _, err := s.z.Write(size[:n]); err != nil {
		return err
	}
	_, err := s.z.Write(s.buf)
	return err
}

func (s *sketchWriter) close() error {
	_, err := s.z.Write(binary.AppendUvarint([]byte{0}, s.n))
	return errors.Join(err, s.z.Close())
}

// IsSketches tells whether a file holds sketches, compressed or not.
func IsSketches(r io.Reader) bool {
	plain, done, err := decompress(r)
	if err != nil {
		return false
	}
	defer done()
	head, _ := plain.Peek(len(sketchMagic))
	return string(head) == sketchMagic
}

// addSketches takes in a file of sketches, uncompressed. The cells of days outside of the window
// and of regions that are no more don't count.
func (b *Builder) addSketches(name string, r *bufio.Reader) error {
	if err := b.readSketches(name, r); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = errTruncated
		}
		return fmt.Errorf("%s: a file of sketches: %w", name, err)
	}
	w := b.workers[0]
	b.bad.merge(&w.bad)
	b.oldest, b.newest = min(b.oldest, w.oldest), max(b.newest, w.newest)
	return w.err
}

func (b *Builder) readSketches(name string, r *bufio.Reader) error {
	regions, shift, err := b.readHead(r)
	if err != nil {
		return err
	}
	w := b.workers[0]
	var buf []byte
	var c cell
	days := make(map[int64]bool)
	for n := uint64(0); ; n++ {
		size, err := binary.ReadUvarint(r)
		if err != nil || size > maxCode {
			return errors.Join(err, errSketches)
		}
		if size == 0 {
			if err := readEnd(r, n); err != nil {
				return err
			}
			return b.noDayTwice(name, days)
		}
		if uint64(cap(buf)) < size {
			buf = make([]byte, size)
		}
		if _, err := io.ReadFull(r, buf[:size]); err != nil {
			return err
		}
		if rest, err := c.decode(buf[:size]); err != nil || len(rest) > 0 || int(c.region) >= len(regions) {
			return errSketches
		}
		if c.key != c.key.cut(b.o.longest(c.key)) {
			return errLengths
		}
		b.lines++
		if reason := w.takeCell(&c, regions, shift); reason != nil {
			w.bad.add(b.inputs, name, int64(n)+1, reason, nil)
		} else {
			days[int64(c.day)] = true
		}
		if n&0xfff == 0 {
			b.progress("reading", b.read, b.total)
		}
	}
}

// noDayTwice is an error if another file of sketches has a day, too: then the same
// measurements may be in both.
func (b *Builder) noDayTwice(name string, days map[int64]bool) error {
	for _, d := range slices.Sorted(maps.Keys(days)) {
		if before, ok := b.sketched[d]; ok && !b.o.Force {
			return fmt.Errorf("has measurements of %s, as %s has: they may count twice; write each day to one file (-until, -window 24h), or use -force",
				time.Unix((d+int64(b.calendar))*86400, 0).UTC().Format(time.DateOnly), before)
		}
		b.sketched[d] = name
	}
	return nil
}

// wholeDay tells whether all of a day is in the window.
func (b *Builder) wholeDay(d uint16) bool {
	start := (int64(d) + int64(b.calendar)) * 86400
	until := b.o.Until.Unix()
	return start >= until-int64(b.o.Window/time.Second) && start+86400 <= until
}

// takeCell keeps a cell by this builder's regions and days.
func (w *worker) takeCell(c *cell, regions []uint8, shift int64) error {
	c.region = regions[c.region]
	if c.region == none {
		return errGone
	}
	d := int64(c.day) + shift
	start := (d + int64(w.b.calendar)) * 86400
	switch {
	case start+86400 <= w.from:
		return errBefore
	case start >= w.until:
		return errAfter
	}
	c.day = uint16(d)
	w.addCell(c)
	return nil
}

// readHead gives the numbers of the file's regions here, none for those that are no
// more, and what makes its days those of this builder.
func (b *Builder) readHead(r *bufio.Reader) (regions []uint8, shift int64, err error) {
	head := make([]byte, len(sketchMagic)+2)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, 0, err
	}
	if l4, l6 := int(head[len(head)-2]), int(head[len(head)-1]); l4 != b.o.Longest4 || l6 != b.o.Longest6 {
		return nil, 0, fmt.Errorf("%w: /%d and /%d, here /%d and /%d", errLengths, l4, l6, b.o.Longest4, b.o.Longest6)
	}
	from, err := binary.ReadVarint(r)
	if err != nil {
		return nil, 0, err
	}
	n, err := binary.ReadUvarint(r)
	if err != nil || n > MaxRegions || from < -1<<20 || from > 1<<40 {
		return nil, 0, errors.Join(err, errSketches)
	}
	for range n {
		size, err := binary.ReadUvarint(r)
		if err != nil || size > 255 {
			return nil, 0, errors.Join(err, errSketches)
		}
		name := make([]byte, size)
		if _, err := io.ReadFull(r, name); err != nil {
			return nil, 0, err
		}
		number, ok := b.byName[string(name)]
		if !ok {
			number = none
		}
		regions = append(regions, number)
	}
	return regions, from - int64(b.calendar), nil
}

// readEnd checks the count at the end, and that there is nothing behind it.
func readEnd(r *bufio.Reader, n uint64) error {
	count, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	if _, err := r.ReadByte(); count != n || err == nil {
		return errSketches
	} else if err != io.EOF {
		return err
	}
	return nil
}
