package events

import (
	"strconv"

	"github.com/nats-io/nats.go"
)

// RecordOf returns the typed form of a log event. It sets the attribute sequence on
// the event. Errors are *[Error] with code undecodable naming the attribute; the
// record then has what could be read.
func RecordOf(p Profile, s Scope, seq Sequence, e Event) (Record, error) {
	r := Record{
		Type: Type(e.Type()), ID: EventID(e.ID()), Time: e.Time(), Source: e.Source(),
		Profile: p, Scope: s, Sequence: seq,
		Turn: TurnID(extension(e, ExtTurn)), Causation: CommandID(extension(e, ExtCausation)),
		Correlation: extension(e, ExtCorrelation), Data: e.DataEncoded,
	}
	e.SetExtension(ExtSequence, seq.String())
	r.Event = &e
	ordinal, err := strconv.ParseUint(extension(e, ExtOrdinal), 10, 64)
	if err != nil || ordinal == 0 {
		return r, attributeError(CodeUndecodable, ExtOrdinal, "%q is not a positive number", extension(e, ExtOrdinal))
	}
	r.Ordinal = Ordinal(ordinal)
	if text := extension(e, ExtEpoch); text != "" {
		epoch, err := strconv.Atoi(text)
		if err != nil || epoch < 0 {
			return r, attributeError(CodeUndecodable, ExtEpoch, "%q is not a number", text)
		}
		r.Epoch = Epoch(epoch)
	}
	return r, nil
}

func extension(e Event, name string) string {
	s, _ := e.Extensions()[name].(string)
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
		return hole(p, s, seq, h), err
	}
	return RecordOf(p, s, seq, e)
}

func hole(p Profile, s Scope, seq Sequence, h nats.Header) Record {
	r := Record{Profile: p, Scope: s, Sequence: seq}
	if n, err := strconv.ParseUint(h.Get(headerPrefix+ExtOrdinal), 10, 64); err == nil {
		r.Ordinal = Ordinal(n)
	}
	return r
}
