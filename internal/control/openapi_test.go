package control

import (
	"encoding/json"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

type object = map[string]any

func readDescription(t *testing.T) object {
	t.Helper()
	data, err := os.ReadFile("../../docs/control-api.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all object
	if err := yaml.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// at follows a path of keys; nil if there is nothing.
func at(o any, path ...string) any {
	for _, p := range path {
		m, ok := o.(object)
		if !ok {
			return nil
		}
		o = m[p]
	}
	return o
}

func TestDescribedRoutes(t *testing.T) {
	all := readDescription(t)
	n := 0
	for path, methods := range at(all, "paths").(object) {
		for method := range methods.(object) {
			n++
			if !slices.ContainsFunc(routes, func(r route) bool { return r.path == path && strings.EqualFold(r.method, method) }) {
				t.Errorf("%s %s is described, and not there", method, path)
			}
		}
	}
	if n != len(routes) {
		t.Errorf("%d routes are described, expected %d", n, len(routes))
	}
}

// TestDescribedFields holds that the description has every field of what goes over
// the wire, of the right type, and required where it is always there.
func TestDescribedFields(t *testing.T) {
	schemas := at(readDescription(t), "components", "schemas").(object)
	values := []any{Failure{}, Request{}, Change{}, CancelRequest{}, ReturnRequest{}, Returned{}, Result{}, Applied{}, Override{}, OverrideList{},
		AuditList{}, Entry{}, Report{}, KindReport{}, HostReport{}, RegionReport{}, Flow{}, Stranded{}, Refusal{}, Status{}, Setting{}, RegionStatus{}, HostStatus{}, HostRegion{},
		EndpointStatus{}, Explained{}, ExplainedBlock{}}
	if len(values) != len(schemas) {
		t.Errorf("%d schemas, expected %d", len(schemas), len(values))
	}
	for _, v := range values {
		kind := reflect.TypeOf(v)
		properties, ok := at(schemas, kind.Name(), "properties").(object)
		if !ok {
			t.Errorf("%s is not described", kind.Name())
			continue
		}
		required, _ := at(schemas, kind.Name(), "required").([]any)
		fields := 0
		for _, f := range reflect.VisibleFields(kind) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			fields++
			p, ok := properties[name].(object)
			if !ok {
				t.Errorf("%s.%s is not described", kind.Name(), name)
				continue
			}
			if slices.Contains(required, any(name)) != (options == "") {
				t.Errorf("%s.%s: required or not, that is wrong", kind.Name(), name)
			}
			if got, want := typeOf(t, schemas, p), jsonType(f.Type); got != want && f.Type != reflect.TypeFor[Value]() {
				t.Errorf("%s.%s is described as %s, expected %s", kind.Name(), name, got, want)
			}
		}
		if fields != len(properties) || fields == 0 {
			t.Errorf("%s: %d fields are described, expected %d", kind.Name(), len(properties), fields)
		}
	}
}

// typeOf is the type of a schema, or what it refers to: the name of an object.
func typeOf(t *testing.T, schemas object, p object) string {
	t.Helper()
	ref, ok := p["$ref"].(string)
	if !ok {
		text, _ := p["type"].(string)
		if items, ok := p["items"].(object); ok {
			return text + " of " + typeOf(t, schemas, items)
		}
		return text
	}
	path := strings.Split(strings.TrimPrefix(ref, "#/components/schemas/"), "/")
	to, ok := at(schemas, path...).(object)
	if !ok {
		t.Errorf("%s leads nowhere", ref)
	}
	if len(path) == 1 {
		return path[0]
	}
	return typeOf(t, schemas, to)
}

func jsonType(kind reflect.Type) string {
	switch kind {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr]():
		return "string"
	case reflect.TypeFor[json.RawMessage]():
		return "object"
	}
	switch kind.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Map:
		return "object"
	case reflect.Slice:
		return "array of " + jsonType(kind.Elem())
	case reflect.Pointer:
		return jsonType(kind.Elem())
	}
	return kind.Name()
}

// TestDescribedCodes holds that every code that a failure may have is described.
func TestDescribedCodes(t *testing.T) {
	all := readDescription(t)
	codes, _ := at(all, "components", "schemas", "Failure", "properties", "code", "enum").([]any)
	text, _ := at(all, "components", "responses", "Failure", "description").(string)
	source := ""
	for _, name := range []string{"server.go", "failure.go", "handlers.go"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source += string(data)
	}
	for _, code := range codes {
		if !strings.Contains(source, `"`+code.(string)+`"`) || !strings.Contains(text, code.(string)) {
			t.Errorf("the code %s is of no failure, or in no status", code)
		}
	}
	for _, part := range strings.Split(source, `Code: "`)[1:] {
		if code, _, _ := strings.Cut(part, `"`); !slices.Contains(codes, any(code)) {
			t.Errorf("the code %s is not described", code)
		}
	}
}
