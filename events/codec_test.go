package events_test

import (
	"strings"
	"testing"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"keryx/events"
)

func TestEncode_writes_binary_mode(t *testing.T) {
	t.Parallel()
	e := minimal()
	e.SetTime(time.Date(2026, 12, 1, 13, 0, 0, 0, time.FixedZone("", 3600)))
	e.SetSubject("a b")
	e.SetDataContentType("application/json")
	e.SetDataSchema("urn:keryx:schema:x")
	e.SetExtension("flag", true)
	e.SetExtension("count", -7)
	e.SetExtension("bytes", []byte{0xfb, 0xef})
	e.SetExtension("when", noon)
	e.DataEncoded = []byte(" {\"b\":12345678901234567890, \"a\":1}\n")
	h, body := encode(t, e)
	want := nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"/s"}, "ce-type": {"t"},
		"ce-time": {"2026-12-01T12:00:00Z"}, "ce-subject": {"a%20b"},
		"ce-datacontenttype": {"application/json"}, "ce-dataschema": {"urn:keryx:schema:x"},
		"ce-flag": {"true"}, "ce-count": {"-7"}, "ce-bytes": {"++8="}, "ce-when": {"2026-12-01T12:00:00.005Z"},
	}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("headers (-want +got):\n%s", d)
	}
	if &body[0] != &e.DataEncoded[0] {
		t.Error("the payload was copied or changed")
	}
}

func TestEncode_percent_encodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"plain text as it is", "plain/text-1~!#$&'()*+,;=", "plain/text-1~!#$&'()*+,;="},
		{"space, quote and percent", `a "b" 100%`, "a%20%22b%22%20100%25"},
		{"beyond ASCII in UTF-8, capitals", "Euro € 😀", "Euro%20%E2%82%AC%20%F0%9F%98%80"},
		{"what looks encoded already", "%20", "%2520"},
		{"a backslash not at all", `a\b`, `a\b`},
		{"white space around", " a ", "%20a%20"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := minimal()
			e.SetExtension("note", c.value)
			h, body := encode(t, e)
			if got := h["ce-note"][0]; got != c.want {
				t.Errorf("header is %q, want %q", got, c.want)
			}
			if got := decode(t, h, body).Extensions()["note"]; got != c.value {
				t.Errorf("read back %q, want %q", got, c.value)
			}
		})
	}
}

func TestEncode_refuses(t *testing.T) {
	t.Parallel()
	ext := func(name string, v any) func(*cloudevent.EventContextV1) {
		return func(c *cloudevent.EventContextV1) { c.Extensions = map[string]any{name: v} }
	}
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name, path string
		change     func(*cloudevent.EventContextV1)
	}{
		{"a name in capitals", "sessionKey", ext("sessionKey", "x")},
		{"a name with an underscore", "session_key", ext("session_key", "x")},
		{"an empty name", "", ext("", "x")},
		{"the name of the payload", "data", ext("data", "x")},
		{"an extension named like a core attribute", "id", ext("id", "x")},
		{"a line break", "note", ext("note", "a\r\nInjected: yes")},
		{"a C1 control", "note", ext("note", "a\u0085b")},
		{"a non-character", "note", ext("note", "a\ufffe")},
		{"bytes that are not UTF-8", "note", ext("note", "a\xff")},
		{"an integer beyond 32 bits", "note", ext("note", int64(1)<<31)},
		{"a fraction", "note", ext("note", 1.5)},
		{"a list", "note", ext("note", []string{"x"})},
		{"a year of five digits", "note", ext("note", time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC))},
		{"an empty id", "id", func(c *cloudevent.EventContextV1) { c.ID = "" }},
		{"a blank type", "type", func(c *cloudevent.EventContextV1) { c.Type = " " }},
		{"an empty source", "source", func(c *cloudevent.EventContextV1) { c.Source = types.URIRef{} }},
		{"an empty subject", "subject", func(c *cloudevent.EventContextV1) { c.Subject = text("") }},
		{"a relative dataschema", "dataschema", func(c *cloudevent.EventContextV1) { c.DataSchema = types.ParseURI("/x") }},
		{"a broken content type", "datacontenttype", func(c *cloudevent.EventContextV1) { c.DataContentType = text("a b") }},
		{"a time in year 10000 of UTC", "time", func(c *cloudevent.EventContextV1) {
			c.Time = &types.Timestamp{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := minimal()
			c.change(e.Context.(*cloudevent.EventContextV1))
			_, _, err := events.Encode(e)
			wantError(t, err, events.CodeInvalid, c.path)
			_, err = events.MarshalStructured(e)
			wantError(t, err, events.CodeInvalid, c.path)
		})
	}
}

func TestEncode_refuses_what_a_setter_has_dropped(t *testing.T) {
	t.Parallel()
	e := minimal()
	e.SetExtension("session_key", "x") // the SDK drops it and notes an error on the event
	_, _, err := events.Encode(e)
	wantError(t, err, events.CodeInvalid, "session_key")
	e = minimal()
	e.SetSource("%zz")
	_, _, err = events.Encode(e)
	wantError(t, err, events.CodeInvalid, "source")
}

