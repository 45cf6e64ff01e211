package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// badLines counts lines that don't count, and keeps the first few.
type badLines struct {
	reasons map[error]int64
	first   []badLine
}

type badLine struct {
	input  int // number of the input
	name   string
	line   int64
	reason error
	found  string // what the reason is about, cut and quoted; empty: not shown
}

// shownBytes is how much of a bad value is shown.
const shownBytes = 40

// reasonFields are the fields that reasons are about.
var reasonFields = map[error][]field{
	errTime: {fTime}, errMillis: {fTime}, errFuture: {fTime}, errClient: {fClient}, errResolver: {fResolver}, errRegion: {fRegion},
	errRTT: {fRTT}, errOK: {fOK}, errCount: {fN, fFailed}, errP75: {fP75}, errSketch: {fSketch},
}

// found tells what stands in a line where something else was expected.
func found(reason error, line []byte, r *row) string {
	quote := func(b []byte) string {
		if len(b) > shownBytes {
			return fmt.Sprintf("%q…", b[:shownBytes])
		}
		return fmt.Sprintf("%q", b)
	}
	fields, ok := reasonFields[reason]
	if !ok {
		return quote(line)
	}
	var values []string
	for _, f := range fields {
		values = append(values, quote(r[f]))
	}
	return strings.Join(values, ", ")
}

// shownBad is how many lines are kept.
const shownBad = 5

// add counts a line. found, if not nil, tells what was found; it is asked only for those kept.
func (b *badLines) add(input int, name string, line int64, reason error, found func() string) {
	if b.reasons == nil {
		b.reasons = make(map[error]int64)
	}
	b.reasons[reason]++
	if notFaults[reason] {
		return
	}
	l := badLine{input: input, name: name, line: line, reason: reason}
	if b.wants(l) {
		if found != nil {
			l.found = found()
		}
		b.keep(l)
	}
}

// wants tells whether a line is among the first few.
func (b *badLines) wants(l badLine) bool {
	return len(b.first) < shownBad || l.compare(b.first[shownBad-1]) <= 0
}

func (b *badLines) keep(l badLine) {
	if !b.wants(l) {
		return
	}
	at, _ := slices.BinarySearchFunc(b.first, l, badLine.compare)
	b.first = slices.Insert(b.first, at, l)
	b.first = b.first[:min(len(b.first), shownBad)]
}

func (l badLine) compare(m badLine) int {
	return cmp.Or(cmp.Compare(l.input, m.input), cmp.Compare(l.line, m.line))
}

func (b *badLines) merge(c *badLines) {
	for reason, n := range c.reasons {
		if b.reasons == nil {
			b.reasons = make(map[error]int64)
		}
		b.reasons[reason] += n
	}
	for _, l := range c.first {
		b.keep(l)
	}
	*c = badLines{}
}

// faults counts lines that are their writer's fault.
func (b *badLines) faults() (n int64) {
	for reason, m := range b.reasons {
		if !notFaults[reason] {
			n += m
		}
	}
	return n
}

// check tells whether too many of the lines are bad.
func (b *badLines) check(lines int64, most float64) error {
	n := b.faults()
	if n == 0 || float64(n) <= most*float64(lines) {
		return nil
	}
	text := fmt.Sprintf("%d of %d lines are bad, more than %g %%; the first:", n, lines, 100*most)
	for _, l := range b.first {
		text += "\n" + l.String()
	}
	return fmt.Errorf("%s", text)
}

func (l badLine) String() string {
	text := fmt.Sprintf("%s:%d: %v", l.name, l.line, l.reason)
	if l.found != "" {
		text += ", found " + l.found
	}
	return text
}

// Rejected is how many lines, or samples, don't count for a reason.
type Rejected struct {
	Reason string `json:"reason"`
	Lines  int64  `json:"lines"`
}

func (b *badLines) rejected() []Rejected {
	list := []Rejected{}
	for reason, n := range b.reasons {
		list = append(list, Rejected{reason.Error(), n})
	}
	slices.SortFunc(list, func(a, b Rejected) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
