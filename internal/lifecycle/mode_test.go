package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/idle"
	"keryx/internal/lifecycle"
)

func TestWhatBecomesOfAMode(t *testing.T) {
	t.Parallel()
	steer, merge, interrupt := events.CapSteer, events.CapMerge, events.CapInterrupt
	enqueue := []events.Mode{events.ModeEnqueue}
	tests := []struct {
		name    string
		caps    []events.Capability
		detach  bool
		running bool
		mode    events.Mode
		allow   []events.Mode
		want    events.Mode // "" for refused
		refused events.Code
	}{
		{"reject while idle is queued", nil, false, false, events.ModeReject, nil, events.ModeReject, ""},
		{"reject during a turn is busy", nil, false, true, events.ModeReject, nil, "", events.CodeBusy},
		{"steer while idle is offered", nil, false, false, events.ModeSteer, nil, events.ModeSteer, ""},
		{"steer into a host that can", []events.Capability{steer}, false, true, events.ModeSteer, nil, events.ModeSteer, ""},
		{"steer into a host that cannot is unsupported", nil, false, true, events.ModeSteer, nil, "", events.CodeUnsupported},
		{"steer falls to the first allowed that can be done", nil, false, true, events.ModeSteer, []events.Mode{events.ModeMerge, events.ModeEnqueue}, events.ModeEnqueue, ""},
		{"merge into a host that can", []events.Capability{merge}, false, true, events.ModeMerge, nil, events.ModeMerge, ""},
		{"merge into a host that cannot is unsupported, also while idle", nil, false, false, events.ModeMerge, nil, "", events.CodeUnsupported},
		{"merge falls to reject, which is busy", nil, false, true, events.ModeMerge, []events.Mode{events.ModeReject}, "", events.CodeBusy},
		{"merge while no host is attached waits for one", nil, true, false, events.ModeMerge, nil, events.ModeMerge, ""},
		{"interrupt a host that can", []events.Capability{interrupt}, false, true, events.ModeInterrupt, nil, events.ModeInterrupt, ""},
		{"interrupt a host that cannot falls where allowed", nil, false, true, events.ModeInterrupt, enqueue, events.ModeEnqueue, ""},
		{"interrupt while idle is offered", nil, false, false, events.ModeInterrupt, nil, events.ModeInterrupt, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			if !tt.detach {
				f := l.attach(tt.caps...)
				if tt.running {
					l.submit("m")
					l.accept(f)
				}
			}
			s := events.Submit{To: "k1", Mode: tt.mode, Allow: tt.allow}
			if tt.refused != "" {
				l.refused(gw1, s, tt.refused)
				return
			}
			from := len(l.records)
			r := do[events.Receipt](l, gw1, s)
			if r.Mode != tt.want || (r.DowngradedFrom != "") != (tt.want != tt.mode) {
				t.Errorf("receipt %+v", r)
			}
			if tt.want != tt.mode {
				l.wantTypes(from, "continuation.queued/1", "continuation.downgraded/1")
			}
		})
	}
}

