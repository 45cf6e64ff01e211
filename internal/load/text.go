package load

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// selector picks series of the Prometheus text format: those of a name that have
// at least these labels.
type selector struct {
	text   string
	name   string
	labels map[string]string
}

// parseSelector reads name or name{label="value",…}.
func parseSelector(text string) (selector, error) {
	s := selector{text: text}
	s.name = text[:prefix(text, nameByte)]
	if s.name == "" {
		return s, fmt.Errorf("metric %.80q: expected a name, such as requests_running or requests_running{pool=\"web\"}", text)
	}
	rest := text[len(s.name):]
	if rest == "" {
		return s, nil
	}
	labels, rest, err := parseLabels(rest)
	if err == nil && rest != "" {
		err = fmt.Errorf("nothing is expected after }, there is %.40q", rest)
	}
	s.labels = labels
	if err != nil {
		return s, fmt.Errorf("metric %.80q: %w", text, err)
	}
	return s, nil
}

// sum adds the series of a page that are picked, each of which must be finite
// and not negative. None is an error. The oldest time that any has is the sum's.
// Only lines that begin with the name are looked at, and those strictly: what
// else a page holds is not our business.
func (s selector) sum(page []byte) (measure, error) {
	var m measure
	seen := map[string]bool{}
	number := 0
	for line := range bytes.Lines(page) {
		number++
		after, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte(s.name))
		if !ok {
			continue
		}
		rest, ended := strings.CutSuffix(string(after), "\n")
		if rest != "" && !strings.ContainsRune("{ \t", rune(rest[0])) {
			continue
		}
		one, labels, err := parseSeries(rest)
		if err == nil && !s.picks(labels) {
			continue
		}
		key := canonical(labels)
		switch {
		case err != nil:
		case !ended:
			err = errors.New("the last line doesn't end with a newline: the page is cut off, or not in the text format")
		case seen[key]:
			err = errors.New("the same series is on the page twice")
		default:
			err = judge(one.value, false)
		}
		if err != nil {
			return measure{}, fmt.Errorf("line %d: %s: %w", number, s.name, err)
		}
		seen[key] = true
		m.value += one.value
		if !one.at.IsZero() && (m.at.IsZero() || one.at.Before(m.at)) {
			m.at = one.at
		}
	}
	if len(seen) == 0 {
		return measure{}, fmt.Errorf("there is no metric %s on the page", s.text)
	}
	return m, nil
}

func (s selector) picks(labels map[string]string) bool {
	for name, value := range s.labels {
		// A label that isn't there is the same as an empty one.
		if labels[name] != value {
			return false
		}
	}
	return true
}

// canonical is the same text for the same labels.
func canonical(labels map[string]string) string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b = fmt.Appendf(b, "%s=%q,", name, labels[name])
	}
	return string(b)
}

// parseSeries reads what follows the name of a series: labels, value, and
// milliseconds since 1970.
func parseSeries(rest string) (m measure, labels map[string]string, err error) {
	rest = skipBlanks(rest)
	if strings.HasPrefix(rest, "{") {
		if labels, rest, err = parseLabels(rest); err != nil {
			return measure{}, nil, err
		}
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) != 1 && len(words) != 2 {
		return measure{}, nil, fmt.Errorf("expected a value, and perhaps a time, after the name and labels; there is %.40q", rest)
	}
	if m.value, err = parseNumber(words[0]); err != nil {
		return measure{}, nil, err
	}
	if len(words) == 2 {
		at, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil || at < 0 {
			return measure{}, nil, fmt.Errorf("time %.40q: expected milliseconds since 1970", words[1])
		}
		m.at = time.UnixMilli(at)
	}
	return m, labels, nil
}

// parseLabels reads {name="value",…} and gives what follows.
func parseLabels(text string) (labels map[string]string, rest string, err error) {
	rest, ok := strings.CutPrefix(text, "{")
	if !ok {
		return nil, "", fmt.Errorf("expected { after the name, there is %.40q", text)
	}
	labels = map[string]string{}
	for {
		rest = skipBlanks(rest)
		if after, ok := strings.CutPrefix(rest, "}"); ok {
			return labels, after, nil
		}
		name := rest[:prefix(rest, labelByte)]
		value, ok := strings.CutPrefix(skipBlanks(rest[len(name):]), "=")
		if name == "" || !ok {
			return nil, "", fmt.Errorf("expected label=\"value\" or }, there is %.40q", rest)
		}
		if _, twice := labels[name]; twice {
			return nil, "", fmt.Errorf("label %.40q is there twice", name)
		}
		if labels[name], rest, err = parseQuoted(skipBlanks(value)); err != nil {
			return nil, "", fmt.Errorf("label %.40q: %w", name, err)
		}
		rest = skipBlanks(rest)
		if after, ok := strings.CutPrefix(rest, ","); ok {
			rest = after
		} else if !strings.HasPrefix(rest, "}") {
			return nil, "", fmt.Errorf("expected a comma or } after label %.40q, there is %.40q", name, rest)
		}
	}
}

// parseQuoted reads a value in quotes, in which \\, \" and \n are escapes.
func parseQuoted(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		return "", "", fmt.Errorf("expected a value in quotes, there is %.40q", text)
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], nil
		case c != '\\':
			b.WriteByte(c)
		default:
			i++
			if i == len(text) {
				continue
			}
			plain, ok := map[byte]byte{'\\': '\\', '"': '"', 'n': '\n'}[text[i]]
			if !ok {
				return "", "", fmt.Errorf(`expected \\, \" or \n, there is %q`, text[i-1:i+1])
			}
			b.WriteByte(plain)
		}
	}
	return "", "", errors.New("the quotes don't end on the line")
}

func skipBlanks(text string) string { return strings.TrimLeft(text, " \t") }

// prefix is the length of the text's beginning that is made of such bytes.
func prefix(text string, part func(c byte, first bool) bool) int {
	for i := range len(text) {
		if !part(text[i], i == 0) {
			return i
		}
	}
	return len(text)
}

func labelByte(c byte, first bool) bool {
	return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || !first && '0' <= c && c <= '9'
}

func nameByte(c byte, first bool) bool { return c == ':' || labelByte(c, first) }
