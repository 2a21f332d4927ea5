package authority_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/client"
	"keryx/events"
)

func asTyped(err error, into **events.Error) { errors.As(err, into) }

func echo(_ context.Context, t *client.Turn) client.Result {
	return client.Result{Outcome: events.OutcomeCompleted, Reply: t.Items[0].Body.Text}
}

func TestCase_A6_a_made_up_key_creates_nothing_and_a_foreign_key_is_forbidden_and_audited(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	slack, tg := b.connect("slack-1", events.RoleGateway), b.connect("tg-1", events.RoleGateway)
	op := b.connect("op", events.RoleOperator)
	id := register(t, tg, "tg:42", events.Policy{})
	before := do[events.Sessions](t, op, events.CmdSessionList, events.SessionList{})

	refused(t, slack, events.CmdContinuationSubmit, events.Submit{To: "agent:nobody:main", Body: events.Body{Text: "x"}}, events.CodeUnknownSession)
	refused(t, slack, events.CmdContinuationSubmit, events.Submit{To: strings.Replace(string(id), "0", "O", 1), Body: events.Body{Text: "x"}}, events.CodeUnknownSession)
	refused(t, slack, events.CmdContinuationSubmit, events.Submit{To: "tg:42", Body: events.Body{Text: "x"}}, events.CodeForbidden)
	refused(t, slack, events.CmdContinuationSubmit, events.Submit{To: string(id), Body: events.Body{Text: "x"}}, events.CodeForbidden)
	refused(t, slack, events.CmdSessionReset, events.Reset{To: "tg:42", Reason: "mine"}, events.CodeForbidden)

	after := do[events.Sessions](t, op, events.CmdSessionList, events.SessionList{})
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("refused commands changed the sessions (-before +after):\n%s", d)
	}
	if got := types(record(t, op, id.Scope())); !slices.Equal(got, []string{"session.registered"}) {
		t.Errorf("the foreign session's record is %v", got)
	}
	b.await("the attempts to be on record", func() bool {
		return count(record(t, op, events.ScopeProfile), events.TypeAuditRefused) == 3
	})
}