func TestASteerGoesIntoTheRunningTurnAndSettlesWithIt(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach(events.CapSteer)
	first := l.submit("m")
	turn := l.accept(f)
	waits := l.submit("waits")
	from := len(l.records)
	r := do[events.Receipt](l, gw1, events.Submit{To: "k1", Mode: events.ModeSteer, Body: events.Body{Text: "left"}})
	o, ok := l.state.OpenOffer()
	if !ok || o.Turn != turn {
		t.Fatalf("offer %+v, %v", o, ok)
	}
	sent, _ := l.sent[len(l.sent)-1].(lifecycle.SendSteer)
	if sent.Steer.Turn != turn || len(sent.Steer.Items) != 1 || sent.Steer.Items[0].Body.Text != "left" {
		t.Errorf("told %+v", sent)
	}
	accept := events.Accept{Session: session, Fence: f, Offer: o.ID, Turn: turn}
	do[events.Accepted](l, host, accept)
	do[events.Accepted](l, host, accept) // its answer was lost
	if got, _ := l.state.Receipt(r.ID); got.State != events.StateAccepted || got.Turn != turn {
		t.Errorf("receipt %+v", got)
	}
	l.end(f, turn, events.OutcomeCompleted)
	l.wantTypes(from, "continuation.queued/1", "continuation.offered/1", "turn.steered/1",
		"turn.ended/1", "session.idle/1", "continuation.offered/1")
	for _, id := range []events.ReceiptID{first.ID, r.ID} {
		if got, _ := l.state.Receipt(id); got.State != events.StateSettled || got.Turn != turn {
			t.Errorf("receipt %+v", got)
		}
	}
	if got, _ := l.state.Receipt(waits.ID); got.State != events.StateOffered {
		t.Errorf("the next is %+v", got)
	}
	l.refused(host, events.Accept{Session: session, Fence: f, Offer: "old", Turn: turn}, events.CodeUnknownOffer)
}

func TestASteerThatWasNotTakenGoesToTheHead(t *testing.T) {
	t.Parallel()
	steps := map[string]func(l *ledger, f events.Fence, turn events.TurnID){
		"because the turn ended": func(*ledger, events.Fence, events.TurnID) {},
		"because the host declined it": func(l *ledger, f events.Fence, _ events.TurnID) {
			o, _ := l.state.OpenOffer()
			do[events.Done](l, host, events.Decline{Session: session, Fence: f, Offer: o.ID, Reason: "too late"})
			if _, open := l.state.OpenOffer(); open {
				l.t.Error("it was offered to the same turn again")
			}
		},
	}
	for name, act := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			f := l.attach(events.CapSteer, events.CapIdempotentOffer)
			l.submit("m")
			turn := l.accept(f)
			l.submit("waits")
			r := do[events.Receipt](l, gw1, events.Submit{To: "k1", Mode: events.ModeSteer})
			act(l, f, turn)
			l.end(f, turn, events.OutcomeCompleted)
			if o, _ := l.state.OpenOffer(); o.Turn != "" || len(o.Items) != 1 || o.Items[0] != r.ID {
				t.Errorf("offered next: %+v", o)
			}
		})
	}
}

func TestASteerThatFindsAHostWhichCannotIsDowngradedOnRecord(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	l.submit("m")
	r := do[events.Receipt](l, gw1, events.Submit{To: "k1", Mode: events.ModeSteer, Allow: []events.Mode{events.ModeReject}})
	f := l.attach()
	from := len(l.records)
	l.accept(f)
	l.wantTypes(from, "session.started/1", "turn.started/1", "continuation.downgraded/1")
	if got, _ := l.state.Receipt(r.ID); got.Mode != events.ModeEnqueue || got.DowngradedFrom != events.ModeSteer {
		t.Errorf("receipt %+v", got)
	}
}

