package latency

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// readNets reads a nets file of gdnsd: entries "PREFIX => [REGION, …]" with commas
// and line ends as one likes, # and ; for comments. A prefix may lie inside
// another; the most specific one counts, as for gdnsd (gdnsd-plugin-geoip(8)).
func readNets(name string, data []byte) (*Map, error) {
	p := netsParser{data: data, line: 1}
	var rules []rule
	for {
		r, more, err := p.entry()
		if err != nil {
			return nil, lineError(name, p.at, err)
		}
		if !more {
			break
		}
		if len(rules) == MaxEntries {
			return nil, lineError(name, p.at, errTooMany)
		}
		rules = append(rules, r)
	}
	clients, err := flatten(rules, p.orders.list, func(a, b rule) error {
		return lineError(name, max(a.line, b.line), fmt.Errorf("%s has another order on line %d: keep one of them", a.prefix, min(a.line, b.line)))
	})
	if err != nil {
		return nil, err
	}
	m := &Map{Regions: p.names.list, Clients: clients}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// netsParser reads entries, word by word.
type netsParser struct {
	data   []byte
	line   int // where data goes on
	at     int // where the last word is
	names  names
	orders orderList
}

// entry reads one entry; false: there are no more.
func (p *netsParser) entry() (r rule, more bool, err error) {
	key, err := p.word()
	for key == "," && err == nil {
		key, err = p.word()
	}
	if err != nil || key == "" {
		return r, false, err
	}
	r.line = p.at
	if r.prefix, err = ParsePrefix(key); err != nil {
		return r, false, err
	}
	arrow, err := p.word()
	if err == nil && arrow != "=>" {
		err = fmt.Errorf("expected => after %s, found %q", key, arrow)
	}
	if err != nil {
		return r, false, err
	}
	order, err := p.order()
	if err != nil {
		return r, false, err
	}
	r.order, err = p.orders.of(order)
	return r, true, err
}

// order reads a region, or a list of them in brackets.
func (p *netsParser) order() (order []uint8, err error) {
	add := func(name string) error {
		i, err := p.names.of(name)
		if err == nil && slices.Contains(order, i) {
			err = fmt.Errorf("region %s twice", name)
		}
		order = append(order, i)
		return err
	}
	word, err := p.word()
	if err != nil {
		return nil, err
	}
	if word != "[" {
		return order, add(word)
	}
	for {
		switch word, err = p.word(); {
		case err != nil:
			return nil, err
		case word == ",":
		case word == "]" && order == nil:
			return nil, errEmptyOrder
		case word == "]":
			return order, nil
		case word == "":
			return nil, errors.New("expected ] to end the list of regions, found the end of the file")
		default:
			if err := add(word); err != nil {
				return nil, err
			}
		}
	}
}

// word is the next word, bracket, comma or arrow; "" at the end of the file.
func (p *netsParser) word() (string, error) {
	for len(p.data) > 0 {
		switch c := p.data[0]; {
		case c == '\n':
			p.line++
			p.data = p.data[1:]
		case c == ' ' || c == '\t' || c == '\r':
			p.data = p.data[1:]
		case c == '#' || c == ';':
			_, p.data, _ = bytes.Cut(p.data, []byte("\n"))
			p.line++
		default:
			p.at = p.line
			return p.token()
		}
	}
	p.at = p.line
	return "", nil
}

// token is word for data that begins with one.
func (p *netsParser) token() (string, error) {
	take := func(n int) string {
		word := string(p.data[:n])
		p.data = p.data[n:]
		return word
	}
	switch c := p.data[0]; {
	case c == '[' || c == ']' || c == ',':
		return take(1), nil
	case bytes.HasPrefix(p.data, []byte("=>")):
		return take(2), nil
	case c == '"':
		end := bytes.IndexAny(p.data[1:min(len(p.data), maxLine)], "\"\\\n")
		if end <= 0 || p.data[1+end] != '"' {
			return "", errors.New(`expected one word in the double quotes`)
		}
		word := take(end + 2)
		return word[1 : end+1], nil
	}
	n := bytes.IndexAny(p.data[:min(len(p.data), maxLine)], " \t\r\n#;,[]{}=\"")
	switch {
	case n < 0 && len(p.data) > maxLine:
		return "", fmt.Errorf("word of more than %d bytes", maxLine)
	case n < 0:
		n = len(p.data)
	case n == 0:
		return "", fmt.Errorf("unexpected %q: a nets file holds entries PREFIX => [REGION, …] alone", p.data[:1])
	}
	return take(n), nil
}
