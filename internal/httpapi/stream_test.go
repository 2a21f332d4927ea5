package httpapi_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/httpapi"
)

func fast(c *httpapi.Config) { c.Heartbeat = 50 * time.Millisecond }

func TestAStreamReplaysTheRecordAndGoesOn(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	e.submit("web:1", "before")
	s := e.stream(events.RoleObserver, "/v1/sessions/web:1/events")
	got := s.until("continuation.queued")
	if len(got) != 2 || got[0].typ() != "session.registered" {
		t.Fatalf("the record so far is %v", got)
	}
	e.submit("web:1", "after")
	live := s.next()
	if live.typ() != "continuation.queued" || !strings.Contains(live.data, "after") {
		t.Errorf("live came %+v", live)
	}
	seq := unmarshal[struct{ Sequence, Ordinal string }](t, live.data)
	if seq.Sequence != live.id || seq.Ordinal != "3" {
		t.Errorf("the id %s is not the sequence of %+v", live.id, seq)
	}
	// Resumed, it goes on behind the last event that was received.
	resumed := e.stream(events.RoleObserver, "/v1/sessions/web:1/events", "Last-Event-ID", got[0].id)
	if next := resumed.next(); next.id != got[1].id {
		t.Errorf("resumed at %+v, want %s", next, got[1].id)
	}
	// From the tip only what is new; of types only those wanted.
	tip := e.stream(events.RoleObserver, "/v1/sessions/web:1/events?after=tip&type=session.*")
	e.submit("web:1", "unseen")
	do[events.EpochAnswer](e, events.RoleGateway, "POST", "/v1/sessions/web:1/finalize", `{"reason":"done"}`)
	if next := tip.next(); next.typ() != "session.finalized" {
		t.Errorf("from the tip came %+v", next)
	}
}

func TestALongRecordIsStreamedWholeAndInOrder(t *testing.T) {
	t.Parallel()
	e := startEdge(t, func(c *httpapi.Config) { c.BufferEvents = 16 })
	e.register("web:1")
	const n = 400 // several pages of history, and more than the buffer
	for i := range n {
		e.submit("web:1", fmt.Sprint(i))
	}
	s := e.stream(events.RoleObserver, "/v1/sessions/web:1/events")
	for want := 1; want <= n+1; want++ {
		got := unmarshal[struct{ Ordinal string }](t, s.next().data)
		if got.Ordinal != strconv.Itoa(want) {
			t.Fatalf("ordinal %s came, want %d", got.Ordinal, want)
		}
	}
	var next events.Sequence
	total := 0
	for {
		page := do[struct {
			Events []map[string]any
			Next   events.Sequence
		}](e, events.RoleObserver, "GET", fmt.Sprintf("/v1/sessions/web:1/events?from=%d&limit=150", next), "")
		total += len(page.Events)
		if next = page.Next; next == 0 {
			break
		}
	}
	if total != n+1 {
		t.Errorf("the pages have %d events, want %d", total, n+1)
	}
}

func TestASilentStreamSaysThatItLives(t *testing.T) {
	t.Parallel()
	e := startEdge(t, fast)
	e.register("web:1")
	s := e.stream(events.RoleObserver, "/v1/sessions/web:1/events?after=tip")
	for beats := 0; beats < 2; {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": alive\n" {
			beats++
		}
	}
}

func TestARevokedOrExpiredTokenCutsItsStreams(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	lost := e.token("lost", events.RoleObserver, 0)
	brief := e.token("brief", events.RoleObserver, 500*time.Millisecond)
	streams := map[string]*sse{
		"revoked":     e.streamBy(lost, "/v1/sessions/web:1/events?after=tip"),
		"has expired": e.streamBy(brief, "/v1/sessions/web:1/status"),
	}
	if _, err := e.operator.RevokeToken(t.Context(), "lost", "lost"); err != nil {
		t.Fatal(err)
	}
	for why, s := range streams {
		all := s.until("end")
		end := all[len(all)-1]
		if !strings.Contains(end.data, string(events.CodeUnauthenticated)) || !strings.Contains(end.data, why) {
			t.Errorf("a token that was %s: the stream ended with %+v", why, end)
		}
		if _, err := s.read(); err == nil {
			t.Errorf("a token that was %s: the stream goes on", why)
		}
	}
	if a := e.send(e.request("GET", "/v1/sessions", lost, "")); a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("the revoked token: %d %s", a.status, a.body)
	}
}

