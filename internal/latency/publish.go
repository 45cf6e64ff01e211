package latency

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Kept is how many previous versions stay beside a published file, as FILE.1,
// the last, to FILE.5.
const Kept = 5

// PublishOptions say how a map is published.
type PublishOptions struct {
	By  string // the user who does it, for the log; one line
	Why string // one line
	// Force has a map from the future give way: the clock of who built it was ahead.
	Force bool
	// step is called before each change on disk. After an error nothing more is
	// done, as if the process had been killed there; for tests.
	step func(string) error
}

// LogLine is a line of the log beside a published file, FILE.log: JSON, one for
// each publication and rollback. It is written just before the file is replaced.
type LogLine struct {
	Time   time.Time `json:"time"`
	Action string    `json:"action"` // publish or rollback
	By     string    `json:"by"`
	Why    string    `json:"why,omitempty"`
	From   *Version  `json:"from"` // null: there was no file
	To     Version   `json:"to"`
}

// Version tells which map a file held.
type Version struct {
	Built    time.Time  `json:"built"`
	Rollback *time.Time `json:"rolled_back,omitempty"`
	Digest   string     `json:"digest"`
	Entries  int        `json:"entries"`
}

func versionOf(m *Map) Version {
	v := Version{Built: m.Built, Digest: fmt.Sprintf("%016x", m.Digest()), Entries: len(m.Clients) + len(m.Resolvers)}
	if m.Rollback != nil {
		v.Rollback = &m.Rollback.At
	}
	return v
}

// Publish puts a map in the place of the file at path, in the form of its name (.mmdb
// or .txt), and keeps what was there as FILE.1. The map in place must be older; if it is the
// same map, nothing is done.
// A reader finds the old file or the new one, whole, whenever it looks, also when the
// process is killed or the machine stops. Of publishers at the same time the last
// wins, but the versions kept may be out of order. now is the present time.
func Publish(path string, m *Map, now time.Time, o PublishOptions) error {
	return publish(path, m, now, "publish", o)
}

func publish(path string, m *Map, now time.Time, action string, o PublishOptions) error {
	format, err := FormatOf(path)
	if err != nil {
		return err
	}
	if err := m.Validate(now); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the link stays
	}
	line := LogLine{Time: now.UTC(), Action: action, By: o.By, Why: o.Why, To: versionOf(m)}
	mode := fs.FileMode(0o644)
	switch old, _, err := Read(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && action == "rollback": // it becomes FILE.1 as it is
	case err != nil:
		return fmt.Errorf("%w\nso nothing is published over it: move it away first, or put the version before it back with \"gslbctl map rollback\"", err)
	case m.Digest() == old.Digest():
		return nil
	case !m.Newer(old) && old.ahead(now) && !o.Force:
		return fmt.Errorf("%s: the map in place is from the future, of %s, and it is %s; no server takes it: "+
			`put an earlier one back with "gslbctl map rollback", or build with -force`, path, stamp(old.since()), stamp(now))
	case !m.Newer(old) && !old.ahead(now):
		return fmt.Errorf("%s: the new map was %s", path, notNewer(old, m))
	default:
		v := versionOf(old)
		line.From = &v
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	p := publication{path: path, step: o.step}
	if p.step == nil {
		p.step = func(string) error { return nil }
	}
	return p.run(m, format, mode, line)
}

// ahead tells whether a map is from the future, by more than clocks may differ: no server
// takes it, so any other is better.
func (m *Map) ahead(now time.Time) bool { return m.since().After(now.Add(maxSkew)) }

// publication is one change of a file on disk.
type publication struct {
	path string
	step func(string) error
	dead bool // a step failed as if the process had been killed
}

// do is one step.
func (p *publication) do(what string, f func() error) error {
	if err := p.step(what); err != nil {
		p.dead = true
		return err
	}
	return f()
}

// run writes the new file aside, keeps the old one, logs, and renames last.
func (p *publication) run(m *Map, format Format, mode fs.FileMode, line LogLine) error {
	p.sweep(line.Time)
	temp, err := p.write(m, format, mode)
	defer func() {
		if temp != "" && !p.dead {
			os.Remove(temp) // gone already when all went well
		}
	}()
	if err == nil {
		err = p.keep()
	}
	if err == nil {
		err = p.do("log", func() error { return appendLine(p.path+".log", line) })
	}
	if err == nil {
		err = p.do("rename", func() error { return os.Rename(temp, p.path) })
	}
	if err == nil {
		err = p.do("sync directory", func() error { return syncDirectory(filepath.Dir(p.path)) })
	}
	return err
}

// tempPattern is that of new files that are being written.
func (p *publication) tempPattern() string { return "." + filepath.Base(p.path) + ".new-*" }

// sweep removes new files that publishers which were killed left behind.
func (p *publication) sweep(now time.Time) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(p.path), p.tempPattern()))
	for _, file := range left {
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > 24*time.Hour {
			os.Remove(file) // the next one tries again
		}
	}
}

// write writes the new file aside, wholly on disk.
func (p *publication) write(m *Map, format Format, mode fs.FileMode) (name string, err error) {
	var f *os.File
	if err := p.do("create", func() (err error) {
		f, err = os.CreateTemp(filepath.Dir(p.path), p.tempPattern())
		return err
	}); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Name(), errors.Join(
		p.do("write", func() error {
			out := bufio.NewWriterSize(f, 1<<20)
			if err := Write(out, m, format); err != nil {
				return err
			}
			return errors.Join(out.Flush(), f.Chmod(mode), f.Sync())
		}))
}

// version is the name of the n-th version kept.
func version(path string, n int) string { return fmt.Sprintf("%s.%d", path, n) }

// keep makes the file in place FILE.1 too, and moves the versions before it up to the
// first gap. The file itself stays where it is.
func (p *publication) keep() error {
	now, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if first, err := os.Stat(version(p.path, 1)); err == nil && os.SameFile(now, first) {
		return nil // a publisher was killed after this step
	}
	free := 1
	for ; free < Kept; free++ {
		if _, err := os.Lstat(version(p.path, free)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	for n := free - 1; n >= 1; n-- {
		if err := p.do("shift", func() error { return os.Rename(version(p.path, n), version(p.path, n+1)) }); err != nil {
			return err
		}
	}
	return p.do("link", func() error { return linkOrCopy(p.path, version(p.path, 1)) })
}

// linkOrCopy gives a file a second name, or where the file system has no links
// makes a copy.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// appendLine adds a line to a log, wholly on disk.
func appendLine(path string, line LogLine) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	var b strings.Builder
	err = json.NewEncoder(&b).Encode(line)
	if err == nil {
		_, err = io.WriteString(f, b.String())
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDirectory makes what was renamed in a directory last.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
