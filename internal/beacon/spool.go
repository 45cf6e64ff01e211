package beacon

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names of files. One that is being written ends in unfinished; what is renamed to its
// final name is complete and doesn't change any more.
const (
	namePrefix = "beacons-"
	plainEnd   = ".ndjson"
	unfinished = ".open"
	temporary  = ".tmp" // being compressed
	timeForm   = "20060102T150405Z"
)

// sweepEvery is how often the directory is looked at.
const sweepEvery = 10 * time.Second

// spool writes lines to files. The writer is its only user. It never
// deletes what is finished.
type spool struct {
	*Options
	metrics *metrics
	lock    io.Closer

	f      *os.File // nil: none is begun
	w      *bufio.Writer
	size   int64
	opened time.Time
	unsure int   // lines that may not be in it yet
	others int64 // size of the other files
	swept  time.Time
}

// openSpool takes a directory and finishes what a crash left there.
func openSpool(o *Options, m *metrics) (*spool, error) {
	s := &spool{Options: o, metrics: m}
	var err error
	if s.lock, err = lockDir(filepath.Join(o.Dir, ".beacons-lock")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("-dir %s: there is no such directory: create it, writable for this user alone: %w", o.Dir, err)
		}
		return nil, fmt.Errorf("%s: expected a directory of this collector's own: %w", o.Dir, err)
	}
	if err = s.finishOthers(); err == nil {
		err = s.scan()
	}
	if err != nil {
		s.lock.Close()
		return nil, err
	}
	s.swept = o.Now()
	return s, nil
}

// finishOthers finishes files that a crash or a failure left. Of the last
// line there may only be a part.
func (s *spool) finishOthers() error {
	left, err := s.files()
	for _, f := range left {
		path := filepath.Join(s.Dir, f.Name())
		switch filepath.Ext(path) {
		case temporary:
			err = errors.Join(err, os.Remove(path))
		case unfinished:
			e := cutLine(path)
			if e == nil {
				e = s.finish(path)
			}
			if e == nil {
				s.Logf("beacons: finished %s, which was left behind", path)
			}
			err = errors.Join(err, e)
		}
	}
	return err
}

// files are those of the directory, but for the one that is being written.
func (s *spool) files() (files []fs.DirEntry, err error) {
	all, err := os.ReadDir(s.Dir)
	for _, f := range all {
		if strings.HasPrefix(f.Name(), namePrefix) && (s.f == nil || f.Name() != filepath.Base(s.f.Name())) {
			files = append(files, f)
		}
	}
	return files, err
}

// cutLine takes off what follows the last line end.
func cutLine(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	tail := make([]byte, min(info.Size(), MaxBody+MinFile)) // more than any line
	from := info.Size() - int64(len(tail))
	if _, err := f.ReadAt(tail, from); err != nil && err != io.EOF {
		return err
	}
	return f.Truncate(from + int64(bytes.LastIndexByte(tail, '\n')+1))
}

// write takes lines. If they can't be written they are counted and lost.
func (s *spool) write(lines []byte, now time.Time) {
	if s.f != nil && s.size+int64(len(lines)) > s.MaxFile {
		s.rotate()
	}
	n := bytes.Count(lines, []byte{'\n'})
	if s.others+s.size+int64(len(lines)) > s.MaxTotal && !s.makeRoom() {
		s.metrics.dropped.Add(uint64(n))
		return
	}
	s.unsure += n
	if s.f == nil {
		if err := s.begin(now); err != nil {
			s.giveUp(err)
			return
		}
	}
	if _, err := s.w.Write(lines); err != nil {
		s.giveUp(err)
		return
	}
	s.size += int64(len(lines))
	s.metrics.diskBytes.Store(s.others + s.size)
}

// makeRoom finishes the file, so that all can be taken away, and looks whether
// some has been, or compressing it was enough.
func (s *spool) makeRoom() bool {
	if s.metrics.full.Load() {
		return false
	}
	s.rotate()
	err := s.scan()
	if err == nil && s.hasRoom() {
		return true
	}
	s.metrics.full.Store(true)
	s.Logf("beacons: %s has reached its %d bytes: reports are refused until files are moved away", s.Dir, s.MaxTotal)
	return false
}

// hasRoom is true when there is room for more than a report.
func (s *spool) hasRoom() bool { return s.others+s.size <= s.MaxTotal-MinFile/2 }

