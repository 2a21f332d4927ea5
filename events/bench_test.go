package events_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// small is an event of the log as the authority writes it.
func small() events.Event {
	e := minimal()
	e.SetID("01JC0MMAND0000000000000000")
	e.SetSource("/profiles/default/principals/shell")
	e.SetType(string(events.TypeTurnEnded))
	e.SetSubject("01JSESS10N0000000000000000")
	e.SetTime(noon)
	e.SetDataContentType("application/json")
	e.SetDataSchema(events.TypeTurnEnded.Schema())
	for name, v := range map[string]string{
		events.ExtOrdinal: "17", events.ExtEpoch: "1", events.ExtTurn: "01JTVRN0000000000000000000",
		events.ExtCausation: "01JC0MMAND0000000000000000", events.ExtSessionFence: "0.12",
		events.ExtTraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		e.SetExtension(name, v)
	}
	e.DataEncoded = []byte(`{"turn":"01JTVRN0000000000000000000","outcome":"completed","reply":"hello","settled":["01JREC0000000000000000000"],"pending":0,"background_running":0}`)
	return e
}

func BenchmarkEncode(b *testing.B) {
	e := small()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := events.Encode(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	h, body, err := events.Encode(small())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.Decode(h, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	h, body, err := events.Encode(small())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.DecodeRecord("kx.log.default.01JSESS10N0000000000000000", 9, h, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalStructured(b *testing.B) {
	e := small()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.MarshalStructured(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeStructured(b *testing.B) {
	body, err := events.MarshalStructured(small())
	if err != nil {
		b.Fatal(err)
	}
	h := nats.Header{"Content-Type": {"application/cloudevents+json"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.Decode(h, body); err != nil {
			b.Fatal(err)
		}
	}
}
