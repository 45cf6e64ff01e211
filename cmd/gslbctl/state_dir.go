package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// stateWarnings tell that the state directory of a block can't be used, as far as that can
// be known without trying.
func (s *serverBlock) stateWarnings(b *config.Block) []config.Warning {
	dir := s.stateDir(b)
	if dir == "" {
		return nil
	}
	err := unwritable(dir, access)
	if err == nil {
		return nil
	}
	return []config.Warning{{Pos: b.State.Pos, Text: fmt.Sprintf("state %s can't be made or written to: %v: "+
		"expected a directory that the server's user can write to, or make (run this as that user)", dir, err)}}
}

// unwritable says why this user can't write into a directory, or make it: access, which
// tells whether one that exists can be written to, is asked of the first that does.
func unwritable(dir string, access func(string) error) error {
	for {
		info, err := os.Stat(dir)
		above := filepath.Dir(dir)
		switch {
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && above != dir:
			dir = above
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is no directory", dir)
		}
		if err := access(dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		return nil
	}
}
