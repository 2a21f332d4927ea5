package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"keryx/events"
	"keryx/schemas"
)

// commandSchema is what a route needs of a command's JSON Schema.
type commandSchema struct {
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
}

// schemaOf reads the schema of a command. One is missing only by a fault of this program.
func schemaOf(t events.Type) commandSchema {
	b, err := schemas.FS.ReadFile(string(t) + ".json")
	if err != nil {
		panic(err)
	}
	var s commandSchema
	if err := json.Unmarshal(b, &s); err != nil {
		panic(fmt.Errorf("read the schema of %s: %w", t, err))
	}
	return s
}

// params are the fields of the route's query: those of a command that reads are all that
// the path does not give.
func (rt *route) params() []param {
	if rt.command == "" || rt.method != http.MethodGet {
		return rt.query
	}
	inPath := pathFields(rt.path)
	s := schemaOf(rt.command)
	var out []param
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(inPath, name) {
			continue
		}
		words, _ := s.Properties[name]["description"].(string)
		out = append(out, param{name: name, words: words, schema: s.Properties[name]})
	}
	return append(out, rt.query...)
}

// Document returns the routes as an OpenAPI 3.1 document, in YAML. schemas/openapi.yaml is
// that; its schemas refer to the files beside it.
func Document() ([]byte, error) {
	paths := yaml.MapSlice{}
	index := make(map[string]int)
	routes := table()
	for i := range routes {
		rt := &routes[i]
		at, ok := index[rt.path]
		if !ok {
			at = len(paths)
			index[rt.path] = at
			paths = append(paths, yaml.MapItem{Key: rt.path, Value: yaml.MapSlice{}})
		}
		paths[at].Value = append(paths[at].Value.(yaml.MapSlice), yaml.MapItem{Key: strings.ToLower(rt.method), Value: rt.operation()})
	}
	doc := yaml.MapSlice{
		{Key: "openapi", Value: "3.1.0"},
		{Key: "info", Value: yaml.MapSlice{
			{Key: "title", Value: "Keryx"},
			{Key: "version", Value: "1"},
			{Key: "description", Value: "The HTTP edge of the session bus. Made from the table of routes by `go generate ./schemas`; do not edit. " +
				"Most routes send one command; what its fields mean is in the schema beside this file. A token of a role that is not among x-keryx-roles is refused."},
		}},
		{Key: "servers", Value: []any{yaml.MapSlice{{Key: "url", Value: "http://127.0.0.1"}, {Key: "description", Value: "The address that `bus up` prints."}}}},
		{Key: "security", Value: []any{map[string]any{"token": []any{}}}},
		{Key: "paths", Value: paths},
		{Key: "components", Value: components()},
	}
	out, err := yaml.MarshalWithOptions(doc, yaml.Indent(2), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return out, nil
}

func components() yaml.MapSlice {
	text := schema{"type": "string"}
	return yaml.MapSlice{
		{Key: "securitySchemes", Value: schema{"token": schema{
			"type": "http", "scheme": "bearer", "description": "A secret of `bus token add`.",
		}}},
		{Key: "schemas", Value: schema{"Problem": schema{
			"type": "object", "description": "RFC 9457, with a code of the bus's own table (docs/events.md).",
			"required": []string{"type", "title", "status", "detail", "code", "retryable"},
			"properties": schema{
				"type": text, "title": text, "detail": text, "code": text,
				"status":    schema{"type": "integer"},
				"path":      schema{"type": "string", "description": "Where in the input it is: a JSON pointer, ?field of the query, or a header."},
				"details":   schema{"type": "object", "additionalProperties": text},
				"retryable": schema{"type": "boolean", "description": "The same request, sent again later, may succeed."},
			},
		}}},
		{Key: "responses", Value: schema{"Problem": schema{
			"description": "It was refused, and has changed nothing; code timeout says that it may have been done.",
			"content":     schema{mediaProblem: schema{"schema": schema{"$ref": "#/components/schemas/Problem"}}},
		}}},
	}
}

func (rt *route) operation() yaml.MapSlice {
	op := yaml.MapSlice{
		{Key: "operationId", Value: rt.id},
		{Key: "summary", Value: rt.words},
	}
	if rt.command != "" {
		op = append(op, yaml.MapItem{Key: "x-keryx-command", Value: string(rt.command)})
	}
	roles := []string{}
	for _, r := range events.TokenRoles() {
		if slices.Contains(rt.allowed(), r) {
			roles = append(roles, string(r))
		}
	}
	op = append(op, yaml.MapItem{Key: "x-keryx-roles", Value: roles})
	if p := rt.parameters(); len(p) > 0 {
		op = append(op, yaml.MapItem{Key: "parameters", Value: p})
	}
	if body := rt.requestBody(); body != nil {
		op = append(op, yaml.MapItem{Key: "requestBody", Value: body})
	}
	return append(op, yaml.MapItem{Key: "responses", Value: rt.responses()})
}

func (rt *route) parameters() []any {
	var out []any
	for _, name := range pathFields(rt.path) {
		s := schema{"type": "string", "minLength": 1}
		if rt.command != "" {
			s = ref(rt.command, name)
		}
		out = append(out, yaml.MapSlice{{Key: "name", Value: name}, {Key: "in", Value: "path"}, {Key: "required", Value: true}, {Key: "schema", Value: s}})
	}
	for _, p := range rt.params() {
		s := p.schema
		if rt.command != "" {
			if _, own := schemaOf(rt.command).Properties[p.name]; own {
				s = ref(rt.command, p.name)
			}
		}
		item := yaml.MapSlice{{Key: "name", Value: p.name}, {Key: "in", Value: "query"}, {Key: "schema", Value: s}}
		if p.words != "" {
			item = append(item[:2:2], yaml.MapItem{Key: "description", Value: p.words}, item[2])
		}
		out = append(out, item)
	}
	if rt.method != http.MethodGet && rt.command != "" {
		out = append(out, yaml.MapSlice{
			{Key: "name", Value: headerKey},
			{Key: "in", Value: "header"},
			{Key: "description", Value: "The same request with the same key gets the first answer."},
			{Key: "schema", Value: schema{"type": "string", "maxLength": maxKey}},
		})
	}
	if rt.events && rt.id != "sessionStatus" {
		out = append(out, yaml.MapSlice{
			{Key: "name", Value: "Last-Event-ID"},
			{Key: "in", Value: "header"},
			{Key: "description", Value: "The id of the last event that was received: the stream goes on behind it."},
			{Key: "schema", Value: schema{"type": "string", "pattern": "^[0-9]*$"}},
		})
	}
	return out
}

func ref(t events.Type, property string) schema {
	return schema{"$ref": string(t) + ".json#/properties/" + property}
}

// requestBody is the command's own schema without what the path gives.
func (rt *route) requestBody() any {
	switch {
	case rt.body != nil && len(rt.body) == 0: // CloudEvents of any kind
		return schema{"required": true, "content": schema{
			mediaStructured: schema{"schema": schema{"type": "object"}},
			mediaBatch:      schema{"schema": schema{"type": "array", "items": schema{"type": "object"}, "maxItems": batchMost}},
			"*/*":           schema{"schema": schema{}},
		}}
	case rt.body != nil:
		return schema{"content": schema{mediaJSON: schema{"schema": rt.body}}}
	case rt.method == http.MethodGet || rt.command == "":
		return nil
	}
	inPath := pathFields(rt.path)
	s := schemaOf(rt.command)
	if len(inPath) == 0 {
		return schema{"required": len(s.Required) > 0, "content": schema{mediaJSON: schema{"schema": schema{"$ref": string(rt.command) + ".json"}}}}
	}
	properties, required := schema{}, []string{}
	for name := range s.Properties {
		if !slices.Contains(inPath, name) {
			properties[name] = ref(rt.command, name)
		}
	}
	for name, extra := range rt.extra {
		properties[name] = extra
	}
	for _, name := range s.Required {
		if !slices.Contains(inPath, name) && !slices.Contains(rt.optional, name) {
			required = append(required, name)
		}
	}
	body := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		body["required"] = required
	}
	return schema{"required": len(required) > 0, "content": schema{mediaJSON: schema{"schema": body}}}
}

func (rt *route) responses() yaml.MapSlice {
	answer := rt.answer
	if answer == nil {
		answer = schema{"$ref": string(rt.command) + ".answer.json"}
	}
	content := schema{mediaJSON: schema{"schema": answer}}
	if rt.events {
		content[mediaSSE] = schema{"schema": schema{"type": "string", "description": "Server-sent events. An event named gap tells of what is left out, one named end why the stream ends."}}
	}
	out := yaml.MapSlice{{Key: "200", Value: schema{"description": "Done.", "content": content}}}
	if rt.id == "sendEvents" {
		out = append(out, yaml.MapItem{Key: "207", Value: schema{"description": "A batch of which some were refused.", "content": content}})
	}
	return append(out, yaml.MapItem{Key: "default", Value: schema{"$ref": "#/components/responses/Problem"}})
}
