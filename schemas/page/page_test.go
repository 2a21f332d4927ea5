package page_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/schemas"
	"keryx/schemas/page"
)

const schema = `{
  "title": "keryx.cmd.x.y.v1", "description": "Does it.", "type": "object", "additionalProperties": false,
  "required": ["argv"],
  "properties": {
    "argv": {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 9}, "description": "What to run."},
    "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Variables."},
    "size": {"type": "object", "required": ["rows"], "description": "How large.", "properties": {
      "rows": {"type": "integer", "minimum": 1, "maximum": 4096, "description": "Lines."}}},
    "rules": {"type": "array", "description": "All.", "items": {"type": "object", "properties": {
      "kind": {"type": "string", "enum": ["a", "b"], "description": "Which."}}}},
    "at": {"type": "string", "format": "date-time", "description": "When."},
    "n": {"type": "integer", "minimum": 0, "maximum": 18446744073709551615, "description": "How many."},
    "body": {"type": "string", "contentEncoding": "base64", "description": "Bytes."},
    "data": {"description": "Anything."}
  }
}`

func TestOf_lists_every_field_at_every_depth(t *testing.T) {
	t.Parallel()
	got, err := page.Of([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	want := page.Page{Name: "keryx.cmd.x.y.v1", Words: "Does it.", Closed: true, Fields: []page.Field{
		{"argv", "list of string", true, "each at most 9 characters, at least 1 entries", "What to run."},
		{"at", "string (date-time)", false, "", "When."},
		{"body", "string (base64)", false, "", "Bytes."},
		{"data", "any", false, "", "Anything."},
		{"env", "map of string", false, "", "Variables."},
		{"n", "integer", false, "", "How many."},
		{"rules", "list of object", false, "", "All."},
		{"rules[].kind", "string", false, "one of a, b", "Which."},
		{"size", "object", false, "", "How large."},
		{"size.rows", "integer", true, "at least 1, at most 4096", "Lines."},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestOf_refuses_what_is_no_schema(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "[]", `{"properties": 1}`, `{"properties":{"m":{"additionalProperties":{"type":1}}}}`} {
		if p, err := page.Of([]byte(bad)); err == nil {
			t.Errorf("%q became %+v", bad, p)
		}
	}
}

func TestOf_reads_every_schema_there_is(t *testing.T) {
	t.Parallel()
	for _, name := range schemas.Names() {
		body, err := schemas.FS.ReadFile(name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		p, err := page.Of(body)
		if err != nil || p.Name != name || p.Words == "" {
			t.Errorf("%s is %q: %q (%v)", name, p.Name, p.Words, err)
		}
		for _, f := range p.Fields {
			if f.Words == "" || f.Type == "" || strings.Contains(f.Type, "()") {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
