package compat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/schemas/internal/compat"
)

// object is a schema of an object with these properties and required fields.
func object(properties string, required ...string) string {
	s := `{"type":"object","properties":{` + properties + `}`
	if len(required) > 0 {
		s += `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	return s + "}"
}

func TestCompare(t *testing.T) {
	t.Parallel()
	const a, b = `"a":{"type":"string"}`, `"b":{"type":"integer"}`
	field := func(schema string) string { return object(`"a":` + schema) }
	for _, c := range []struct {
		name, before, after string
		taken, given        []string
	}{
		{"nothing changed", object(a, "a"), object(a, "a"), nil, nil},
		{"an optional field came", object(a), object(a + "," + b), nil, nil},
		{"words changed", field(`{"type":"string","description":"x"}`), field(`{"type":"string","description":"y"}`), nil, nil},
		{"a field was removed", object(a + "," + b), object(a), []string{"/b: the field was removed"}, []string{"/b: the field was removed"}},
		{"a required field came", object(a), object(a+","+b, "b"), []string{"/b: the field is required now"}, nil},
		{"a field became required", object(a), object(a, "a"), []string{"/a: the field is required now"}, []string{"/a: the field is required now"}},
		{"a field became optional", object(a, "a"), object(a), nil, []string{"/a: the field can be absent now"}},
		{"the type changed", object(a), field(`{"type":"integer"}`), []string{"/a: the type was string and is integer"}, []string{"/a: the type was string and is integer"}},
		{"the type opened", object(a), field(`{}`), []string{"/a: the type was string and is <nil>"}, []string{"/a: the type was string and is <nil>"}},
		{"a value left the set", field(`{"type":"string","enum":["x","y"]}`), field(`{"type":"string","enum":["x"]}`), []string{`/a: "y" is no value any more`}, []string{`/a: "y" is no value any more`}},
		{"a value joined the set", field(`{"type":"string","enum":["x"]}`), field(`{"type":"string","enum":["x","y"]}`), nil, nil},
		{"the set was closed", object(a), field(`{"type":"string","enum":["x"]}`), []string{`/a: only [x] are values now`}, []string{`/a: only [x] are values now`}},
		{"the set was opened", field(`{"type":"string","enum":["x"]}`), object(a), nil, nil},
		{"a form came", object(a), field(`{"type":"string","pattern":"^x$"}`), []string{"/a: pattern was <nil> and is ^x$"}, []string{"/a: pattern was <nil> and is ^x$"}},
		{"a form went", field(`{"type":"string","pattern":"^x$"}`), object(a), nil, nil},
		{"the lower bound rose", field(`{"type":"integer","minimum":0}`), field(`{"type":"integer","minimum":1}`), []string{"/a: minimum was 0 and is 1"}, []string{"/a: minimum was 0 and is 1"}},
		{"the lower bound fell", field(`{"type":"integer","minimum":1}`), field(`{"type":"integer","minimum":0}`), nil, nil},
		{"an upper bound came", object(a), field(`{"type":"string","maxLength":5}`), []string{"/a: maxLength was <nil> and is 5"}, []string{"/a: maxLength was <nil> and is 5"}},
		{"the upper bound fell", field(`{"type":"string","maxLength":5}`), field(`{"type":"string","maxLength":4}`), []string{"/a: maxLength was 5 and is 4"}, []string{"/a: maxLength was 5 and is 4"}},
		{"the upper bound rose", field(`{"type":"string","maxLength":5}`), field(`{"type":"string","maxLength":6}`), nil, nil},
		{"an entry's type changed", field(`{"type":"array","items":{"type":"string"}}`), field(`{"type":"array","items":{"type":"integer"}}`), []string{"/a/*: the type was string and is integer"}, []string{"/a/*: the type was string and is integer"}},
		{"a value's bounds in a map", field(`{"type":"object","additionalProperties":{"type":"string"}}`), field(`{"type":"object","additionalProperties":{"type":"string","minLength":1}}`), []string{"/a/*: minLength was <nil> and is 1"}, []string{"/a/*: minLength was <nil> and is 1"}},
		{"unknown fields were shut out", `{"type":"object"}`, `{"type":"object","additionalProperties":false}`, []string{"/: additionalProperties was <nil> and is false"}, []string{"/: additionalProperties was <nil> and is false"}},
		{"unknown fields were let in", `{"type":"object","additionalProperties":false}`, `{"type":"object"}`, nil, nil},
		{"a change further down", object(`"o":` + object(a+","+b)), object(`"o":` + object(a)), []string{"/o/b: the field was removed"}, []string{"/o/b: the field was removed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for side, want := range map[compat.Side][]string{compat.Taken: c.taken, compat.Given: c.given} {
				got, err := compat.Compare(side, []byte(c.before), []byte(c.after))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("side %d (-want +got):\n%s", side, d)
				}
			}
		})
	}
}

func TestCompare_refuses_what_is_no_schema(t *testing.T) {
	t.Parallel()
	if _, err := compat.Compare(compat.Taken, []byte(`[]`), []byte(`{}`)); err == nil {
		t.Error("a list was taken for the schema before")
	}
	if _, err := compat.Compare(compat.Taken, []byte(`{}`), []byte(`x`)); err == nil {
		t.Error("text was taken for the schema after")
	}
}
