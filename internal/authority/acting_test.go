package authority_test

import (
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/tokens"
)

func addToken(t *testing.T, op *client.Conn, name events.TokenName, role events.Role, ttl time.Duration) {
	t.Helper()
	do[events.TokenView](t, op, events.CmdTokenAdd, events.AddToken{
		Name: name, Role: role, Digest: tokens.Digest(tokens.NewSecret()), TTLMS: ttl.Milliseconds(),
	})
}

// actingFor sends a command for a token and returns the code of its refusal; empty if it
// was done.
func actingFor(t *testing.T, c *client.Conn, token events.TokenName, typ events.Type, data any) events.Code {
	t.Helper()
	err := c.Do(client.WithActingFor(t.Context(), token), typ, data, nil)
	if err == nil {
		return ""
	}
	return events.CodeOf(err)
}

func TestWhoActsForATokenMayDoWhatBothMay(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, op, host := b.connect("edge", events.RoleGateway), b.connect("op", events.RoleOperator), b.connect("edge-host", events.RoleHost)
	for name, role := range map[events.TokenName]events.Role{
		"web": events.RoleGateway, "boss": events.RoleOperator, "eye": events.RoleObserver, "agent": events.RoleHost,
	} {
		addToken(t, op, name, role, 0)
	}
	session := register(t, gw, "k:1", events.Policy{})
	say := events.Submit{To: "k:1", Body: events.Body{Text: "hi"}}
	attach := events.Attach{Session: session, Instance: host.Instance()}
	run := events.AddToken{Name: "x", Role: events.RoleHost, Digest: tokens.Digest("x")}
	for _, c := range []struct {
		name string
		by   *client.Conn
		for_ events.TokenName
		typ  events.Type
		data any
		want events.Code
	}{
		{"a gateway's token submits", gw, "web", events.CmdContinuationSubmit, say, ""},
		{"an observer's reads", gw, "eye", events.CmdSessionShow, events.SessionShow{To: "k:1"}, ""},
		{"an observer's does not submit", gw, "eye", events.CmdContinuationSubmit, say, events.CodeForbidden},
		{"an operator's submits by a gateway", gw, "boss", events.CmdContinuationSubmit, say, ""},
		{"an operator's may no more than the gateway", gw, "boss", events.CmdTokenAdd, run, events.CodeForbidden},
		{"an operator's may by an operator", op, "boss", events.CmdTokenAdd, run, ""},
		{"a gateway's may no more than a gateway by an operator", op, "web", events.CmdContinuationSubmit, say, events.CodeForbidden},
		{"a gateway's does not attach by a host", host, "web", events.CmdSessionAttach, attach, events.CodeForbidden},
		{"a host's attaches", host, "agent", events.CmdSessionAttach, attach, ""},
		{"a host's does not act by a gateway", gw, "agent", events.CmdContinuationSubmit, say, events.CodeForbidden},
		{"one that never was does nothing", gw, "nobody", events.CmdSessionList, events.SessionList{}, events.CodeUnauthenticated},
		{"no executor's is made", op, "", events.CmdTokenAdd, events.AddToken{Name: "y", Role: events.RoleExecutor, Digest: tokens.Digest("y")}, events.CodeInvalid},
		{"a name is given once", op, "", events.CmdTokenAdd, events.AddToken{Name: "web", Role: events.RoleHost, Digest: tokens.Digest("z")}, events.CodeNameTaken},
		{"no other than an operator makes one", gw, "", events.CmdTokenAdd, run, events.CodeForbidden},
	} {
		if got := actingFor(t, c.by, c.for_, c.typ, c.data); got != c.want {
			t.Errorf("%s: code %q, want %q", c.name, got, c.want)
		}
	}
}

func TestARevokedOrExpiredTokenDoesNothing(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, op := b.connect("edge", events.RoleGateway), b.connect("op", events.RoleOperator)
	addToken(t, op, "short", events.RoleObserver, 50*time.Millisecond)
	addToken(t, op, "long", events.RoleObserver, time.Hour)
	list := func(n events.TokenName) events.Code {
		return actingFor(t, gw, n, events.CmdSessionList, events.SessionList{})
	}
	b.await("the short one to end", func() bool { return list("short") == events.CodeUnauthenticated })
	if got := list("long"); got != "" {
		t.Errorf("the long one: %q", got)
	}
	first := do[events.TokenView](t, op, events.CmdTokenRevoke, events.RevokeToken{Name: "long", Reason: "lost"})
	again := do[events.TokenView](t, op, events.CmdTokenRevoke, events.RevokeToken{Name: "long", Reason: "again"})
	if first.State != events.TokenGone || first != again {
		t.Errorf("revoked as %+v, then as %+v", first, again)
	}
	if got := list("long"); got != events.CodeUnauthenticated {
		t.Errorf("a revoked one: %q", got)
	}
	b.stop()
	b.start()
	gw, op = b.connect("edge2", events.RoleGateway), b.connect("op2", events.RoleOperator)
	if got := actingFor(t, gw, "long", events.CmdSessionList, events.SessionList{}); got != events.CodeUnauthenticated {
		t.Errorf("after a restart: %q", got)
	}
	all, err := op.Tokens(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "long" || all[0].State != events.TokenGone || all[1].State != events.TokenExpired {
		t.Errorf("the list is %+v, %v", all, err)
	}
	if n := count(record(t, op, events.ScopeProfile), events.TypeTokenRevoked); n != 1 {
		t.Errorf("the record has %d revocations", n)
	}
}

func TestTheRecordNamesTheTokenThatWasActedFor(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, op := b.connect("edge", events.RoleGateway), b.connect("op", events.RoleOperator)
	addToken(t, op, "web", events.RoleGateway, 0)
	addToken(t, op, "eye", events.RoleObserver, 0)
	ctx := client.WithActingFor(t.Context(), "web")
	r, err := gw.Register(ctx, events.Names{GatewaySessionKey: "k:1"}, events.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	rec := record(t, gw, r.Session.Scope())[0]
	if got := rec.Event.Extensions()[events.ExtActingFor]; got != "web" || rec.Source != gw.Principal().Source() {
		t.Errorf("registered by %s for %v", rec.Source, got)
	}
	refused := actingFor(t, gw, "eye", events.CmdSessionFinalize, events.Finalize{To: "k:1", Reason: "x"})
	b.await("the refusal to be on record", func() bool {
		for _, rec := range record(t, op, events.ScopeProfile) {
			if rec.Type != events.TypeAuditRefused {
				continue
			}
			if d, err := events.DataOf[events.AuditRefused](rec); err == nil && d.ActingFor == "eye" && d.Principal == "edge" {
				return true
			}
		}
		return false
	})
	if refused != events.CodeForbidden {
		t.Errorf("an observer's finalize: %q", refused)
	}
}

// TestTheSameCommandIdIsDoneOnce is for edges whose callers repeat themselves.
func TestTheSameCommandIdIsDoneOnce(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("edge", events.RoleGateway)
	register(t, gw, "k:1", events.Policy{})
	ctx := client.WithCommandID(t.Context(), events.CommandID(events.NewID()))
	one, err := gw.Submit(ctx, events.Submit{To: "k:1", Body: events.Body{Text: "hi"}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := gw.Submit(ctx, events.Submit{To: "k:1", Body: events.Body{Text: "hi"}})
	if err != nil || one != two {
		t.Errorf("the repeat got %+v, %v; want %+v", two, err, one)
	}
}
