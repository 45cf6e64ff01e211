package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// step is one step into a JSON document: a name, or an index if name is empty.
type step struct {
	name  string
	index int
}

// parsePath reads a path such as .a.b[0].c; "." is the document itself. Names
// are any text without dots and brackets.
func parsePath(path string) ([]step, error) {
	if path == "." {
		return nil, nil
	}
	var steps []step
	for rest := path; rest != ""; {
		kind := rest[0]
		rest = rest[1:]
		switch kind {
		case '.':
			end := strings.IndexAny(rest, ".[]")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, fmt.Errorf("json path %q: expected a name after each dot, such as .db.lag", path)
			}
			steps = append(steps, step{name: rest[:end]})
			rest = rest[end:]
		case '[':
			digits, after, found := strings.Cut(rest, "]")
			n, err := strconv.ParseUint(digits, 10, 31)
			if !found || err != nil {
				return nil, fmt.Errorf("json path %q: expected an index such as [0]", path)
			}
			steps = append(steps, step{index: int(n)})
			rest = after
		default:
			return nil, fmt.Errorf("json path %q: expected a dot or a bracket before each step, such as .a.b[0].c", path)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("json path is empty, expected one such as .db.lag")
	}
	return steps, nil
}

// find walks from a document, as encoding/json reads one, to a value.
func find(doc any, steps []step) (value any, ok bool) {
	for _, s := range steps {
		switch v := doc.(type) {
		case map[string]any:
			if doc, ok = v[s.name]; !ok || s.name == "" {
				return nil, false
			}
		case []any:
			if s.name != "" || s.index >= len(v) {
				return nil, false
			}
			doc = v[s.index]
		default:
			return nil, false
		}
	}
	return doc, true
}

// compare tells whether a JSON value is in relation op to a text; the value's
// type decides how they compare: numbers numerically, all others by == and !=
// only. problem tells why they don't compare at all.
func compare(value any, op, text string) (holds bool, problem string) {
	equal := false
	switch v := value.(type) {
	case json.Number:
		return compareNumbers(v.String(), op, text)
	case string:
		equal = v == text
	case bool:
		equal = strconv.FormatBool(v) == text
	case nil:
		equal = text == "null"
	default:
		return false, "is not a single value"
	}
	switch op {
	case "==":
		return equal, ""
	case "!=":
		return !equal, ""
	}
	return false, "is not a number"
}

// compareNumbers compares whole numbers of 64 bits exactly, others as float64.
func compareNumbers(value, op, text string) (holds bool, problem string) {
	a, errA := strconv.ParseInt(value, 10, 64)
	b, errB := strconv.ParseInt(text, 10, 64)
	if errA == nil && errB == nil {
		return ordered(cmp.Compare(a, b), op), ""
	}
	x, ok := number(value)
	if !ok {
		return false, "is beyond all numbers that can be compared"
	}
	y, ok := number(text)
	if !ok {
		return op == "!=", "" // a number is never the same as other text
	}
	return ordered(cmp.Compare(x, y), op), ""
}

// number reads a finite number.
func number(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

func ordered(order int, op string) bool {
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case ">=":
		return order >= 0
	}
	return order > 0
}

// checkComparison refuses comparisons that no value could satisfy.
func checkComparison(op, text string) error {
	switch op {
	case "==", "!=":
		return nil
	case "<", "<=", ">", ">=":
		if _, ok := number(text); !ok {
			return fmt.Errorf("json: %s %q, expected a number after %s", op, text, op)
		}
		return nil
	}
	return fmt.Errorf("json: operator %q, expected < <= == != > or >=", op)
}
