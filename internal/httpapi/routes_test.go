package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"keryx/events"
)

func TestASessionIsMadeUsedAndEndedOverHTTP(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	gw := events.RoleGateway
	id := e.register("web:1")
	again := do[events.Registered](e, gw, "POST", "/v1/sessions", `{"names":{"gateway_session_key":"web:1"},"policy":{}}`)
	if again.Session != id || again.Created {
		t.Errorf("registered again as %+v", again)
	}
	do[events.Registered](e, gw, "POST", "/v1/sessions/web:1/aliases", `{"names":{"gateway_session_key":"web/two parts?"}}`)
	show := do[events.SessionView](e, events.RoleObserver, "GET", "/v1/sessions/"+url.PathEscape("web/two parts?"), "")
	if show.Session != id || len(show.Keys) != 2 {
		t.Errorf("shown by its alias as %+v", show.SessionSummary)
	}
	r := e.submit("web:1", "hello")
	got := do[events.Receipt](e, events.RoleObserver, "GET", "/v1/receipts/"+string(r.ID), "")
	if got.State != events.StateQueued || got.Session != id {
		t.Errorf("the receipt is %+v", got)
	}
	edited := do[events.Receipt](e, gw, "POST", "/v1/receipts/"+string(r.ID)+"/edit", `{"body":{"text":"bye"}}`)
	cancelled := do[events.Receipt](e, gw, "POST", "/v1/receipts/"+string(r.ID)+"/cancel", `{"reason":"changed my mind"}`)
	if edited.ID != r.ID || cancelled.State != events.StateCancelled {
		t.Errorf("edited %+v, cancelled %+v", edited, cancelled)
	}
	list := do[events.Sessions](e, gw, "GET", "/v1/sessions?open=true&limit=10", "")
	if len(list.Sessions) != 1 || list.More {
		t.Errorf("listed %+v", list)
	}
	reset := do[events.EpochAnswer](e, gw, "POST", "/v1/sessions/web:1/reset", `{"reason":"new"}`)
	end := do[events.EpochAnswer](e, gw, "POST", "/v1/sessions/web:1/finalize", `{"reason":"done"}`)
	if reset.Epoch != 2 || end.Epoch != 2 || end.Reason != "done" {
		t.Errorf("reset to %+v, ended %+v", reset, end)
	}
	late := e.refused(gw, events.CodeAlreadyFinalized, "POST", "/v1/sessions/web:1/finalize", `{"reason":"again"}`)
	if !strings.Contains(string(late.body), "done") {
		t.Errorf("the first reason is not told: %s", late.body)
	}
}

func TestRequestsThatCannotBeReadAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	gw := events.RoleGateway
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		code                     events.Code
		where                    string
	}{
		{"a body that is not JSON", "POST", "/v1/sessions", `{`, nil, events.CodeInvalid, ""},
		{"a body that is no object", "POST", "/v1/sessions", `[1]`, nil, events.CodeInvalid, ""},
		{"null", "POST", "/v1/sessions", `null`, nil, events.CodeInvalid, ""},
		{"another content type", "POST", "/v1/sessions", `{}`, []string{"Content-Type", "text/plain"}, events.CodeUndecodable, ""},
		{"a missing field", "POST", "/v1/sessions/web:1/messages", `{}`, nil, events.CodeInvalid, ""},
		{"a wrong type within", "POST", "/v1/sessions/web:1/messages", `{"body":{"text":7}}`, nil, events.CodeInvalid, "/body/text"},
		{"a misspelt field", "POST", "/v1/sessions/web:1/messages", `{"body":{"text":""},"mod":"steer"}`, nil, events.CodeInvalid, ""},
		{"a field that the path gives", "POST", "/v1/sessions/web:1/messages", `{"to":"x","body":{"text":""}}`, nil, events.CodeInvalid, "/to"},
		{"a query field that there is not", "GET", "/v1/sessions?opne=true", "", nil, events.CodeInvalid, "?opne"},
		{"a query field of another type", "GET", "/v1/sessions?open=maybe", "", nil, events.CodeInvalid, "?open"},
		{"a number that is none", "GET", "/v1/sessions?limit=+07", "", nil, events.CodeInvalid, "?limit"},
		{"a query field twice", "GET", "/v1/sessions?open=true&open=true", "", nil, events.CodeInvalid, "?open"},
		{"a number beyond its bound", "GET", "/v1/sessions?limit=1001", "", nil, events.CodeInvalid, "/limit"},
		{"an id that is none", "GET", "/v1/turns/x", "", nil, events.CodeInvalid, "/turn"},
		{"a body where there is none", "GET", "/v1/sessions", `{}`, nil, events.CodeInvalid, ""},
		{"a last event that is none", "GET", "/v1/sessions/web:1/events", "", []string{"Accept", "text/event-stream", "Last-Event-ID", "x"}, events.CodeInvalid, "Last-Event-ID"},
		{"a page without a limit", "GET", "/v1/sessions/web:1/events?limit=0", "", nil, events.CodeInvalid, "?limit"},
		{"a key that is too long", "POST", "/v1/sessions/web:1/messages", `{"body":{"text":""}}`, []string{"Idempotency-Key", strings.Repeat("k", 513)}, events.CodeInvalid, "Idempotency-Key"},
		{"a session that nobody has", "GET", "/v1/sessions/nobody", "", nil, events.CodeUnknownSession, ""},
		{"a route that there is not", "GET", "/v1/sing", "", nil, events.CodeUnknownCommand, ""},
		{"a body beyond all bounds", "POST", "/v1/sessions/web:1/messages", `{"body":{"text":"` + strings.Repeat("x", 2<<20) + `"}}`, nil, events.CodeTooLarge, ""},
		{"a text beyond its bound", "POST", "/v1/sessions/web:1/messages", `{"body":{"text":"` + strings.Repeat("x", 300<<10) + `"}}`, nil, events.CodeTooLarge, "/body"},
	} {
		a := e.refused(gw, c.code, c.method, c.path, c.body, c.header...)
		var p struct {
			Type, Title, Detail, Path string
			Status                    int
		}
		if err := json.Unmarshal(a.body, &p); err != nil || p.Path != c.where || p.Status != a.status || p.Title == "" || p.Detail == "" || p.Type != "urn:keryx:error:"+string(c.code) {
			t.Errorf("%s: %s, want it at %q", c.name, a.body, c.where)
		}
	}
	a := e.send(e.request("DELETE", "/v1/sessions", e.secrets[gw], ""))
	if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, POST" || a.code() != events.CodeUnknownCommand {
		t.Errorf("a method that there is not: %d %v %s", a.status, a.header, a.body)
	}
	if got := do[events.Sessions](e, gw, "GET", "/v1/sessions", ""); len(got.Sessions) != 1 || got.Sessions[0].Pending != 0 {
		t.Errorf("refused requests have left %+v", got.Sessions)
	}
}

func TestTheSameRequestWithTheSameKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	id := e.register("web:1")
	gw := events.RoleGateway
	key := []string{"Idempotency-Key", "k-1"}
	say := `{"body":{"text":"hello"}}`
	one := do[events.Receipt](e, gw, "POST", "/v1/sessions/web:1/messages", say, key...)
	two := do[events.Receipt](e, gw, "POST", "/v1/sessions/web:1/messages", say, key...)
	if one.ID != two.ID {
		t.Errorf("the repeat is message %s, not %s", two.ID, one.ID)
	}
	e.refused(gw, events.CodeIdempotencyConflict, "POST", "/v1/sessions/web:1/messages", `{"body":{"text":"other"}}`, key...)
	// Another token's key is another one.
	other := e.token("other", gw, 0)
	a := e.send(e.request("POST", "/v1/sessions/web:1/messages", other, say, key...))
	if r := unmarshal[events.Receipt](t, string(a.body)); a.status != 200 || r.ID == one.ID {
		t.Errorf("another token's message with this key: %d %s", a.status, a.body)
	}
	// Any command that changes something: the first answer.
	first := do[events.EpochAnswer](e, gw, "POST", "/v1/sessions/web:1/reset", `{"reason":"new"}`, key...)
	second := do[events.EpochAnswer](e, gw, "POST", "/v1/sessions/web:1/reset", `{"reason":"new"}`, key...)
	if first != second {
		t.Errorf("reset to %+v, then to %+v", first, second)
	}
	if v := do[events.SessionView](e, gw, "GET", "/v1/sessions/"+string(id), ""); v.Epoch != 2 || v.Pending != 2 {
		t.Errorf("the session is at epoch %d with %d waiting", v.Epoch, v.Pending)
	}
}

func TestTheRecordNamesTheTokenOfARequest(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	page := do[struct {
		Events []map[string]any
		Next   events.Sequence
	}](e, events.RoleObserver, "GET", "/v1/sessions/web:1/events?limit=1", "")
	if len(page.Events) != 1 || page.Events[0]["actingfor"] != "t-gateway" || page.Events[0]["source"] != "/profiles/default/principals/edge" {
		t.Errorf("the page is %v", page)
	}
}

func TestOnlyTheServersOwnNamesAreAnswered(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "localhost:1": 200, "127.0.0.1:99": 200, "[::1]:5": 200,
		"evil.example": 403, "evil.example:80": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403,
	} {
		r := e.request("GET", "/v1/sessions", e.secrets[events.RoleObserver], "")
		if host != "" {
			r.Host = host
		}
		if a := e.send(r); a.status != want {
			t.Errorf("host %q: %d %s, want %d", host, a.status, a.body, want)
		}
	}
}

func TestASessionIsShownAsItWas(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	between := e.submit("web:1", "one")
	e.submit("web:1", "two")
	gw := events.RoleGateway
	for at, want := range map[string]int{"%231": 0, "%232": 1, between.Sequence.String(): 1, "2999-01-01T00:00:00Z": 2} {
		if v := do[events.SessionView](e, gw, "GET", "/v1/sessions/web:1?at="+at, ""); v.Pending != want {
			t.Errorf("at %s there wait %d, want %d", at, v.Pending, want)
		}
	}
	for _, at := range []string{"yesterday", "%230", "0", "%2399", "1999-01-01T00:00:00Z"} {
		e.refused(gw, events.CodeInvalid, "GET", "/v1/sessions/web:1?at="+at, "")
	}
	e.refused(gw, events.CodeUnknownSession, "GET", "/v1/sessions/nobody?at=5", "")
}
