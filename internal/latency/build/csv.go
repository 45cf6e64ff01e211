package build

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// scanner splits a line into fields, which point into the line or memory of the
// scanner's until the next line.
type scanner interface {
	scan(line []byte, r *row) error
}

var (
	errColumns = errors.New("CSV: expected as many fields as the first line names")
	errQuote   = errors.New("CSV: a quote is not closed, or not at the ends of its field")
)

// newScanner looks at the first line, and reads it if it is the names of CSV. It gives what makes
// a scanner for each worker.
func newScanner(s *splitter) (func() scanner, error) {
	var first []byte
	for {
		line, err := s.r.ReadSlice('\n')
		if err != nil && err != io.EOF {
			if err == bufio.ErrBufferFull {
				return nil, errLong
			}
			return nil, err
		}
		first = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if len(first) > 0 {
			if first[0] == '{' {
				s.rest = append(append(s.rest, first...), 10) // without a byte order mark
				return func() scanner { return &jsonScanner{} }, nil
			}
			break
		}
		if err == io.EOF { // no line at all
			return func() scanner { return &jsonScanner{} }, nil
		}
		s.line++
	}
	columns, err := readNames(first)
	if err == nil {
		s.line++
	}
	return func() scanner { return &csvScanner{columns: columns} }, err
}

// readNames reads the line that names the columns.
func readNames(line []byte) (columns []field, err error) {
	seen := make(map[field]bool)
	names := strings.Split(string(line), ",")
	for i, name := range names {
		name = strings.ToLower(strings.Trim(strings.TrimSpace(name), `"`))
		f, ok := fieldNames[name]
		if !ok {
			f = noField
		} else if seen[f] {
			return nil, fmt.Errorf("column %d, %q, is there already", i+1, name)
		}
		seen[f] = true
		columns = append(columns, f)
	}
	has := func(any ...field) bool { return slices.ContainsFunc(any, func(f field) bool { return seen[f] }) }
	switch {
	case !has(fRegion):
		err = missing(names, "region")
	case !has(fClient, fResolver):
		err = missing(names, "client")
	case !has(fRTT, fN):
		err = missing(names, "rtt_ms or n")
	case has(fRTT) && !has(fTime):
		err = missing(names, "time")
	}
	return columns, err
}

func missing(names []string, want string) error {
	known := slices.Sorted(maps.Keys(fieldNames))
	return fmt.Errorf("no column %s: expected JSON objects, or a first line of CSV that names region, client (or prefix) or resolver, and either time and rtt_ms, or n with sketch or p75; "+
		"known are %s; got %.100q%s",
		want, strings.Join(known, ", "), strings.Join(names, ","), config.DidYouMean(want, names))
}

// csvScanner reads RFC 4180, but for line ends in quotes.
type csvScanner struct {
	columns []field
	spare   []byte // for fields with quotes in them
}

func (s *csvScanner) scan(line []byte, r *row) error {
	s.spare = s.spare[:0]
	for i, f := range s.columns {
		var value []byte
		more := false
		if len(line) > 0 && line[0] == '"' {
			var err error
			if value, line, more, err = s.quoted(line[1:]); err != nil {
				return err
			}
		} else {
			value, line, more = bytes.Cut(line, []byte{','})
			value = bytes.TrimSpace(value)
		}
		if more != (i < len(s.columns)-1) {
			return errColumns
		}
		if f != noField {
			r[f] = value
		}
	}
	return nil
}

// quoted reads a field behind its first quote.
func (s *csvScanner) quoted(line []byte) (value, rest []byte, more bool, err error) {
	start := len(s.spare)
	for i := 0; i < len(line); i++ {
		if line[i] != '"' {
			s.spare = append(s.spare, line[i])
			continue
		}
		if i+1 < len(line) && line[i+1] == '"' {
			s.spare = append(s.spare, '"')
			i++
			continue
		}
		rest = line[i+1:]
		if len(rest) > 0 && rest[0] != ',' {
			return nil, nil, false, errQuote
		}
		value = s.spare[start:len(s.spare):len(s.spare)]
		if len(rest) > 0 {
			return value, rest[1:], true, nil
		}
		return value, nil, false, nil
	}
	return nil, nil, false, errQuote
}
