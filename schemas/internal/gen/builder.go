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
	s["description"] = b.words.structs[t.Name()]
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
		if doc := b.words.fields[t.Name()+"."+f.Name]; doc != "" {
			s["description"] = doc
		}
		limit(name, s)
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

// patterns are the forms of identifiers.
var patterns = map[reflect.Type]string{
	reflect.TypeFor[events.Profile]():       `^[a-z0-9][a-z0-9-]{0,62}$`,
	reflect.TypeFor[events.PrincipalName](): `^[a-z0-9-]{0,63}$`,
	reflect.TypeFor[events.TargetName]():    `^([a-z0-9][a-z0-9-]{0,62})?$`,
	reflect.TypeFor[events.Instance]():      ulid,
	reflect.TypeFor[events.SessionID]():     ulid,
	reflect.TypeFor[events.TurnID]():        ulid,
	reflect.TypeFor[events.OfferID]():       ulid,
	reflect.TypeFor[events.ReceiptID]():     ulid,
	reflect.TypeFor[events.ExecID]():        ulid,
	reflect.TypeFor[events.CommandID]():     ulid,
}

const ulid = `^([0-7][0-9A-HJKMNP-TV-Z]{25})?$`

// open are string types whose constants are only the known ones.
var open = map[string]bool{"Code": true, "Type": true, "Scope": true, "PrincipalName": true}

func (b builder) schema(t reflect.Type) object {
	switch {
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t == rawType:
		return object{"description": "any JSON"}
	case t == bytesType:
		return object{"type": "string", "contentEncoding": "base64"}
	case t == fenceType:
		return object{"type": "string", "pattern": `^([0-9]+\.[0-9]+)?$`}
	case t.Implements(marshaller):
		return object{"type": "string"}
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
		return object{"type": "integer", "minimum": 0}
	case reflect.Int64, reflect.Int:
		return object{"type": "integer"}
	}
	return b.text(t)
}

func (b builder) text(t reflect.Type) object {
	s := object{"type": "string"}
	if p, ok := patterns[t]; ok {
		s["pattern"] = p
	}
	if values := b.words.enums[t.Name()]; len(values) > 0 && !open[t.Name()] {
		s["enum"] = append([]string{}, values...)
	}
	return s
}

// limit bounds what a field's name says about its value.
func limit(name string, s object) {
	if s["type"] == "integer" && (strings.HasSuffix(name, "_ms") || name == "limit" || name == "epoch" || name == "background_running") {
		s["minimum"] = 0
	}
	if s["type"] != "string" {
		return
	}
	switch name {
	case "gateway_session_key", "stored_session_id", "runtime_session_id", "session_id", "task_id", "to", "idempotency_key":
		s["maxLength"] = 1024
	case "home", "source", "surface", "reason":
		s["maxLength"] = 4096
	}
}
