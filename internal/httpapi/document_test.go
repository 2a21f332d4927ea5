package httpapi_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"keryx/events"
	"keryx/schemas"
)

// operation is one operation as the OpenAPI document has it.
type operation struct {
	method, path, id string
	command          events.Type
	roles            []events.Role
	parameters       []parameter
	body             map[string]any // of application/json; nil for none
	answer           map[string]any
	streams          bool
}

type parameter struct {
	name, in string
	schema   map[string]any
}

// document reads schemas/openapi.yaml.
func document(t testing.TB) map[string]any {
	t.Helper()
	b, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	j, err := yaml.YAMLToJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	dec := json.NewDecoder(strings.NewReader(string(j)))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// operations returns what the document has, with references resolved at the top.
func operations(t testing.TB) []operation {
	t.Helper()
	doc := document(t)
	var out []operation
	for path, methods := range doc["paths"].(map[string]any) {
		for method, o := range methods.(map[string]any) {
			out = append(out, operationOf(t, doc, path, method, o.(map[string]any)))
		}
	}
	return out
}

func operationOf(t testing.TB, doc map[string]any, path, method string, o map[string]any) operation {
	t.Helper()
	op := operation{method: strings.ToUpper(method), path: path, id: o["operationId"].(string)}
	if c, ok := o["x-keryx-command"].(string); ok {
		op.command = events.Type(c)
	}
	for _, r := range o["x-keryx-roles"].([]any) {
		op.roles = append(op.roles, events.Role(r.(string)))
	}
	if ps, ok := o["parameters"].([]any); ok {
		for _, p := range ps {
			p := p.(map[string]any)
			op.parameters = append(op.parameters, parameter{p["name"].(string), p["in"].(string), resolve(t, doc, p["schema"].(map[string]any))})
		}
	}
	if b, ok := o["requestBody"].(map[string]any); ok {
		if j, ok := b["content"].(map[string]any)["application/json"].(map[string]any); ok {
			op.body = resolve(t, doc, j["schema"].(map[string]any))
		}
	}
	content := o["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)
	op.answer = resolve(t, doc, content["application/json"].(map[string]any)["schema"].(map[string]any))
	_, op.streams = content["text/event-stream"]
	return op
}

// resolve replaces every reference within a schema by what it refers to: a part of this
// document, or of a schema beside it.
func resolve(t testing.TB, doc map[string]any, s map[string]any) map[string]any {
	t.Helper()
	return resolved(t, doc, s).(map[string]any)
}

func resolved(t testing.TB, doc map[string]any, v any) any {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if target, ok := v["$ref"].(string); ok {
			return resolved(t, doc, find(t, doc, target))
		}
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = resolved(t, doc, x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = resolved(t, doc, x)
		}
		return out
	}
	return v
}

func find(t testing.TB, doc map[string]any, target string) any {
	t.Helper()
	file, pointer, _ := strings.Cut(target, "#")
	var at any = doc
	if file != "" {
		b, err := schemas.FS.ReadFile(file)
		if err != nil {
			t.Fatalf("reference %s: %v", target, err)
		}
		dec := json.NewDecoder(strings.NewReader(string(b)))
		dec.UseNumber()
		if err := dec.Decode(&at); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range strings.Split(strings.Trim(pointer, "/"), "/") {
		if part == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok || m[part] == nil {
			t.Fatalf("reference %s leads nowhere", target)
		}
		at = m[part]
	}
	return at
}
