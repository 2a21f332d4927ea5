package events_test

import (
	"encoding/json"
	"strings"
	"testing"

	"keryx/events"
)

// structured returns a structured event with the required attributes and these members.
func structured(members string) []byte {
	return []byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t"` + members + `}`)
}

func TestMarshalStructured_carries_the_payload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, contentType, data, want string }{
		{"JSON byte for byte", "application/json", `{"b":1e2, "a":12345678901234567890,"c":"<\u0041>"}`, `"data":{"b":1e2, "a":12345678901234567890,"c":"<\u0041>"}`},
		{"JSON of another subtype", "application/x+json; v=1", `[1]`, `"data":[1]`},
		{"JSON null", "application/json", `null`, `"data":null`},
		{"a JSON string", "application/json", `"x"`, `"data":"x"`},
		{"JSON without a content type", "", `5`, `"data":5`},
		{"JSON with white space around, which would be lost", "application/json", "1\n", `"data_base64":"MQo="`},
		{"what only says it is JSON", "application/json", `{`, `"data_base64":"ew=="`},
		{"JSON with a byte that is not UTF-8", "application/json", "\"\xff\"", `"data_base64":"Iv8i"`},
		{"text", "text/plain", `hi "you" <b>`, `"data":"hi \"you\" <b>"`},
		{"text in UTF-8", "text/plain; charset=UTF-8", `é`, `"data":"é"`},
		{"text that is not UTF-8", "text/plain", "\xff", `"data_base64":"/w=="`},
		{"text of another charset", "text/plain; charset=latin1", "é", `"data_base64":"w6k="`},
		{"ASCII text of another charset", "text/plain; charset=latin1", "e", `"data":"e"`},
		{"bytes", "application/octet-stream", "\x00\xff", `"data_base64":"AP8="`},
		{"an empty text", "text/plain", "", `"data":""`},
		{"nothing, but not absent", "application/json", "", `"data_base64":""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := minimal()
			e.SetDataContentType(c.contentType)
			e.DataEncoded = []byte(c.data)
			b, err := events.MarshalStructured(e)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(b) {
				t.Fatalf("not JSON: %s", b)
			}
			if !strings.HasSuffix(string(b), ","+c.want+"}") {
				t.Errorf("payload is not %s: %s", c.want, b)
			}
			again, err := events.UnmarshalStructured(b)
			if err != nil {
				t.Fatal(err)
			}
			if again.DataEncoded == nil || string(again.DataEncoded) != c.data {
				t.Errorf("payload is read back as %q, want %q", again.DataEncoded, c.data)
			}
		})
	}
}

func TestMarshalStructured_has_a_fixed_order(t *testing.T) {
	t.Parallel()
	e := minimal()
	e.SetSubject("a\"b")
	e.SetExtension("zeta", true)
	e.SetExtension("alpha", -7)
	e.SetExtension("mid", "é<")
	e.SetTime(noon)
	want := `{"specversion":"1.0","id":"1","source":"/s","type":"t","alpha":-7,"mid":"é<","subject":"a\"b","time":"2026-12-01T12:00:00.005Z","zeta":true}`
	for range 20 {
		b, err := events.MarshalStructured(e)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != want {
			t.Fatalf("got  %s\nwant %s", b, want)
		}
	}
}

func TestMarshalStructured_keeps_a_payload_in_base64_that_came_so(t *testing.T) {
	t.Parallel()
	in := structured(`,"datacontenttype":"application/json","data_base64":"MQ=="`)
	e, err := events.UnmarshalStructured(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := events.MarshalStructured(e)
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != string(in) {
		t.Errorf("got  %s\nwant %s", out, in)
	}
}

func TestUnmarshalStructured_reads_payloads(t *testing.T) {
	t.Parallel()
	const absent = "<absent>"
	for _, c := range []struct{ name, members, want string }{
		{"none", ``, absent},
		{"JSON with its inner white space", `,"data": { "a" : 1.0 } `, `{ "a" : 1.0 }`},
		{"null, which is a payload", `,"data":null`, `null`},
		{"a JSON string, not opened", `,"datacontenttype":"application/json","data":"{}"`, `"{}"`},
		{"the string of another type, opened", `,"datacontenttype":"application/xml","data":"<\u00e9/>"`, `<é/>`},
		{"an emoji in two escapes", `,"datacontenttype":"text/plain","data":"\ud83d\ude00"`, "😀"},
		{"an empty text", `,"datacontenttype":"text/plain","data":""`, ``},
		{"base64", `,"data_base64":"+/8="`, "\xfb\xff"},
		{"an empty base64", `,"data_base64":""`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, err := events.UnmarshalStructured(structured(c.members))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == absent && e.DataEncoded != nil:
				t.Errorf("payload is %q, want none", e.DataEncoded)
			case c.want != absent && (e.DataEncoded == nil || string(e.DataEncoded) != c.want):
				t.Errorf("payload is %q, want %q", e.DataEncoded, c.want)
			}
		})
	}
}

func TestUnmarshalStructured_reads_attributes(t *testing.T) {
	t.Parallel()
	e, err := events.UnmarshalStructured(structured(`,"flag":true,"count":-7,"gone":null,"note":" \ud83d\ude00 ","subject":null,"time":"2026-12-01T12:00:00.005Z"`))
	if err != nil {
		t.Fatal(err)
	}
	want := minimal()
	want.SetExtension("flag", true)
	want.SetExtension("count", int32(-7))
	want.SetExtension("note", " 😀 ")
	want.SetTime(noon)
	if d := diff(want, e); d != "" {
		t.Errorf("event (-want +got):\n%s", d)
	}
}

func TestUnmarshalStructured_takes_JSON_without_a_content_type_as_such(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{`,"data":1`: "application/json", `,"data_base64":"MQ=="`: "", ``: ""} {
		e, err := events.UnmarshalStructured(structured(members))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.DataContentType(); got != want {
			t.Errorf("content type of %s is %q, want %q", members, got, want)
		}
	}
}

func TestUnmarshalStructured_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, body string }{
		{"an empty body", "", ``},
		{"an array", "", `[]`},
		{"an unfinished object", "", `{"id":"1"`},
		{"an unfinished value", "", `{"id":`},
		{"a name without quotes", "", `{id:1}`},
		{"text after the object", "", string(structured("")) + `{}`},
		{"bytes that are not UTF-8", "", string(structured(",\"note\":\"\xff\""))},
		{"an attribute twice", "", string(structured(`,"id":"2"`))},
		{"an attribute twice, once escaped", "", string(structured(`,"\u0069d":"2"`))},
		{"an extension twice", "", string(structured(`,"note":"a","note":"b"`))},
		{"the payload twice", "", string(structured(`,"data":1,"data":2`))},
		{"a missing attribute", "source", `{"specversion":"1.0","id":"1","type":"t"}`},
		{"a null for a required attribute", "id", `{"specversion":"1.0","id":null,"source":"/s","type":"t"}`},
		{"a number as version", "specversion", `{"specversion":1.0}`},
		{"a number as id", "id", `{"specversion":"1.0","id":1,"source":"/s","type":"t"}`},
		{"a name in capitals", "Note", string(structured(`,"Note":"x"`))},
		{"a name with an underscore", "session_key", string(structured(`,"session_key":"x"`))},
		{"an object as attribute", "note", string(structured(`,"note":{}`))},
		{"a list as attribute", "note", string(structured(`,"note":[]`))},
		{"a fraction", "note", string(structured(`,"note":1.0`))},
		{"an exponent", "note", string(structured(`,"note":1e3`))},
		{"an integer beyond 32 bits", "note", string(structured(`,"note":2147483648`))},
		{"a control character", "note", string(structured(`,"note":"\u000a"`))},
		{"the first half of a surrogate pair", "note", string(structured(`,"note":"\ud83d"`))},
		{"the second half of a surrogate pair", "note", string(structured(`,"note":"\ude00"`))},
		{"two first halves", "note", string(structured(`,"note":"\ud83d\ud83d\ude00"`))},
		{"halves apart", "note", string(structured(`,"note":"\ud83d \ude00"`))},
		{"both payload members", "data_base64", string(structured(`,"data":1,"data_base64":"MQ=="`))},
		{"both payload members, one null", "data_base64", string(structured(`,"data":null,"data_base64":"MQ=="`))},
		{"broken base64", "data_base64", string(structured(`,"data_base64":"%"`))},
		{"base64 that is no string", "data_base64", string(structured(`,"data_base64":1`))},
		{"an object as text", "data", string(structured(`,"datacontenttype":"text/plain","data":{}`))},
		{"half a surrogate pair as text", "data", string(structured(`,"datacontenttype":"text/plain","data":"\ud83d"`))},
		{"text of a charset that JSON cannot carry", "data", string(structured(`,"datacontenttype":"text/plain; charset=latin1","data":"é"`))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := events.UnmarshalStructured([]byte(c.body))
			wantError(t, err, events.CodeUndecodable, c.path)
		})
	}
}