func TestAdjacentItemsOfModeMergeBecomeOneTurn(t *testing.T) {
	t.Parallel()
	type sent struct {
		after time.Duration
		mode  events.Mode
	}
	ms := time.Millisecond
	tests := []struct {
		name string
		sent []sent
		wait time.Duration // after the last
		want int           // items of the first offer; 0 for none
	}{
		{"one waits for the window", []sent{{0, events.ModeMerge}}, 299 * ms, 0},
		{"one is offered after the window", []sent{{0, events.ModeMerge}}, 300 * ms, 1},
		{"each one opens the window again", []sent{{0, events.ModeMerge}, {200 * ms, events.ModeMerge}, {300 * ms, events.ModeMerge}}, 300 * ms, 3},
		{"another mode closes it at once", []sent{{0, events.ModeMerge}, {100 * ms, events.ModeMerge}, {100 * ms, events.ModeEnqueue}}, 0, 2},
		{"nothing waits longer than the most", []sent{
			{0, events.ModeMerge},
			{290 * ms, events.ModeMerge},
			{290 * ms, events.ModeMerge},
			{290 * ms, events.ModeMerge},
			{290 * ms, events.ModeMerge},
			{290 * ms, events.ModeMerge},
			{290 * ms, events.ModeMerge},
		}, 260 * ms, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			f := l.attach(events.CapMerge)
			var ids []events.ReceiptID
			for _, s := range tt.sent {
				l.after(s.after)
				ids = append(ids, do[events.Receipt](l, gw1, events.Submit{To: "k1", Mode: s.mode}).ID)
			}
			l.after(tt.wait)
			l.settle()
			o, ok := l.state.OpenOffer()
			if ok != (tt.want > 0) {
				t.Fatalf("offer %+v, %v", o, ok)
			}
			if diff := cmp.Diff(ids[:tt.want], append(ids[:0:0], o.Items...)); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
			if tt.want == 0 {
				return
			}
			turn := l.accept(f)
			l.end(f, turn, events.OutcomeCompleted)
			for _, id := range ids[:tt.want] {
				if r, _ := l.state.Receipt(id); r.State != events.StateSettled || r.Turn != turn {
					t.Errorf("receipt %+v", r)
				}
			}
		})
	}
}

func TestAnInterruptAbortsTheTurnAndIsOfferedNext(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach(events.CapInterrupt)
	l.submit("m")
	turn := l.accept(f)
	l.submit("waits")
	if _, ok := lifecycle.Aborting(&l.state); ok {
		t.Fatal("nothing interrupts yet")
	}
	a := do[events.Receipt](l, gw1, events.Submit{To: "k1", Mode: events.ModeInterrupt})
	b := do[events.Receipt](l, gw1, events.Submit{To: "k1", Mode: events.ModeInterrupt})
	l.state = l.refold(0) // what is to be aborted is a matter of the log
	if i, ok := lifecycle.Aborting(&l.state); !ok || i.Turn != turn || i.Instance != "i1" {
		t.Fatalf("aborting %+v, %v", i, ok)
	}
	l.end(f, turn, events.OutcomeAborted)
	if o, _ := l.state.OpenOffer(); len(o.Items) != 1 || o.Items[0] != a.ID {
		t.Errorf("offered next: %+v", o)
	}
	l.accept(f)
	if _, ok := lifecycle.Aborting(&l.state); ok {
		t.Error("the next turn is aborted as well")
	}
	if got := l.state.Queue.Waiting()[0].Receipt; got != b.ID {
		t.Errorf("then waits %s", got)
	}
}

func TestAutomaticItemsAreHeldAfterABudgetAndGoOnAfterAUsers(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{Peers: true})
	f := l.attach()
	peer := events.Submit{To: string(session), Kind: events.ItemPeer}
	run := func() { l.end(f, l.accept(f), events.OutcomeCompleted) }
	for range idle.Budget {
		do[events.Receipt](l, host, peer)
		run()
	}
	over := do[events.Receipt](l, host, peer)
	if _, open := l.state.OpenOffer(); open || !l.state.Queue.Held(over.ID) {
		t.Fatal("an automatic item over the budget is not held")
	}
	if w := l.state.WaitingFor(); w == "" || l.state.Queue.Pending() != 0 {
		t.Errorf("waiting for %q, %d pending", w, l.state.Queue.Pending())
	}
	again := do[events.Receipt](l, host, peer)
	do[events.Receipt](l, op, events.Requeue{Receipt: again.ID})
	if o, ok := l.state.OpenOffer(); !ok || o.Items[0] != again.ID {
		t.Fatalf("an item released by the operator is not offered: %+v", o)
	}
	run()
	l.submit("go on")
	run()
	if o, ok := l.state.OpenOffer(); !ok || o.Items[0] != over.ID {
		t.Errorf("after a user's item was taken the held one is not offered: %+v", o)
	}
}
