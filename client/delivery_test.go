package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/client"
	"keryx/events"
)

func (b *bus) send(c *client.Conn, s events.Submit) events.Receipt {
	b.t.Helper()
	r, err := c.Submit(within(b.t, 10*time.Second), s)
	if err != nil {
		b.t.Fatalf("submit %+v: %v", s, err)
	}
	return r
}

func (b *bus) reaches(c *client.Conn, id events.ReceiptID, state events.ItemState) events.Receipt {
	b.t.Helper()
	r, err := c.WaitReceipt(within(b.t, 20*time.Second), id, func(r events.Receipt) bool { return r.State == state })
	if err != nil {
		b.t.Fatalf("wait for %s of %s: %v (it is %s)", state, id, err, r.State)
	}
	return r
}

func texts(its []events.Item) []string {
	var out []string
	for _, it := range its {
		out = append(out, it.Body.Text)
	}
	return out
}

func TestASteerReachesTheHandlerOfTheRunningTurn(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	b.serve(agent, client.HostConfig{
		Capabilities: []events.Capability{events.CapSteer},
		Handle: func(ctx context.Context, turn *client.Turn) client.Result {
			if turn.Items[0].Body.Text != "go" {
				return client.Result{Reply: "alone: " + turn.Items[0].Body.Text}
			}
			no := receive(t, "the first steer", turn.Steers())
			if err := no.Decline(ctx, "later"); err != nil {
				t.Errorf("decline: %v", err)
			}
			yes := receive(t, "the second steer", turn.Steers())
			if err := yes.Take(ctx); err != nil {
				t.Errorf("take: %v", err)
			}
			return client.Result{Reply: "went " + yes.Items[0].Body.Text}
		},
	})
	b.register(gw, "k")
	first := b.submit(gw, "k", "go")
	b.reaches(gw, first, events.StateAccepted)
	steer := events.Submit{To: "k", Mode: events.ModeSteer, Body: events.Body{Text: "right"}}
	declined := b.send(gw, steer)
	steer.Body.Text = "left"
	taken := b.send(gw, steer)
	v := b.settled(gw, taken.ID)
	if v.Reply != "went left" || !cmp.Equal(v.Items, []events.ReceiptID{first}) {
		t.Errorf("the turn is %+v", v)
	}
	if r := b.reaches(gw, first, events.StateSettled); r.Turn != v.Turn {
		t.Errorf("the steer settled with turn %s, the message it went to with %s", v.Turn, r.Turn)
	}
	if v := b.settled(gw, declined.ID); v.Reply != "alone: right" {
		t.Errorf("what was declined became %+v", v)
	}
}

func TestASteerTheHandlerDoesNotReadBecomesTheNextTurn(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	end := make(chan struct{})
	b.serve(agent, client.HostConfig{
		Capabilities: []events.Capability{events.CapSteer},
		Handle: func(_ context.Context, turn *client.Turn) client.Result {
			if turn.Items[0].Body.Text == "go" {
				receive(t, "the end", end)
			}
			return client.Result{Reply: turn.Items[0].Body.Text}
		},
	})
	b.register(gw, "k")
	first := b.submit(gw, "k", "go")
	b.reaches(gw, first, events.StateAccepted)
	waits := b.submit(gw, "k", "waits")
	steer := b.send(gw, events.Submit{To: "k", Mode: events.ModeSteer, Body: events.Body{Text: "left"}})
	b.reaches(gw, steer.ID, events.StateOffered)
	close(end)
	if v := b.settled(gw, steer.ID); v.Reply != "left" {
		t.Errorf("the turn is %+v", v)
	}
	a, z := b.settled(gw, steer.ID), b.settled(gw, waits)
	if !a.StartedAt.Before(z.StartedAt) {
		t.Error("the steer did not go to the head of the queue")
	}
}

func TestMessagesOfModeMergeBecomeOneTurn(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	turns := make(chan []string, 4)
	b.serve(agent, client.HostConfig{
		Capabilities: []events.Capability{events.CapMerge},
		Handle: func(_ context.Context, turn *client.Turn) client.Result {
			turns <- texts(turn.Items)
			return client.Result{}
		},
	})
	b.register(gw, "k")
	var ids []events.ReceiptID
	for _, text := range []string{"a", "b", "c"} {
		ids = append(ids, b.send(gw, events.Submit{To: "k", Mode: events.ModeMerge, Body: events.Body{Text: text}}).ID)
	}
	if d := cmp.Diff([]string{"a", "b", "c"}, receive(t, "the turn", turns)); d != "" {
		t.Errorf("the turn's items (-want +got):\n%s", d)
	}
	turn := b.settled(gw, ids[0]).Turn
	for _, id := range ids {
		if got := b.settled(gw, id).Turn; got != turn {
			t.Errorf("item %s settled with turn %s, want %s", id, got, turn)
		}
	}
}

func TestAMessageOfModeInterruptAbortsTheTurnAndIsNext(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	b.serve(agent, client.HostConfig{Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		if turn.Items[0].Body.Text == "long" {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrInterrupted) {
				t.Errorf("the turn ended by %v", context.Cause(ctx))
			}
		}
		return client.Result{Reply: turn.Items[0].Body.Text}
	}})
	b.register(gw, "k")
	long := b.submit(gw, "k", "long")
	b.reaches(gw, long, events.StateAccepted)
	waits := b.submit(gw, "k", "waits")
	now := b.send(gw, events.Submit{To: "k", Mode: events.ModeInterrupt, Body: events.Body{Text: "now"}})
	a, z := b.settled(gw, now.ID), b.settled(gw, waits)
	if v := b.settled(gw, long); v.Outcome != events.OutcomeAborted {
		t.Errorf("the interrupted turn is %+v", v)
	}
	if a.Reply != "now" || !a.StartedAt.Before(z.StartedAt) {
		t.Errorf("the message that interrupts is %+v", a)
	}
}

func TestAScheduledMessageSurvivesARestartAndIsNotEarly(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	b.serve(agent, client.HostConfig{Handle: echo})
	b.register(gw, "k")
	at := time.Now().Add(2 * time.Second)
	later := b.send(gw, events.Submit{To: "k", At: at, Body: events.Body{Text: "later"}})
	if v := b.settled(gw, b.submit(gw, "k", "now")); v.Outcome != events.OutcomeCompleted {
		t.Errorf("what came after it is %+v", v)
	}
	b.restart()
	v := b.settled(gw, later.ID)
	if v.StartedAt.Before(at) {
		t.Errorf("it started %v early", at.Sub(v.StartedAt))
	}
	if late := v.StartedAt.Sub(at); late > 5*time.Second {
		t.Errorf("it started %v late", late)
	}
}
