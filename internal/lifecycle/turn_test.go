package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

func TestOneInstanceOfAWantedHostAttaches(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{Target: "local"})
	l.refused(rude, events.Attach{Session: session, Instance: "i1"}, events.CodeForbidden)
	l.refused(host, events.Attach{Session: session, Instance: "i1", LeaseTTLMS: 1999}, events.CodeInvalid)
	a := do[events.Attached](l, host, events.Attach{Session: session, Instance: "i1"})
	if want := (events.Fence{Generation: 1, Sequence: l.seq}); a.Fence != want || a.LeaseTTLMS != 15000 || a.Target != "local" {
		t.Errorf("answer %+v", a)
	}
	if again := do[events.Attached](l, host, events.Attach{Session: session, Instance: "i1"}); again != a {
		t.Errorf("again %+v", again)
	}
	for _, by := range []events.Principal{host, aide} {
		details := l.refused(by, events.Attach{Session: session, Instance: "i2"}, events.CodeAlreadyAttached)
		if details["host"] != "host" || details["instance"] != "i1" {
			t.Errorf("details %v", details)
		}
	}
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "x"})
	l.refused(host, events.Attach{Session: session, Instance: "i1"}, events.CodeEpochEnded)
}

func TestAnAttachedHostIsToldOfAnOfferItDoesNotKnow(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	l.attach()
	l.submit("m")
	o, _ := l.state.OpenOffer()
	told := func(known ...events.OfferID) int {
		l.sent = nil
		do[events.Attached](l, host, events.Attach{Session: session, Instance: "i1", KnownOffers: known})
		return len(l.sent)
	}
	if told() != 1 || told(o.ID) != 0 {
		t.Error("an unknown offer is told again, a known one is not")
	}
}

func TestDetachNeedsAnEndedTurnAndTakesItsOfferBack(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.submit("m")
	turn := l.accept(f)
	l.refused(host, events.Detach{Session: session, Fence: f}, events.CodeBusy)
	l.end(f, turn, events.OutcomeCompleted)
	r := l.submit("n")
	from := len(l.records)
	do[events.Done](l, host, events.Detach{Session: session, Fence: f})
	l.wantTypes(from, "continuation.requeued/1", "session.detached/1")
	if got, _ := l.state.Receipt(r.ID); got.State != events.StateQueued {
		t.Errorf("receipt %+v", got)
	}
	l.refused(host, events.Detach{Session: session, Fence: f}, events.CodeStaleFence)
}

func TestADetachCutShortIsNotAnsweredByItsFirstStep(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.submit("m")
	c := l.command(host, l.id(), events.Detach{Session: session, Fence: f})
	l.crash = func() bool { return true }
	if _, _, err := l.run(c); !errors.Is(err, errCrashed) {
		t.Fatalf("first try: %v", err)
	}
	if _, ok := l.state.Answer(c.ID); ok {
		t.Fatal("the requeue is not the detach's answer")
	}
	if _, _, err := l.run(c); err != nil || l.state.Host != nil {
		t.Fatalf("repeat: %v, host %+v", err, l.state.Host)
	}
}

func TestALostHostLosesItsTurnAndItsOffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		caps  []events.Capability
		state events.ItemState
		event string
	}{
		{"an offer to a host that can tell repeats waits again", []events.Capability{events.CapIdempotentOffer}, events.StateQueued, "continuation.requeued/1"},
		{"an offer to any other host stays unresolved", nil, events.StateUnresolved, "continuation.unresolved/1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			l.attach(tt.caps...)
			r := l.submit("m")
			from := len(l.records)
			do[events.Done](l, self, lifecycle.HostLost{Instance: "stranger"})
			do[events.Done](l, self, lifecycle.HostLost{Instance: "i1"})
			l.wantTypes(from, tt.event, "session.detached/1")
			if got, _ := l.state.Receipt(r.ID); got.State != tt.state {
				t.Errorf("receipt %+v", got)
			}
			next := l.submit("n")
			f := do[events.Attached](l, host, events.Attach{Session: session, Instance: "i2"}).Fence
			l.accept(f)
			if tt.state == events.StateUnresolved && l.state.Running().Items[0] != next.ID {
				t.Error("an unresolved item blocks only itself")
			}
		})
	}
}

func TestALostTurnIsReportedLateOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	r := l.submit("m")
	turn := l.accept(f)
	from := len(l.records)
	do[events.Done](l, self, lifecycle.HostLost{Instance: "i1"})
	l.wantTypes(from, "turn.ended/1", "session.idle/1", "session.detached/1")
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	from = len(l.records)
	l.refused(host, events.End{Session: session, Turn: turn, Outcome: events.OutcomeCompleted}, events.CodeStaleFence)
	for range 2 {
		got := l.end(f, turn, events.OutcomeCompleted)
		if want := (events.Ended{Turn: turn, Outcome: events.OutcomeLost, Late: true}); got != want {
			t.Errorf("answer %+v", got)
		}
	}
	l.wantTypes(from, "turn.reported_late/2")
	if got, _ := l.state.Receipt(r.ID); got.State != events.StateSettled || got.Outcome != events.OutcomeLost {
		t.Errorf("receipt %+v", got)
	}
	e, _ := l.state.TurnEntry(turn)
	if v := l.state.TurnView(e); v.State != events.TurnReportedOnce {
		t.Errorf("turn %+v", v)
	}
}

func TestAcceptTakesTheOpenOfferOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.submit("m1")
	l.submit("m2")
	o, _ := l.state.OpenOffer()
	a := events.Accept{Session: session, Fence: f, Offer: o.ID, Turn: "t1", TaskID: "task"}
	stale, unknown := a, a
	stale.Fence.Sequence--
	unknown.Offer = "nobody's"
	l.refused(host, stale, events.CodeStaleFence)
	l.refused(aide, a, events.CodeStaleFence)
	l.refused(host, unknown, events.CodeUnknownOffer)
	from := len(l.records)
	first := do[events.Accepted](l, host, a)
	if again := do[events.Accepted](l, host, a); again != first {
		t.Errorf("again %+v", again)
	}
	l.wantTypes(from, "session.started/1", "turn.started/1")
	if got := l.state.CurrentNames().TaskID; got != "task" {
		t.Errorf("task %q", got)
	}
	l.end(f, "t1", events.OutcomeCompleted)
	l.refused(host, a, events.CodeAlreadyEnded)
	o, _ = l.state.OpenOffer()
	reused := events.Accept{Session: session, Fence: f, Offer: o.ID, Turn: "t1"}
	l.refused(host, reused, events.CodeInvalid)
	from = len(l.records)
	l.accept(f)
	l.wantTypes(from, "turn.started/1") // started is said once per epoch
}

func TestDeclinedItemsWaitLongerEachTime(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.submit("m1")
	l.submit("m2")
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		o, ok := l.state.OpenOffer()
		if !ok {
			t.Fatal("no offer")
		}
		do[events.Done](l, host, events.Decline{Session: session, Fence: f, Offer: o.ID, Reason: "busy"})
		l.refused(host, events.Decline{Session: session, Fence: f, Offer: o.ID}, events.CodeUnknownOffer)
		_, next := lifecycle.Owed(&l.state, l.now, l.mint)
		if got := next.Sub(l.now); got != want*time.Second {
			t.Errorf("offered again after %s, want %ds", got, want)
		}
		l.now = next
		l.settle()
	}
	l.accept(f)
	if l.state.Queue.Pending() != 1 {
		t.Error("m1 did not come first")
	}
}

func TestAnUnansweredOfferIsRepeatedOrLeftUnresolved(t *testing.T) {
	t.Parallel()
	t.Run("a host that can tell repeats is told again each 5 s", func(t *testing.T) {
		t.Parallel()
		l := newLedger(t)
		l.register(events.Policy{})
		l.attach(events.CapIdempotentOffer)
		l.submit("m")
		o, _ := l.state.OpenOffer()
		n := len(l.records)
		sent := l.now
		if again, next := lifecycle.Remind(&l.state, sent, l.now); again != nil || !next.Equal(sent.Add(5*time.Second)) {
			t.Errorf("too early: %v, next %s", again, next)
		}
		l.after(5 * time.Second)
		again, next := lifecycle.Remind(&l.state, sent, l.now)
		if s, ok := again.(lifecycle.SendOffer); !ok || s.Offer.Offer != o.ID || !next.Equal(l.now.Add(5*time.Second)) {
			t.Errorf("reminded %+v, next %s", again, next)
		}
		l.settle()
		if len(l.records) != n {
			t.Errorf("appended %v", l.types()[n:])
		}
		if got := lifecycle.Resume(&l.state); len(got) != 1 {
			t.Errorf("resume tells %v", got)
		}
	})
	t.Run("any other host leaves it unresolved, and it blocks nothing", func(t *testing.T) {
		t.Parallel()
		l := newLedger(t)
		l.register(events.Policy{IdleTTLMS: 60_000})
		l.attach()
		r := l.submit("m")
		if again, next := lifecycle.Remind(&l.state, l.now, l.now.Add(time.Hour)); again != nil || !next.IsZero() {
			t.Errorf("reminded %v", again)
		}
		if got := lifecycle.Resume(&l.state); len(got) != 0 {
			t.Errorf("resume tells %v", got)
		}
		l.after(5 * time.Second)
		l.settle()
		if got, _ := l.state.Receipt(r.ID); got.State != events.StateUnresolved {
			t.Errorf("receipt %+v", got)
		}
		if v := l.state.View(); len(v.Queue) != 1 || v.Pending != 0 {
			t.Errorf("view %+v", v.Queue)
		}
		l.after(time.Minute)
		l.settle()
		if l.state.Open() {
			t.Error("an unresolved item keeps nothing open")
		}
	})
}

func TestInterruptAnswersOnceItsTurnHasEnded(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.submit("m")
	l.refused(gw1, events.Interrupt{To: "k1"}, events.CodeUnknownTurn)
	l.refused(gw1, events.Interrupt{To: "k1", Turn: "nobody's"}, events.CodeUnknownTurn)
	turn := l.accept(f)
	l.after(time.Second)
	c := l.command(gw1, l.id(), events.Interrupt{To: "k1", Reason: "stop"})
	_, wait, err := l.run(c)
	if err != nil || wait == nil || wait.Turn != turn || wait.Reason != "stop" {
		t.Fatalf("wait %+v, err %v", wait, err)
	}
	l.end(f, turn, events.OutcomeAborted)
	for _, again := range []lifecycle.Command{c, c.Pinned(*wait)} {
		raw, wait, err := l.run(again)
		if err != nil || wait != nil {
			t.Fatalf("wait %+v, err %v", wait, err)
		}
		if got := decodeTo[events.Ended](t, raw); got.Turn != turn || got.Outcome != events.OutcomeAborted {
			t.Errorf("answer %+v", got)
		}
	}
	if got := do[events.Ended](l, gw1, events.Interrupt{To: "k1", Turn: turn}); got.Outcome != events.OutcomeAborted {
		t.Errorf("answer %+v", got)
	}
}
