package events

import (
	"maps"
	"strconv"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/nats-io/nats.go"
)

// RecordOf returns the typed form of a log event. The record's Event is e with the
// attribute sequence set; e itself stays as it is, and the payload is shared. Errors are
// *[Error] with code undecodable naming the attribute; the record then has what could
// be read.
func RecordOf(p Profile, s Scope, seq Sequence, e Event) (Record, error) {
	e, own := withExtension(e, ExtSequence, seq.String())
	extension := own.text
	r := Record{
		Type: Type(e.Type()), ID: EventID(e.ID()), Time: e.Time(), Source: e.Source(),
		Profile: p, Scope: s, Sequence: seq,
		Turn: TurnID(extension(ExtTurn)), Causation: CommandID(extension(ExtCausation)),
		Correlation: extension(ExtCorrelation), Data: e.DataEncoded, Event: &e,
	}
	ordinal, err := strconv.ParseUint(extension(ExtOrdinal), 10, 64)
	if err != nil || ordinal == 0 {
		return r, attributeError(CodeUndecodable, ExtOrdinal, "%q is not a positive number", extension(ExtOrdinal))
	}
	r.Ordinal = Ordinal(ordinal)
	if text := extension(ExtEpoch); text != "" {
		epoch, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return r, attributeError(CodeUndecodable, ExtEpoch, "%q is not a number", text)
		}
		r.Epoch = Epoch(epoch)
	}
	return r, nil
}

// extensions are the extension attributes of an event. (The SDK's accessor makes a copy
// at each call.)
type extensions map[string]any

// withExtension returns e with one more attribute, and all its extensions; it leaves the
// given e alone.
func withExtension(e Event, name, value string) (Event, extensions) {
	var c cloudevent.EventContextV1
	if e.Context != nil {
		c = *e.Context.AsV1()
	}
	own := make(extensions, len(c.Extensions)+1)
	maps.Copy(own, c.Extensions)
	own[name] = value
	c.Extensions = own
	e.Context = &c
	return e, own
}

// text returns the canonical text of an attribute; "" when it is absent.
func (x extensions) text(name string) string {
	v, ok := x[name]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		s, _ = types.Format(v) // what has no text is as good as absent
	}
	return s
}

// DecodeRecord reads a message of a kx.log or kx.live subject. When it returns an error
// the record still has its profile, scope and sequence, and its ordinal if that could
// be read: a hole that a reader can show and pass.
func DecodeRecord(subject string, seq Sequence, h nats.Header, body []byte) (Record, error) {
	p, s, err := ParseLogSubject(subject)
	if err != nil {
		return Record{Sequence: seq}, err
	}
	e, err := Decode(h, body)
	if err != nil {
		return Record{Profile: p, Scope: s, Sequence: seq, Ordinal: ordinalOf(h)}, err
	}
	return RecordOf(p, s, seq, e)
}

// ordinalOf returns the ordinal of a message that is not an event otherwise; zero if
// it has none.
func ordinalOf(h nats.Header) Ordinal {
	for key, values := range h {
		if name, ok := attributeName(key); !ok || name != ExtOrdinal || len(values) != 1 {
			continue
		}
		if n, err := strconv.ParseUint(values[0], 10, 64); err == nil {
			return Ordinal(n)
		}
	}
	return 0
}
