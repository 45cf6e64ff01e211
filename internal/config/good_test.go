package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGood compares the Block of every good configuration with its golden dump.
func TestGood(t *testing.T) {
	t.Setenv("GEO_DB", "country.mmdb")
	files, _ := filepath.Glob("testdata/good/*.cf")
	if len(files) == 0 {
		t.Fatal("no good configurations")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var got strings.Builder
			for _, s := range lex(t, file, read(t, file)) {
				b, err := s.parse()
				if err != nil {
					t.Fatal(err)
				}
				dump(&got, b)
			}
			golden := strings.TrimSuffix(file, ".cf") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := read(t, golden); got.String() != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// TestExamples parses every Corefile of the examples.
func TestExamples(t *testing.T) {
	t.Setenv("GEO_DB", "testdata/world-country.mmdb")
	files, _ := filepath.Glob("../../examples/*/Corefile")
	if len(files) < 10 {
		t.Fatalf("only %d examples", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			text := read(t, file)
			if !strings.HasPrefix(text, "# ") {
				t.Error("no comment says whose problem it solves")
			}
			for _, s := range lex(t, file, text) {
				if _, err := s.parse(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// dump writes a block with one line for each element of its lists.
func dump(w *strings.Builder, b *config.Block) {
	fields(w, "", reflect.ValueOf(*b))
}

func fields(w *strings.Builder, indent string, v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case f.IsZero() || name == "Pos" || !v.Type().Field(i).IsExported():
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct && name != "Prefixes":
			for j := range f.Len() {
				element(w, indent, name, f.Index(j))
			}
		default:
			fmt.Fprintf(w, "%s%s: %s\n", indent, name, inline(f))
		}
	}
}

// element writes one element of a list of structs; a host and a pool have
// lists of their own.
func element(w *strings.Builder, indent, name string, v reflect.Value) {
	if name == "Hosts" || name == "Pools" {
		fmt.Fprintf(w, "%s%s (line %d)\n", indent, name, v.FieldByName("Line").Int())
		fields(w, indent+"    ", v)
		return
	}
	fmt.Fprintf(w, "%s%s: %s\n", indent, name, inline(v))
}

// inline writes a value on one line and leaves out what is zero.
func inline(v reflect.Value) string {
	if s, ok := v.Interface().(fmt.Stringer); ok && v.Type() != reflect.TypeFor[config.Pos]() && v.Kind() != reflect.Pointer && !hasPos(v) {
		return s.String()
	}
	switch v.Kind() {
	case reflect.String:
		if text := strconv.Quote(v.String()); strings.Contains(text, `\`) {
			return text
		}
	case reflect.Pointer:
		return inline(v.Elem())
	case reflect.Slice:
		var list []string
		for i := range v.Len() {
			list = append(list, inline(v.Index(i)))
		}
		return "[" + strings.Join(list, " ") + "]"
	case reflect.Struct:
		var list []string
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if f := v.Field(i); name == "Pos" {
				list = append(list, fmt.Sprintf("@%d", f.FieldByName("Line").Int()))
			} else if !f.IsZero() {
				list = append(list, name+":"+inline(f))
			}
		}
		return "{" + strings.Join(list, " ") + "}"
	}
	return fmt.Sprint(v.Interface())
}

func hasPos(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && v.FieldByName("Pos").IsValid()
}
