package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"keryx/events"
)

func ce(id, subject string, data any) cloudevent.Event {
	e := cloudevent.New()
	e.SetID(id)
	e.SetType("com.example.build")
	e.SetSource("/ci")
	e.SetSubject(subject)
	if err := e.SetData("application/json", data); err != nil {
		panic(err)
	}
	return e
}

// post sends what the SDK has made of events.
func (e *edge) post(r *http.Request, err error) answer {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+e.secrets[events.RoleGateway])
	return e.send(r)
}

// queued are the messages of a session's queue by their text.
func (e *edge) queued(to string) []string {
	e.t.Helper()
	var out []string
	for _, i := range do[events.SessionView](e, events.RoleObserver, "GET", "/v1/sessions/"+to, "").Queue {
		out = append(out, i.Text)
	}
	return out
}

func TestCloudEventsComeInInEveryModeOnce(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	ctx := t.Context()
	one := ce("1", "web:1", map[string]string{"build": "ok é"})
	binary, err := cehttp.NewHTTPRequestFromEvent(ctx, e.url+"/v1/events", one)
	first := e.post(binary, err)
	if first.status != 200 {
		t.Fatalf("binary: %d %s", first.status, first.body)
	}
	structured, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	r := e.request("POST", "/v1/events", e.secrets[events.RoleGateway], string(structured), "Content-Type", "application/cloudevents+json; charset=utf-8")
	again := e.send(r)
	if a, b := unmarshal[events.Receipt](t, string(first.body)), unmarshal[events.Receipt](t, string(again.body)); again.status != 200 || a.ID != b.ID {
		t.Errorf("the same event, structured: %d %s; binary it was %s", again.status, again.body, first.body)
	}
	charset, err := cehttp.NewHTTPRequestFromEvent(ctx, e.url+"/v1/events", one)
	if err == nil {
		charset.Header.Set("Content-Type", "application/json; charset=utf-8") // as other SDKs say it
	}
	if third := e.post(charset, err); unmarshal[events.Receipt](t, string(third.body)).ID != unmarshal[events.Receipt](t, string(first.body)).ID {
		t.Errorf("the same event with another content type: %d %s", third.status, third.body)
	}
	batch, err := cehttp.NewHTTPRequestFromEvents(ctx, e.url+"/v1/events", []cloudevent.Event{one, ce("2", "web:1", "two"), ce("3", "nobody", 3), ce("4", "", 4)})
	got := e.post(batch, err)
	type one4 struct {
		ID      string
		Receipt *events.Receipt
		Error   *struct{ Code events.Code }
	}
	results := unmarshal[[]one4](t, string(got.body))
	if got.status != http.StatusMultiStatus || len(results) != 4 || results[0].Receipt == nil || results[1].Receipt == nil ||
		results[2].Error.Code != events.CodeUnknownSession || results[3].Error.Code != events.CodeInvalid {
		t.Errorf("the batch: %d %s", got.status, got.body)
	}
	if q := e.queued("web:1"); fmt.Sprint(q) != fmt.Sprint([]string{`{"build":"ok é"}`, `"two"`}) {
		t.Errorf("the session has %q", q)
	}
	// The host gets the event itself.
	page := do[struct {
		Events []struct{ Data events.ContinuationQueued }
	}](e, events.RoleObserver, "GET", "/v1/sessions/web:1/events?type=continuation.queued", "")
	var whole map[string]any
	if err := json.Unmarshal(page.Events[0].Data.Item.Body.Data, &whole); err != nil || whole["id"] != "1" || whole["source"] != "/ci" || whole["type"] != "com.example.build" {
		t.Errorf("the host is given %v, %v", whole, err)
	}
}

func TestCloudEventsThatCannotBeTakenAreRefused(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	for _, c := range []struct {
		name, path, body string
		header           []string
		code             events.Code
	}{
		{"no event at all", "/v1/events", `{}`, nil, events.CodeUndecodable},
		{"a structured event without an id", "/v1/events", `{"specversion":"1.0","type":"x","source":"/s"}`, []string{"Content-Type", "application/cloudevents+json"}, events.CodeUndecodable},
		{"a binary event of another version", "/v1/events?to=web:1", `{}`, []string{"Ce-Specversion", "0.3", "Ce-Id", "1", "Ce-Type", "x", "Ce-Source", "/s"}, events.CodeUndecodable},
		{"a batch that is none", "/v1/events", `{}`, []string{"Content-Type", "application/cloudevents-batch+json"}, events.CodeUndecodable},
		{"another format", "/v1/events", `x`, []string{"Content-Type", "application/cloudevents+avro"}, events.CodeUndecodable},
		{"a type of the bus's own", "/v1/events?to=web:1", `{}`, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Type", "keryx.turn.ended.v1", "Ce-Source", "/s"}, events.CodeInvalid},
		{"no session", "/v1/events", `{}`, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Type", "x", "Ce-Source", "/s"}, events.CodeInvalid},
		{"a query field that there is not", "/v1/events?too=x", `{}`, nil, events.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) { e.refused(events.RoleGateway, c.code, "POST", c.path, c.body, c.header...) })
	}
	if q := e.queued("web:1"); len(q) != 0 {
		t.Errorf("refused events have left %q", q)
	}
}
