package probe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	storeFile    = "verdicts"
	storeAside   = storeFile + ".bad"
	storeFormat  = "gslb-verdicts 1 "
	maxStoreSize = 64 << 20
	maxStored    = 100_000
	// maxAhead is how far in the future a record may be: clocks are set back.
	maxAhead = time.Minute
)

// Store keeps verdicts and the history of flips in one file, `verdicts`, of a
// directory. The file is text: a line with the format and a checksum, and a line
// of JSON for each Key. Its methods must not be called by two goroutines, nor by
// two processes with one directory, at once.
type Store struct{ path, bad string }

// NewStore gives the store of a directory, which must exist by the time it is
// used.
func NewStore(dir string) *Store {
	return &Store{filepath.Join(dir, storeFile), filepath.Join(dir, storeAside)}
}

// storedLine is a line of the file.
type storedLine struct {
	Key string `json:"key"`
	Saved
}

// Save replaces the file by what is given, of which at most the newest 100,000
// are kept. If it fails, the file is what it was.
func (st *Store) Save(all map[string]Saved) error {
	data, err := encodeSaved(all)
	if err != nil {
		return err
	}
	return WriteAtomic(st.path, data)
}

// Peek is Load for those who only look: a file that can't be read is left where
// it is.
func (st *Store) Peek(now time.Time, maxAge time.Duration) (map[string]Saved, error) {
	data, err := ReadLimited(st.path, maxStoreSize)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := decodeSaved(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", st.path, err)
	}
	return young(all, now, maxAge), nil
}

// young drops what is older than maxAge or from the future.
func young(all map[string]Saved, now time.Time, maxAge time.Duration) map[string]Saved {
	for key, saved := range all {
		if age := now.Sub(saved.At); age > maxAge || age < -maxAhead {
			delete(all, key)
		}
	}
	return all
}

// Load reads what Save wrote, without what is older than maxAge or from the
// future. No file is nothing, and no error. A file that is damaged, or of
// another format, is renamed to `verdicts.bad` (in place of an earlier one): the
// error says why, and nothing is loaded.
func (st *Store) Load(now time.Time, maxAge time.Duration) (map[string]Saved, error) {
	data, err := ReadLimited(st.path, maxStoreSize)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var all map[string]Saved
	if err == nil {
		all, err = decodeSaved(data)
	} else if !errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		err = fmt.Errorf("%s: %w; starting without it", st.path, err)
		if moved := os.Rename(st.path, st.bad); moved != nil {
			return nil, errors.Join(err, moved)
		}
		return nil, fmt.Errorf("%w, set aside as %s", err, st.bad)
	}
	return young(all, now, maxAge), nil
}

func encodeSaved(all map[string]Saved) ([]byte, error) {
	lines := make([]storedLine, 0, len(all))
	for key, saved := range all {
		lines = append(lines, storedLine{key, saved})
	}
	if len(lines) > maxStored {
		slices.SortFunc(lines, func(a, b storedLine) int {
			return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Key, b.Key))
		})
		lines = lines[:maxStored]
	}
	slices.SortFunc(lines, func(a, b storedLine) int { return strings.Compare(a.Key, b.Key) })
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return nil, fmt.Errorf("verdict of %s: %w", lines[i].Key, err)
		}
	}
	head := fmt.Appendf(nil, "%s%016x\n", storeFormat, xxhash.Sum64(body.Bytes()))
	return append(head, body.Bytes()...), nil
}

func decodeSaved(data []byte) (map[string]Saved, error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	sum, ok := strings.CutPrefix(string(head), storeFormat)
	if !ok {
		return nil, fmt.Errorf("its first line is %.40q, expected %q and a checksum: it is of another version or no file of verdicts", head, storeFormat)
	}
	if want, err := strconv.ParseUint(sum, 16, 64); err != nil || want != xxhash.Sum64(body) {
		return nil, errors.New("its checksum is wrong: it is damaged")
	}
	all := map[string]Saved{}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	for {
		var line storedLine
		err := decoder.Decode(&line)
		switch {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("record %d: %w", len(all)+1, err)
		case line.Key == "" || line.Verdict == VerdictUnknown || line.At.IsZero():
			return nil, fmt.Errorf("record %d: expected a key, a verdict and a time", len(all)+1)
		}
		line.Flips = line.Flips[max(0, len(line.Flips)-maxFlips):]
		all[line.Key] = line.Saved
	}
}
