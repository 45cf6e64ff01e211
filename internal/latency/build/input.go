package build

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// maxLine bounds lines; blockSize is what a worker is given at once.
const (
	maxLine   = 64 << 10
	blockSize = 1 << 20
)

var errLong = fmt.Errorf("line: longer than %d bytes", maxLine)

// Add reads an input to its end: CSV with a line of names, NDJSON, or sketches, any of
// them also compressed by gzip or zstd, told apart by their content. The name is for messages. Lines
// that can't be used are counted. An error makes the builder useless.
func (b *Builder) Add(name string, r io.Reader) error {
	plain, done, err := decompress(&countingReader{r: r, b: b})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer done()
	b.inputs++
	// Builds that take longer than a day aren't taken for what a killed one left behind.
	os.Chtimes(b.dir, b.o.Now, b.o.Now)
	head, err := plain.Peek(len(sketchMagic))
	if err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", name, err)
	}
	content := &hashingReader{r: plain, h: xxhash.New()}
	plain = bufio.NewReaderSize(content, 256<<10)
	add := b.addLines
	if string(head) == sketchMagic {
		add = b.addSketches
	}
	if err := add(name, plain); err != nil {
		return err
	}
	return b.once(name, content)
}

// once is an error for the content of an input that was there already: all of it would count
// twice.
func (b *Builder) once(name string, content *hashingReader) error {
	sum := content.h.Sum64()
	if before, ok := b.contents[sum]; ok && content.n > 0 && !b.o.Force {
		return fmt.Errorf("%s: has the same content as %s: it would count twice; give it once, or use -force", name, before)
	}
	b.contents[sum] = name
	return nil
}

// hashingReader knows what it has read, uncompressed.
type hashingReader struct {
	r io.Reader
	h *xxhash.Digest
	n int64
}

func (c *hashingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.h.Write(p[:n])
	c.n += int64(n)
	return n, err
}

// Expect tells how large all inputs are together, for progress.
func (b *Builder) Expect(bytes int64) { b.total = bytes }

type countingReader struct {
	r io.Reader
	b *Builder
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.b.read += int64(n)
	return n, err
}

// decompress looks for the magic numbers of RFC 1952 and RFC 8878, twice: sketches are
// compressed by themselves.
func decompress(r io.Reader) (plain *bufio.Reader, done func(), err error) {
	plain, done = bufio.NewReaderSize(r, 256<<10), func() {}
	for range 2 {
		head, err := plain.Peek(4)
		if err != nil && err != io.EOF {
			done()
			return nil, nil, err
		}
		var inner io.Reader
		closeInner := done
		switch {
		case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
			inner, err = gzip.NewReader(plain)
		case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
			var z *zstd.Decoder
			if z, err = zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20)); err == nil {
				outer := done
				inner, closeInner = z, func() { z.Close(); outer() }
			}
		default:
			return plain, done, nil
		}
		if err != nil {
			done()
			return nil, nil, compressed(err)
		}
		plain, done = bufio.NewReaderSize(decompressor{inner}, 256<<10), closeInner
	}
	return plain, done, nil
}

// decompressor says of errors of compressed data what they are.
type decompressor struct{ r io.Reader }

func (d decompressor) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	return n, compressed(err)
}

func compressed(err error) error {
	var known *compressedError
	if err == nil || err == io.EOF || errors.As(err, &known) {
		return err
	}
	return &compressedError{err}
}

// compressedError is an error of data that can't be decompressed.
type compressedError struct{ err error }

func (e *compressedError) Error() string {
	if e.err == io.ErrUnexpectedEOF {
		return "the compressed data ends too early: it was not written or copied to its end; copy or make it again"
	}
	return fmt.Sprintf("the compressed data can't be read: %v; copy or make it again", e.err)
}

func (e *compressedError) Unwrap() error { return e.err }

// block is whole lines of an input.
type block struct {
	lines []byte
	first int64 // number of the first line
	long  bool  // it is one line that is too long, cut
}

// addLines reads lines with all workers.
func (b *Builder) addLines(name string, r *bufio.Reader) error {
	s := &splitter{r: r, line: 1}
	scan, err := newScanner(s)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", name, s.line, err)
	}
	blocks := make(chan block)
	free := make(chan []byte, len(b.workers)+1)
	var wait sync.WaitGroup
	for _, w := range b.workers {
		scan, input := scan(), b.inputs
		wait.Go(func() {
			for bl := range blocks {
				w.lines(name, input, scan, &bl)
				select {
				case free <- bl.lines[:0]:
				default:
				}
			}
		})
	}
	for {
		var bl block
		select {
		case bl.lines = <-free:
		default:
			bl.lines = make([]byte, 0, blockSize+maxLine)
		}
		if err = s.next(&bl); err != nil {
			break
		}
		blocks <- bl
		b.progress("reading", b.read, b.total)
	}
	close(blocks)
	wait.Wait()
	if err == io.EOF {
		err = nil
	}
	b.lines += s.count
	for _, w := range b.workers {
		err = errors.Join(err, w.err)
		b.bad.merge(&w.bad)
		b.oldest, b.newest = min(b.oldest, w.oldest), max(b.newest, w.newest)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// lines takes in the lines of a block.
func (w *worker) lines(name string, input int, scan scanner, bl *block) {
	if bl.long {
		w.bad.add(input, name, bl.first, errLong, nil)
		return
	}
	var r row
	for number, rest := bl.first, bl.lines; len(rest) > 0; number++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		clear(r[:])
		err := errLong
		if len(line) <= maxLine {
			err = scan.scan(line, &r)
		}
		if err == nil {
			err = w.take(&r)
		}
		if err != nil {
			w.bad.add(input, name, number, err, func() string { return found(err, line, &r) })
		}
	}
}

// splitter cuts an input into blocks.
type splitter struct {
	r     *bufio.Reader
	line  int64  // number of the next line
	count int64  // lines that blocks had
	rest  []byte // read already, part of a line
	err   error
}

// next fills a block. Its error is io.EOF after the last one.
func (s *splitter) next(bl *block) error {
	buf := append(bl.lines[:0], s.rest...)
	s.rest = s.rest[:0]
	for s.err == nil && len(buf) < blockSize {
		var n int
		n, s.err = s.r.Read(buf[len(buf):blockSize])
		buf = buf[:len(buf)+n]
	}
	if s.err != nil && s.err != io.EOF {
		return s.err
	}
	if len(buf) == 0 {
		return io.EOF
	}
	bl.first, bl.long = s.line, false
	if s.err == nil || len(buf) == blockSize {
		end := bytes.LastIndexByte(buf, '\n') + 1
		if end == 0 {
			return s.skip(bl, buf)
		}
		s.rest = append(s.rest, buf[end:]...)
		buf = buf[:end]
	}
	lines := int64(bytes.Count(buf, []byte{'\n'}))
	if buf[len(buf)-1] != '\n' {
		lines++
	}
	s.line += lines
	s.count += lines
	bl.lines = buf
	return nil
}

// skip makes a block of a line that fills a buffer, and goes on behind it.
func (s *splitter) skip(bl *block, buf []byte) error {
	bl.lines, bl.long = buf[:0], true
	s.line++
	s.count++
	for s.err == nil {
		_, err := s.r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue
		}
		s.err = err
		break
	}
	if s.err != nil && s.err != io.EOF {
		return s.err
	}
	return nil
}
