package events

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/nats-io/nats.go"
)

const headerPrefix = "ce-"

// attribute is a context attribute in its canonical text form.
type attribute struct{ name, value string }

// attributes returns every set attribute of e, or an invalid error naming the first
// that cannot be carried.
func attributes(e Event) ([]attribute, error) {
	out := []attribute{
		{"specversion", e.SpecVersion()}, {"id", e.ID()}, {"source", e.Source()}, {"type", e.Type()},
	}
	if t := e.Time(); !t.IsZero() {
		out = append(out, attribute{"time", types.FormatTime(t)})
	}
	for _, a := range []attribute{
		{"subject", e.Subject()}, {"datacontenttype", e.DataContentType()}, {"dataschema", e.DataSchema()},
	} {
		if a.value != "" {
			out = append(out, a)
		}
	}
	for name, v := range e.Extensions() {
		value, err := types.Format(v)
		if err != nil {
			return nil, attributeError(CodeInvalid, name, "%v", err)
		}
		out = append(out, attribute{name, value})
	}
	return out, checkAttributes(out)
}

func checkAttributes(as []attribute) error {
	for _, a := range as {
		if err := checkName(a.name); err != nil {
			return attributeError(CodeInvalid, a.name, "%v", err)
		}
		if err := checkValue(a.value); err != nil {
			return attributeError(CodeInvalid, a.name, "%v", err)
		}
		if a.value == "" && isRequired(a.name) {
			return attributeError(CodeInvalid, a.name, "a required attribute is empty")
		}
	}
	if as[0].value != cloudevent.CloudEventsVersionV1 {
		return attributeError(CodeInvalid, "specversion", "%q is not %s", as[0].value, cloudevent.CloudEventsVersionV1)
	}
	return nil
}

func isRequired(name string) bool {
	return name == "specversion" || name == "id" || name == "source" || name == "type"
}

func attributeError(c Code, name, format string, args ...any) *Error {
	return &Error{Code: c, Path: name, Message: "attribute " + name + ": " + fmt.Sprintf(format, args...)}
}

// checkName returns an error unless name is lower-case letters and digits.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("an empty name")
	}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9') {
			return fmt.Errorf("a name has only a-z and 0-9")
		}
	}
	if name == "data" {
		return fmt.Errorf("the name is taken by the payload")
	}
	return nil
}

// checkValue returns an error for what no attribute may hold: control characters,
// non-characters and broken UTF-8.
func checkValue(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("the value is not UTF-8")
	}
	for _, r := range s {
		if r < 0x20 || 0x7f <= r && r <= 0x9f || 0xfdd0 <= r && r <= 0xfdef || r&0xfffe == 0xfffe {
			return fmt.Errorf("the value holds U+%04X", r)
		}
	}
	return nil
}

// Encode returns e in the binary mode of the CloudEvents NATS binding: every attribute
// as a ce- header, percent-encoded, and the payload bytes as they are. It returns an
// *[Error] with code invalid naming the attribute that cannot be carried.
func Encode(e Event) (nats.Header, []byte, error) {
	as, err := attributes(e)
	if err != nil {
		return nil, nil, err
	}
	h := make(nats.Header, len(as))
	for _, a := range as {
		h[headerPrefix+a.name] = []string{percentEncode(a.value)}
	}
	return h, e.DataEncoded, nil
}

// Decode reads an event in binary or structured mode. The payload is not copied.
// Errors are *[Error] with code undecodable, their path naming the attribute.
func Decode(h nats.Header, body []byte) (Event, error) {
	if isStructured(h) {
		return UnmarshalStructured(body)
	}
	found := make(map[string]string, len(h))
	for key, values := range h {
		if len(key) <= len(headerPrefix) || !strings.EqualFold(key[:len(headerPrefix)], headerPrefix) {
			continue
		}
		name := strings.ToLower(key[len(headerPrefix):])
		if _, twice := found[name]; twice || len(values) != 1 {
			return Event{}, attributeError(CodeUndecodable, name, "given more than once")
		}
		value, err := percentDecode(values[0])
		if err != nil {
			return Event{}, attributeError(CodeUndecodable, name, "%v", err)
		}
		found[name] = value
	}
	e, err := assemble(found)
	if err != nil {
		return Event{}, err
	}
	if len(body) > 0 {
		e.DataEncoded = body
	}
	return e, nil
}

func isStructured(h nats.Header) bool {
	const media = "application/cloudevents"
	for key, values := range h {
		if strings.EqualFold(key, "content-type") {
			for _, v := range values {
				if len(v) >= len(media) && strings.EqualFold(v[:len(media)], media) {
					return true
				}
			}
		}
	}
	return false
}

// assemble makes an event of decoded attributes.
func assemble(found map[string]string) (Event, error) {
	if v := found["specversion"]; v != cloudevent.CloudEventsVersionV1 {
		return Event{}, attributeError(CodeUndecodable, "specversion", "%q is not %s", v, cloudevent.CloudEventsVersionV1)
	}
	e := cloudevent.New()
	for _, name := range []string{"id", "source", "type"} {
		if found[name] == "" {
			return Event{}, attributeError(CodeUndecodable, name, "a required attribute is missing")
		}
	}
	for name, value := range found {
		if err := checkName(name); err != nil {
			return Event{}, attributeError(CodeUndecodable, name, "%v", err)
		}
		if err := checkValue(value); err != nil {
			return Event{}, attributeError(CodeUndecodable, name, "%v", err)
		}
		if err := set(&e, name, value); err != nil {
			return Event{}, attributeError(CodeUndecodable, name, "%v", err)
		}
	}
	return e, nil
}

// set sets one attribute from its text form; what the SDK refuses is an error.
func set(e *Event, name, value string) error {
	c := e.Context
	switch name {
	case "specversion":
		return nil
	case "id":
		return c.SetID(value)
	case "source":
		return c.SetSource(value)
	case "type":
		return c.SetType(value)
	case "subject":
		return c.SetSubject(value)
	case "datacontenttype":
		return c.SetDataContentType(value)
	case "dataschema":
		return c.SetDataSchema(value)
	case "time":
		t, err := types.ParseTime(value)
		if err != nil {
			return err
		}
		return c.SetTime(t)
	}
	return c.SetExtension(name, value)
}

// NewCommand returns a command of a principal. now is the sender's own clock.
func NewCommand(p Principal, t Type, id CommandID, now time.Time, data any) (Event, error) {
	if !t.IsCommand() {
		return Event{}, fmt.Errorf("%s is not a command: %w", t, ErrBadSubject)
	}
	body, err := marshalData(data)
	if err != nil {
		return Event{}, fmt.Errorf("encode data of %s: %w", t, err)
	}
	e := cloudevent.New()
	e.SetID(string(id))
	e.SetSource(p.Source())
	e.SetType(string(t))
	e.SetTime(now.UTC())
	e.SetDataSchema(t.Schema())
	e.SetDataContentType("application/json")
	e.DataEncoded = body
	return e, nil
}
