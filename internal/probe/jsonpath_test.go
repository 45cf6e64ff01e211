package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string][]step{
		".":             nil,
		".a":            {{name: "a"}},
		".a.b[0].c":     {{name: "a"}, {name: "b"}, {index: 0}, {name: "c"}},
		"[3][10]":       {{index: 3}, {index: 10}},
		".with-dash_é ": {{name: "with-dash_é "}},
	} {
		got, err := parsePath(path)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v (%v), want %v", path, got, err, want)
		}
	}
	for _, path := range []string{"", "a", "..", ".a.", ".a..b", ".[0]", ".a[", ".a[]", ".a[x]", ".a[-1]", ".a[+1]", ".a[0", ".a[0]b", ".a]", ".a[99999999999]"} {
		if got, err := parsePath(path); err == nil || !strings.HasPrefix(err.Error(), "json path ") {
			t.Errorf("%q: got %v, %v", path, got, err)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		json, op, text string
		holds          bool
		problem        string
	}{
		{"4", "<", "5", true, ""},
		{"5", "<", "5", false, ""},
		{"5", "<=", "5", true, ""},
		{"5.0", "==", "5", true, ""},
		{"5e0", "!=", "5", false, ""},
		{"10", ">", "9", true, ""}, // not as text
		{"-1.5", ">=", "-1.25", false, ""},
		{"9007199254740993", "==", "9007199254740992", false, ""}, // one apart, equal as float64
		{"1e400", ">", "5", false, "is beyond all numbers that can be compared"},
		{"5", "==", "five", false, ""},
		{"5", "!=", "five", true, ""},
		{"5", "!=", "nan", true, ""},
		{`"ok"`, "==", "ok", true, ""},
		{`"ok"`, "!=", "ok", false, ""},
		{`"5"`, "==", "5", true, ""},
		{`"4"`, "<", "5", false, "is not a number"},
		{"true", "==", "true", true, ""},
		{"false", "!=", "true", true, ""},
		{"true", ">", "5", false, "is not a number"},
		{"null", "==", "null", true, ""},
		{"null", "==", "", false, ""},
		{"[]", "==", "[]", false, "is not a single value"},
		{"{}", "!=", "x", false, "is not a single value"},
	} {
		holds, problem := compare(decode(t, tc.json), tc.op, tc.text)
		if holds != tc.holds || problem != tc.problem {
			t.Errorf("%s %s %s: got %v %q", tc.json, tc.op, tc.text, holds, problem)
		}
	}
}

func decode(t testing.TB, text string) (doc any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestFindAgainstBuilt builds documents around values, and finds each value by
// the path it was built with.
func TestFindAgainstBuilt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		text, path := fmt.Sprint(i), ""
		for range rng.IntN(6) {
			if rng.IntN(2) == 0 {
				name := string(rune('a' + rng.IntN(3)))
				text = fmt.Sprintf(`{"z":0,%q:%s}`, name, text)
				path = "." + name + path
			} else {
				before := rng.IntN(3)
				text = "[" + strings.Repeat("0,", before) + text + "]"
				path = fmt.Sprintf("[%d]", before) + path
			}
		}
		if path == "" {
			path = "."
		}
		steps, err := parsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := find(decode(t, text), steps)
		if !ok || fmt.Sprint(value) != fmt.Sprint(i) {
			t.Fatalf("%s of %s: got %v %v", path, text, value, ok)
		}
		if _, ok := find(decode(t, text), append(steps, step{name: "a"})); ok {
			t.Fatalf("%s.a of %s found", path, text)
		}
	}
}

func FuzzJSONPath(f *testing.F) {
	f.Add(".a.b[0].c", `{"a":{"b":[{"c":5}]}}`, "<", "5")
	f.Add(".", `"ok"`, "==", "ok")
	f.Add("[1]", `[1,true]`, "!=", "true")
	f.Add(".a", `{"a":1e999}`, ">=", "-1")
	f.Fuzz(func(t *testing.T, path, body, op, value string) {
		steps, err := parsePath(path)
		if err == nil && path != "." {
			var again strings.Builder
			for _, s := range steps {
				if s.name != "" {
					again.WriteString("." + s.name)
				} else {
					fmt.Fprintf(&again, "[%d]", s.index)
				}
			}
			if reread, err := parsePath(again.String()); err != nil || !reflect.DeepEqual(reread, steps) {
				t.Errorf("%q read as %q, and that as %v", path, again.String(), reread)
			}
		}
		c, err := jsonField(path, op, value)
		if err != nil {
			return
		}
		found, holds := c.look(&outcome{body: []byte(body)})
		if found == "" || holds && !json.Valid(bytes.TrimSpace([]byte(body))) {
			t.Errorf("%s %s %s of %q: %q %v", path, op, value, body, found, holds)
		}
		if op != "==" && op != "!=" {
			return
		}
		opposite := map[string]string{"==": "!=", "!=": "=="}[op]
		if c, err := jsonField(path, opposite, value); err != nil {
			t.Error(err)
		} else if _, both := c.look(&outcome{body: []byte(body)}); both && holds {
			t.Errorf("%s == and != %s of %q", path, value, body)
		}
	})
}
