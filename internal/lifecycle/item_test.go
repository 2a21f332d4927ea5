package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/idle"
	"keryx/internal/lifecycle"
)

func (l *ledger) stateOf(id events.ReceiptID) events.ItemState {
	l.t.Helper()
	r, ok := l.state.Receipt(id)
	if !ok {
		l.t.Fatalf("no receipt %s", id)
	}
	return r.State
}

func TestAnItemExpiresUnlessItWasAccepted(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{IdleTTLMS: 3_600_000})
	r := do[events.Receipt](l, gw1, events.Submit{To: "k1", TTLMS: 1000})
	l.after(999 * time.Millisecond)
	f := l.attach()
	o, _ := l.state.OpenOffer()
	l.after(time.Millisecond)
	l.refused2(host, events.Accept{Session: session, Fence: f, Offer: o.ID, Turn: "t1"}, events.CodeUnknownOffer)
	if got := l.stateOf(r.ID); got != events.StateExpired {
		t.Errorf("the item is %s", got)
	}
	kept := do[events.Receipt](l, gw1, events.Submit{To: "k1", TTLMS: 1000})
	turn := l.accept(f)
	l.after(time.Hour / 2)
	l.settle()
	l.end(f, turn, events.OutcomeCompleted)
	if got := l.stateOf(kept.ID); got != events.StateSettled {
		t.Errorf("an accepted item is %s", got)
	}
}

// refused2 is refused for commands before which something overdue is appended.
func (l *ledger) refused2(by events.Principal, data any, code events.Code) {
	l.t.Helper()
	if _, err := try[events.Raw](l, by, data); events.CodeOf(err) != code || err == nil {
		l.t.Fatalf("%T: got %v, want %s", data, err, code)
	}
}

func TestAScheduledItemIsNeverEarlyAndHoldsUpNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{IdleTTLMS: 1000})
	f := l.attach()
	late := do[events.Receipt](l, gw1, events.Submit{To: "k1", InMS: 60_000, TTLMS: 5000})
	early := do[events.Receipt](l, gw1, events.Submit{To: "k1", At: l.now.Add(30 * time.Second)})
	l.refused(gw1, events.Submit{To: "k1", InMS: 1, At: l.now}, events.CodeInvalid)
	l.submit("now")
	l.end(f, l.accept(f), events.OutcomeCompleted)
	l.after(30*time.Second - 1)
	l.state = l.refold(0) // a restart
	l.settle()
	if _, open := l.state.OpenOffer(); open || !l.state.Open() || l.state.Queue.Pending() != 0 {
		t.Fatal("delivered early, or the epoch has ended although something is scheduled")
	}
	l.after(1)
	l.settle()
	o, _ := l.state.OpenOffer()
	if len(o.Items) != 1 || o.Items[0] != early.ID {
		t.Fatalf("offered %+v", o)
	}
	l.end(f, l.accept(f), events.OutcomeCompleted)
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	l.after(29 * time.Second)
	l.settle()
	if _, open := l.state.OpenOffer(); open {
		t.Fatal("delivered early after a reset")
	}
	l.after(time.Second)
	l.settle()
	if o, _ = l.state.OpenOffer(); len(o.Items) != 1 || o.Items[0] != late.ID {
		t.Errorf("offered %+v", o)
	}
}

func TestABoundItemIsInvalidatedByAChangeAndNotRevived(t *testing.T) {
	t.Parallel()
	for name, offered := range map[string]bool{"while it waits": false, "while it is offered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			do[events.Registered](l, gw1, events.Alias{To: "k1", Names: events.Names{Source: "chat", Surface: "c1"}})
			if offered {
				l.attach()
			}
			bound := do[events.Receipt](l, gw1, events.Submit{To: "k1", Bind: []events.Binding{events.BindSurface, events.BindSource}})
			free := l.submit("free")
			do[events.Registered](l, gw1, events.Alias{To: "k1", Names: events.Names{Surface: "c2"}})
			do[events.Registered](l, gw1, events.Alias{To: "k1", Names: events.Names{Surface: "c1"}})
			if a, b := l.stateOf(bound.ID), l.stateOf(free.ID); a != events.StateInvalidated || b == events.StateInvalidated {
				t.Errorf("bound %s, free %s", a, b)
			}
		})
	}
}

func TestAnItemBoundToItsEpochIsDroppedByAReset(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	r := do[events.Receipt](l, gw1, events.Submit{To: "k1", Bind: []events.Binding{events.BindEpoch}, OnReset: events.OnResetCarry})
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	if got := l.stateOf(r.ID); got != events.StateInvalidated {
		t.Errorf("the item is %s", got)
	}
}

