package beacon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Bounds of a round trip in milliseconds: what the builder keeps apart from zero,
// and when the script gives up.
const (
	minRTT = 0.01
	maxRTT = 5000
)

// entry is a measurement in a report.
type entry struct {
	region string
	ok     bool
	ms     float64 // of those that are ok
	clock  bool    // measured round the request: Resource Timing was hidden
}

// parseReport reads a report, such as
//
//	{"v":1,"entries":[{"region":"eu","ok":true,"rtt_ms":20.5,"timing":"resource"},{"region":"us","ok":false}]}
//
// in which every field is known and there once. Whether the regions and
// the numbers make sense is another question.
func parseReport(data []byte) ([]entry, error) {
	p := parser{json.NewDecoder(bytes.NewReader(data))}
	p.d.UseNumber()
	var entries []entry
	fields, err := p.object(func(name string) error {
		switch name {
		case "v":
			if v, err := p.d.Token(); err != nil || v != json.Number("1") {
				return errors.New("v: expected 1")
			}
			return nil
		case "entries":
			return p.list(func() error {
				if len(entries) == MaxCandidates {
					return fmt.Errorf("entries: expected at most %d", MaxCandidates)
				}
				e, err := p.entry()
				entries = append(entries, e)
				return err
			})
		}
		return unknown(name)
	})
	switch {
	case err != nil:
		return nil, err
	case !fields["v"] || len(entries) == 0:
		return nil, errors.New("expected v and entries")
	}
	if _, err := p.d.Token(); err != io.EOF {
		return nil, errors.New("expected nothing after the report")
	}
	return entries, nil
}

func unknown(name string) error { return fmt.Errorf("%.40q: no such field", name) }

// parser reads values one after the other.
type parser struct {
	d *json.Decoder
}

func (p *parser) expect(delim json.Delim) error {
	if t, err := p.d.Token(); err != nil || t != delim {
		return fmt.Errorf("expected %v", delim)
	}
	return nil
}

// object reads an object, field by field, and gives the names.
func (p *parser) object(field func(name string) error) (seen map[string]bool, err error) {
	if err := p.expect('{'); err != nil {
		return nil, err
	}
	seen = make(map[string]bool)
	for p.d.More() {
		t, err := p.d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, errors.New("expected a field")
		}
		if seen[name] {
			return nil, fmt.Errorf("%.40q is there twice", name)
		}
		seen[name] = true
		if err := field(name); err != nil {
			return nil, err
		}
	}
	return seen, p.expect('}')
}

// list reads a list, value by value.
func (p *parser) list(value func() error) error {
	if err := p.expect('['); err != nil {
		return err
	}
	for p.d.More() {
		if err := value(); err != nil {
			return err
		}
	}
	return p.expect(']')
}

func (p *parser) entry() (e entry, err error) {
	fields, err := p.object(func(name string) error {
		switch name {
		case "region", "ok", "rtt_ms", "timing":
		default:
			return unknown(name)
		}
		t, err := p.d.Token()
		if err != nil {
			return errors.New("no JSON")
		}
		var fits bool
		switch name {
		case "region":
			e.region, fits = t.(string)
		case "ok":
			e.ok, fits = t.(bool)
		case "rtt_ms":
			var n json.Number
			if n, fits = t.(json.Number); fits {
				// Beyond what a float64 holds it is infinite, and refused later.
				e.ms, _ = strconv.ParseFloat(string(n), 64)
			}
		case "timing":
			e.clock = t == "clock"
			fits = e.clock || t == "resource"
		}
		if !fits {
			return fmt.Errorf("%s: unexpected %.40q", name, fmt.Sprint(t))
		}
		return nil
	})
	switch {
	case err != nil:
		return e, err
	case !fields["region"] || !fields["ok"]:
		return e, errors.New("expected region and ok")
	case fields["rtt_ms"] != e.ok || fields["timing"] != e.ok:
		return e, errors.New("expected rtt_ms and timing if ok, and neither of a failure")
	}
	return e, nil
}

// judge gives the reason for which a measurement doesn't count, or none. Seen
// are the regions of the report so far.
func (c *Collector) judge(e *entry, seen *[MaxCandidates]bool) rejection {
	region, known := c.regions[e.region]
	switch {
	case !known:
		return unknownRegion
	case seen[region]:
		return regionTwice
	case e.ok && !(e.ms >= minRTT && e.ms <= maxRTT):
		return absurdRTT
	}
	seen[region] = true
	return none
}

// appendLine appends a measurement as a line that the builder reads.
func appendLine(lines []byte, time, client, source string, e *entry) []byte {
	lines = append(lines, `{"time":"`...)
	lines = append(lines, time...)
	lines = append(lines, `","client":"`...)
	lines = append(lines, client...)
	lines = append(lines, `","region":"`...)
	lines = append(lines, e.region...)
	if e.ok {
		lines = append(lines, `","rtt_ms":`...)
		lines = strconv.AppendFloat(lines, e.ms, 'f', 2, 64)
		lines = append(lines, `,"ok":true`...)
	} else {
		lines = append(lines, `","ok":false`...)
	}
	if source != "" {
		lines = append(lines, `,"source":"`...)
		lines = append(lines, source...)
		lines = append(lines, '"')
	}
	return append(lines, "}\n"...)
}
