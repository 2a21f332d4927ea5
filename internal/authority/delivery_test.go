package authority_test

import (
	"context"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

func TestCase_C3_a_turn_that_fails_does_not_leave_the_session_busy(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	register(t, gw, "k", events.Policy{})
	var ids []events.ReceiptID
	for _, text := range []string{"bad", "a", "b"} { // before any host is attached
		ids = append(ids, submit(t, gw, "k", text).ID)
	}
	b.serve(b.connect("agent", events.RoleHost), func(_ context.Context, turn *client.Turn) client.Result {
		if turn.Items[0].Body.Text == "bad" {
			return client.Result{Error: "no"}
		}
		return client.Result{}
	})
	for i, want := range []events.Outcome{events.OutcomeFailed, events.OutcomeCompleted, events.OutcomeCompleted} {
		if got := settled(t, gw, ids[i]).Outcome; got != want {
			t.Errorf("message %d was %s, want %s", i, got, want)
		}
	}
}

func TestCase_C3_a_host_cut_off_in_a_turn_leaves_messages_that_its_successor_takes_once(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	id := register(t, gw, "k", events.Policy{})
	first := submit(t, gw, "k", "first")
	agent, err := b.node.Connect(t.Context(), events.Principal{Profile: profile, Name: "agent", Role: events.RoleHost})
	if err != nil {
		t.Fatal(err)
	}
	attachByHand(t, b, agent, id).accept()
	rest := []events.Receipt{submit(t, gw, "k", "a"), submit(t, gw, "k", "b")}
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	b.serve(b.connect("agent", events.RoleHost), echo)
	if got := settled(t, gw, first.ID).Outcome; got != events.OutcomeLost {
		t.Errorf("the turn that was cut off is %s", got)
	}
	for _, r := range rest {
		if got := settled(t, gw, r.ID).Outcome; got != events.OutcomeCompleted {
			t.Errorf("a message that waited is %s", got)
		}
	}
	if n := count(record(t, gw, id.Scope()), events.TypeTurnStarted); n != 3 {
		t.Errorf("%d turns, want 3", n)
	}
}

func TestATurnThatDoesNotEndForAnInterruptIsLostAfterItsGrace(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, agent := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	id := register(t, gw, "k", events.Policy{})
	first := submit(t, gw, "k", "deaf")
	h := attachFor(t, b, agent, id, time.Minute)
	turn := h.accept()
	begun := time.Now()
	now := do[events.Receipt](t, gw, events.CmdContinuationSubmit, events.Submit{To: "k", Mode: events.ModeInterrupt})
	if stop := wait(t, "the interrupt", h.stops); stop.Turn != turn || stop.Session != id {
		t.Errorf("told to stop %+v", stop)
	}
	wait(t, "the interrupt once more", h.stops)
	if r := settled(t, gw, first.ID); r.Outcome != events.OutcomeLost {
		t.Errorf("the turn is %s", r.Outcome)
	}
	if took := time.Since(begun); took < 10*time.Second || took > 15*time.Second {
		t.Errorf("it was lost after %v, want 10 s", took)
	}
	next := h.accept()
	if e := h.end(next, events.OutcomeCompleted); e.Outcome != events.OutcomeCompleted {
		t.Errorf("the next turn ended %+v", e)
	}
	if r := settled(t, gw, now.ID); r.Turn != next {
		t.Errorf("the message that interrupts ran in turn %s, want %s", r.Turn, next)
	}
	if late := h.end(turn, events.OutcomeCompleted); !late.Late {
		t.Errorf("the late report was answered %+v", late)
	}
	r := do[events.Receipt](t, gw, events.CmdContinuationReceipt, events.ReceiptShow{ID: first.ID})
	if r.Fate() != events.FateReportedLate || r.Late != events.OutcomeCompleted {
		t.Errorf("its receipt is %+v", r)
	}
}
