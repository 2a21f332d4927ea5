package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"keryx/events"
)

// hostOver begins a host instance and opens its stream of orders.
func hostOver(e *edge) (events.Instance, *sse) {
	e.t.Helper()
	begun := do[struct {
		Instance events.Instance
		Host     events.PrincipalName
	}](e, events.RoleHost, "POST", "/v1/hosts", "")
	if begun.Host != "edge-host" {
		e.t.Fatalf("hosts as %q", begun.Host)
	}
	return begun.Instance, e.stream(events.RoleHost, "/v1/hosts/"+string(begun.Instance)+"/orders")
}

func (e *edge) attach(id events.SessionID, instance events.Instance, more string) events.Attached {
	e.t.Helper()
	return do[events.Attached](e, events.RoleHost, "POST", "/v1/sessions/"+string(id)+"/attach",
		fmt.Sprintf(`{"instance":%q,"capabilities":["idempotent_offer","interrupt","steer"]%s}`, instance, more))
}

// order reads orders until one of a verb comes.
func order[A any](s *sse, verb string) A {
	s.t.Helper()
	all := s.until(verb)
	return unmarshal[A](s.t, all[len(all)-1].data)
}

func (e *edge) accept(o events.Offer, turn string) {
	e.t.Helper()
	do[events.Accepted](e, events.RoleHost, "POST", fmt.Sprintf("/v1/sessions/%s/offers/%s/accept", o.Session, o.Offer),
		fmt.Sprintf(`{"fence":%q,"turn":%q}`, o.Fence, turn))
}

func (e *edge) end(o events.Offer, turn, outcome, reply string) events.Ended {
	e.t.Helper()
	return do[events.Ended](e, events.RoleHost, "POST", fmt.Sprintf("/v1/sessions/%s/turns/%s/end", o.Session, turn),
		fmt.Sprintf(`{"fence":%q,"outcome":%q,"reply":%q}`, o.Fence, outcome, reply))
}

func TestAHostLivesOnHTTPAlone(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	id := e.register("web:1", "edge-host")
	instance, s := hostOver(e)
	r := e.submit("web:1", "hello")
	if w := order[struct{ Session events.SessionID }](s, "wanted"); w.Session != id {
		t.Fatalf("wanted is %+v", w)
	}
	a := e.attach(id, instance, `,"lease_ttl_ms":2000`)
	offer := order[events.Offer](s, "offer")
	if offer.Fence != a.Fence || offer.Items[0].Receipt != r.ID || offer.Items[0].Body.Text != "hello" {
		t.Fatalf("the offer is %+v", offer)
	}
	turn := events.NewID()
	e.accept(offer, turn)
	// A steer goes into the running turn.
	english := do[events.Receipt](e, events.RoleGateway, "POST", "/v1/sessions/web:1/messages", `{"mode":"steer","body":{"text":"in English"}}`)
	steer := order[events.Steer](s, "steer")
	e.accept(events.Offer{Session: id, Offer: steer.Offer, Fence: a.Fence}, turn)
	e.end(offer, turn, "completed", "Hello!")
	if got := do[events.Receipt](e, events.RoleGateway, "GET", "/v1/receipts/"+string(english.ID), ""); got.Outcome != events.OutcomeCompleted || string(got.Turn) != turn {
		t.Errorf("the steer became %+v", got)
	}
	if v := do[events.TurnView](e, events.RoleGateway, "GET", "/v1/turns/"+turn, ""); v.Reply != "Hello!" || v.Host != "edge-host" {
		t.Errorf("the turn is %+v", v)
	}
	// An interrupt is told, and answered by the end.
	e.submit("web:1", "count")
	offer = order[events.Offer](s, "offer")
	turn = events.NewID()
	e.accept(offer, turn)
	interrupted := make(chan events.Ended, 1)
	go func() {
		ended, err := e.operator.Interrupt(t.Context(), "web:1", "", "enough")
		if err != nil {
			t.Error(err)
		}
		interrupted <- ended
	}()
	if i := order[events.InterruptTurn](s, "interrupt"); string(i.Turn) != turn {
		t.Errorf("told to interrupt %s, want %s", i.Turn, turn)
	}
	e.end(offer, turn, "aborted", "1, 2")
	if got := <-interrupted; got.Outcome != events.OutcomeAborted {
		t.Errorf("interrupted as %+v", got)
	}
	// A declined offer goes back.
	e.submit("web:1", "later")
	offer = order[events.Offer](s, "offer")
	do[events.Done](e, events.RoleHost, "POST", fmt.Sprintf("/v1/sessions/%s/offers/%s/decline", id, offer.Offer), fmt.Sprintf(`{"fence":%q,"reason":"busy"}`, a.Fence))
	e.refused(events.RoleHost, events.CodeUnknownOffer, "POST", fmt.Sprintf("/v1/sessions/%s/offers/%s/accept", id, offer.Offer), fmt.Sprintf(`{"fence":%q,"turn":%q}`, a.Fence, events.NewID()))
	do[events.Done](e, events.RoleHost, "POST", "/v1/sessions/"+string(id)+"/detach", fmt.Sprintf(`{"fence":%q}`, a.Fence))
	e.refused(events.RoleHost, events.CodeStaleFence, "POST", "/v1/sessions/"+string(id)+"/detach", fmt.Sprintf(`{"fence":%q}`, a.Fence))
}

