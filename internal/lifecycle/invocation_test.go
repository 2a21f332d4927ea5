package lifecycle_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// deploys carries out /deploy, also over HTTP.
var deploys = lifecycle.HandlerPlace{
	Handler: events.Handler{Principal: host.Name, Instance: "i1"},
	Spec:    events.CommandSpec{Name: "deploy", Surfaces: []string{"web", events.SurfaceHTTP}, Fields: []events.CommandField{events.FieldGatewaySessionKey}},
}

// slashed is a ledger with a session and a handler of /deploy as spec says.
func slashed(t *testing.T, change func(*events.CommandSpec)) *ledger {
	t.Helper()
	l := newLedger(t)
	l.register(events.Policy{})
	l.handler = deploys
	if change != nil {
		change(&l.handler.Spec)
	}
	return l
}

// orders are the slash commands that handlers were given.
func orders(l *ledger) (out []events.InvokeOrder) {
	for _, e := range l.sent {
		if o, ok := e.(lifecycle.SendInvoke); ok {
			out = append(out, o.Order)
		}
	}
	return out
}

func TestAHandlerIsToldWhatItAcceptsAndNothingElse(t *testing.T) {
	t.Parallel()
	every := []events.CommandField{
		events.FieldSessionID, events.FieldGatewaySessionKey, events.FieldRuntimeSessionID, events.FieldStoredSessionID,
		events.FieldTaskID, events.FieldProfile, events.FieldSurface,
	}
	for _, c := range []struct {
		name    string
		accepts []events.CommandField
		want    string
	}{
		{"none", nil, `{}`},
		{"one", []events.CommandField{events.FieldGatewaySessionKey}, `{"gateway_session_key":"k1"}`},
		{"one that is not known", []events.CommandField{events.FieldTaskID}, `{"task_id":null}`},
		{"all", every, `{"gateway_session_key":"k1","profile":"` + string(profile) + `","runtime_session_id":null,"session_id":null,"stored_session_id":null,"surface":"web","task_id":null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := slashed(t, func(s *events.CommandSpec) { s.Fields = c.accepts })
			v := do[events.InvocationView](l, gw1, events.InvokeCommand{To: "k1", Name: "deploy", RawArgs: " v2  --now ", Surface: "web", Async: true})
			got := orders(l)
			if len(got) != 1 || string(got[0].Fields) != c.want || got[0].RawArgs != " v2  --now " || v.State != events.InvocationRunning {
				t.Errorf("given %+v, answered %+v", got, v)
			}
			order, err := json.Marshal(got[0])
			if err != nil || strings.Contains(string(order), string(session)) {
				t.Errorf("the order tells the session, which nobody asked for: %s, %v", order, err)
			}
		})
	}
}

func TestASlashCommandHasOneOutcome(t *testing.T) {
	t.Parallel()
	answer := func(a events.AnswerCommand) func(*ledger, events.CommandID) {
		return func(l *ledger, id events.CommandID) {
			a.Invocation, a.Instance = id, "i1"
			do[events.Done](l, host, a)
		}
	}
	for _, c := range []struct {
		name string
		act  func(*ledger, events.CommandID)
		want events.InvocationState
		code events.Code
	}{
		{"its handler answers", answer(events.AnswerCommand{Reply: "done"}), events.InvocationCompleted, ""},
		{"its handler could not do it", answer(events.AnswerCommand{Error: &events.Error{Code: events.CodeHandlerFailed}}), events.InvocationFailed, events.CodeHandlerFailed},
		{"its handler is silent", func(l *ledger, _ events.CommandID) { l.after(lifecycle.InvocationLife); l.settle() }, events.InvocationFailed, events.CodeTimeout},
		{"its handler is gone", func(l *ledger, _ events.CommandID) {
			_, _, _ = l.run(l.command(self, l.id(), lifecycle.HandlerLost{Handler: deploys.Handler}))
		}, events.InvocationFailed, events.CodeUnavailable},
		{"the epoch ends", func(l *ledger, _ events.CommandID) {
			do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
		}, events.InvocationFailed, events.CodeEpochEnded},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := slashed(t, nil)
			give := l.command(gw1, l.id(), events.InvokeCommand{To: "k1", Name: "deploy", Surface: "web"})
			for range 2 { // the same command sent again waits for the same outcome
				if raw, _, err := l.run(give); err != nil || raw != nil {
					t.Fatalf("answered %s, %v before there is an outcome", raw, err)
				}
			}
			c.act(l, give.ID)
			v, _ := l.state.Invocation(give.ID)
			raw, ok := l.state.Answer(give.ID)
			var answered events.InvocationView
			if err := json.Unmarshal(raw, &answered); err != nil || !ok {
				t.Fatalf("who gave it has no answer: %v", err)
			}
			if diff := cmp.Diff(v, answered); diff != "" || v.State != c.want || v.Error != nil && v.Error.Code != c.code {
				t.Errorf("stands at %+v %+v, answered (-view +answer):\n%s", v, v.Error, diff)
			}
			l.refused(host, events.AnswerCommand{Invocation: give.ID, Instance: "i1"}, events.CodeAlreadyAnswered)
			l.sent = append(l.sent, lifecycle.Resume(&l.state)...)
			if n := len(orders(l)); n != 1 {
				t.Errorf("it was given %d times", n)
			}
		})
	}
}

func TestASlashCommandIsRefused(t *testing.T) {
	t.Parallel()
	give := events.InvokeCommand{To: "k1", Name: "deploy", Surface: "web"}
	on := func(surface string) events.InvokeCommand { g := give; g.Surface = surface; return g }
	everywhere := func(s *events.CommandSpec) { s.Surfaces = nil }
	slashed(t, nil).refused(gw1, on("cli"), events.CodeUnknownCommand)
	slashed(t, everywhere).refused(gw1, on(events.SurfaceHTTP), events.CodeUnknownCommand)
	do[events.InvocationView](slashed(t, everywhere), gw1, events.InvokeCommand{To: "k1", Name: "deploy", Surface: "cli", Async: true})
	slashed(t, func(s *events.CommandSpec) { s.Roles = []events.Role{events.RoleOperator} }).refused(gw1, give, events.CodeForbidden)
	long := give
	long.RawArgs = strings.Repeat("x", lifecycle.MaxRawArgs+1)
	slashed(t, nil).refused(gw1, long, events.CodeTooLarge)
	l := slashed(t, nil)
	for range lifecycle.MaxInvocations {
		do[events.InvocationView](l, gw1, events.InvokeCommand{To: "k1", Name: "deploy", Surface: "web", Async: true})
	}
	l.refused(gw1, give, events.CodeQueueFull)
	l.refused(aide, events.AnswerCommand{Invocation: orders(l)[0].Invocation, Instance: "i1"}, events.CodeUnknownInvocation)
	l.refused(host, events.AnswerCommand{Invocation: orders(l)[0].Invocation, Instance: "i1", Reply: strings.Repeat("x", lifecycle.MaxReply+1)}, events.CodeTooLarge)
	l.handler = lifecycle.HandlerPlace{Missing: events.ErrOf(events.CodeUnknownCommand)}
	l.refused(gw1, give, events.CodeUnknownCommand)
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1"})
	l.handler = deploys
	l.after(time.Second)
	l.refused(gw1, give, events.CodeEpochEnded)
}
