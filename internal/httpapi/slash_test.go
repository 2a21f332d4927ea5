package httpapi_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"keryx/client"
	"keryx/events"
)

// commands carries out slash commands until the test ends, and counts /count.
func (e *edge) commands() *atomic.Int64 {
	e.t.Helper()
	runs := new(atomic.Int64)
	c := e.connect("tools", events.RoleHost)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	overHTTP := []string{events.SurfaceHTTP}
	run := func(_ context.Context, i client.Invocation) (string, error) {
		runs.Add(1)
		if i.RawArgs == "fail" {
			return "", errors.New("no disk")
		}
		surface, _ := i.Field(events.FieldSurface)
		return "ran on " + surface, nil
	}
	go func() {
		served <- c.ServeHandler(ctx, client.HandlerConfig{Commands: []client.Command{
			{CommandSpec: events.CommandSpec{Name: "count", Help: "count", Surfaces: overHTTP, Fields: []events.CommandField{events.FieldSurface}}, Run: run},
			{CommandSpec: events.CommandSpec{Name: "ops", Surfaces: overHTTP, Roles: []events.Role{events.RoleOperator}}, Run: run},
			{CommandSpec: events.CommandSpec{Name: "chats"}, Run: run},
		}})
	}()
	e.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			e.t.Errorf("serve handler: %v", err)
		}
	})
	await(e.t, "the commands to be there", func() bool { return e.menu(events.RoleOperator, "") != "" })
	return runs
}

func (e *edge) menu(role events.Role, query string) (names string) {
	e.t.Helper()
	for _, c := range do[events.CommandMenu](e, role, "GET", "/v1/commands"+query, "").Commands {
		if c.Handler != "" {
			names += " " + string(c.Name)
		}
	}
	return names
}

func TestSlashCommandsOverHTTPAreThoseThatAreOfferedThere(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	id := e.register("web:1")
	if got := e.menu(events.RoleOperator, ""); got != "" {
		t.Errorf("before anybody is there: %s", got)
	}
	runs := e.commands()
	for _, c := range []struct {
		role  events.Role
		query string
		want  string
	}{
		{events.RoleOperator, "", " count ops"},
		{events.RoleGateway, "", " count"},
		{events.RoleObserver, "", ""},
		{events.RoleHost, "?surface=web", ""},
		{events.RoleGateway, "?surface=web", " chats"},
	} {
		if got := e.menu(c.role, c.query); got != c.want {
			t.Errorf("%s%s is offered%s, want%s", c.role, c.query, got, c.want)
		}
	}
	to := `{"to":"web:1","raw_args":"x"}`
	e.refused(events.RoleGateway, events.CodeUnknownCommand, "POST", "/v1/commands/chats", to)
	e.refused(events.RoleGateway, events.CodeInvalid, "POST", "/v1/commands/chats", `{"to":"web:1","surface":"web"}`)
	e.refused(events.RoleGateway, events.CodeForbidden, "POST", "/v1/commands/ops", to)
	e.refused(events.RoleObserver, events.CodeForbidden, "POST", "/v1/commands/count", to)
	e.refused(events.RoleGateway, events.CodeUnknownSession, "POST", "/v1/commands/count", `{"to":"nobody"}`)
	if n := runs.Load(); n != 0 {
		t.Fatalf("%d refused commands were carried out", n)
	}
	give := func(key string) events.InvocationView {
		return do[events.InvocationView](e, events.RoleGateway, "POST", "/v1/commands/count", to, "Idempotency-Key", key)
	}
	first, again := give("1"), give("1")
	if first.State != events.InvocationCompleted || first.Reply != "ran on http" || again.Invocation != first.Invocation || runs.Load() != 1 {
		t.Errorf("once %+v, again %+v, carried out %d times", first, again, runs.Load())
	}
	if got := do[events.InvocationView](e, events.RoleObserver, "GET", "/v1/sessions/"+string(id)+"/commands/"+string(first.Invocation), ""); got.Reply != first.Reply {
		t.Errorf("shown as %+v", got)
	}
	failed := do[events.InvocationView](e, events.RoleGateway, "POST", "/v1/commands/count", `{"to":"web:1","raw_args":"fail"}`)
	if failed.State != events.InvocationFailed || failed.Error.Message != "no disk" || runs.Load() != 2 {
		t.Errorf("%+v, carried out %d times", failed, runs.Load())
	}
	do[events.InvocationView](e, events.RoleOperator, "POST", "/v1/commands/ops", to)
}
