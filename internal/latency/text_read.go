package latency

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxLine bounds a line of text, in bytes: every region at its longest has room.
const maxLine = 64 << 10

// ReadText reads a map as text, line by line: the header, then the sections. Lines of
// a section may stand in any order, and # begins a comment. name stands for the
// file in errors, which name lines, too.
func ReadText(name string, r io.Reader) (*Map, error) {
	p := textParser{m: &Map{}, side: inHeader, orders: map[string][]uint8{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4096), maxLine)
	for lines.Scan() {
		p.line++
		text := lines.Bytes()
		if p.line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if p.side != inHeader { // where a quoted text may hold a #
			text, _, _ = bytes.Cut(text, []byte("#"))
		}
		if err := p.parse(bytes.TrimSpace(text)); err != nil {
			return nil, lineError(name, p.line, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, lineError(name, p.line+1, fmt.Errorf("line of more than %d bytes: is this a steering map?", maxLine))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !p.begun:
		return nil, fmt.Errorf("%s: expected %q first, found nothing", name, magic)
	}
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	if err := p.m.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p.m, nil
}

// headWords begin the lines of the header.
var headWords = []string{wordBuilt, wordFrom, wordUntil, wordDemand, wordRegions, wordRollback}

// inHeader is the side of a textParser before the sections.
const inHeader = -1

// textParser reads a map as text.
type textParser struct {
	m      *Map
	line   int
	begun  bool
	said   []string // words of the header that were there
	side   int      // of the section
	names  names
	orders map[string][]uint8 // one slice for each distinct order
	sides  [2][]placed
}

// placed is an entry and its line.
type placed struct {
	Entry
	line int
}

// parse reads a line.
func (p *textParser) parse(line []byte) error {
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	word, rest, _ := strings.Cut(string(line[:min(len(line), maxName+1)]), " ")
	switch {
	case !p.begun:
		p.begun = true
		if version := strings.TrimSpace(uncomment(rest)); word != magic || version != strconv.Itoa(FormatVersion) {
			return fmt.Errorf("expected \"%s %d\", found %q: read it with the release that wrote it", magic, FormatVersion, clip(line))
		}
		return nil
	case p.side != inHeader && slices.Contains(headWords, word):
		return fmt.Errorf("%s is a line of the header: put it before the sections, %s and %s", word, wordClients, wordResolvers)
	case word == wordClients || word == wordResolvers:
		if slices.Contains(p.said, word) {
			return fmt.Errorf("a second section %s: put the entries under the first", word)
		}
		if strings.TrimSpace(uncomment(rest)) != "" {
			return fmt.Errorf("expected %s alone, found %q", word, clip(line))
		}
		p.said = append(p.said, word)
		p.side = slices.Index([]string{wordClients, wordResolvers}, word)
		return nil
	case p.side == inHeader:
		return p.header(string(line))
	}
	if len(p.sides[0])+len(p.sides[1]) == MaxEntries {
		return errTooMany
	}
	e, err := p.entry(strings.Fields(string(line)))
	if err == nil {
		p.sides[p.side] = append(p.sides[p.side], placed{e, p.line})
	}
	return err
}

// header reads a line before the sections.
func (p *textParser) header(line string) (err error) {
	word, rest, _ := strings.Cut(line, " ")
	if slices.Contains(p.said, word) {
		return fmt.Errorf("%s is said twice", word)
	}
	p.said = append(p.said, word)
	switch word {
	case wordBuilt:
		p.m.Built, err = instant(uncomment(rest))
	case wordFrom:
		p.m.From, err = instant(uncomment(rest))
	case wordUntil:
		p.m.Until, err = instant(uncomment(rest))
	case wordDemand:
		p.m.Demand, err = demand(strings.Fields(uncomment(rest)))
	case wordRegions:
		for _, name := range strings.Fields(uncomment(rest)) {
			before := len(p.names.list)
			if _, err := p.names.of(name); err != nil {
				return err
			}
			if len(p.names.list) == before {
				return fmt.Errorf("region %s is named twice", name)
			}
		}
		p.m.Regions = p.names.list
	case wordRollback:
		p.m.Rollback, err = rollback(rest)
	default:
		err = fmt.Errorf("expected %s, %s, %s, %s, %s, %s, or a section, %s or %s, found %q",
			wordBuilt, wordFrom, wordUntil, wordDemand, wordRegions, wordRollback, wordClients, wordResolvers, clip([]byte(word)))
	}
	return err
}

func uncomment(s string) string {
	s, _, _ = strings.Cut(s, "#")
	return s
}

// clip shortens what an error quotes.
func clip(b []byte) string { return string(b[:min(len(b), 80)]) }

func instant(word string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, strings.TrimSpace(word))
	if err != nil || t.Nanosecond() != 0 {
		return t, fmt.Errorf("expected a time such as 2026-11-30T04:00:00Z, found %q", clip([]byte(word)))
	}
	return t.UTC(), nil
}

// demand reads the measurements of clients and of resolvers.
func demand(words []string) (d [2]uint64, err error) {
	if len(words) != len(d) {
		err = strconv.ErrSyntax
	}
	for i := 0; i < len(d) && err == nil; i++ {
		d[i], err = strconv.ParseUint(words[i], 10, 64)
	}
	if err != nil {
		return d, fmt.Errorf("expected two whole numbers, the measurements of clients and of resolvers, found %q", clip([]byte(strings.Join(words, " "))))
	}
	return d, nil
}

// rollback reads "TIME BY WHY", the last two quoted.
func rollback(s string) (*Rollback, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	at, err := instant(word)
	if err != nil {
		return nil, err
	}
	var texts [2]string
	for i := range texts {
		rest = strings.TrimSpace(rest)
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, errors.New(`expected a time, then by whom and why, both in double quotes`)
		}
		texts[i], _ = strconv.Unquote(quoted)
		rest = rest[len(quoted):]
	}
	if rest = strings.TrimSpace(uncomment(rest)); rest != "" {
		return nil, fmt.Errorf("unexpected %q", clip([]byte(rest)))
	}
	return &Rollback{At: at, By: texts[0], Why: texts[1]}, nil
}

