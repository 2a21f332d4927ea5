package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"keryx/schemas"
)

const (
	submit = "keryx.cmd.continuation.submit.v1"
	start  = "keryx.cmd.exec.start.v1"
	ended  = "keryx.turn.ended.v1"
	id     = "01JSESS10N0000000000000000"
)

func TestValidate_takes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, typ, data string }{
		{"a command", submit, `{"to":"cli:local","body":{"text":"hi"}}`},
		{"a command with all that is optional", submit, `{"to":"x","body":{"text":"","data":[1,null]},"mode":"enqueue","allow":["merge"],"kind":"user","idempotency_key":"k","on_reset":"drop","follow":true}`},
		{"white space", submit, " {\n\"to\":\"x\", \"body\":{\"text\":\"\"}}\n"},
		{"an unknown field in an event, from a newer writer", ended, `{"turn":"` + id + `","outcome":"lost","settled":[],"pending":0,"background_running":0,"mood":"fine"}`},
		{"an unknown field deep in an event", "keryx.continuation.queued.v1", `{"item":{"receipt":"` + id + `","kind":"user","mode":"enqueue","body":{"text":"","x":1},"sender":"gw","body_digest":"` + strings.Repeat("0", 64) + `","on_reset":"carry","epoch":1,"queued_at":"2026-12-01T12:00:00Z"}}`},
		{"a command without fields", "keryx.cmd.lease.list.v1", `{}`},
		{"the largest sequence", "keryx.cmd.log.page.v1", `{"scope":"_profile","from":18446744073709551615}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := schemas.Validate(c.typ, []byte(c.data)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidate_refuses(t *testing.T) {
	t.Parallel()
	run := func(spec string) string {
		return `{"session":"` + id + `","selection":{"target":"local","generation":1,"access_epoch":0,"executor":"x","instance":"` + id + `"},"spec":` + spec + `}`
	}
	for _, c := range []struct{ name, typ, data, path, message string }{
		{"no data", submit, ``, "", "the data is absent"},
		{"what is not JSON", submit, `{`, "", "the data is not JSON: unexpected EOF"},
		{"text after the data", submit, `{} {}`, "", "the data is not JSON: invalid character after top-level value"},
		{"null", submit, `null`, "", "an object is needed, not null"},
		{"missing fields", submit, `{}`, "", "missing: to, body"},
		{"a missing field further down", submit, `{"to":"x","body":{}}`, "/body", "missing: text"},
		{"a misspelt field", submit, `{"to":"x","body":{"text":""},"idempotencykey":"k"}`, "", "no such field: idempotencykey"},
		{"a misspelt field further down", submit, `{"to":"x","body":{"text":"","Data":1}}`, "/body", "no such field: Data"},
		{"another type", submit, `{"to":7,"body":{"text":""}}`, "/to", "a string is needed, not a number"},
		{"null for a field", submit, `{"to":null,"body":{"text":""}}`, "/to", "a string is needed, not null"},
		{"an empty name", submit, `{"to":"","body":{"text":""}}`, "/to", "0 characters are too few, at least 1 are needed"},
		{"a long name", submit, `{"to":"` + strings.Repeat("x", 1025) + `","body":{"text":""}}`, "/to", "1025 characters are too many, at most 1024 are taken"},
		{"a value out of a closed set", submit, `{"to":"x","body":{"text":""},"mode":"later"}`, "/mode", `"later" is not one of "enqueue", "merge", "steer", "interrupt", "reject"`},
		{"a value in a list", submit, `{"to":"x","body":{"text":""},"allow":["merge",1]}`, "/allow/1", "a string is needed, not a number"},
		{"an id in small letters", "keryx.cmd.turn.show.v1", `{"turn":"01jsess10n0000000000000000"}`, "/turn", `"01jsess10n0000000000000000" is not a ULID (26 digits and capital letters)`},
		{"an id that would widen a subject", "keryx.cmd.log.page.v1", `{"scope":"a.>"}`, "/scope", `"a.>" is not a scope: a session id or a name of letters, digits, _ and -`},
		{"a lease key that would widen a subject", "keryx.cmd.lease.acquire.v1", `{"key":"p.target.*","instance":"` + id + `"}`, "/key", `"p.target.*" is not a lease key (<profile>.<kind>.<name>)`},
		{"a page beyond the limit", "keryx.cmd.log.page.v1", `{"scope":"_profile","limit":1001}`, "/limit", "1001 is more than 1000"},
		{"an empty argument list", start, run(`{"argv":[]}`), "/spec/argv", "0 entries are too few, at least 1 are needed"},
		{"a negative grace", start, run(`{"argv":["x"],"grace_ms":-5}`), "/spec/grace_ms", "-5 is less than 0"},
		{"a timeout that would overflow", start, run(`{"argv":["x"],"timeout_ms":9223372036854775807}`), "/spec/timeout_ms", "9223372036854775807 is more than 3153600000000"},
		{"a fraction", start, run(`{"argv":["x"],"timeout_ms":0.5}`), "/spec/timeout_ms", "an integer is needed, not a number"},
		{"input that is not base64", start, run(`{"argv":["x"],"stdin":"%"}`), "/spec/stdin", "not base64"},
		{"an environment that is not text", start, run(`{"argv":["x"],"env_set":{"a/b~c":1}}`), "/spec/env_set/a~1b~0c", "a string is needed, not a number"},
		{"a time that is none", "keryx.session.idle.v1", `{"turn":"` + id + `","reason":"lost","pending":0,"background_running":0,"since":"noon"}`, "/since", `"noon" is not a date-time`},
		{"the first of several by place", submit, `{"to":"x","body":{"text":1,"data":1},"mode":"x","kind":"y"}`, "/body/text", "a string is needed, not a number"},
		{"a long wrong value, cut", "keryx.cmd.turn.show.v1", `{"turn":"` + strings.Repeat("é", 70) + `"}`, "/turn", `"` + strings.Repeat("é", 64) + `..." is not a ULID (26 digits and capital letters)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := schemas.Validate(c.typ, []byte(c.data))
			var v *schemas.ValidationError
			if !errors.As(err, &v) {
				t.Fatalf("error is %v, want a *ValidationError", err)
			}
			if v.Path != c.path || v.Message != c.message {
				t.Errorf("error is at %q: %s\nwant at %q: %s", v.Path, v.Message, c.path, c.message)
			}
			if text := strings.TrimPrefix(v.Path+": "+v.Message, ": "); err.Error() != text {
				t.Errorf("text is %q, want %q", err, text)
			}
		})
	}
}

