package events

import (
	"fmt"
	"strings"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
)

const headerPrefix = "ce-"

// Encode returns e in the binary mode of the CloudEvents NATS binding: every attribute
// as a ce- header, percent-encoded, and the payload bytes as they are. On the wire an
// empty payload is the same as none. It returns an *[Error] with code invalid naming
// the attribute that cannot be carried, also when a setter of e has refused it before.
func Encode(e Event) (nats.Header, []byte, error) {
	as, err := attributes(e)
	if err != nil {
		return nil, nil, err
	}
	h := make(nats.Header, len(as))
	values := make([]string, len(as))
	for i, a := range as {
		values[i] = percentEncode(a.value)
		h[headerPrefix+a.name] = values[i : i+1 : i+1]
	}
	return h, e.DataEncoded, nil
}

// Decode reads an event in binary or structured mode; which one, the header
// Content-Type says. Attribute names are matched in any case. The payload is a
// part of body, not a copy. Errors are *[Error] with code undecodable, their path naming the attribute.
func Decode(h nats.Header, body []byte) (Event, error) {
	if isStructured(h) {
		return UnmarshalStructured(body)
	}
	var a assembler
	for key, values := range h {
		name, ok := attributeName(key)
		if !ok {
			continue
		}
		if len(values) != 1 {
			return Event{}, attributeError(CodeUndecodable, name, "given %d times", len(values))
		}
		value, err := percentDecode(strings.Trim(values[0], " \t"))
		if err != nil {
			return Event{}, attributeError(CodeUndecodable, name, "%v", err)
		}
		if err := a.put(name, value); err != nil {
			return Event{}, attributeError(CodeUndecodable, name, "%v", err)
		}
	}
	e, err := a.event()
	if err != nil {
		return Event{}, err
	}
	if len(body) > 0 {
		e.DataEncoded = body
	}
	return e, nil
}

// attributeName returns the attribute that a header key stands for; ok is false for
// headers that are not of CloudEvents.
func attributeName(key string) (name string, ok bool) {
	if len(key) < len(headerPrefix) || !strings.EqualFold(key[:len(headerPrefix)], headerPrefix) {
		return "", false
	}
	return strings.ToLower(key[len(headerPrefix):]), true
}

func isStructured(h nats.Header) bool {
	for key, values := range h {
		if !strings.EqualFold(key, "content-type") {
			continue
		}
		for _, v := range values {
			if len(v) >= len(mediaCloudEvents) && strings.EqualFold(v[:len(mediaCloudEvents)], mediaCloudEvents) {
				return true
			}
		}
	}
	return false
}

// NewCommand returns a command of a principal. now is the sender's own clock.
func NewCommand(p Principal, t Type, id CommandID, now time.Time, data any) (Event, error) {
	if !t.IsCommand() {
		return Event{}, fmt.Errorf("%s is not a command: %w", t, ErrBadSubject)
	}
	body, err := MarshalData(data)
	if err != nil {
		return Event{}, fmt.Errorf("encode data of %s: %w", t, err)
	}
	e := cloudevent.New()
	e.SetID(string(id))
	e.SetSource(p.Source())
	e.SetType(string(t))
	e.SetTime(now.UTC())
	e.SetDataSchema(t.Schema())
	e.SetDataContentType(mediaJSON)
	e.DataEncoded = body
	return e, nil
}
