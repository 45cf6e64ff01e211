package guard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-945f90c5/gslb/internal/probe"
)

// MemoryFile is the name of the file in a state directory that tells what was last
// accepted: JSON, compressed with gzip.
const MemoryFile = "accepted.json.gz"

// memoryVersion is that of the file's format.
const memoryVersion = 3

// Limits of the file, in bytes: as it is, and unpacked.
const (
	maxPacked   = 16 << 20
	maxUnpacked = 32 << 20
)

// memories is what the file holds.
type memories struct {
	Version int       `json:"version"`
	Blocks  []*Memory `json:"blocks"`
}

// SaveMemories writes what the blocks of a process decide into its state directory.
// Two calls for one directory must not run at once.
func SaveMemories(dir string, blocks []*Memory) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	err := json.NewEncoder(z).Encode(memories{memoryVersion, blocks})
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	if packed.Len() > maxPacked {
		return fmt.Errorf("%s: %d bytes are more than %d", MemoryFile, packed.Len(), maxPacked)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return probe.WriteAtomic(filepath.Join(dir, MemoryFile), packed.Bytes())
}

// LoadMemories reads what SaveMemories wrote: nothing, and no error, if there is no file.
func LoadMemories(dir string) ([]*Memory, error) {
	path := filepath.Join(dir, MemoryFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := unpack(io.LimitReader(f, maxPacked))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	list, err := parseMemories(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func unpack(r io.Reader) ([]byte, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: z, N: maxUnpacked}
	data, err := io.ReadAll(limited)
	if err != nil {
		return nil, err
	}
	if limited.N == 0 {
		return nil, fmt.Errorf("more than %d bytes when unpacked", maxUnpacked)
	}
	return data, nil
}

// parseMemories reads what was unpacked; what it gives can be compared with.
func parseMemories(data []byte) ([]*Memory, error) {
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Version != memoryVersion {
		return nil, fmt.Errorf("version %d of the format; expected %d", head.Version, memoryVersion)
	}
	var m memories
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	for i, one := range m.Blocks {
		if one == nil || !one.valid() {
			return nil, fmt.Errorf("block %d is damaged", i)
		}
	}
	return m.Blocks, nil
}

// valid tells whether everything in it refers to something that is there.
func (m *Memory) valid() bool {
	seen := make(map[[2]int]bool)
	for _, h := range m.Hosts {
		if !within(h.Samples, len(m.Samples)) || !within(h.Flows, len(m.Flows)) {
			return false
		}
		key := [2]int{h.Samples, h.Flows}
		if !seen[key] && !m.fits(m.Samples[h.Samples], &m.Flows[h.Flows]) {
			return false
		}
		seen[key] = true
	}
	return true
}

// fits tells whether a table speaks of every list of the samples.
func (m *Memory) fits(samples []sample, t *table) bool {
	for _, r := range t.Use {
		if !within(r, len(m.Regions)) {
			return false
		}
	}
	for _, s := range samples {
		if !within(s.Group, groups) || len(s.Blocks) != len(s.Lists) || slices.ContainsFunc(s.Blocks, func(p netip.Prefix) bool { return !p.IsValid() }) {
			return false
		}
	}
	for _, ft := range t.Families {
		known := make(map[int]bool)
		for _, row := range ft.Lists {
			known[row.List] = true
			if len(row.Regions) != len(row.Parts) {
				return false
			}
			for i, r := range row.Regions {
				if !within(r, len(m.Regions)+1) || !(row.Parts[i] >= 0 && row.Parts[i] <= 1) {
					return false
				}
			}
		}
		if !within(ft.Family, 2) {
			return false
		}
		for _, s := range samples {
			if slices.ContainsFunc(s.Lists, func(l int) bool { return !known[l] }) {
				return false
			}
		}
	}
	return true
}

func within(i, n int) bool { return i >= 0 && i < n }