// begin begins a file.
func (s *spool) begin(now time.Time) error {
	for n := 0; ; n++ {
		name := namePrefix + now.UTC().Format(timeForm)
		if n > 0 {
			name += fmt.Sprintf("-%d", n)
		}
		path := filepath.Join(s.Dir, name+plainEnd)
		if exists(path) || exists(path+".gz") {
			continue
		}
		f, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		s.f, s.w, s.size, s.opened = f, bufio.NewWriterSize(f, 64<<10), 0, now
		return nil
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// tick is called once a second.
func (s *spool) tick(now time.Time) {
	if s.f != nil {
		if err := s.w.Flush(); err != nil {
			s.giveUp(err)
		} else {
			s.unsure = 0
			if now.Sub(s.opened) >= s.Rotate {
				s.rotate()
			}
		}
	}
	if age := now.Sub(s.swept); age >= sweepEvery || age < 0 {
		s.sweep(now)
	}
}

// rotate finishes the file, if there is one.
func (s *spool) rotate() {
	if s.f == nil {
		return
	}
	if err := s.w.Flush(); err != nil {
		s.giveUp(err)
		return
	}
	path := s.f.Name()
	err := errors.Join(s.f.Sync(), s.f.Close())
	s.f, s.others, s.size, s.unsure = nil, s.others+s.size, 0, 0
	if err == nil {
		err = s.finish(path)
	}
	if err != nil {
		s.complain(err)
		return
	}
	s.metrics.files.Add(1)
}

// finish gives a file its final name. What it has is on the disk before.
func (s *spool) finish(path string) error {
	final := strings.TrimSuffix(path, unfinished)
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return os.Remove(path)
	}
	if !s.Gzip {
		return moveInto(path, final)
	}
	final += ".gz"
	if !exists(final) { // else a crash came between the two last steps
		if err := compress(path, final+temporary); err != nil {
			return err
		}
		if err := moveInto(final+temporary, final); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// moveInto renames a file that is complete; both are on the disk then.
func moveInto(path, final string) error {
	if err := syncPath(path); err != nil {
		return err
	}
	if err := os.Rename(path, final); err != nil {
		return err
	}
	return syncPath(filepath.Dir(final))
}

// compress writes a file's content to another, in the format of RFC 1952.
func compress(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	err = errors.Join(err, z.Close(), out.Close())
	if err != nil {
		os.Remove(to)
	}
	return err
}

// syncPath brings a file or a directory to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// giveUp is for a disk that doesn't take lines. The file is left for finishOthers,
// the next lines try another one.
func (s *spool) giveUp(err error) {
	if s.f != nil {
		s.f.Close()
		s.f, s.others, s.size = nil, s.others+s.size, 0
	}
	s.metrics.dropped.Add(uint64(s.unsure)) // at most; some may be there
	s.unsure = 0
	s.complain(err)
}

func (s *spool) complain(err error) {
	s.metrics.writeErrors.Add(1)
	if !s.metrics.broken.Swap(true) {
		s.Logf("beacons: measurements are lost: %v", err)
	}
}

// sweep looks at the directory: files are taken away by others, and what a failure left is
// finished once the disk takes it.
func (s *spool) sweep(now time.Time) {
	s.swept = now
	err := s.finishOthers()
	if err == nil && s.f == nil && s.metrics.broken.Load() {
		err = s.begin(now) // is it possible again?
	}
	if err == nil {
		err = s.scan()
	}
	if err != nil {
		s.complain(err)
		return
	}
	s.metrics.broken.Store(false)
	if s.hasRoom() {
		s.metrics.full.Store(false)
	}
}

// scan adds up the files there are.
func (s *spool) scan() error {
	files, err := s.files()
	if err != nil {
		return err
	}
	s.others = 0
	for _, f := range files {
		if info, err := f.Info(); err == nil { // else it was just taken away
			s.others += info.Size()
		}
	}
	s.metrics.diskBytes.Store(s.others + s.size)
	return nil
}

// close finishes all.
func (s *spool) close() error {
	before := s.metrics.writeErrors.Load()
	s.rotate()
	err := s.lock.Close()
	if s.metrics.writeErrors.Load() != before {
		err = errors.Join(err, errors.New("the last file could not be finished; the next run will try"))
	}
	return err
}
