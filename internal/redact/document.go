package redact

import (
	"maps"

	"keryx/events"
)

// Document takes out of JSON what is not to be seen; [Rules] and [Strict] are ones.
type Document interface {
	JSON([]byte) []byte
	Mode() events.Redaction
}

// attributes are those of an event that Strict keeps.
var attributes = nameSet(events.ExtOrdinal, events.ExtSequence, events.ExtEpoch, events.ExtTurn, events.ExtCausation,
	events.ExtSessionFence, events.ExtLeaseFence)

// Record returns an event as a document leaves it.
func Record(d Document, r events.Record) events.Record {
	if len(r.Data) > 0 {
		r.Data = d.JSON(r.Data)
	}
	if r.Event == nil {
		return r
	}
	e := *r.Event
	e.DataEncoded = r.Data
	if d.Mode() == events.RedactStrict && e.Context != nil {
		c := *e.Context.AsV1()
		c.Extensions = maps.Clone(c.Extensions)
		maps.DeleteFunc(c.Extensions, func(name string, _ any) bool { return !attributes[name] })
		e.Context = &c
	}
	r.Event = &e
	return r
}
