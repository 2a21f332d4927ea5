package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/lifecycle"
)

func TestResetEndsAndOpensInOneBatchAndKeepsTheHost(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	kept := l.submit("kept") // offered at once
	gone := do[events.Receipt](l, gw1, events.Submit{To: "k1", Kind: events.ItemSystem})
	also := do[events.Receipt](l, gw1, events.Submit{To: "k1", OnReset: events.OnResetDrop})
	from := len(l.records)
	a := do[events.EpochAnswer](l, gw1, events.Reset{To: "k1", Reason: "new topic"})
	if a.Epoch != 2 || a.Reason != "new topic" {
		t.Errorf("answer %+v", a)
	}
	l.wantTypes(from, "session.finalized/1", "session.reset/2", "continuation.offered/2")
	if diff := cmp.Diff([]events.ReceiptID{gone.ID, also.ID}, l.data[from+1].(events.SessionReset).Dropped); diff != "" {
		t.Errorf("dropped:\n%s", diff)
	}
	l.end(f, l.accept(f), events.OutcomeCompleted)
	if r, _ := l.state.Receipt(kept.ID); r.State != events.StateSettled {
		t.Errorf("kept %+v", r)
	}
	if r, _ := l.state.Receipt(gone.ID); r.State != events.StateInvalidated {
		t.Errorf("dropped %+v", r)
	}
}

func TestResetOfAFinalizedSessionFinalizesNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "done"})
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	l.wantTypes(0, "session.registered/1", "session.finalized/1", "session.reset/2")
	if l.state.Host != nil || !l.state.Open() {
		t.Errorf("host %v open %v", l.state.Host, l.state.Open())
	}
}

func TestResetCarriesMoreThanOneEventHolds(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	var want []events.ReceiptID
	for i := range 40 {
		want = append(want, l.submit(strings.Repeat("x", 50<<10)+fmt.Sprint(i)).ID)
	}
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	var got []events.ReceiptID
	for _, it := range l.state.Queue.Waiting() {
		got = append(got, it.Receipt)
		if r, _ := l.state.Receipt(it.Receipt); r.State != events.StateQueued || r.Epoch != 1 || r.Sequence == 0 {
			t.Errorf("receipt %+v", r)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(l.state, l.refold(0), everything); diff != "" {
		t.Errorf("refold:\n%s", diff)
	}
}

func TestFinalizeInvalidatesWhatWaitsAndDetaches(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	l.attach()
	r1, r2 := l.submit("m1"), l.submit("m2")
	l.refused(host, events.Finalize{To: "k1", Reason: events.ReasonIdleExpired}, events.CodeInvalid)
	l.refused(aide, events.Finalize{To: "k1", Reason: "x"}, events.CodeForbidden) // wanted, not attached
	do[events.EpochAnswer](l, host, events.Finalize{To: "k1", Reason: "done"})
	for _, id := range []events.ReceiptID{r1.ID, r2.ID} {
		if r, _ := l.state.Receipt(id); r.State != events.StateInvalidated {
			t.Errorf("receipt %+v", r)
		}
	}
	if l.state.Host != nil || l.state.Queue.Pending() != 0 {
		t.Errorf("host %v, %d wait", l.state.Host, l.state.Queue.Pending())
	}
	last := l.sent[len(l.sent)-1]
	if d, ok := last.(lifecycle.SendDetached); !ok || d.Order.Reason != events.DetachFinalized || d.Instance != "i1" {
		t.Errorf("told %+v", last)
	}
}

func TestARunningTurnIsInterruptedBeforeItsEpochEnds(t *testing.T) {
	t.Parallel()
	for _, data := range []any{events.Reset{To: "k1", Reason: "new"}, events.Finalize{To: "k1", Reason: "new"}} {
		l := newLedger(t)
		l.register(events.Policy{})
		f := l.attach()
		l.submit("m")
		turn := l.accept(f)
		c := l.command(gw1, l.id(), data)
		_, wait, err := l.run(c)
		if err != nil || wait == nil || wait.Turn != turn || wait.Instance != "i1" {
			t.Fatalf("%T: wait %+v, err %v", data, wait, err)
		}
		if _, _, err := l.run(l.command(self, "", lifecycle.TurnTimeout{Turn: turn})); err != nil {
			t.Fatalf("turn timeout: %v", err)
		}
		if raw, wait, err := l.run(c.Pinned(*wait)); err != nil || wait != nil || len(raw) == 0 {
			t.Fatalf("%T again: %s, wait %+v, err %v", data, raw, wait, err)
		}
		if e, _ := l.state.TurnEntry(turn); e.Outcome != events.OutcomeLost {
			t.Errorf("turn ended %s", e.Outcome)
		}
		if n := count(l, events.TypeSessionIdle); n != 1 {
			t.Errorf("%d session.idle", n)
		}
	}
}

func TestSessionsOfTheBusEndWithIt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		lifetime events.Lifetime
		act      any
		want     string
	}{
		{"a clean stop finalizes a session of the bus", events.LifetimeBus, lifecycle.BusStopped{}, events.ReasonBusStopped},
		{"a restart finalizes a session that was left over", events.LifetimeBus, lifecycle.BusRestarted{}, events.ReasonBusRestarted},
		{"a durable session outlives a stop", events.LifetimeDurable, lifecycle.BusStopped{}, ""},
		{"a session is durable by default", "", lifecycle.BusRestarted{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{Lifetime: tt.lifetime})
			f := l.attach()
			l.submit("m")
			l.accept(f)
			do[events.Done](l, self, tt.act)
			do[events.Done](l, self, tt.act)
			if l.state.Reason != tt.want || l.state.Finalized != (tt.want != "") {
				t.Errorf("finalized %v: %q", l.state.Finalized, l.state.Reason)
			}
		})
	}
}