func TestCancelAndEditReachWhatWasNotAccepted(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	a, b := l.submit("a"), l.submit("b")
	l.refused(gw2, events.Cancel{Receipt: a.ID}, events.CodeForbidden)
	l.refused(gw1, events.Cancel{Receipt: "nothing"}, events.CodeUnknownReceipt)
	l.refused(gw1, events.Edit{Receipt: a.ID, Body: events.Body{Text: strings.Repeat("x", events.MaxBody+1)}}, events.CodeTooLarge)
	before, _ := l.state.OpenOffer()
	do[events.Receipt](l, gw1, events.Edit{Receipt: a.ID, Body: events.Body{Text: "A"}})
	after, _ := l.state.OpenOffer()
	if before.ID == after.ID || after.Items[0] != a.ID {
		t.Errorf("an edit of an offered item leaves offer %+v", after)
	}
	if _, its, _ := l.state.Queue.Open(); its[0].Body.Text != "A" {
		t.Errorf("offered %q", its[0].Body.Text)
	}
	l.refused(host, events.Accept{Session: session, Fence: f, Offer: before.ID, Turn: "t0"}, events.CodeUnknownOffer)
	first := do[events.Receipt](l, gw1, events.Cancel{Receipt: a.ID, Reason: "changed my mind"})
	if again := do[events.Receipt](l, op, events.Cancel{Receipt: a.ID}); first.State != events.StateCancelled || again != first {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if o, _ := l.state.OpenOffer(); o.Items[0] != b.ID {
		t.Errorf("offered next %+v", o)
	}
	turn := l.accept(f)
	for _, data := range []any{events.Cancel{Receipt: b.ID}, events.Edit{Receipt: b.ID}, events.Requeue{Receipt: b.ID}, events.Discard{Receipt: b.ID}} {
		if d := l.refused(gw1, data, events.CodeWrongState); d["state"] != string(events.StateAccepted) {
			t.Errorf("%T: details %v", data, d)
		}
	}
	l.end(f, turn, events.OutcomeCompleted)
}

func TestAnUnresolvedItemIsRequeuedOrDiscardedByItsSenderOrTheOperator(t *testing.T) {
	t.Parallel()
	unresolved := func(t *testing.T) (*ledger, events.Fence, events.Receipt) {
		t.Helper()
		l := newLedger(t)
		l.register(events.Policy{})
		f := l.attach()
		r := l.submit("m")
		l.submit("n")
		l.after(idle.OfferDeadline)
		l.settle()
		if got := l.stateOf(r.ID); got != events.StateUnresolved {
			t.Fatalf("the item is %s", got)
		}
		l.refused(gw2, events.Requeue{Receipt: r.ID}, events.CodeForbidden)
		l.refused(gw1, events.Cancel{Receipt: r.ID}, events.CodeWrongState)
		return l, f, r
	}
	t.Run("requeued it is offered next, and an open offer stays", func(t *testing.T) {
		t.Parallel()
		l, f, r := unresolved(t)
		open, _ := l.state.OpenOffer()
		if got := do[events.Receipt](l, gw1, events.Requeue{Receipt: r.ID}); got.State != events.StateQueued {
			t.Errorf("receipt %+v", got)
		}
		if o, _ := l.state.OpenOffer(); o.ID != open.ID {
			t.Errorf("offer %+v", o)
		}
		l.end(f, l.accept(f), events.OutcomeCompleted)
		if o, _ := l.state.OpenOffer(); len(o.Items) != 1 || o.Items[0] != r.ID {
			t.Errorf("offered next %+v", o)
		}
	})
	t.Run("discarded it is over", func(t *testing.T) {
		t.Parallel()
		l, _, r := unresolved(t)
		first := do[events.Receipt](l, op, events.Discard{Receipt: r.ID, Reason: "seen it"})
		if first.State != events.StateDiscarded || first.Fate() != events.FateUnresolved || !first.Over() {
			t.Errorf("receipt %+v", first)
		}
		l.refused(op, events.Requeue{Receipt: r.ID}, events.CodeWrongState)
	})
	t.Run("when the next epoch has begun it is past", func(t *testing.T) {
		t.Parallel()
		l, _, r := unresolved(t)
		do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
		l.refused(op, events.Requeue{Receipt: r.ID}, events.CodeEpochEnded)
		l.refused(op, events.Discard{Receipt: r.ID}, events.CodeEpochEnded)
	})
	t.Run("when its epoch has ended it can still be discarded", func(t *testing.T) {
		t.Parallel()
		l, _, r := unresolved(t)
		do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "done"})
		l.refused(op, events.Requeue{Receipt: r.ID}, events.CodeEpochEnded)
		do[events.Receipt](l, op, events.Discard{Receipt: r.ID})
	})
}

func TestPeersNeedTheSessionsConsent(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	l.refused(host, events.Submit{To: string(session), Kind: events.ItemPeer}, events.CodeForbidden)
	l = newLedger(t)
	l.register(events.Policy{Peers: true})
	for _, to := range []string{string(session), "k1"} {
		do[events.Receipt](l, rude, events.Submit{To: to, Kind: events.ItemPeer})
	}
}

func TestWhatALostTurnReportedLateIsInItsReceipts(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	r := l.submit("m")
	turn := l.accept(f)
	fates := []events.Fate{r.Fate()}
	note := func() { got, _ := l.state.Receipt(r.ID); fates = append(fates, got.Fate()) }
	note()
	do[events.Done](l, self, lifecycle.HostLost{Instance: "i1"})
	note()
	do[events.Ended](l, host, events.End{Session: session, Fence: f, Turn: turn, Outcome: events.OutcomeCompleted})
	note()
	want := []events.Fate{events.FateNeverStarted, events.FateRunning, events.FateEnded, events.FateReportedLate}
	for i := range want {
		if fates[i] != want[i] {
			t.Fatalf("fates %v, want %v", fates, want)
		}
	}
}
