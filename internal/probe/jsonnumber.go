package probe

import (
	"encoding/json"
	"fmt"
)

// JSONPath is the way to a value in a JSON document, such as .db[0].lag, as
// JSON conditions have it. Its methods may be called by any number of goroutines.
type JSONPath struct {
	text  string
	steps []step
}

// ParseJSONPath reads a path: names after dots, indexes in brackets; "." is the
// document itself. The error says what was expected.
func ParseJSONPath(text string) (JSONPath, error) {
	steps, err := parsePath(text)
	return JSONPath{text, steps}, err
}

// Number finds the finite number that the path leads to. Text that looks like a
// number is none. The error says what is there instead.
func (p JSONPath) Number(document []byte) (float64, error) {
	o := outcome{body: document}
	doc, err := o.json()
	if err != nil {
		return 0, err
	}
	value, ok := find(doc, p.steps)
	if !ok {
		return 0, fmt.Errorf("%s is missing", p.text)
	}
	number, ok := value.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is %s, expected a number", p.text, jsonKind(value))
	}
	f, err := number.Float64()
	if err != nil {
		return 0, fmt.Errorf("%s is beyond all numbers that can be read", p.text)
	}
	return f, nil
}

// jsonKind is what a JSON value that is no number is called.
func jsonKind(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case nil:
		return "null"
	case []any:
		return "an array"
	}
	return "an object"
}
