package target

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// File is the name of the file, in a state directory, that holds what Encode wrote.
const File = "targets"

// Peek reads the file of a state directory, without targets that were not confirmed
// for longer than maxAge. No file is nothing, and no error. The file stays as it is.
func Peek(dir string, now time.Time, maxAge time.Duration) (map[string]Saved, error) {
	all, _, err := readFile(dir, now, maxAge)
	return all, err
}

// Load is Peek for the process that will write the file anew: one that is damaged, or
// of another format, is renamed to `targets.bad` (in place of an earlier one). The
// error says so, and nothing is loaded.
func Load(dir string, now time.Time, maxAge time.Duration) (map[string]Saved, error) {
	all, damaged, err := readFile(dir, now, maxAge)
	if !damaged {
		return all, err
	}
	path := filepath.Join(dir, File)
	aside := path + ".bad"
	err = fmt.Errorf("%w; starting without it", err)
	if moved := os.Rename(path, aside); moved != nil {
		return nil, errors.Join(err, moved)
	}
	return nil, fmt.Errorf("%w, set aside as %s", err, aside)
}

// readFile reads the file, and tells whether what is wrong is in it.
func readFile(dir string, now time.Time, maxAge time.Duration) (all map[string]Saved, damaged bool, err error) {
	path := filepath.Join(dir, File)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStore+1))
	if err != nil {
		return nil, false, err
	}
	if all, err = Decode(data, now, maxAge); err != nil {
		return nil, true, fmt.Errorf("%s: %w", path, err)
	}
	return all, false, nil
}
