package latency

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a map can say. Beyond them it is a mistake.
const (
	maxSkew = time.Hour // of the clocks of who builds and who reads
	maxP75  = 1e6       // milliseconds
	maxName = 63        // bytes of a region's name
	maxMark = 500       // bytes of each text of a Rollback
)

// Validate is an error for a map that is not as its type says: entries out of
// order or overlapping, orders with duplicates, numbers that no measurement
// gives, times from the future. now is the present time.
func (m *Map) Validate(now time.Time) error {
	if err := m.validate(); err != nil {
		return err
	}
	if limit := now.Add(maxSkew); m.Built.After(limit) {
		return fmt.Errorf("built %s, which is in the future (it is %s): set the clock right where maps are built", stamp(m.Built), stamp(now))
	} else if m.Rollback != nil && m.Rollback.At.After(limit.Add(time.Minute)) { // a mark is put a second after what it replaces
		return fmt.Errorf("rolled back %s, which is in the future (it is %s): set the clock right where that was done", stamp(m.Rollback.At), stamp(now))
	}
	return nil
}

// Check is an error that names all regions that the map's entries use and that
// are not among the known ones.
func (m *Map) Check(known []string) error {
	used := make([]bool, len(m.Regions))
	for _, entries := range m.sides() {
		for i := range entries {
			for _, r := range entries[i].Order {
				used[r] = true
			}
		}
	}
	var unknown []string
	for i, name := range m.Regions {
		if used[i] && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("the map sends clients to regions that are not known: %s; expected some of: %s; "+
		"add these regions, or build the map without them", strings.Join(unknown, ", "), strings.Join(known, ", "))
}

// validate is Validate without the present time.
func (m *Map) validate() error {
	if err := m.validateHead(); err != nil {
		return err
	}
	if n := len(m.Clients) + len(m.Resolvers); n > MaxEntries {
		return fmt.Errorf("%d entries, expected at most %d", n, MaxEntries)
	}
	for side, entries := range m.sides() {
		for i := range entries {
			e := &entries[i]
			err := e.validate(len(m.Regions))
			if err == nil && i > 0 {
				err = follows(entries[i-1].Prefix, e.Prefix)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %w", sideNames[side], e.Prefix, err)
			}
		}
	}
	return nil
}

// validateHead checks what is not an entry.
func (m *Map) validateHead() error {
	if len(m.Regions) > MaxRegions {
		return fmt.Errorf("%d regions, expected at most %d", len(m.Regions), MaxRegions)
	}
	for i, name := range m.Regions {
		if !validName(name) {
			return fmt.Errorf("%q can't name a region: expected a lower case letter, then at most %d of a-z, 0-9 and -", name, maxName-1)
		}
		if slices.Contains(m.Regions[:i], name) {
			return fmt.Errorf("region %s is named twice", name)
		}
	}
	times := []time.Time{m.Built, m.From, m.Until}
	if r := m.Rollback; r != nil {
		times = append(times, r.At)
		if r.At.IsZero() {
			return errors.New("rolled back at no time")
		}
		if !oneLine(r.Why) || !oneLine(r.By) {
			return fmt.Errorf("why and by whom it was rolled back: expected each to be one line of 1 to %d bytes", maxMark)
		}
	}
	for _, t := range times {
		if t.Nanosecond() != 0 || t.Location() != time.UTC || !t.IsZero() && (t.Unix() < 0 || t.Year() > 9999) {
			return fmt.Errorf("time %s: expected whole seconds, UTC, from 1970 on", t)
		}
	}
	if m.Until.Before(m.From) {
		return fmt.Errorf("measured from %s until %s, which is before it began", stamp(m.From), stamp(m.Until))
	}
	return nil
}

// validate checks an entry by itself, in a map of so many regions.
func (e *Entry) validate(regions int) error {
	if err := validPrefix(e.Prefix); err != nil {
		return err
	}
	switch {
	case len(e.Order) == 0:
		return errors.New("expected at least one region")
	case e.Cells != nil && len(e.Cells) != len(e.Order):
		return fmt.Errorf("measurements of %d regions, expected those of %d", len(e.Cells), len(e.Order))
	}
	var seen [256]bool
	for _, r := range e.Order {
		if int(r) >= regions {
			return fmt.Errorf("region number %d of %d", r, regions)
		}
		if seen[r] {
			return errors.New("a region is in its order twice")
		}
		seen[r] = true
	}
	for _, c := range e.Cells {
		if !(c.P75 >= 0 && c.P75 <= maxP75) || math.Signbit(float64(c.P75)) {
			return fmt.Errorf("p75 of %g ms, expected 0 to %g", c.P75, float32(maxP75))
		}
		if !(c.Failed >= 0 && c.Failed <= 1) || math.Signbit(float64(c.Failed)) {
			return fmt.Errorf("failed part %g, expected 0 to 1", c.Failed)
		}
	}
	return nil
}

// validPrefix checks that a prefix can be a key.
func validPrefix(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return errors.New("not a prefix")
	case p != p.Masked():
		return fmt.Errorf("has bits set past its length: write %s", p.Masked())
	case p.Addr().Is6() && p.Bits() >= 96 && embeds4(p.Addr()):
		return errors.New("expected IPv4 in its own form")
	}
	return nil
}

// embeds4 tells whether an IPv6 address is IPv4-mapped, or in ::/96, where
// MaxMind DB files keep IPv4.
func embeds4(a netip.Addr) bool {
	b := a.As16()
	return a.Is4In6() || [12]byte(b[:12]) == [12]byte{}
}

// follows is an error unless a prefix may stand after another in a map.
func follows(before, p netip.Prefix) error {
	switch c := before.Addr().Compare(p.Addr()); {
	case before.Overlaps(p):
		return fmt.Errorf("overlaps %s", before)
	case c >= 0:
		return fmt.Errorf("stands after %s: expected address order, IPv4 first", before)
	}
	return nil
}

func validName(name string) bool {
	if name == "" || len(name) > maxName || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// oneLine tells whether a text can be kept as one of a Rollback.
func oneLine(s string) bool {
	return s != "" && len(s) <= maxMark && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}
