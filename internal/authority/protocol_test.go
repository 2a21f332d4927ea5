package authority_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// raw publishes a command by hand and returns the answer, if one comes to inbox.
func raw(t *testing.T, c *client.Conn, subject, reply string, header nats.Header, body []byte) {
	t.Helper()
	m := nats.NewMsg(subject)
	m.Reply, m.Header, m.Data = reply, header, body
	if err := c.NATS().PublishMsg(m); err != nil {
		t.Fatalf("publish: %v", err)
	}
	if err := c.NATS().Flush(); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// inbox subscribes an inbox of the caller's own.
func inbox(t *testing.T, c *client.Conn) (string, *nats.Subscription) {
	t.Helper()
	p := c.Principal()
	subject := events.InboxPrefix(p.Profile, p.Name) + "." + events.NewID()
	sub, err := c.NATS().SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.NATS().Flush(); err != nil {
		t.Fatal(err)
	}
	return subject, sub
}

func command(t *testing.T, c *client.Conn, typ events.Type, data any) (string, nats.Header, []byte) {
	t.Helper()
	ev, err := events.NewCommand(c.Principal(), typ, events.CommandID(events.NewID()), time.Now(), data)
	if err != nil {
		t.Fatal(err)
	}
	h, body, err := events.Encode(ev)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := events.CmdSubject(c.Principal().Profile, c.Principal().Name, typ)
	if err != nil {
		t.Fatal(err)
	}
	return subject, h, body
}

func refusal(t *testing.T, sub *nats.Subscription) *events.Error {
	t.Helper()
	m, err := sub.NextMsg(5 * time.Second)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if m.Header.Get(events.HeaderStatus) != events.StatusError {
		t.Fatalf("answered %v %s, want a refusal", m.Header, m.Data)
	}
	var e events.Error
	if err := json.Unmarshal(m.Data, &e); err != nil {
		t.Fatal(err)
	}
	return &e
}

func TestAnswersGoOnlyToTheCallersOwnInbox(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op := b.connect("op", events.RoleOperator)
	evil := b.connect("evil", events.RoleGateway)
	id := register(t, evil, "k:1", events.Policy{})
	victimInbox, victim := inbox(t, op)
	for _, reply := range []string{
		victimInbox,
		events.LogSubject(profile, id.Scope()),
		events.LiveSubject(profile, id.Scope()),
		"kx.cmd.default.op.session.finalize",
		events.InboxPrefix(profile, "evil"), // not below it
		"_INBOX_default_evil2.x",
		"",
	} {
		subject, h, body := command(t, evil, events.CmdSessionShow, events.SessionShow{To: "k:1"})
		raw(t, evil, subject, reply, h, body)
	}
	// A command with a proper reply, sent last, is answered after all of them.
	own, sub := inbox(t, evil)
	subject, h, body := command(t, evil, events.CmdSessionShow, events.SessionShow{To: "k:1"})
	raw(t, evil, subject, own, h, body)
	if _, err := sub.NextMsg(5 * time.Second); err != nil {
		t.Fatalf("the proper command was not answered: %v", err)
	}
	if m, err := victim.NextMsg(50 * time.Millisecond); err == nil {
		t.Errorf("another's inbox got %q", m.Data)
	}
	if got := types(record(t, op, id.Scope())); len(got) != 1 {
		t.Errorf("the log was written: %v", got)
	}
	b.await("the attempts to be on record", func() bool {
		return count(record(t, op, events.ScopeProfile), events.TypeAuditRefused) == 7
	})
}

func TestMalformedInputIsRefusedWithWhatAndWhere(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	subject, good, body := command(t, gw, events.CmdContinuationSubmit, events.Submit{To: "k:1", Body: events.Body{Text: "x"}})
	with := func(name, value string) nats.Header {
		h := nats.Header{}
		for k, v := range good {
			h[k] = v
		}
		h[name] = []string{value}
		return h
	}
	for _, tc := range []struct {
		name    string
		subject string
		header  nats.Header
		body    []byte
		want    events.Code
		path    string
	}{
		{"no CloudEvent", subject, nil, body, events.CodeUndecodable, ""},
		{"an attribute of invalid bytes", subject, with("ce-note", "%FF"), body, events.CodeUndecodable, "note"},
		{"no such command", "kx.cmd.default.gw.session.destroy", good, body, events.CodeUnknownCommand, ""},
		{"type and subject disagree", "kx.cmd.default.gw.session.register", good, body, events.CodeUnknownCommand, ""},
		{"a role that may not", "kx.cmd.default.gw.turn.accept", with("ce-type", string(events.CmdTurnAccept)), body, events.CodeForbidden, ""},
		{"an id that is no ULID", subject, with("ce-id", "1"), body, events.CodeInvalid, "id"},
		{"an unknown field", subject, good, []byte(`{"to":"k:1","body":{"text":"x"},"modus":"enqueue"}`), events.CodeInvalid, ""},
		{"a field of the wrong type", subject, good, []byte(`{"to":7,"body":{"text":"x"}}`), events.CodeInvalid, "/to"},
		{"no JSON", subject, good, []byte(`{`), events.CodeInvalid, ""},
		{"no data", subject, good, nil, events.CodeInvalid, ""},
	} {
		reply, sub := inbox(t, gw)
		raw(t, gw, tc.subject, reply, tc.header, tc.body)
		e := refusal(t, sub)
		if e.Code != tc.want {
			t.Errorf("%s: refused as %s (%s), want %s", tc.name, e.Code, e.Message, tc.want)
		}
		if tc.path != "" && e.Path != tc.path {
			t.Errorf("%s: path %q, want %q", tc.name, e.Path, tc.path)
		}
		if e.Message == "" {
			t.Errorf("%s: no message", tc.name)
		}
	}
}

func TestCase_H5_an_oversize_command_is_refused_and_the_connection_goes_on(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	register(t, gw, "k:5", events.Policy{})
	subject, h, _ := command(t, gw, events.CmdContinuationSubmit, events.Submit{To: "k:5", Body: events.Body{Text: "x"}})
	big := []byte(fmt.Sprintf(`{"to":"k:5","body":{"text":%q}}`, strings.Repeat("x", events.MaxData)))
	wide := nats.Header{}
	for k, v := range h {
		wide[k] = v
	}
	wide.Set("ce-note", strings.Repeat("n", events.MaxHeaders))
	for name, tc := range map[string]struct {
		h    nats.Header
		body []byte
	}{
		"data one over the limit": {h, big},
		"headers over the limit":  {wide, []byte(`{"to":"k:5","body":{"text":"x"}}`)},
	} {
		reply, sub := inbox(t, gw)
		begun := time.Now()
		raw(t, gw, subject, reply, tc.h, tc.body)
		if e := refusal(t, sub); e.Code != events.CodeTooLarge {
			t.Errorf("%s: refused as %s, want too_large", name, e.Code)
		}
		if d := time.Since(begun); d > time.Second {
			t.Errorf("%s: the refusal took %v", name, d)
		}
	}
	if r := submit(t, gw, "k:5", "0123456789"); r.State != events.StateQueued {
		t.Errorf("the small message after them is %s", r.State)
	}
}

func TestARepeatedCommandGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	id := register(t, gw, "k:1", events.Policy{})
	subject, h, body := command(t, gw, events.CmdContinuationSubmit, events.Submit{To: "k:1", Body: events.Body{Text: "once"}})
	var first []byte
	for i := range 3 {
		if i == 2 { // also after a restart of the bus
			b.stop()
			b.start()
			gw = b.connect("gw", events.RoleGateway)
		}
		reply, sub := inbox(t, gw)
		raw(t, gw, subject, reply, h, body)
		m, err := sub.NextMsg(5 * time.Second)
		if err != nil {
			t.Fatalf("try %d: %v", i, err)
		}
		if first == nil {
			first = m.Data
		}
		if !bytes.Equal(first, m.Data) {
			t.Errorf("try %d was answered %s, the first %s", i, m.Data, first)
		}
	}
	if n := count(record(t, gw, id.Scope()), events.TypeContinuationQueued); n != 1 {
		t.Errorf("%d items queued, want 1", n)
	}
}

func TestProfilesDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	id := register(t, gw, "k:1", events.Policy{})
	other, err := b.node.Connect(t.Context(), events.Principal{Profile: "other", Name: "gw", Role: events.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	refused(t, other, events.CmdSessionShow, events.SessionShow{To: string(id)}, events.CodeUnknownSession)
	refused(t, other, events.CmdSessionShow, events.SessionShow{To: "k:1"}, events.CodeUnknownSession)
	if _, err := other.Page(t.Context(), id.Scope(), 0, 0); events.CodeOf(err) != events.CodeUnknownSession {
		t.Errorf("reading a foreign session: %v, want unknown_session", err)
	}
	if s := do[events.Sessions](t, other, events.CmdSessionList, events.SessionList{}); len(s.Sessions) != 0 {
		t.Errorf("another profile lists %v", s.Sessions)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	// The same key is free in the other profile.
	var a events.Registered
	if err := other.Do(ctx, events.CmdSessionRegister, events.Register{Names: events.Names{GatewaySessionKey: "k:1"}}, &a); err != nil || a.Session == id {
		t.Errorf("register in another profile: %v, %v", a, err)
	}
}
