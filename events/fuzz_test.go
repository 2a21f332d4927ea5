package events_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// FuzzDecode reads one header and a body in binary mode: whatever decodes is written
// and read again as an equal event, in either mode.
func FuzzDecode(f *testing.F) {
	for _, s := range []struct {
		key, value string
		body       []byte
	}{
		{"ce-note", "a%20b", []byte(`{"a":1}`)},
		{"Ce-Time", "2026-12-01t12:00:00+01:00", nil},
		{"ce-source", "HTTP://%C3%A9/%7e#", []byte("x")},
		{"ce-dataschema", `"urn:x:\é"`, []byte(" 1 ")},
		{"ce-datacontenttype", "text/plain; charset=latin1", []byte("\xe9")},
		{"ce-subject", "%F0%9F%98%80", []byte("\x00")},
		{"ce-note", "\"", nil},
		{"Content-Type", "application/cloudevents+json", structured(`,"data":[1]`)},
	} {
		f.Add(s.key, s.value, s.body)
	}
	f.Fuzz(func(t *testing.T, key, value string, body []byte) {
		h := headers()
		h[key] = []string{value}
		e, err := events.Decode(h, body)
		if err != nil {
			return
		}
		sameAfterBothModes(t, e)
	})
}

// FuzzUnmarshalStructured reads structured events: whatever decodes is written and read
// again as an equal event, in either mode.
func FuzzUnmarshalStructured(f *testing.F) {
	for _, members := range []string{
		``, `,"data":null`, `,"data": {"a" : "\u00e9"}`, `,"data_base64":"\u002b\u002b\u002b\u002b"`,
		`,"datacontenttype":"text/plain","data":"\ud83d\ude00"`, `,"note":"\u0041","flag":true,"count":-7,"gone":null`,
		`,"time":"2026-12-01T12:00:00.5+01:00"`, `,"source":"HTTP://é"`, `,"x":"}\"],{"`,
	} {
		f.Add(structured(members))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		given := bytes.Clone(body)
		e, err := events.UnmarshalStructured(body)
		if !bytes.Equal(given, body) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("took what is not JSON: %q", body)
		}
		sameAfterBothModes(t, e)
	})
}

func sameAfterBothModes(t *testing.T, e events.Event) {
	t.Helper()
	body, err := events.MarshalStructured(e)
	if err != nil {
		t.Fatalf("write again in structured mode: %v", err)
	}
	again, err := events.Decode(nats.Header{"Content-Type": {"application/cloudevents+json"}}, body)
	if err != nil {
		t.Fatalf("read again in structured mode: %v\n%s", err, body)
	}
	want := e
	if e.DataContentType() == "" && again.DataContentType() != "" { // JSON got its name
		want = e.Clone()
		want.SetDataContentType(again.DataContentType())
	}
	if d := diff(want, again); d != "" {
		t.Fatalf("structured mode (-want +got):\n%s\n%s", d, body)
	}
	h, data, err := events.Encode(e)
	if err != nil {
		t.Fatalf("write again in binary mode: %v", err)
	}
	again, err = events.Decode(h, data)
	if err != nil {
		t.Fatalf("read again in binary mode: %v\n%q", err, h)
	}
	if d := diff(asOnTheWire(t, e), again); d != "" {
		t.Fatalf("binary mode (-want +got):\n%s\n%q", d, h)
	}
}

// asOnTheWire returns e as binary mode can carry it: every extension as text, an empty
// payload as none.
func asOnTheWire(t *testing.T, e events.Event) events.Event {
	t.Helper()
	out := e.Clone()
	for name, v := range out.Extensions() {
		switch v := v.(type) {
		case bool:
			out.SetExtension(name, map[bool]string{true: "true", false: "false"}[v])
		case int32:
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			out.SetExtension(name, string(b))
		}
	}
	if len(out.DataEncoded) == 0 {
		out.DataEncoded = nil
	}
	return out
}
