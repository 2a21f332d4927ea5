package authority_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/lifecycle"
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

// maxIdle is how long a session may be attached and at rest while something waits.
const maxIdle = time.Second

// checkNeverWedged folds a session's record and looks at what each event left undone.
func checkNeverWedged(t *testing.T, c *client.Conn, id events.SessionID) {
	t.Helper()
	var s lifecycle.State
	var since time.Time
	running := events.TurnID("")
	for _, r := range record(t, c, id.Scope()) {
		if !since.IsZero() && r.Time.Sub(since) > maxIdle {
			t.Errorf("session %s had something to deliver for %v before ordinal %s", id, r.Time.Sub(since), r.Ordinal)
		}
		if err := lifecycle.Fold(&s, r); err != nil {
			t.Fatal(err)
		}
		if r.Type == events.TypeTurnStarted && running != "" {
			t.Errorf("turn %s began while %s ran", r.Turn, running)
		}
		if running = ""; s.Running() != nil {
			running = s.Running().Turn
		}
		if since = (time.Time{}); s.WaitingFor() == "the next offer" {
			since = r.Time
		}
	}
	if !since.IsZero() {
		t.Errorf("session %s is left with something to deliver", id)
	}
}

// hammered are sessions with two names each, to which messages are sent in rounds.
const (
	hammered = 10
	rounds   = 100 / slow // of each
)

func TestNoRaceLeavesASessionIdleWithSomethingToDeliver(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, agent := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	b.serveWith(agent, client.HostConfig{IdleDetach: 10 * time.Millisecond, Handle: func(ctx context.Context, _ *client.Turn) client.Result {
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(3 * time.Millisecond)):
		}
		return client.Result{}
	}})
	var wg sync.WaitGroup
	ids := make([]events.SessionID, hammered)
	for i := range hammered {
		key := fmt.Sprint("k:", i)
		ids[i] = register(t, gw, key, events.Policy{})
		wg.Go(func() { hammer(t, gw, key) })
	}
	wg.Wait()
	for _, id := range ids {
		checkNeverWedged(t, gw, id)
	}
}

// hammer sends each message at the instant of a turn's start or end, of a detach, or of a
// reset.
func hammer(t *testing.T, gw *client.Conn, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	modes := []events.Mode{events.ModeEnqueue, events.ModeInterrupt, events.ModeMerge, events.ModeSteer}
	for n := range rounds {
		r, err := gw.Submit(ctx, events.Submit{To: key, Mode: modes[n%len(modes)], Allow: []events.Mode{events.ModeEnqueue}})
		if err != nil {
			t.Errorf("submit %d to %s: %v", n, key, err)
			return
		}
		until := []events.ItemState{events.StateOffered, events.StateAccepted, events.StateSettled}[n%3]
		last, err := gw.WaitReceipt(ctx, r.ID, func(r events.Receipt) bool { return r.State == until || r.Over() })
		if err != nil {
			t.Errorf("round %d of %s: %v (it is %s)", n, key, err, last.State)
			return
		}
		switch {
		case n%10 == 9:
			if _, err := gw.Reset(ctx, key, "round"); err != nil {
				t.Errorf("reset %s: %v", key, err)
				return
			}
		case n%4 == 3:
			at := time.NewTimer(10 * time.Millisecond) // about when it is detached
			<-at.C
		}
	}
	last, err := gw.Submit(ctx, events.Submit{To: key})
	if err == nil {
		_, err = gw.WaitReceipt(ctx, last.ID, events.Receipt.Over)
	}
	if err != nil {
		t.Errorf("the last message to %s: %v", key, err)
	}
}

func TestTwoNamesOfOneSessionNeverRunTwoTurnsAtOnce(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, agent := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	var running [hammered]atomic.Int32
	index := sync.Map{} // session to place
	b.serveWith(agent, client.HostConfig{Handle: func(_ context.Context, turn *client.Turn) client.Result {
		i, _ := index.Load(turn.Session)
		place := &running[i.(int)]
		if place.Add(1) != 1 {
			t.Errorf("two turns of session %s run at once", turn.Session)
		}
		defer place.Add(-1)
		return client.Result{}
	}})
	var wg sync.WaitGroup
	ids := make([]events.SessionID, hammered)
	for i := range hammered {
		names := []string{fmt.Sprint("a:", i), fmt.Sprint("b:", i)}
		ids[i] = register(t, gw, names[0], events.Policy{})
		index.Store(ids[i], i)
		do[events.Registered](t, gw, events.CmdSessionAlias, events.Alias{To: names[0], Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(names[1])}})
		for _, name := range names {
			wg.Go(func() {
				var last events.Receipt
				for range rounds / 2 {
					if err := gw.Do(t.Context(), events.CmdContinuationSubmit, events.Submit{To: name}, &last); err != nil {
						t.Errorf("submit to %s: %v", name, err)
						return
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if _, err := gw.WaitReceipt(ctx, last.ID, events.Receipt.Over); err != nil {
					t.Errorf("wait for the last of %s: %v", name, err)
				}
			})
		}
	}
	wg.Wait()
	for _, id := range ids {
		if n := count(record(t, gw, id.Scope()), events.TypeTurnStarted); n != rounds {
			t.Errorf("session %s ran %d turns, want %d", id, n, rounds)
		}
		checkNeverWedged(t, gw, id)
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