// entry reads a line of a section.
func (p *textParser) entry(words []string) (e Entry, err error) {
	if e.Prefix, err = ParsePrefix(words[0]); err != nil {
		return e, err
	}
	order := make([]uint8, 0, 16)
	for _, word := range words[1:] {
		name, numbers, measured := strings.Cut(word, ":")
		r, ok := p.names.index[name]
		if !ok && !slices.Contains(p.said, wordRegions) {
			return e, fmt.Errorf("region %q: expected a line \"%s NAME…\" before the sections, which names all regions", name, wordRegions)
		}
		if !ok {
			return e, fmt.Errorf("region %q is not among the regions of the header: %s", name, strings.Join(p.m.Regions, " "))
		}
		if measured != (e.Cells != nil) && len(order) > 0 {
			return e, fmt.Errorf("%s: expected measurements of all regions, or of none", word)
		}
		if slices.Contains(order, r) {
			return e, fmt.Errorf("region %s twice", name)
		}
		order = append(order, r)
		if measured {
			c, err := cell(numbers)
			if err != nil {
				return e, fmt.Errorf("%s: %w", word, err)
			}
			if e.Cells == nil {
				e.Cells = make([]Cell, 0, len(words)-1)
			}
			e.Cells = append(e.Cells, c)
		}
	}
	if len(order) == 0 {
		return e, errEmptyOrder
	}
	if _, ok := p.orders[string(order)]; !ok {
		p.orders[string(order)] = slices.Clip(order)
	}
	e.Order = p.orders[string(order)]
	return e, e.validate(len(p.m.Regions))
}

// cell reads "P75/SAMPLES" or "P75/SAMPLES/FAILED%".
func cell(s string) (c Cell, err error) {
	p75, rest, _ := strings.Cut(s, "/")
	samples, failed, fails := strings.Cut(rest, "/")
	p, err := decimal(p75, 32)
	n, err2 := strconv.ParseUint(samples, 10, 32)
	c = Cell{P75: float32(p), Samples: uint32(n)}
	var err3 error
	if fails {
		number, sign := strings.CutSuffix(failed, "%")
		if c.Failed, err3 = percent(number); !sign {
			err3 = strconv.ErrSyntax
		}
	}
	if err != nil || err2 != nil || err3 != nil {
		return c, errors.New("expected REGION:P75/SAMPLES, or REGION:P75/SAMPLES/FAILED%, such as eu:23.5/400/1.5%")
	}
	return c, nil
}

// finish sorts the entries and looks for overlaps.
func (p *textParser) finish() error {
	for side, entries := range p.sides {
		slices.SortFunc(entries, func(a, b placed) int {
			if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
				return c
			}
			return a.Prefix.Bits() - b.Prefix.Bits()
		})
		into := [...]*[]Entry{&p.m.Clients, &p.m.Resolvers}[side]
		for i, e := range entries {
			if i > 0 && entries[i-1].Prefix.Overlaps(e.Prefix) {
				first, second := entries[i-1], e
				if first.line > second.line {
					first, second = second, first
				}
				return fmt.Errorf("%d: %s overlaps %s on line %d: keep one of them, or cut the larger one",
					second.line, second.Prefix, first.Prefix, first.line)
			}
			*into = append(*into, e.Entry)
		}
		p.sides[side] = nil
	}
	return nil
}
