// Package page makes a list of fields of a schema of this repository, for people: every
// field at every depth with its form, its bounds and its meaning. It knows the keywords
// that the schemas use, and no others.
package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Field is one field of a schema.
type Field struct {
	// Name has the names of the fields around it before a dot; "[]" stands for each
	// entry of a list and ".*" for each value of a map.
	Name string `json:"name"`
	// Type is that of JSON, with what is known of the form: "string (date-time)".
	Type string `json:"type"`
	// Required: it is always there, if what is around it is.
	Required bool `json:"required"`
	// Bounds are what it may hold, in words; empty for anything of its type.
	Bounds string `json:"bounds,omitempty"`
	Words  string `json:"description"`
}

// Page is a schema for people.
type Page struct {
	Name  string
	Words string
	// Closed schemas refuse fields that they do not name.
	Closed bool
	Fields []Field
}

// node is a schema at any depth.
type node struct {
	Title       string          `json:"title"`
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Properties  map[string]node `json:"properties"`
	Required    []string        `json:"required"`
	Items       *node           `json:"items"`
	Additional  json.RawMessage `json:"additionalProperties"`
	Format      string          `json:"format"`
	Encoding    string          `json:"contentEncoding"`
	Pattern     string          `json:"pattern"`
	Enum        []string        `json:"enum"`
	Minimum     json.Number     `json:"minimum"`
	Maximum     json.Number     `json:"maximum"`
	MinLength   json.Number     `json:"minLength"`
	MaxLength   json.Number     `json:"maxLength"`
	MinItems    json.Number     `json:"minItems"`
}

// Of reads a schema file.
func Of(schema []byte) (Page, error) {
	var n node
	if err := json.Unmarshal(schema, &n); err != nil {
		return Page{}, fmt.Errorf("read schema: %w", err)
	}
	p := Page{Name: n.Title, Words: n.Description, Closed: string(n.Additional) == "false"}
	err := p.add("", n)
	return p, err
}

// add appends the fields of an object, in order, each with those below it.
func (p *Page) add(prefix string, n node) error {
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		f := n.Properties[name]
		p.Fields = append(p.Fields, Field{
			Name: prefix + name, Type: f.kind(), Required: slices.Contains(n.Required, name),
			Bounds: f.bounds(), Words: f.Description,
		})
		if err := p.below(prefix+name, f); err != nil {
			return err
		}
	}
	return nil
}

// below appends what a field has within.
func (p *Page) below(name string, f node) error {
	switch {
	case f.Items != nil:
		return p.below(name+"[]", *f.Items)
	case len(f.Properties) > 0:
		return p.add(name+".", f)
	}
	values, err := f.values()
	if err != nil || values == nil {
		return err
	}
	return p.below(name+".*", *values)
}

// values is the schema of a map's values; nil if it has none.
func (n node) values() (*node, error) {
	if len(n.Additional) == 0 || n.Additional[0] != '{' {
		return nil, nil
	}
	var v node
	if err := json.Unmarshal(n.Additional, &v); err != nil {
		return nil, fmt.Errorf("read schema of values: %w", err)
	}
	return &v, nil
}

func (n node) kind() string {
	switch {
	case n.Items != nil:
		return "list of " + n.Items.kind()
	case n.Type == "":
		return "any"
	case n.Format != "":
		return n.Type + " (" + n.Format + ")"
	case n.Encoding != "":
		return n.Type + " (" + n.Encoding + ")"
	}
	if v, err := n.values(); err == nil && v != nil {
		return "map of " + v.kind()
	}
	return n.Type
}

// bounds says what a value may be, shortest form first.
func (n node) bounds() string {
	var out []string
	if n.Items != nil {
		if b := n.Items.bounds(); b != "" {
			out = append(out, "each "+b)
		}
	}
	if len(n.Enum) > 0 {
		out = append(out, "one of "+strings.Join(n.Enum, ", "))
	}
	if n.Pattern != "" {
		out = append(out, n.Pattern)
	}
	for _, b := range []struct {
		value json.Number
		words string
	}{
		{n.Minimum, "at least %s"},
		{n.Maximum, "at most %s"},
		{n.MinLength, "at least %s characters"},
		{n.MaxLength, "at most %s characters"},
		{n.MinItems, "at least %s entries"},
	} {
		if b.value != "" && !widest[b.value] {
			out = append(out, fmt.Sprintf(b.words, b.value))
		}
	}
	return strings.Join(out, ", ")
}

// widest are bounds that only say how many bits an integer has, or that it is not negative.
var widest = map[json.Number]bool{"0": true, "9223372036854775807": true, "18446744073709551615": true}
