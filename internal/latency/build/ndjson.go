package build

import (
	"encoding/json"
	"errors"
)

var errJSON = errors.New("JSON: expected an object of strings, numbers and booleans on one line")

// jsonScanner reads an object of one line (RFC 8259). Of names it doesn't know it
// skips the value. It is lenient about what can't be mistaken: numbers and words are
// checked where they are used.
type jsonScanner struct {
	spare []byte
}

const maxNesting = 32

func (s *jsonScanner) scan(line []byte, r *row) error {
	s.spare = s.spare[:0]
	p := jsonParser{b: line, s: s}
	p.expect('{')
	if p.blank(); p.peek() == '}' {
		p.i++
	} else {
		for {
			name := p.text()
			p.expect(':')
			f, known := fieldNames[string(name)]
			value := p.value(0)
			if known && string(value) != "null" {
				if r[f] != nil {
					return errJSON
				}
				r[f] = value
			}
			if p.blank(); p.peek() != ',' {
				break
			}
			p.i++
		}
		p.expect('}')
	}
	if p.blank(); p.bad || p.i < len(line) {
		return errJSON
	}
	return nil
}

// jsonParser reads values one after the other. After a mistake it is bad and stays
// where it is.
type jsonParser struct {
	b   []byte
	i   int
	bad bool
	s   *jsonScanner
}

func (p *jsonParser) peek() byte {
	if p.bad || p.i >= len(p.b) {
		return 0
	}
	return p.b[p.i]
}

func (p *jsonParser) blank() {
	for c := p.peek(); c == ' ' || c == '\t' || c == '\r'; c = p.peek() {
		p.i++
	}
}

func (p *jsonParser) expect(c byte) {
	p.blank()
	if p.peek() != c {
		p.bad = true
		return
	}
	p.i++
}

// text reads a string.
func (p *jsonParser) text() []byte {
	p.expect('"')
	if p.bad {
		return nil
	}
	start, escaped := p.i, false
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '\\':
			escaped = true
			p.i++
		case c < ' ':
			p.bad = true
			return nil
		case c == '"':
			p.i++
			if escaped {
				return p.unescape(p.b[start-1 : p.i])
			}
			return p.b[start : p.i-1]
		}
	}
	p.i, p.bad = len(p.b), true // a backslash at the end counts one more
	return nil
}

// unescape is the slow way for strings with backslashes.
func (p *jsonParser) unescape(quoted []byte) []byte {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		p.bad = true
		return nil
	}
	start := len(p.s.spare)
	p.s.spare = append(p.s.spare, text...)
	return p.s.spare[start:len(p.s.spare):len(p.s.spare)]
}

// value reads a value of any kind. Of objects and lists it gives nil.
func (p *jsonParser) value(depth int) []byte {
	p.blank()
	switch c := p.peek(); {
	case c == '"':
		if text := p.text(); text != nil {
			return text
		}
		return []byte{}
	case c == '{' || c == '[':
		p.nested(depth, c == '{')
		return nil
	}
	start := p.i
	for c := p.peek(); c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'; c = p.peek() {
		p.i++
	}
	if p.i == start {
		p.bad = true
	}
	return p.b[start:p.i]
}

func (p *jsonParser) nested(depth int, object bool) {
	end := byte(']')
	if object {
		end = '}'
	}
	p.i++
	if p.blank(); p.peek() == end {
		p.i++
		return
	}
	for depth < maxNesting && !p.bad {
		if object {
			p.text()
			p.expect(':')
		}
		p.value(depth + 1)
		if p.blank(); p.peek() != ',' {
			p.expect(end)
			return
		}
		p.i++
	}
	p.bad = true
}
