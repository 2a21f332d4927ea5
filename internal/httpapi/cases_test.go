package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
)

// tips are where every record of the profile ends.
func (e *edge) tips() map[events.Scope]events.Tip {
	e.t.Helper()
	all, err := e.operator.Tips(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	out := make(map[events.Scope]events.Tip)
	for _, tip := range all {
		out[tip.Scope] = tip
	}
	return out
}

// TestReadsMakeNoState asks every route that only reads, for what is there and for what is
// not.
func TestReadsMakeNoState(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	k := e.populate()
	await(t, "the offer that the bus owes the host", func() bool {
		return do[events.Receipt](e, events.RoleObserver, "GET", "/v1/receipts/"+k.byName["receipt"][0], "").State == events.StateOffered
	})
	before := e.tips()
	asked := 0
	for _, op := range operations(t) {
		if op.method != http.MethodGet {
			continue
		}
		known, nobodys := op.path, concrete(op)
		for _, p := range op.parameters {
			if ids := k.byName[p.name]; p.in == "path" && len(ids) > 0 {
				known = strings.ReplaceAll(known, "{"+p.name+"}", url.PathEscape(ids[0]))
			}
		}
		for _, path := range []string{known, nobodys} {
			if strings.Contains(path, "{") {
				continue
			}
			if strings.HasSuffix(path, "/orders") {
				path += "?wait_ms=0"
			}
			role := op.roles[len(op.roles)-1]
			if a := e.send(e.request(op.method, path, e.secrets[role], "")); a.status >= 500 {
				t.Errorf("GET %s: %d %s", path, a.status, a.body)
			}
			asked++
		}
	}
	if diff := cmp.Diff(before, e.tips()); diff != "" || asked < 30 {
		t.Errorf("after %d reads the records are others (-before +after):\n%s", asked, diff)
	}
}

func TestCase_A6_a_made_up_key_creates_nothing_and_a_foreign_key_is_forbidden_over_HTTP(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	tg := e.connect("tg-1", events.RoleGateway)
	owned, err := tg.Register(t.Context(), events.Names{GatewaySessionKey: "tg:42"}, events.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	before := e.tips()
	say := `{"body":{"text":"hello"}}`
	for _, to := range []string{"agent:nobody:main", "s-10O1", events.NewID()} {
		e.refused(events.RoleGateway, events.CodeUnknownSession, "POST", "/v1/sessions/"+to+"/messages", say)
	}
	e.refused(events.RoleGateway, events.CodeForbidden, "POST", "/v1/sessions/tg:42/messages", say)
	await(t, "the attempt to be on record", func() bool { return e.tips()[events.ScopeProfile] != before[events.ScopeProfile] })
	after := e.tips()
	if len(after) != len(before) || after[owned.Session.Scope()] != before[owned.Session.Scope()] {
		t.Errorf("the records were %v, now %v", before, after)
	}
	page := do[struct {
		Events []struct{ Data events.AuditRefused }
	}](e, events.RoleObserver, "GET", "/v1/profile/events?type=audit.*", "")
	if n := len(page.Events); n != 1 || page.Events[0].Data.Target != "tg:42" || page.Events[0].Data.ActingFor != "t-gateway" {
		t.Errorf("on record are %+v", page.Events)
	}
}

func TestCase_C3_messages_wait_for_a_host_over_HTTP_and_are_delivered_once(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	id := e.register("web:52", "edge-host")
	first := e.submit("web:52", "before any host")
	instance, s := hostOver(e)
	e.attach(id, instance, `,"lease_ttl_ms":2000`)
	offer := order[events.Offer](s, "offer")
	turn := events.NewID()
	e.accept(offer, turn)
	second, third := e.submit("web:52", "two"), e.submit("web:52", "three")
	// The host is cut off in its turn: nobody is busy for ever.
	s.close()
	watch := e.stream(events.RoleObserver, "/v1/sessions/web:52/events")
	watch.until("session.detached")
	if r := do[events.Receipt](e, events.RoleGateway, "GET", "/v1/receipts/"+string(first.ID), ""); r.Outcome != events.OutcomeLost {
		t.Errorf("the message of the turn is %+v", r)
	}
	instance, s = hostOver(e)
	if w := order[struct{ Session events.SessionID }](s, "wanted"); w.Session != id {
		t.Fatalf("wanted is %+v", w)
	}
	e.attach(id, instance, "")
	for _, want := range []events.Receipt{second, third} {
		offer := order[events.Offer](s, "offer")
		if len(offer.Items) != 1 || offer.Items[0].Receipt != want.ID {
			t.Fatalf("offered %+v, want %s", offer.Items, want.ID)
		}
		turn := events.NewID()
		e.accept(offer, turn)
		e.end(offer, turn, "failed", "no")
	}
	if v := do[events.SessionView](e, events.RoleGateway, "GET", "/v1/sessions/web:52", ""); v.Pending != 0 || v.Turn != "" || v.Turns != 3 {
		t.Errorf("at the end %d wait, turn %q of %d", v.Pending, v.Turn, v.Turns)
	}
}