func TestAStopEndsStreamsAndSaysSo(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	open := []*sse{
		e.stream(events.RoleObserver, "/v1/sessions/web:1/events"), e.stream(events.RoleObserver, "/v1/sessions/web:1/status"),
		e.stream(events.RoleObserver, "/v1/profile/events"),
	}
	begun := time.Now()
	e.stopServer()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
	for i, s := range open {
		if all := s.until("end"); !strings.Contains(all[len(all)-1].data, string(events.CodeUnavailable)) {
			t.Errorf("stream %d ended with %+v", i, all[len(all)-1])
		}
	}
}

func TestAStreamOfNobodysSessionIsRefused(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.refused(events.RoleObserver, events.CodeUnknownSession, "GET", "/v1/sessions/nobody/events", "", "Accept", "text/event-stream")
	e.refused(events.RoleObserver, events.CodeUnknownSession, "GET", "/v1/sessions/nobody/events", "")
}

func TestMoreStreamsThanAllowedAreRefused(t *testing.T) {
	t.Parallel()
	e := startEdge(t, func(c *httpapi.Config) { c.Streams = 1 })
	e.register("web:1")
	e.stream(events.RoleObserver, "/v1/sessions/web:1/events")
	a := e.refused(events.RoleObserver, events.CodeRateLimited, "GET", "/v1/sessions/web:1/events", "", "Accept", "text/event-stream")
	if a.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After in %v", a.header)
	}
}

type statusAnswer struct {
	Session events.SessionID
	Items   []struct {
		Name  string
		Value any
		AsOf  time.Time `json:"as_of"`
		Stale bool
	}
}

func (s statusAnswer) value(name string) any {
	for _, i := range s.Items {
		if i.Name == name {
			return i.Value
		}
	}
	return "there is no such item"
}

func TestAStatusHasOnlyWhatIsKnown(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	if got := do[statusAnswer](e, events.RoleObserver, "GET", "/v1/sessions/nobody/status", ""); got.Items == nil || len(got.Items) != 0 || got.Session != "" {
		t.Errorf("a session nobody registered: %+v", got)
	}
	e.register("web:1")
	got := do[statusAnswer](e, events.RoleObserver, "GET", "/v1/sessions/web:1/status", "")
	if got.value("keryx.state") != "registered" || got.value("keryx.host") != nil || got.value("keryx.pending") != 0.0 {
		t.Errorf("status %+v", got)
	}
	for _, i := range got.Items {
		if i.Stale || time.Since(i.AsOf) > time.Minute {
			t.Errorf("item %+v", i)
		}
	}
	s := e.stream(events.RoleObserver, "/v1/sessions/web:1/status")
	s.next()
	e.submit("web:1", "hello")
	await(t, "the status to change", func() bool {
		return unmarshal[statusAnswer](t, s.next().data).value("keryx.pending") == 1.0
	})
	// One name for two sessions is an error, not a guess.
	other := e.register("web:2")
	gw := e.connect("gw2", events.RoleGateway)
	for to, names := range map[string]events.Names{"web:1": {SessionID: "both"}, string(other): {StoredSessionID: "both"}} {
		if _, err := e.operator.Alias(t.Context(), to, names); err != nil {
			t.Fatal(err)
		}
	}
	_ = gw
	e.refused(events.RoleObserver, events.CodeAmbiguousName, "GET", "/v1/sessions/both/status", "")
}

func TestAStatusGrowsStaleWhileTheBusIsSilent(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.register("web:1")
	e.register("web:2")
	known := do[statusAnswer](e, events.RoleObserver, "GET", "/v1/sessions/web:1/status", "")
	s := e.stream(events.RoleObserver, "/v1/sessions/web:1/status")
	s.next()
	stopNode(t, e.node)
	last := unmarshal[statusAnswer](t, s.next().data)
	for i, item := range last.Items {
		if !item.Stale || item.Value != known.Items[i].Value || item.AsOf.After(time.Now()) {
			t.Errorf("while the bus is silent: %+v, it was %+v", item, known.Items[i])
		}
	}
	if got := do[statusAnswer](e, events.RoleObserver, "GET", "/v1/sessions/web:1/status", ""); len(got.Items) == 0 || !got.Items[0].Stale {
		t.Errorf("asked while the bus is silent: %+v", got)
	}
	a := e.send(e.request("GET", "/v1/sessions/web:2/status", e.secrets[events.RoleObserver], ""))
	if a.status != 504 && a.status != 503 {
		t.Errorf("what was never known: %d %s", a.status, a.body)
	}
}
