package events_test

import (
	"testing"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"keryx/events"
)

func TestCase_H1_escaped_base64_is_decoded(t *testing.T) {
	t.Parallel()
	body := structured(`,"data_base64":"\u002b\u002b\u002b\u002b"`)
	e := decode(t, nats.Header{"Content-Type": {"application/cloudevents+json"}}, body)
	if d := cmp.Diff([]byte{0xfb, 0xef, 0xbe}, e.DataEncoded); d != "" {
		t.Errorf("payload (-want +got):\n%s", d)
	}
}

// A forwarder decodes what it gets in either mode and encodes it again in either mode.
func TestCase_H1_forwarding_keeps_payload_and_content_type(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, contentType string
		data              []byte
	}{
		{"text", "text/plain", []byte("hi")},
		{"bytes", "application/octet-stream", []byte{0x00, 0xff}},
		{"a JSON string", "application/json", []byte(`"x"`)},
		{"JSON with big integers, order and white space", "application/json", []byte("{\"z\": 9007199254740993,\n \"a\": 1.50} ")},
		{"no payload", "application/json", nil},
		{"no payload of no type", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := minimal()
			e.SetDataContentType(c.contentType)
			e.DataEncoded = c.data
			for _, hops := range []string{"bb", "bs", "sb", "ss", "bsbs"} {
				got := e
				for _, mode := range hops {
					got = forward(t, got, mode)
				}
				if d := diff(e, got); d != "" {
					t.Errorf("event after %s (-want +got):\n%s", hops, d)
				}
				if (got.DataEncoded == nil) != (c.data == nil) {
					t.Errorf("after %s the payload is %#v, want %#v", hops, got.DataEncoded, c.data)
				}
			}
		})
	}
}

// forward sends e one hop in binary (b) or structured (s) mode.
func forward(t *testing.T, e events.Event, mode rune) events.Event {
	t.Helper()
	if mode == 'b' {
		h, body := encode(t, e)
		return decode(t, h, body)
	}
	body, err := events.MarshalStructured(e)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, nats.Header{"Content-Type": {"application/cloudevents+json"}}, body)
}

func TestCase_H2_header_values_make_the_round_trip(t *testing.T) {
	t.Parallel()
	in := nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-type": {"t"},
		"ce-source":    {"/caf%C3%A9/%E6%97%A5%E6%9C%AC"},
		"ce-subject":   {"a%20b%25"},
		"ce-note":      {"100%25"},
		"ce-sessionid": {"s-1"},
	}
	e := decode(t, in, nil)
	for name, want := range map[string]string{
		"source": "/café/日本", "subject": "a b%", "note": "100%", "sessionid": "s-1",
	} {
		got := map[string]any{"source": e.Source(), "subject": e.Subject()}[name]
		if got == nil {
			got = e.Extensions()[name]
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	out, _ := encode(t, e)
	if d := cmp.Diff(in, out); d != "" {
		t.Errorf("headers are not written as they were read (-want +got):\n%s", d)
	}
	if got := forward(t, e, 's'); diff(e, got) != "" {
		t.Errorf("structured mode changes the event:\n%s", diff(e, got))
	}
}

func TestCase_H2_names_and_escapes(t *testing.T) {
	t.Parallel()
	e := decode(t, headers("Ce-Sessionid", "%73-1"), nil)
	if got := e.Extensions()["sessionid"]; got != "s-1" {
		t.Errorf("Ce-Sessionid is read as %q", got)
	}
	_, err := events.Decode(headers("ce-note", "%FF"), nil)
	wantError(t, err, events.CodeUndecodable, "note")
	for _, name := range []string{"sessionKey", "session_key"} {
		bad := minimal()
		c := bad.Context.(*cloudevent.EventContextV1) // around the setter, which lowers or drops the name
		c.Extensions = map[string]any{name: "z"}
		_, _, err := events.Encode(bad)
		wantError(t, err, events.CodeInvalid, name)
	}
}