func TestEncode_refuses_other_versions(t *testing.T) {
	t.Parallel()
	_, _, err := events.Encode(cloudevent.New("0.3"))
	wantError(t, err, events.CodeInvalid, "specversion")
	_, _, err = events.Encode(events.Event{})
	wantError(t, err, events.CodeInvalid, "specversion")
}

func TestDecode_reads_attributes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, raw, want string }{
		{"in any case of the header", "Ce-Note", "x", "x"},
		{"in capitals", "CE-NOTE", "x", "x"},
		{"with escapes that were not needed", "ce-note", "%61%2db", "a-b"},
		{"with escapes in small letters", "ce-note", "%e2%82%ac", "€"},
		{"with one round of decoding only", "ce-note", "%2520", "%20"},
		{"in a quoted string", "ce-note", `"a b \"c\" \\"`, `a b "c" \`},
		{"in a quoted string, then percent-decoded", "ce-note", `"\%32 %20"`, "2  "},
		{"with letters beyond ASCII as they are", "ce-note", "é", "é"},
		{"with a space as it is", "ce-note", "a b", "a b"},
		{"without white space around the header's value", "ce-note", " \ta\t ", "a"},
		{"without any character", "ce-note", "", ""},
		{"with a quote in the middle", "ce-note", `a"b`, `a"b`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := decode(t, headers(c.key, c.raw), nil)
			if got := e.Extensions()["note"]; got != c.want {
				t.Errorf("note is %q, want %q", got, c.want)
			}
		})
	}
}

func TestDecode_refuses(t *testing.T) {
	t.Parallel()
	without := func(key string) nats.Header {
		h := headers()
		delete(h, key)
		return h
	}
	twice := headers()
	twice["ce-note"] = []string{"x", "x"}
	for _, c := range []struct {
		name, path string
		header     nats.Header
	}{
		{"no CloudEvent at all", "specversion", nats.Header{"Content-Type": {"application/json"}}},
		{"no id", "id", without("ce-id")},
		{"no source", "source", without("ce-source")},
		{"no type", "type", without("ce-type")},
		{"another version", "specversion", headers("ce-specversion", "0.3")},
		{"an empty id", "id", headers("ce-id", "")},
		{"a blank type", "type", headers("ce-type", "%20")},
		{"an empty subject", "subject", headers("ce-subject", "")},
		{"a header twice", "note", twice},
		{"a header in two spellings", "note", headers("ce-note", "x", "Ce-Note", "y")},
		{"a required header in two spellings", "id", headers("CE-ID", "1")},
		{"a name with an underscore", "session_key", headers("ce-session_key", "x")},
		{"a name with a letter beyond ASCII", "é", headers("ce-é", "x")},
		{"an empty name", "", headers("ce-", "x")},
		{"the name of the payload", "data", headers("ce-data", "x")},
		{"an escaped byte that is not UTF-8", "note", headers("ce-note", "%FF")},
		{"an overlong form", "note", headers("ce-note", "%C0%A0")},
		{"an escaped surrogate", "note", headers("ce-note", "%ED%A0%80")},
		{"a raw byte that is not UTF-8", "note", headers("ce-note", "\xff")},
		{"an escape cut short", "note", headers("ce-note", "100%")},
		{"an escape of one digit", "note", headers("ce-note", "%2")},
		{"an escape of other letters", "note", headers("ce-note", "%zz")},
		{"an escaped control character", "note", headers("ce-note", "a%0D%0Ab")},
		{"an escaped DEL", "note", headers("ce-note", "%7F")},
		{"an escaped non-character", "note", headers("ce-note", "%EF%B7%90")},
		{"a quoted string without an end", "note", headers("ce-note", `"abc`)},
		{"a quoted string that ends in a backslash", "note", headers("ce-note", `"abc\`)},
		{"text after a quoted string", "note", headers("ce-note", `"a"b`)},
		{"a source that is no URI reference", "source", headers("ce-source", "%25zz")},
		{"a relative dataschema", "dataschema", headers("ce-dataschema", "/x")},
		{"a broken content type", "datacontenttype", headers("ce-datacontenttype", "a%20b")},
		{"a time without a zone", "time", headers("ce-time", "2026-12-01T12:00:00")},
		{"a time with a comma", "time", headers("ce-time", "2026-12-01T12:00:00,5Z")},
		{"a time with an hour of one digit", "time", headers("ce-time", "2026-12-01T1:00:00Z")},
		{"an impossible day", "time", headers("ce-time", "2026-02-30T12:00:00Z")},
		{"a time that leaves the four-digit years", "time", headers("ce-time", "9999-12-31T23:59:59-01:00")},
		{"structured mode with a body that is none", "", nats.Header{"content-type": {"application/cloudevents+json"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := events.Decode(c.header, nil)
			wantError(t, err, events.CodeUndecodable, c.path)
		})
	}
}

func TestDecode_reads_times_as_RFC_3339_allows(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"2026-12-01T12:00:00.005Z", "2026-12-01T14:00:00.005+02:00", "2026-12-01t12:00:00.005z", "2026-12-01T12:00:00.00500-00:00",
	} {
		e := decode(t, headers("ce-time", text), nil)
		if !e.Time().Equal(noon) {
			t.Errorf("%s is read as %s", text, e.Time())
		}
	}
	e := decode(t, headers("ce-time", "0001-01-01T00:00:00Z"), nil)
	if h, _ := encode(t, e); h["ce-time"] == nil {
		t.Error("the first second of the year 1 was taken for no time")
	}
}

func TestDecode_keeps_the_spelling_of_URIs(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"/caf%C3%A9/日本", "/café/日本", "HTTP://Example.org/é?q=ü#", "urn:x:é", "//host/a b", "?q", "#", "..", "mailto:a@b", "/a%2Fb", "http://h/%7e",
	} {
		h := headers()
		h["ce-source"] = []string{percentEncoded(source)}
		e := decode(t, h, nil)
		if e.Source() != source {
			t.Errorf("source %q is read as %q", source, e.Source())
		}
		again, _ := encode(t, e)
		if d := cmp.Diff(h, again); d != "" {
			t.Errorf("source %q is not written again (-want +got):\n%s", source, d)
		}
	}
}

// percentEncoded encodes all but letters, digits and a few signs: more than needed.
func percentEncoded(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c > ' ' && c < 0x7f && c != '"' && c != '%' {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15]))
		}
	}
	return b.String()
}

func TestDecode_chooses_the_mode_by_content_type(t *testing.T) {
	t.Parallel()
	body := []byte(`{"specversion":"1.0","id":"2","source":"/s","type":"t"}`)
	for _, c := range []struct{ name, key, value, wantID string }{
		{"structured", "Content-Type", "application/cloudevents+json", "2"},
		{"structured with parameters", "Content-Type", "application/cloudevents+json; charset=utf-8", "2"},
		{"structured in any case", "CONTENT-type", "Application/CloudEvents", "2"},
		{"binary with another type", "Content-Type", "application/json", "1"},
		{"binary with none", "Other", "application/cloudevents+json", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := decode(t, headers(c.key, c.value), body)
			if e.ID() != c.wantID {
				t.Errorf("id is %q, want %q", e.ID(), c.wantID)
			}
		})
	}
}

func TestDecode_leaves_the_payload_alone(t *testing.T) {
	t.Parallel()
	body := []byte("\x00\xff not JSON")
	e := decode(t, headers("ce-datacontenttype", "application/json"), body)
	if &e.DataEncoded[0] != &body[0] || len(e.DataEncoded) != len(body) {
		t.Error("the payload was copied or changed")
	}
	if e := decode(t, headers(), []byte{}); e.DataEncoded != nil {
		t.Error("no payload was read as an empty one")
	}
}

func TestNewCommand(t *testing.T) {
	t.Parallel()
	p := events.Principal{Profile: "default", Name: "gw", Role: events.RoleGateway}
	zone := time.FixedZone("", 3600)
	e, err := events.NewCommand(p, events.CmdContinuationSubmit, "01JC0MMAND0000000000000000", noon.In(zone), events.Submit{To: "a<b", Body: events.Body{Text: "&"}})
	if err != nil {
		t.Fatal(err)
	}
	h, body := encode(t, e)
	want := nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {"01JC0MMAND0000000000000000"}, "ce-source": {"/profiles/default/principals/gw"},
		"ce-type": {"keryx.cmd.continuation.submit.v1"}, "ce-time": {"2026-12-01T12:00:00.005Z"},
		"ce-dataschema":      {"urn:keryx:schema:keryx.cmd.continuation.submit.v1"},
		"ce-datacontenttype": {"application/json"},
	}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("headers (-want +got):\n%s", d)
	}
	if got, want := string(body), `{"to":"a<b","body":{"text":"&"}}`; got != want {
		t.Errorf("body is %s, want %s", got, want)
	}
	if _, err := events.NewCommand(p, events.TypeTurnEnded, "x", noon, nil); err == nil {
		t.Error("an event type was taken for a command")
	}
	if _, err := events.NewCommand(p, events.CmdLogTips, "x", noon, make(chan int)); err == nil {
		t.Error("data without a JSON form was taken")
	}
}

func TestMarshalData_escapes_no_more_than_JSON_needs(t *testing.T) {
	t.Parallel()
	b, err := events.MarshalData(events.Body{Text: "<a href=\"x\">&</a>\n", Data: events.Raw(`{"z":"<", "n":12345678901234567890}`)})
	want := `{"text":"<a href=\"x\">&</a>\n","data":{"z":"<","n":12345678901234567890}}`
	if err != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
	if _, err := events.MarshalData(make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
}
