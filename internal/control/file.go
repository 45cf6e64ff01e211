package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-945f90c5/gslb/internal/probe"
)

const (
	overridesFile    = "overrides.json"
	overridesFormat  = 1
	maxOverridesFile = 8 << 20
)

// envelope is the file: its body and a checksum of it, white space apart.
type envelope struct {
	Format int    `json:"format"`
	SHA256 string `json:"sha256"`
	// Overrides is a body.
	Overrides json.RawMessage `json:"overrides"`
}

// body is a set of overrides as it is kept.
type body struct {
	Epoch    int64       `json:"epoch"`
	Revision uint64      `json:"revision"`
	Next     uint64      `json:"next"`
	List     []*Override `json:"list"`
}

// encode writes a set for its file.
func (s *Overrides) encode() ([]byte, error) {
	raw, err := json.Marshal(body{s.epoch, s.revision, s.next, s.All()})
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(envelope{overridesFormat, sum(raw), raw}, "", "  ")
	return append(data, '\n'), err
}

func sum(compact []byte) string {
	h := sha256.Sum256(compact)
	return hex.EncodeToString(h[:])
}

// decodeOverrides reads what encode wrote, and nothing that it wouldn't have
// written.
func decodeOverrides(data []byte) (*Overrides, error) {
	var e envelope
	if err := decodeStrictly(data, &e); err != nil {
		return nil, err
	}
	if e.Format != overridesFormat {
		return nil, fmt.Errorf("its format is %d, expected %d: another version of the server wrote it", e.Format, overridesFormat)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Overrides); err != nil {
		return nil, err
	}
	if sum(compact.Bytes()) != e.SHA256 {
		return nil, errors.New("its checksum is wrong: it is damaged, or was edited")
	}
	var b body
	if err := decodeStrictly(e.Overrides, &b); err != nil {
		return nil, err
	}
	if len(b.List) > maxOverrides || b.Next == 0 || b.Next > 1<<53 {
		return nil, fmt.Errorf("%d overrides and %d for the next ID, expected at most %d and an ID from 1", len(b.List), b.Next, maxOverrides)
	}
	s := &Overrides{all: make(map[key]*Override, len(b.List)), revision: b.Revision, next: b.Next, epoch: b.Epoch}
	for i, o := range b.List {
		if err := s.adopt(o); err != nil {
			return nil, fmt.Errorf("override %d of its list: %w", i+1, err)
		}
	}
	return s, nil
}

// adopt adds an override as it was read, if it is one that could have been made.
func (s *Overrides) adopt(o *Override) error {
	if o == nil || o.number() == 0 || uint64(o.number()) >= s.next {
		return fmt.Errorf("expected an ID from 1 to %d", s.next-1)
	}
	c := Change{Lever: o.Lever, Object: o.Object, Value: o.Value, Area: o.Area, Terms: Terms{o.Why, o.Until, "", o.Never}}
	checked, err := c.check(o.Made)
	switch {
	case err != nil:
		return err
	case checked != c:
		return errors.New("it is not in its canonical form")
	case o.Never == !o.Until.IsZero():
		return errors.New("expected either an expiry or never")
	case s.all[key{o.Lever, o.Object}] != nil:
		return fmt.Errorf("%s of %s is there twice", o.Lever, o.Object)
	case s.Find(o.ID) != nil:
		return fmt.Errorf("the ID %s is there twice", o.ID)
	}
	s.all[key{o.Lever, o.Object}] = o
	return nil
}

// save replaces the file of a directory. If it fails, the file is what it was.
func (s *Overrides) save(dir string) error {
	data, err := s.encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil { // it may have been removed
		return err
	}
	return probe.WriteAtomic(filepath.Join(dir, overridesFile), data)
}

// Peek reads the overrides that a server keeps in a directory and that hold now, and
// leaves the file alone; nil: none.
func Peek(dir string, now time.Time) (*Overrides, error) {
	path := filepath.Join(dir, overridesFile)
	data, err := probe.ReadLimited(path, maxOverridesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := decodeOverrides(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s, _ = s.prune(now)
	return s, nil
}

// ErrSetAside says that the overrides that were kept are lost: the file is
// damaged and was set aside, or it is gone.
var ErrSetAside = errors.New("the overrides made before are lost")

// load reads the file of a directory. A file that can't be used is renamed, and
// the error is an ErrSetAside; any other error is of the directory. No file is no
// overrides, and nil.
func load(dir string, now time.Time) (*Overrides, error) {
	path := filepath.Join(dir, overridesFile)
	data, err := probe.ReadLimited(path, maxOverridesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil && !errors.Is(err, probe.ErrTooLarge) {
		return nil, err
	}
	var s *Overrides
	if err == nil {
		s, err = decodeOverrides(data)
	}
	if err == nil {
		return s, nil
	}
	aside := path + ".bad-" + now.UTC().Format("20060102T150405Z")
	if moved := os.Rename(path, aside); moved != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), moved)
	}
	return nil, fmt.Errorf("%w: %s: %w; it is set aside as %s. Look there for what was overridden, and make it again", ErrSetAside, path, err, aside)
}
