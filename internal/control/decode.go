package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep JSON from outside may be nested.
const maxDepth = 8

// decodeStrictly reads one JSON value, in which every field is known, written in
// lower case, and there once. The error is an *Invalid.
func decodeStrictly(data []byte, into any) error {
	if !utf8.Valid(data) {
		return invalid("", "", "it is not UTF-8")
	}
	if err := checkFields(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return invalid(strings.Trim(field, `"`), "", "there is no such field")
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return invalid(wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:], kindOf(wrong.Type), "it is a JSON %s", wrong.Value)
	}
	return invalid("", "", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// kindOf is a type in words of JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Pointer:
		return "an object, or text that names one"
	}
	return "a number"
}

// level is an object or a list that is being read.
type level struct {
	fields map[string]bool // nil: a list
	value  bool            // an object's: the value of a field comes next
}

// checkFields wants exactly one value, no field twice in an object, and no field
// with capitals: encoding/json would take the last one, and any case.
func checkFields(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var levels []level
	for {
		t, err := d.Token()
		if err != nil {
			if err == io.EOF {
				return invalid("", "", "it is empty, or ends too early")
			}
			return invalid("", "", "it is no JSON: %v", err)
		}
		if err := take(&levels, t); err != nil {
			return err
		}
		if len(levels) == 0 {
			break
		}
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("", "one JSON value", "something follows it")
	}
	return nil
}

// take follows one token through the levels.
func take(levels *[]level, t json.Token) *Invalid {
	at := len(*levels) - 1
	if t == json.Delim('}') || t == json.Delim(']') {
		*levels = (*levels)[:at]
		return nil
	}
	if at >= 0 && (*levels)[at].fields != nil && !(*levels)[at].value {
		name := fmt.Sprint(t)
		switch l := &(*levels)[at]; {
		case l.fields[name]:
			return invalid(name, "", "it is there twice")
		case strings.ToLower(name) != name:
			return invalid(name, strings.ToLower(name), "fields are in lower case")
		default:
			l.fields[name], l.value = true, true
		}
		return nil
	}
	if at >= 0 {
		(*levels)[at].value = false
	}
	switch t {
	case json.Delim('{'):
		*levels = append(*levels, level{fields: map[string]bool{}})
	case json.Delim('['):
		*levels = append(*levels, level{})
	}
	if len(*levels) > maxDepth {
		return invalid("", "", "it is nested more than %d deep", maxDepth)
	}
	return nil
}