func TestALostHostThatDoesNotComeBackEndsTheEpoch(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{HostGoneMS: 5000})
	l.attach()
	do[events.Done](l, self, lifecycle.HostLost{Instance: "i1"})
	if _, next := lifecycle.Owed(&l.state, l.now, l.mint); !next.Equal(l.now.Add(5 * time.Second)) {
		t.Errorf("next look %s", next)
	}
	l.after(4 * time.Second)
	f := do[events.Attached](l, host, events.Attach{Session: session, Instance: "i2"}).Fence
	l.after(time.Hour)
	l.settle()
	if !l.state.Open() {
		t.Fatal("the host came back in time")
	}
	do[events.Done](l, host, events.Detach{Session: session, Fence: f})
	l.after(time.Hour)
	l.settle()
	if !l.state.Open() {
		t.Fatal("a host that detached by itself is not lost")
	}
	do[events.Attached](l, host, events.Attach{Session: session, Instance: "i3"})
	do[events.Done](l, self, lifecycle.HostLost{Instance: "i3"})
	l.after(5 * time.Second)
	l.settle()
	if l.state.Reason != events.ReasonHostGone {
		t.Errorf("reason %q", l.state.Reason)
	}
}

func TestIdleExpiryWaitsForWhateverIsUnderWay(t *testing.T) {
	t.Parallel()
	policy := events.Policy{IdleTTLMS: 1000}
	tests := []struct {
		name string
		busy func(l *ledger)
		open bool
	}{
		{"nothing is under way", func(*ledger) {}, false},
		{"an attached host alone keeps nothing open", func(l *ledger) { l.attach() }, false},
		{"a message waits for a host", func(l *ledger) { l.submit("m") }, true},
		{"a turn runs", func(l *ledger) { f := l.attach(); l.submit("m"); l.accept(f) }, true},
		{"an exec runs", func(l *ledger) { l.startExec(l.attach(), "") }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(policy)
			tt.busy(l)
			l.after(time.Hour)
			l.settle()
			if l.state.Open() != tt.open {
				t.Errorf("open %v, want %v", l.state.Open(), tt.open)
			}
		})
	}
}

func TestTheStateSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	want := func(status events.SessionStatus, prefix string) {
		t.Helper()
		got := l.state.View()
		if got.Status != status || !strings.HasPrefix(got.WaitingFor, prefix) || prefix == "" && got.WaitingFor != "" {
			t.Errorf("status %s waiting for %q, want %s and %q", got.Status, got.WaitingFor, status, prefix)
		}
	}
	l.register(events.Policy{})
	want(events.StatusRegistered, "")
	l.submit("m")
	want(events.StatusRegistered, "a host to attach")
	f := l.attach()
	want(events.StatusAttached, "the host to answer offer ")
	turn := l.accept(f)
	want(events.StatusRunning, "turn "+string(turn)+" to end")
	l.end(f, turn, events.OutcomeCompleted)
	want(events.StatusAttached, "")
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "bye"})
	want(events.StatusFinalized, "")
}