// TestAHostOverHTTPKeepsItsSessionsWhileItsStreamIsOpen compares both sides of the lease's
// time.
func TestAHostOverHTTPKeepsItsSessionsWhileItsStreamIsOpen(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	id := e.register("web:1", "edge-host")
	instance, s := hostOver(e)
	a := e.attach(id, instance, `,"lease_ttl_ms":2000`)
	watch := e.stream(events.RoleObserver, "/v1/sessions/web:1/events?after=tip")
	e.submit("web:1", "long")
	offer := order[events.Offer](s, "offer")
	turn := events.NewID()
	e.accept(offer, turn)
	watch.until("turn.started")
	hold := time.NewTimer(4500 * time.Millisecond) // more than ttl + 1 s twice over
	<-hold.C
	if v := do[events.SessionView](e, events.RoleHost, "GET", "/v1/sessions/web:1", ""); v.Host != "edge-host" || string(v.Turn) != turn {
		t.Fatalf("after the lease's time the session is driven by %q, turn %q", v.Host, v.Turn)
	}
	s.close()
	watch.until("session.detached")
	if v := do[events.TurnView](e, events.RoleHost, "GET", "/v1/turns/"+turn, ""); v.Outcome != events.OutcomeLost {
		t.Errorf("without a stream the turn is %+v", v)
	}
	late := e.end(offer, turn, "completed", "at last")
	if !late.Late || a.Fence != offer.Fence {
		t.Errorf("reported late: %+v", late)
	}
}

func TestAHostOverHTTPCanPollAndComeBack(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	id := e.register("web:1", "edge-host")
	instance := events.Instance(events.NewID())
	e.refused(events.RoleHost, events.CodeUnknownLease, "GET", "/v1/hosts/"+string(instance)+"/orders", "")
	do[map[string]any](e, events.RoleHost, "POST", "/v1/hosts", fmt.Sprintf(`{"instance":%q}`, instance))
	type page struct {
		Orders []struct {
			ID   uint64
			Verb string
			Data events.Offer
		}
		Missed bool
	}
	poll := func(query string) page {
		return do[page](e, events.RoleHost, "GET", "/v1/hosts/"+string(instance)+"/orders"+query, "")
	}
	if p := poll("?wait_ms=0"); p.Orders == nil || len(p.Orders) != 0 {
		t.Fatalf("at first: %+v", p)
	}
	a := e.attach(id, instance, "")
	e.submit("web:1", "hello")
	offered := func(after uint64) (page, events.Offer) {
		for range 20 {
			p := poll(fmt.Sprintf("?wait_ms=2000&after=%d", after))
			for _, o := range p.Orders {
				if after = o.ID; o.Verb == "offer" {
					return p, o.Data
				}
			}
		}
		t.Fatal("no offer came")
		return page{}, events.Offer{}
	}
	first, offer := offered(0)
	// What was not said to have come is there again.
	again, same := offered(0)
	if len(again.Orders) < len(first.Orders) || same.Offer != offer.Offer {
		t.Errorf("asked again: %+v, at first %+v", again, first)
	}
	if p := poll(fmt.Sprintf("?wait_ms=0&after=%d", again.Orders[len(again.Orders)-1].ID)); len(p.Orders) != 0 {
		t.Errorf("what has come is there again: %+v", p)
	}
	// Attached again, it has the fence it had, and an offer it does not know is told again.
	back := e.attach(id, instance, "")
	if back.Fence != a.Fence {
		t.Errorf("attached again under %s, it was %s", back.Fence, a.Fence)
	}
	if p := poll(fmt.Sprintf("?wait_ms=2000&after=%d", again.Orders[len(again.Orders)-1].ID)); len(p.Orders) != 1 || p.Orders[0].Data.Offer != offer.Offer {
		t.Errorf("the open offer is told as %+v", p)
	}
	// The instance is its token's alone.
	other := e.token("other-host", events.RoleHost, 0)
	if r := e.send(e.request("GET", "/v1/hosts/"+string(instance)+"/orders", other, "")); r.status != 403 {
		t.Errorf("another token reads the orders: %d %s", r.status, r.body)
	}
	e.refused(events.RoleHost, events.CodeInvalid, "POST", "/v1/hosts", `{"instance":"x"}`)
	e.refused(events.RoleHost, events.CodeInvalid, "POST", "/v1/hosts", `{"instanze":"x"}`)
}
