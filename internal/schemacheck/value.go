package schemacheck

import (
	"errors"

	"keryx/events"
	"keryx/schemas"
)

// check returns what is wrong with one value; nil if nothing is.
func check(typ string, raw []byte) *Fault {
	if typ != "" {
		return faultOf(schemas.Validate(typ, raw), &Fault{Type: typ}, "")
	}
	e, err := events.UnmarshalStructured(raw)
	var refusal *events.Error
	if errors.As(err, &refusal) {
		return &Fault{Path: refusal.Path, Message: refusal.Message}
	}
	f := &Fault{ID: e.ID(), Type: e.Type()}
	t := events.Type(e.Type())
	if _, ok := events.Find(t); !ok {
		f.Path, f.Message = "type", "no event or command of the bus has this type"
		return f
	}
	if got := e.DataSchema(); got != "" && got != t.Schema() {
		f.Path, f.Message = "dataschema", "it is not "+t.Schema()
		return f
	}
	return faultOf(schemas.Validate(e.Type(), e.DataEncoded), f, "/data")
}

// faultOf enters an error of the schema into f; nil if there is none.
func faultOf(err error, f *Fault, prefix string) *Fault {
	var invalid *schemas.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		f.Path, f.Message = prefix+invalid.Path, invalid.Message
	default:
		f.Path, f.Message = prefix, err.Error()
	}
	return f
}