func TestValidate_knows_its_types(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"", "keryx.cmd.session.sing.v1", "../schemas/" + submit, submit + ".json", "validate.go"} {
		if err := schemas.Validate(typ, []byte(`{}`)); !errors.Is(err, schemas.ErrUnknownType) {
			t.Errorf("error for %q is %v, want ErrUnknownType", typ, err)
		}
	}
}

func TestValidate_is_safe_for_concurrent_first_use(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, name := range schemas.Names() {
				var v *schemas.ValidationError
				if err := schemas.Validate(name, []byte(`[]`)); !errors.As(err, &v) {
					t.Errorf("%s: error is %v", name, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestSchemas_are_themselves_valid_and_say_what_they_mean(t *testing.T) {
	t.Parallel()
	if len(schemas.Names()) < 90 {
		t.Fatalf("only %d schemas are embedded", len(schemas.Names()))
	}
	for _, name := range schemas.Names() {
		body, err := schemas.FS.ReadFile(name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if doc["$id"] != "urn:keryx:schema:"+name || doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s has $id %v and $schema %v", name, doc["$id"], doc["$schema"])
		}
		described(t, name, doc)
		given := strings.HasPrefix(name, "keryx.cmd.") && !strings.HasSuffix(name, ".answer") || strings.HasPrefix(name, "keryx.format.")
		closed(t, name, doc, given)
	}
}

// described fails the test for each property without a description.
func described(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	if s, _ := schema["description"].(string); len(s) < 5 {
		t.Errorf("%s has no description", at)
	}
	for name, p := range properties(schema) {
		described(t, at+"/"+name, p)
	}
}

// closed fails the test unless every object level refuses unknown fields, or none does.
func closed(t *testing.T, at string, schema map[string]any, want bool) {
	t.Helper()
	if props, ok := schema["properties"]; ok {
		refuses := schema["additionalProperties"] == false
		if refuses != want {
			t.Errorf("%s with properties %v: unknown fields refused: %t, want %t", at, props, refuses, want)
		}
	}
	for name, p := range properties(schema) {
		closed(t, at+"/"+name, p, want)
		if items, ok := p["items"].(map[string]any); ok {
			closed(t, at+"/"+name+"/items", items, want)
		}
	}
}

func properties(schema map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	props, _ := schema["properties"].(map[string]any)
	for name, p := range props {
		out[name] = p.(map[string]any)
	}
	return out
}

func BenchmarkValidate(b *testing.B) {
	data := []byte(`{"to":"cli:local","body":{"text":"hi"},"idempotency_key":"k"}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := schemas.Validate(submit, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate_large_text(b *testing.B) {
	data := append(append([]byte(`{"to":"x","body":{"text":"`), bytes.Repeat([]byte("x"), 256<<10)...), `"}}`...)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := schemas.Validate(submit, data); err != nil {
			b.Fatal(err)
		}
	}
}
