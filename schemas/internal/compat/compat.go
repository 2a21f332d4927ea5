// Package compat compares two versions of a JSON Schema as this repository writes them:
// objects with properties, arrays with items, strings and numbers with bounds.
//
// Within a version a schema may only gain optional fields. For a command that means: what
// was taken before is taken after. For what the bus says (events, answers, orders) it
// means: what a reader could count on before, it can count on after.
package compat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

type object = map[string]any

// Side says who writes what a schema describes.
type Side int

// The two sides of a schema.
const (
	Taken Side = iota // others write it and the bus takes it: commands
	Given             // the bus writes it and others read it: events, answers, orders
)

// Compare returns what in after breaks those who know before, one line each with the
// place it is at; nil if nothing does. Words for people (title, description) do not count.
func Compare(side Side, before, after []byte) ([]string, error) {
	var b, a object
	if err := json.Unmarshal(before, &b); err != nil {
		return nil, fmt.Errorf("read schema before: %w", err)
	}
	if err := json.Unmarshal(after, &a); err != nil {
		return nil, fmt.Errorf("read schema after: %w", err)
	}
	c := comparison{side: side}
	c.schema("", b, a)
	return c.found, nil
}

type comparison struct {
	side  Side
	found []string
}

func (c *comparison) report(at, format string, args ...any) {
	if at == "" {
		at = "/"
	}
	c.found = append(c.found, at+": "+fmt.Sprintf(format, args...))
}

func (c *comparison) schema(at string, before, after object) {
	if t, u := before["type"], after["type"]; t != u {
		c.report(at, "the type was %v and is %v", t, u)
		return
	}
	c.properties(at, before, after)
	c.required(at, before, after)
	c.bounds(at, before, after)
	for _, key := range []string{"items", "additionalProperties"} {
		c.inner(at, key, before[key], after[key])
	}
}

func (c *comparison) properties(at string, before, after object) {
	b, _ := before["properties"].(object)
	a, _ := after["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(b)) {
		then, _ := b[name].(object)
		now, ok := a[name].(object)
		if !ok {
			c.report(at+"/"+name, "the field was removed")
			continue
		}
		c.schema(at+"/"+name, then, now)
	}
}

func (c *comparison) required(at string, before, after object) {
	then, now := texts(before["required"]), texts(after["required"])
	for _, name := range now {
		if !slices.Contains(then, name) && (c.side == Taken || has(before, name)) {
			c.report(at+"/"+name, "the field is required now")
		}
	}
	for _, name := range then {
		if c.side == Given && !slices.Contains(now, name) && has(after, name) {
			c.report(at+"/"+name, "the field can be absent now")
		}
	}
}

func has(schema object, property string) bool {
	p, _ := schema["properties"].(object)
	_, ok := p[property]
	return ok
}

// inner compares the schemas below a keyword; additionalProperties may also be a bool.
func (c *comparison) inner(at, key string, before, after any) {
	then, wasSchema := before.(object)
	now, isSchema := after.(object)
	switch {
	case wasSchema && isSchema:
		c.schema(at+"/*", then, now)
	case wasSchema != isSchema, !reflect.DeepEqual(before, after) && after == false:
		c.report(at, "%s was %v and is %v", key, before, after)
	}
}

// bounds reports what narrows the values; for what is given also a closed set that
// grew or a form that changed would be news, but readers of an open bus must bear those.
func (c *comparison) bounds(at string, before, after object) {
	for _, key := range []string{"minimum", "minLength", "minItems"} {
		if grew(before[key], after[key]) > 0 {
			c.report(at, "%s was %v and is %v", key, before[key], after[key])
		}
	}
	for _, key := range []string{"maximum", "maxLength", "maxItems"} {
		if grew(before[key], after[key]) < 0 || before[key] == nil && after[key] != nil {
			c.report(at, "%s was %v and is %v", key, before[key], after[key])
		}
	}
	for _, key := range []string{"pattern", "format", "contentEncoding"} {
		if after[key] != nil && before[key] != after[key] {
			c.report(at, "%s was %v and is %v", key, before[key], after[key])
		}
	}
	c.enum(at, before["enum"], after["enum"])
}

func (c *comparison) enum(at string, before, after any) {
	then, now := texts(before), texts(after)
	if len(now) > 0 && len(then) == 0 {
		c.report(at, "only %v are values now", now)
	}
	for _, v := range then {
		if len(now) > 0 && !slices.Contains(now, v) {
			c.report(at, "%q is no value any more", v)
		}
	}
}

// grew compares two bounds; an absent lower bound is below every other.
func grew(before, after any) int {
	b, wasNumber := before.(float64)
	a, isNumber := after.(float64)
	switch {
	case isNumber && !wasNumber:
		return 1
	case !isNumber:
		return 0
	}
	return cmp.Compare(a, b)
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
