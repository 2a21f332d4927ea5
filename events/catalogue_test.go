package events_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/schemas"
)

// described is one struct with a schema and a golden file.
type described struct {
	name string
	new  func() any
}

// all returns everything that has a schema.
func all() []described {
	var out []described
	for _, e := range events.Catalogue() {
		out = append(out, described{string(e.Type), e.New})
		if e.Answer != nil {
			out = append(out, described{string(e.Type) + ".answer", e.Answer})
		}
	}
	for _, o := range append(events.Orders(), events.Formats()...) {
		out = append(out, described{string(o.Type), o.New})
	}
	return out
}

func TestCatalogue_struct_schema_and_golden_file_agree(t *testing.T) {
	t.Parallel()
	for _, d := range all() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			v := d.new()
			fill(t, reflect.ValueOf(v).Elem(), "")
			doc := golden(t, filepath.Join("testdata", d.name+".json"), indented(t, v))
			if err := schemas.Validate(d.name, doc); err != nil {
				t.Errorf("the golden file breaks its schema: %v", err)
			}
			got := d.new()
			strict(t, doc, got)
			if diff := cmp.Diff(plain(t, doc), plain(t, indented(t, got))); diff != "" {
				t.Errorf("the golden file is not written again (-golden +again):\n%s", diff)
			}
			if diff := cmp.Diff(string(indented(t, v)), string(doc)); diff != "" {
				t.Errorf("a field is missing or new; run go test -update (-struct +golden):\n%s", diff)
			}
		})
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func strict(t *testing.T, doc []byte, v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("the golden file does not fit the struct: %v", err)
	}
}

func plain(t *testing.T, doc []byte) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCatalogue_struct_fields_are_the_schema_properties(t *testing.T) {
	t.Parallel()
	for _, d := range all() {
		body, err := schemas.FS.ReadFile(d.name + ".json")
		if err != nil {
			t.Errorf("%s has no schema: %v", d.name, err)
			continue
		}
		schema, _ := plain(t, body).(map[string]any)
		sameFields(t, d.name, reflect.TypeOf(d.new()).Elem(), schema)
	}
}

// sameFields compares the json names of a struct, and which of them are always there,
// with a schema; then those of every struct below.
func sameFields(t *testing.T, at string, typ reflect.Type, schema map[string]any) {
	t.Helper()
	required := map[string]bool{}
	types := map[string]reflect.Type{}
	jsonFields(typ, types, required)
	properties, _ := schema["properties"].(map[string]any)
	if got, want := keys(properties), keys(types); !slices.Equal(got, want) {
		t.Errorf("%s: the schema has %v, the struct %v", at, got, want)
		return
	}
	var listed []string
	names, _ := schema["required"].([]any)
	for _, n := range names {
		listed = append(listed, n.(string))
	}
	slices.Sort(listed)
	if want := keys(required); !slices.Equal(listed, want) {
		t.Errorf("%s: the schema requires %v, the struct always writes %v", at, listed, want)
	}
	for name, ft := range types {
		sub, _ := properties[name].(map[string]any)
		for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
			if ft.Kind() == reflect.Slice && sub["items"] != nil {
				sub, _ = sub["items"].(map[string]any)
			}
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct && sub["properties"] != nil {
			sameFields(t, at+"/"+name, ft, sub)
		}
	}
}

func jsonFields(typ reflect.Type, types map[string]reflect.Type, required map[string]bool) {
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			jsonFields(f.Type, types, required)
			continue
		}
		types[name] = f.Type
		if !strings.Contains(options, "omit") {
			required[name] = true
		}
	}
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestCatalogue_and_files_are_the_same_set(t *testing.T) {
	t.Parallel()
	var want []string
	for _, d := range all() {
		want = append(want, d.name)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, schemas.Names()); d != "" {
		t.Errorf("schemas (-catalogue +files):\n%s", d)
	}
	found, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		found[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	slices.Sort(found)
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("golden files (-catalogue +files):\n%s", d)
	}
}

func TestCatalogue_entries_are_well_formed(t *testing.T) {
	t.Parallel()
	event := regexp.MustCompile(`^keryx\.[a-z]+\.[a-z_]+\.v[1-9][0-9]*$`)
	command := regexp.MustCompile(`^keryx\.cmd\.[a-z]+\.[a-z_]+\.v[1-9][0-9]*$`)
	order := regexp.MustCompile(`^keryx\.order\.[a-z]+\.v[1-9][0-9]*$`)
	seen := map[events.Type]bool{}
	for _, e := range events.Catalogue() {
		if seen[e.Type] {
			t.Errorf("%s is listed twice", e.Type)
		}
		seen[e.Type] = true
		isCommand := e.Class == events.ClassCommand
		if isCommand != e.Type.IsCommand() || isCommand && !command.MatchString(string(e.Type)) || !isCommand && !event.MatchString(string(e.Type)) {
			t.Errorf("%s is not a type of class %s", e.Type, e.Class)
		}
		if isCommand != (e.Answer != nil) || isCommand != (len(e.Roles) > 0) {
			t.Errorf("%s: only commands have answers and roles, and all of them do", e.Type)
		}
		if found, ok := events.Find(e.Type); !ok || found.Type != e.Type {
			t.Errorf("%s is not found", e.Type)
		}
		for _, r := range e.Roles {
			if !r.Valid() {
				t.Errorf("%s may be sent by unknown role %q", e.Type, r)
			}
		}
	}
	for _, o := range events.Orders() {
		if !order.MatchString(string(o.Type)) {
			t.Errorf("%s is not a type of an order", o.Type)
		}
	}
}

func TestFindCommand(t *testing.T) {
	t.Parallel()
	for _, e := range events.Catalogue() {
		if e.Class != events.ClassCommand {
			continue
		}
		noun, verb, _ := strings.Cut(e.Type.Short(), ".")
		if got, ok := events.FindCommand(noun, verb); !ok || got.Type != e.Type {
			t.Errorf("FindCommand(%q, %q) is %s, %t", noun, verb, got.Type, ok)
		}
	}
	if e, ok := events.FindCommand("turn", "ended"); ok {
		t.Errorf("an event was found as command %s", e.Type)
	}
	if _, ok := events.Find("keryx.session.sang.v1"); ok {
		t.Error("an unknown type was found")
	}
}
