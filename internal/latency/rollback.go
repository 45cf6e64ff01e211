package latency

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// RollBack puts a previous version of a published file back in its place: the latest that was
// built before the map in place, or with to > 0 the one kept as FILE.to. Its mark makes it
// newer than what it replaces, which becomes FILE.1, so that servers take it; the next
// map that is built is newer still. by and why, a line each, go into the mark and FILE.log.
// A map in place that is from the future counts as the oldest: no server has taken it. Where the
// file in place is damaged or gone, from is nil, and the latest version is put back.
// Killed half-way, it leaves the map in place.
func RollBack(path string, to int, now time.Time, o PublishOptions) (from, put *Map, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	current, _, bad := Read(path)
	if unread := (*fs.PathError)(nil); errors.As(bad, &unread) && !errors.Is(bad, fs.ErrNotExist) {
		return nil, nil, bad
	}
	if bad != nil {
		current = nil
	}
	previous, err := pick(path, current, to, now)
	if err != nil {
		return nil, nil, errors.Join(bad, err)
	}
	at := now.UTC().Truncate(time.Second)
	o.Force = true
	if current != nil && !at.After(current.since()) && !current.ahead(now) { // the clock of who built it is a little ahead
		at = current.since().Add(time.Second)
	}
	marked := *previous
	marked.Rollback = &Rollback{At: at, Why: o.Why, By: o.By}
	return current, &marked, publish(path, &marked, now, "rollback", o)
}

// pick finds the version to go back to.
func pick(path string, current *Map, to int, now time.Time) (*Map, error) {
	if to < 0 || to > Kept {
		return nil, fmt.Errorf("version %d: expected 1 to %d", to, Kept)
	}
	if to > 0 {
		m, _, err := Read(version(path, to))
		return m, err
	}
	var best *Map
	var broken error
	future := ""
	for n := 1; n <= Kept; n++ {
		m, _, err := Read(version(path, n))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			broken = errors.Join(broken, err)
		case m.ahead(now):
			future = fmt.Sprintf(" (some are from the future: it is %s here)", stamp(now))
		case (current == nil || m.Built.Before(current.Built)) && (best == nil || m.Built.After(best.Built)):
			best = m
		}
	}
	if best == nil {
		before := ""
		if current != nil {
			before = " was built before " + stamp(current.Built)
		}
		return nil, errors.Join(fmt.Errorf("%s: no version kept beside it (%s to .%d)%s%s: publish another map",
			path, version(filepath.Base(path), 1), Kept, before, future), broken)
	}
	return best, nil
}
