package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	auditFile    = "audit.log"
	maxAuditFile = 10 << 20
	auditFiles   = 3        // with the one written to
	maxAuditWhy  = 2000     // bytes of a reason
	maxAuditWord = 300      // bytes of any other text
	maxAuditLine = 16 << 10 // bytes that follow from that
	maxTail      = 1000     // entries
)

// Outcomes of an Entry.
const (
	OutcomeAccepted = "accepted"
	OutcomeRefused  = "refused"
)

// Entry is one line of the audit log, of at most 16 KiB: reasons are cut at 2000
// bytes, other texts at 300.
type Entry struct {
	Time     time.Time `json:"time"`
	Who      string    `json:"who"` // name of the token; gslb for an expiry
	From     string    `json:"from,omitempty"`
	Action   string    `json:"action"`       // a lever, or cancel, expire or return
	ID       string    `json:"id,omitempty"` // of the override
	Object   string    `json:"object,omitempty"`
	Value    string    `json:"value,omitempty"`
	Previous string    `json:"previous,omitempty"`
	Why      string    `json:"why,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Never    bool      `json:"never,omitempty"`
	Version  string    `json:"version"` // before it
	Outcome  string    `json:"outcome"` // accepted or refused
	Reason   string    `json:"reason,omitempty"`
	Forced   bool      `json:"forced,omitempty"` // guards were overruled
}

// entryOf is what the log says of an override.
func entryOf(o *Override) Entry {
	value := string(o.Value)
	if o.Area != "" {
		value += " of area " + o.Area
	}
	return Entry{Who: o.By, Action: string(o.Lever), ID: o.ID, Object: o.Object.String(), Value: value,
		Previous: o.Previous, Why: o.Why, Until: o.Until, Never: o.Never}
}

// Audit is an append-only log of changes: lines of JSON in audit.log, which
// becomes audit.log.1 at 10 MiB and audit.log.2 after that. Its methods may be
// called by several goroutines.
type Audit struct {
	mu   sync.Mutex
	path string
	file *os.File
	size int64
	most int64 // size at which a new file begins
	torn bool  // the file may not end with a whole line
	// sink is what is written to: the file; tests put others.
	sink interface {
		io.Writer
		Sync() error
	}
}

// openAudit opens the log of a directory, and makes it if there is none.
func openAudit(dir string) (*Audit, error) {
	a := &Audit{path: filepath.Join(dir, auditFile), most: maxAuditFile}
	return a, a.open(a.path)
}

func (a *Audit) open(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("the audit log: %w", err)
	}
	a.file, a.sink, a.size = f, f, info.Size()
	last := []byte{'\n'}
	if a.size > 0 {
		f.ReadAt(last, a.size-1) // what a crash left of a line stays, on a line of its own
	}
	a.torn = last[0] != '\n'
	return nil
}

// Close closes the log.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.file.Close()
}

// write appends entries and waits until they are on the disk. If it fails, some
// of them may be there all the same.
func (a *Audit) write(entries ...Entry) error {
	var lines []byte
	for _, e := range entries {
		line, err := e.line()
		if err != nil {
			return fmt.Errorf("the audit log: %w", err)
		}
		lines = append(lines, line...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.follow(); err != nil {
		return err
	}
	if a.size > 0 && a.size+int64(len(lines)) > a.most {
		if err := a.rotate(); err != nil {
			return err
		}
	}
	if a.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := a.sink.Write(lines)
	a.size += int64(n)
	a.torn = err != nil && (n > 0 || a.torn)
	if err == nil {
		err = a.sink.Sync()
	}
	if err != nil {
		return fmt.Errorf("the audit log can't be written: %w", err)
	}
	return nil
}

// follow opens the log again if what is written to is no longer the file of its name: one
// that was removed or moved away takes lines that nobody will find.
func (a *Audit) follow() error {
	named, err := os.Stat(a.path)
	if err == nil {
		if open, err := a.file.Stat(); err == nil && os.SameFile(named, open) {
			return nil
		}
	}
	old := a.file
	if err := a.open(a.path); err != nil {
		return err
	}
	old.Close()
	return nil
}

// rotate begins a new file. If it can't be made, the others stay what they are.
func (a *Audit) rotate() error {
	old, fresh := a.file, a.path+".new"
	if err := a.open(fresh); err != nil {
		return err
	}
	old.Close()
	for i := auditFiles - 1; i > 0; i-- {
		err := os.Rename(a.name(i-1), a.name(i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the audit log: %w", err)
		}
	}
	if err := os.Rename(fresh, a.path); err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	return nil
}

// name is the path of the log, i files ago.
func (a *Audit) name(i int) string {
	if i == 0 {
		return a.path
	}
	return fmt.Sprintf("%s.%d", a.path, i)
}

// line is an entry as it is written.
func (e Entry) line() ([]byte, error) {
	e.Time = e.Time.UTC()
	for _, text := range []*string{&e.Who, &e.From, &e.Action, &e.ID, &e.Object, &e.Value, &e.Previous, &e.Version, &e.Outcome} {
		*text = printable(*text, maxAuditWord)
	}
	e.Why, e.Reason = printable(e.Why, maxAuditWhy), printable(e.Reason, maxAuditWhy)
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	err := out.Encode(e)
	return line.Bytes(), err
}

// printable is a text without what would be escaped at length, cut to so many bytes.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// tail gives the last entries, the oldest first, of all files. Lines that are no
// entries are left out.
func (a *Audit) tail(limit int) ([]Entry, error) {
	limit = min(limit, maxTail)
	a.mu.Lock()
	defer a.mu.Unlock()
	var newest []Entry // first
	for i := 0; i < auditFiles && len(newest) < limit; i++ {
		data, err := lastBytes(a.name(i), int64(limit)*maxAuditLine)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the audit log: %w", err)
		}
		lines := bytes.Split(data, []byte{'\n'})
		for _, line := range slices.Backward(lines) {
			var e Entry
			if len(line) == 0 || json.Unmarshal(line, &e) != nil || e.Time.IsZero() {
				continue
			}
			if newest = append(newest, e); len(newest) == limit {
				break
			}
		}
	}
	slices.Reverse(newest)
	return newest, nil
}

// highestID is the highest ID that the end of the log tells of; 0: none.
func (a *Audit) highestID() (highest uint64) {
	entries, err := a.tail(maxTail)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.ID, 10, 53); err == nil && e.Outcome == OutcomeAccepted {
			highest = max(highest, n)
		}
	}
	return highest
}

// lastBytes reads the end of a file.
func lastBytes(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n = min(n, info.Size())
	data := make([]byte, n)
	read, err := f.ReadAt(data, info.Size()-n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:read], err
}
