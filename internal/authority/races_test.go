package authority_test

import (
	"errors"
	"sync"
	"testing"

	"keryx/events"
)

func TestConcurrentRegistersOfOneKeyMakeOneSession(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	a, c := b.connect("gw", events.RoleGateway), b.connect("gw", events.RoleGateway)
	for range 20 {
		key := "k:" + events.NewID()
		var wg sync.WaitGroup
		ids := make([]events.SessionID, 8)
		for i := range ids {
			conn := a
			if i%2 == 1 {
				conn = c
			}
			wg.Go(func() {
				var r events.Registered
				if err := conn.Do(t.Context(), events.CmdSessionRegister, events.Register{Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}}, &r); err != nil {
					t.Errorf("register: %v", err)
				}
				ids[i] = r.Session
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("one key gave the sessions %v", ids)
			}
		}
	}
	if s := do[events.Sessions](t, a, events.CmdSessionList, events.SessionList{}); len(s.Sessions) != 20 {
		t.Errorf("%d sessions, want 20", len(s.Sessions))
	}
}

func TestNamesOfTwoSessionsConflictAndChangeNothing(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	register(t, gw, "k:1", events.Policy{})
	do[events.Registered](t, gw, events.CmdSessionRegister, events.Register{Names: events.Names{StoredSessionID: "s-2"}})
	err := gw.Do(t.Context(), events.CmdSessionRegister, events.Register{Names: events.Names{GatewaySessionKey: "k:1", StoredSessionID: "s-2"}}, nil)
	if !errors.Is(err, events.ErrOf(events.CodeIdentityConflict)) {
		t.Fatalf("register with names of two sessions: %v, want identity_conflict", err)
	}
	if s := do[events.Sessions](t, gw, events.CmdSessionList, events.SessionList{}); len(s.Sessions) != 2 {
		t.Errorf("%d sessions, want 2", len(s.Sessions))
	}
}

func TestAHostThatFallsSilentLosesItsTurnAndItsLateReportIsKept(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, host := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	id := register(t, gw, "k:1", events.Policy{})
	h := attachByHand(t, b, host, id)
	r := submit(t, gw, "k:1", "work")
	turn := h.accept()
	got := settled(t, gw, r.ID) // nobody renews the lease of 2 s
	if got.Outcome != events.OutcomeLost {
		t.Errorf("the item settled as %s, want lost", got.Outcome)
	}
	if end := h.end(turn, events.OutcomeCompleted); !end.Late {
		t.Errorf("the report after the loss was taken as %+v, want late", end)
	}
	v := do[events.TurnView](t, gw, events.CmdTurnShow, events.TurnShow{Turn: turn})
	if v.State != events.TurnReportedOnce || v.Outcome != events.OutcomeLost || v.Late == nil || v.Late.Outcome != events.OutcomeCompleted {
		t.Errorf("the turn is shown as %+v", v)
	}
	refused(t, host, events.CmdTurnEnd, events.End{Session: id, Fence: events.Fence{Generation: h.fence.Generation, Sequence: h.fence.Sequence + 1}, Turn: turn, Outcome: events.OutcomeCompleted}, events.CodeStaleFence)
}

func TestAnInterruptedHostThatDoesNotEndItsTurnLosesIt(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, host := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	id := register(t, gw, "k:1", events.Policy{})
	h := attachByHand(t, b, host, id)
	submit(t, gw, "k:1", "work")
	turn := h.accept()
	type result struct {
		ended events.Ended
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = gw.Do(t.Context(), events.CmdTurnInterrupt, events.Interrupt{To: "k:1", Reason: "stop"}, &r.ended)
		done <- r
	}()
	if s := wait(t, "the interrupt", h.stops); s.Turn != turn {
		t.Errorf("turn %s was interrupted, want %s", s.Turn, turn)
	}
	h.end(turn, events.OutcomeAborted)
	r := wait(t, "the interrupt's answer", done)
	if r.err != nil || r.ended.Outcome != events.OutcomeAborted {
		t.Errorf("the interrupt was answered %+v, %v", r.ended, r.err)
	}
}

func TestAResetInterruptsTheTurnAndCarriesWhatWaits(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, host := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	id := register(t, gw, "k:1", events.Policy{})
	h := attachByHand(t, b, host, id)
	submit(t, gw, "k:1", "first")
	turn := h.accept()
	second := submit(t, gw, "k:1", "second")
	done := make(chan events.EpochAnswer, 1)
	go func() {
		var a events.EpochAnswer
		if err := gw.Do(t.Context(), events.CmdSessionReset, events.Reset{To: "k:1", Reason: "new"}, &a); err != nil {
			t.Errorf("reset: %v", err)
		}
		done <- a
	}()
	wait(t, "the interrupt", h.stops)
	h.end(turn, events.OutcomeAborted)
	if a := wait(t, "the reset's answer", done); a.Epoch != 2 {
		t.Errorf("the reset opened epoch %d, want 2", a.Epoch)
	}
	next := h.accept()
	h.end(next, events.OutcomeCompleted)
	if r := settled(t, gw, second.ID); r.Turn != next || r.Outcome != events.OutcomeCompleted {
		t.Errorf("the waiting item became %+v", r)
	}
	if n := count(record(t, gw, id.Scope()), events.TypeSessionFinalized); n != 1 {
		t.Errorf("%d finalized events, want 1", n)
	}
}

func TestAttachedSessionsSurviveARestartOfTheBus(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	register(t, gw, "k:1", events.Policy{})
	r := submit(t, gw, "k:1", "waits for a host")
	b.stop()
	b.start()
	gw = b.connect("gw", events.RoleGateway)
	b.serve(b.connect("agent", events.RoleHost), echo)
	if got := settled(t, gw, r.ID); got.Outcome != events.OutcomeCompleted {
		t.Errorf("the message from before the restart settled as %s", got.Outcome)
	}
}
