package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-945f90c5/gslb/internal/geodb"
	"github.com/seed-945f90c5/gslb/internal/probe"

	"github.com/cespare/xxhash/v2"
)

// LastGood is where the content of a data file is taken from that can't be used
// as it is: what is in service, else the copy in a state directory.
type LastGood struct {
	InService []*Data
	Dir       string // state directory; empty: none
	Now       time.Time
}

// copyAge is how long ago the content of a copy may have been in service for it to be
// used. A latency map's own age says more, so it has no such limit.
const copyAge = 30 * 24 * time.Hour

// database gives the last good content of a database, nil without one. The error says
// why there is a copy and it can't be used.
func (l *LastGood) database(path string, kind geodb.Kind) (*geodb.DB, error) {
	for _, d := range l.InService {
		for _, db := range d.dbs {
			if db.path == path && db.kind == kind && db.db != nil {
				return db.db, nil
			}
		}
	}
	data, err := l.youngCopyOf(path)
	if data == nil {
		return nil, err
	}
	db, err := geodb.OpenBytes(path, data, kind)
	return db, l.ofCopy(path, err)
}

// list gives the last good content of a file of prefixes, nil without one; the error is
// as for database.
func (l *LastGood) list(path string, words geodb.Words) (*prefixList, error) {
	for _, d := range l.InService {
		if old := d.lists[path]; old != nil && old.words == words {
			return old, nil
		}
	}
	data, err := l.youngCopyOf(path)
	if data == nil {
		return nil, err
	}
	lines, err := geodb.ParsePrefixes(path, data, words)
	if err != nil {
		return nil, l.ofCopy(path, err)
	}
	return &prefixList{path, words, lines, xxhash.Sum64(data)}, nil
}

// youngCopyOf is copyOf for what the age of the copy says all of.
func (l *LastGood) youngCopyOf(path string) ([]byte, error) {
	data, date, err := l.copyOf(path)
	if age := l.Now.Sub(date); data != nil && age > copyAge {
		return nil, fmt.Errorf("%s was last in service %s, more than %.0f days ago", copyName(l.Dir, path), stamp(date), copyAge.Hours()/24)
	}
	return data, err
}

// copyOf reads the copy of a file, and its date, see Keep; nil if there is none.
func (l *LastGood) copyOf(path string) ([]byte, time.Time, error) {
	if l.Dir == "" {
		return nil, time.Time{}, nil
	}
	name := copyName(l.Dir, path)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, time.Time{}, err
	}
	return data, info.ModTime(), nil
}

// ofCopy says of an error that it is one of the copy of a file.
func (l *LastGood) ofCopy(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, the copy of %w", copyName(l.Dir, path), err)
}

// copyName is where the copy of a data file is kept.
func copyName(dir, path string) string {
	return filepath.Join(dir, fmt.Sprintf("data-%016x", xxhash.Sum64String(path)))
}

// Keep has the state directory hold a copy of every data file whose content is in use,
// for a start at which the file can't be used. A copy's date says when its content was last
// in service, so Keep is to be called now and then; what is there already is only dated
// anew. Files that have changed since are left for when they are loaded.
func (d *Data) Keep(dir string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	var errs []error
	for _, f := range d.Files() {
		if f.Loaded {
			errs = append(errs, keep(copyName(dir, f.Path), f, d.Stale[f.Path] != nil, now))
		}
	}
	return errors.Join(errs...)
}

// keep is Keep for one file. One that is stale has nothing to copy.
func keep(name string, f geodb.File, stale bool, now time.Time) error {
	if hash, err := geodb.HashFile(name); err != nil || hash != f.Hash {
		if stale {
			return nil
		}
		data, err := os.ReadFile(f.Path)
		if err != nil || xxhash.Sum64(data) != f.Hash {
			return err
		}
		if err := probe.WriteAtomic(name, data); err != nil {
			return err
		}
	}
	if !f.Dated.IsZero() {
		now = f.Dated // its age goes on counting
	}
	return os.Chtimes(name, now, now)
}

// orCopy is the error for a file that can't be used when its copy can't be, either; no
// second error is no copy.
func orCopy(err, copied error) error {
	if copied == nil {
		return err
	}
	return fmt.Errorf("%w; nor can what was in service last: %w", err, copied)
}

// missing says of a file that isn't there where it was looked for.
func missing(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) || filepath.IsAbs(path) {
		return err
	}
	if dir, werr := os.Getwd(); werr == nil {
		return fmt.Errorf("%w (in %s: relative paths are under the working directory, or what root says)", err, dir)
	}
	return err
}