func TestCase_B1_three_finalizes_and_a_stop_give_exactly_one_finalized(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	id := register(t, gw, "k:30", events.Policy{})
	var wg sync.WaitGroup
	errs := make([]error, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for i := range errs {
		wg.Go(func() {
			errs[i] = gw.Do(ctx, events.CmdSessionFinalize, events.Finalize{To: "k:30", Reason: "done"}, nil)
		})
	}
	wg.Wait()
	succeeded := 0
	for _, err := range errs {
		var e *events.Error
		switch {
		case err == nil:
			succeeded++
		case errors.As(err, &e) && e.Code == events.CodeAlreadyFinalized:
			if e.Details["reason"] != "done" {
				t.Errorf("a late caller was told the reason %q, want done", e.Details["reason"])
			}
		default:
			t.Errorf("finalize: %v", err)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d calls finalized, want 1", succeeded)
	}
	if n := count(record(t, gw, id.Scope()), events.TypeSessionFinalized); n != 1 {
		t.Errorf("%d finalized events, want 1", n)
	}
}

func TestCase_B1_a_stop_in_the_middle_of_finalizes_leaves_exactly_one(t *testing.T) {
	t.Parallel()
	b := &bus{t: t, dir: t.TempDir()}
	b.start()
	gw, err := b.node.Connect(t.Context(), events.Principal{Profile: profile, Name: "gw", Role: events.RoleGateway})
	if err != nil {
		t.Fatal(err)
	}
	id := register(t, gw, "k:30", events.Policy{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_ = gw.Do(ctx, events.CmdSessionFinalize, events.Finalize{To: "k:30", Reason: "done"}, nil) // the stop may cut it off
		})
	}
	b.stop()
	cancel()
	wg.Wait()
	_ = gw.Close() // its server is gone
	b.start()
	t.Cleanup(b.stop)
	op := b.connect("op", events.RoleOperator)
	if err := op.Do(t.Context(), events.CmdSessionFinalize, events.Finalize{To: "k:30", Reason: "later"}, nil); err != nil && events.CodeOf(err) != events.CodeAlreadyFinalized {
		t.Fatalf("finalize after the restart: %v", err)
	}
	if n := count(record(t, op, id.Scope()), events.TypeSessionFinalized); n != 1 {
		t.Errorf("%d finalized events, want 1", n)
	}
}

func TestCase_B2_an_idle_session_is_finalized_once_before_the_next_begins(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("tg", events.RoleGateway)
	b.serve(b.connect("agent", events.RoleHost), echo)
	id := register(t, gw, "tg:7", events.Policy{IdleTTLMS: 300})
	settled(t, gw, submit(t, gw, "tg:7", "one").ID)
	b.await("the idle expiry", func() bool {
		return count(record(t, gw, id.Scope()), events.TypeSessionFinalized) == 1
	})
	r := settled(t, gw, submit(t, gw, "tg:7", "two").ID)
	if r.Epoch != 2 || r.Session != id {
		t.Errorf("the second message settled in session %s epoch %d, want %s epoch 2", r.Session, r.Epoch, id)
	}
	rs := record(t, gw, id.Scope())
	var order []string
	for _, r := range rs {
		switch r.Type {
		case events.TypeSessionFinalized, events.TypeSessionStarted, events.TypeTurnStarted:
			order = append(order, r.Type.Short())
		}
	}
	want := []string{"session.started", "turn.started", "session.finalized", "session.started", "turn.started"}
	if d := cmp.Diff(want, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

func TestCase_B4_turn_ends_are_not_the_end_of_the_session(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	b.serve(b.connect("agent", events.RoleHost), echo)
	id := register(t, gw, "k:33", events.Policy{})
	fences := map[string]bool{}
	for _, text := range []string{"1", "2", "3"} {
		settled(t, gw, submit(t, gw, "k:33", text).ID)
		v := do[events.SessionView](t, gw, events.CmdSessionShow, events.SessionShow{To: "k:33"})
		if v.Attached == nil {
			t.Fatalf("the host was detached after turn %s", text)
		}
		fences[v.Attached.Fence.String()] = true
	}
	rs := record(t, gw, id.Scope())
	if n := count(rs, events.TypeSessionFinalized); n != 0 {
		t.Errorf("%d finalized events, want none", n)
	}
	if n := count(rs, events.TypeTurnEnded); n != 3 {
		t.Errorf("%d turns ended, want 3", n)
	}
	if len(fences) != 1 {
		t.Errorf("the session fence changed between turns: %v", fences)
	}
}

func TestCase_B6_the_message_that_finds_an_expired_session_is_delivered_once_to_the_next_epoch(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	var mu sync.Mutex
	var seen []string
	b.serve(b.connect("agent", events.RoleHost), func(_ context.Context, turn *client.Turn) client.Result {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, turn.Items[0].Body.Text)
		return client.Result{Outcome: events.OutcomeCompleted}
	})
	id := register(t, gw, "k:6", events.Policy{IdleTTLMS: 200})
	settled(t, gw, submit(t, gw, "k:6", "m1").ID)
	b.await("the idle expiry", func() bool { return count(record(t, gw, id.Scope()), events.TypeSessionFinalized) == 1 })
	settled(t, gw, submit(t, gw, "k:6", "m2").ID)
	mu.Lock()
	defer mu.Unlock()
	if d := cmp.Diff([]string{"m1", "m2"}, seen); d != "" {
		t.Errorf("delivered (-want +got):\n%s", d)
	}
}

func TestCase_B6_a_reset_of_a_key_never_seen_ends_nothing_that_never_was(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	b.serve(b.connect("agent", events.RoleHost), echo)
	refused(t, gw, events.CmdSessionReset, events.Reset{To: "k:new", Reason: "start over"}, events.CodeUnknownSession)
	id := register(t, gw, "k:new", events.Policy{})
	settled(t, gw, submit(t, gw, "k:new", "hello").ID)
	rs := record(t, gw, id.Scope())
	if n := count(rs, events.TypeSessionStarted); n != 1 {
		t.Errorf("%d started events, want 1", n)
	}
	if n := count(rs, events.TypeSessionFinalized); n != 0 {
		t.Errorf("%d finalized events, want none", n)
	}
}

func TestCase_C1_twenty_messages_at_once_run_one_after_another_in_order(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	file := filepath.Join(t.TempDir(), "lines")
	var running sync.Mutex
	b.serve(b.connect("agent", events.RoleHost), func(ctx context.Context, turn *client.Turn) client.Result {
		if !running.TryLock() {
			t.Error("two turns ran at once")
		} else {
			defer running.Unlock()
		}
		work := time.NewTimer(20 * time.Millisecond)
		defer work.Stop()
		select {
		case <-work.C:
		case <-ctx.Done():
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return client.Result{Outcome: events.OutcomeFailed, Error: err.Error()}
		}
		defer f.Close()
		if _, err := f.WriteString(turn.Items[0].Body.Text + "\n"); err != nil {
			return client.Result{Outcome: events.OutcomeFailed, Error: err.Error()}
		}
		return client.Result{Outcome: events.OutcomeCompleted}
	})
	register(t, gw, "k:50", events.Policy{})
	var want strings.Builder
	var last events.ReceiptID
	for i := range 20 {
		text := string(rune('a' + i))
		want.WriteString(text + "\n")
		last = submit(t, gw, "k:50", text).ID
	}
	settled(t, gw, last)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.String(), string(got)); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}

func TestCase_C6_one_turn_end_said_twice_is_one_idle_transition(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, host := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	id := register(t, gw, "k:6", events.Policy{})
	h := attachByHand(t, b, host, id)
	submit(t, gw, "k:6", "seven")
	seven := h.accept()
	submit(t, gw, "k:6", "eight")
	for range 2 { // two signals, each a command of its own
		end := do[events.Ended](t, host, events.CmdTurnEnd, events.End{Session: id, Fence: h.fence, Turn: seven, Outcome: events.OutcomeCompleted})
		if end.Outcome != events.OutcomeCompleted {
			t.Errorf("turn 7 is said to have ended %s", end.Outcome)
		}
	}
	eight := h.accept()
	do[events.Ended](t, host, events.CmdTurnEnd, events.End{Session: id, Fence: h.fence, Turn: eight, Outcome: events.OutcomeAborted})
	refused(t, host, events.CmdTurnEnd, events.End{Session: id, Fence: h.fence, Turn: eight, Outcome: events.OutcomeCompleted}, events.CodeAlreadyEnded)
	var idle []events.Outcome
	b.await("both idle events", func() bool {
		idle = nil
		for _, r := range record(t, gw, id.Scope()) {
			if r.Type == events.TypeSessionIdle {
				d, err := events.DataOf[events.SessionIdle](r)
				if err != nil {
					t.Fatal(err)
				}
				idle = append(idle, d.Reason)
			}
		}
		return len(idle) >= 2
	})
	if d := cmp.Diff([]events.Outcome{events.OutcomeCompleted, events.OutcomeAborted}, idle); d != "" {
		t.Errorf("idle transitions (-want +got):\n%s", d)
	}
}
