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

// copyAge is the oldest copy that is used.
const copyAge = 30 * 24 * time.Hour

// database gives the last good content of a database, nil without one.
func (l *LastGood) database(path string, kind geodb.Kind) *geodb.DB {
	for _, d := range l.InService {
		for _, db := range d.dbs {
			if db.path == path && db.kind == kind && db.db != nil {
				return db.db
			}
		}
	}
	if data, _ := l.copyOf(path); data != nil {
		if db, err := geodb.OpenBytes(path, data, kind); err == nil {
			return db
		}
	}
	return nil
}

// list gives the last good content of a file of prefixes, nil without one.
func (l *LastGood) list(path string, words geodb.Words) *prefixList {
	for _, d := range l.InService {
		if old := d.lists[path]; old != nil && old.words == words {
			return old
		}
	}
	if data, _ := l.copyOf(path); data != nil {
		if lines, err := geodb.ParsePrefixes(path, data, words); err == nil {
			return &prefixList{path, words, lines, xxhash.Sum64(data)}
		}
	}
	return nil
}

// copyOf reads the copy of a file, and its date; nil if there is none that is young
// enough.
func (l *LastGood) copyOf(path string) ([]byte, time.Time) {
	if l.Dir == "" {
		return nil, time.Time{}
	}
	name := copyName(l.Dir, path)
	info, err := os.Stat(name)
	if err != nil || l.Now.Sub(info.ModTime()) > copyAge {
		return nil, time.Time{}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, time.Time{}
	}
	return data, info.ModTime()
}

// copyName is where the copy of a data file is kept.
func copyName(dir, path string) string {
	return filepath.Join(dir, fmt.Sprintf("data-%016x", xxhash.Sum64String(path)))
}

// Keep writes a copy of every data file whose content is in use into the state
// directory, for a start at which the file can't be used. Files that have
// changed since are left for when they are loaded.
func (d *Data) Keep(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	var errs []error
	for _, f := range d.Files() {
		if !f.Loaded || d.Stale[f.Path] != nil {
			continue
		}
		data, err := os.ReadFile(f.Path)
		if err == nil && xxhash.Sum64(data) == f.Hash {
			err = probe.WriteAtomic(copyName(dir, f.Path), data)
			if err == nil && !f.Dated.IsZero() {
				err = os.Chtimes(copyName(dir, f.Path), f.Dated, f.Dated) // its age goes on counting
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
