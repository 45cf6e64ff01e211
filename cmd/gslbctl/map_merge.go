package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency/build"
)

const mapMergeHelp = `Usage: gslbctl map merge -o FILE [flags] DAY…

Makes a steering map of sketches of days, as "gslbctl map build -write-sketches" wrote
them; it is the map of all their measurements together, of which a day counts less the
older it is (-half-life). The flags are those of map build.

Example:
    gslbctl map merge -conf Corefile -host api.example.com -previous map.mmdb -o map.mmdb days/*.gslbs

`

// mapMerge is mapBuild under another name, since a builder knows sketches by their
// content; only the help says less.
func mapMerge(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("map merge", mapMergeHelp, stdout, stderr)
	f := newMapBuildFlags(flags)
	inputs, code := parseFlags(flags, args)
	if inputs == nil {
		return code
	}
	return f.run(flags, inputs, stdout, stderr)
}

// newFileWriter writes a file that appears under its name when it is complete.
type newFileWriter struct {
	*bufio.Writer
	f    *os.File
	path string
}

// newFile begins a file of sketches; nil for no path. Methods of nil do nothing.
func newFile(path string) (*newFileWriter, error) {
	if path == "" {
		return nil, nil
	}
	if err := replaceable(path); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return nil, err
	}
	return &newFileWriter{bufio.NewWriterSize(f, 1<<18), f, path}, nil
}

// replaceable refuses what sketches must not take the place of: measurements, a map, a
// directory.
func replaceable(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if info.Size() == 0 || build.IsSketches(f) {
			return nil
		}
	}
	return fmt.Errorf("%s holds no sketches: expected no such file, or sketches that these take the place of", path)
}

// commit gives the file its name.
func (w *newFileWriter) commit() error {
	if w == nil {
		return nil
	}
	err := w.Flush()
	if err == nil {
		err = w.f.Sync()
	}
	if err == nil {
		err = w.f.Chmod(0o644)
	}
	if err == nil {
		err = os.Rename(w.f.Name(), w.path)
	}
	if err != nil {
		return err
	}
	f := w.f
	w.f = nil
	return f.Close()
}

// discard removes a file that wasn't committed.
func (w *newFileWriter) discard() {
	if w != nil && w.f != nil {
		w.f.Close()
		os.Remove(w.f.Name())
	}
}

// byteSize is a flag for sizes: a number of bytes, with K, M or G for powers of 1024.
type byteSize int64

func (b *byteSize) String() string { return strconv.FormatInt(int64(*b), 10) }

func (b *byteSize) Set(s string) error {
	digits, shift := s, 0
	if i := strings.IndexByte("KMG", strings.ToUpper(s + " ")[len(s)-min(len(s), 1)]); i >= 0 {
		digits, shift = s[:len(s)-1], 10*(i+1)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > 1<<40>>shift {
		return fmt.Errorf("expected a number of bytes such as 2G, at most 1024G")
	}
	*b = byteSize(n << shift)
	return nil
}

// progressBar shows how far a command is, on a terminal. Methods of nil do
// nothing.
type progressBar struct {
	w       io.Writer
	now     func() time.Time
	stage   string
	started time.Time
	shown   time.Time
	width   int
}

// newProgressBar is nil unless w is a terminal.
func newProgressBar(w io.Writer) *progressBar {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return &progressBar{w: w, now: time.Now}
}

// show is a builder's Progress.
func (p *progressBar) show(stage string, done, of int64) {
	now := p.now()
	if stage != p.stage {
		p.stage, p.started, p.shown = stage, now, time.Time{}
	}
	if now.Sub(p.shown) < 200*time.Millisecond {
		return
	}
	p.shown = now
	line := fmt.Sprintf("%-8s %s", stage, now.Sub(p.started).Round(time.Second))
	switch {
	case of > 0:
		part := min(float64(done)/float64(of), 1)
		full := int(30 * part)
		line += fmt.Sprintf("  [%s%s] %3.0f %%", strings.Repeat("=", full), strings.Repeat(" ", 30-full), 100*part)
	default:
		line += fmt.Sprintf("  %d MB", done>>20)
	}
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = len(line)
}

// clear takes the bar away.
func (p *progressBar) clear() {
	if p != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
		p.width = 0
	}
}
