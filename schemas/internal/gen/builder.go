package main

import (
	"encoding"
	"reflect"
	"strings"
	"time"

	"keryx/events"
)

type object = map[string]any

// builder makes schemas of structs. closed refuses unknown fields, at every level.
type builder struct {
	words  words
	closed bool
}

func (b builder) document(name string, t reflect.Type) object {
	s := b.structure(t)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = "urn:keryx:schema:" + name
	s["title"] = name
	s["description"] = sentence(b.words.docs[t.Name()], t.Name(), "")
	return s
}

func (b builder) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	b.fields(t, properties, &required)
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	if b.closed {
		s["additionalProperties"] = false
	}
	return s
}

func (b builder) fields(t reflect.Type, properties object, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			b.fields(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		s := b.schema(f.Type)
		limit(t.Name(), name, s)
		s["description"] = b.words.describe(t, f, name)
		properties[name] = s
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[events.Raw]()
	bytesType  = reflect.TypeFor[[]byte]()
	fenceType  = reflect.TypeFor[events.Fence]()
	marshaller = reflect.TypeFor[encoding.TextMarshaler]()
)

func (b builder) schema(t reflect.Type) object {
	switch t {
	case timeType:
		return object{"type": "string", "format": "date-time"}
	case rawType:
		return object{}
	case bytesType:
		return object{"type": "string", "contentEncoding": "base64"}
	case fenceType:
		return object{"type": "string", "pattern": patterns[t]}
	}
	if t.Implements(marshaller) {
		return b.text(t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.schema(t.Elem())
	case reflect.Struct:
		return b.structure(t)
	case reflect.Slice:
		return object{"type": "array", "items": b.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": b.schema(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Uint64, reflect.Uint:
		return object{"type": "integer", "minimum": 0, "maximum": uint64(1<<64 - 1)}
	case reflect.Int64, reflect.Int:
		return object{"type": "integer", "minimum": 0, "maximum": int64(1<<63 - 1)}
	}
	return b.text(t)
}

func (b builder) text(t reflect.Type) object {
	s := object{"type": "string"}
	if p, ok := patterns[t]; ok {
		s["pattern"] = p
	}
	if values := b.words.enums[t.Name()]; len(values) > 0 && !open[t.Name()] {
		s["enum"] = append([]any{}, values...)
	}
	return s
}
