package lifecycle_test

import (
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

func TestCase_B1_three_finalizes_give_one_event_and_one_reason(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{Lifetime: events.LifetimeBus})
	first := do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "done"})
	if first.Epoch != 1 || first.Reason != "done" {
		t.Fatalf("first answer %+v", first)
	}
	for _, by := range []events.Principal{gw1, op} {
		details := l.refused(by, events.Finalize{To: "k1", Reason: "mine"}, events.CodeAlreadyFinalized)
		if details["reason"] != "done" || details["epoch"] != "1" {
			t.Errorf("details %v", details)
		}
	}
	do[events.Done](l, self, lifecycle.BusStopped{})
	l.wantTypes(0, "session.registered/1", "session.finalized/1")
}

func TestCase_B2_idle_expiry_finalizes_before_the_next_message(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{IdleTTLMS: 2000})
	f := l.attach()
	l.submit("m1")
	l.end(f, l.accept(f), events.OutcomeCompleted)
	from := len(l.records)
	l.after(2 * time.Second)
	l.settle() // the sweeper comes first
	l.wantTypes(from, "session.finalized/1")
	if got := l.state.Reason; got != events.ReasonIdleExpired {
		t.Errorf("reason %q", got)
	}
	l.after(3 * time.Second)
	l.submit("m2")
	f = l.attach()
	l.end(f, l.accept(f), events.OutcomeCompleted)
	l.wantTypes(from, "session.finalized/1", "session.registered/2", "continuation.queued/2",
		"session.attached/2", "continuation.offered/2", "session.started/2", "turn.started/2",
		"turn.ended/2", "session.idle/2")
}

func TestCase_B4_turn_ends_leave_session_host_and_queue_alone(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	for range 3 {
		l.submit("m")
		l.submit("n")
		l.end(f, l.accept(f), events.OutcomeCompleted)
	}
	if got := l.state.Queue.Pending(); got != 3 {
		t.Errorf("%d items wait, want 3", got)
	}
	if l.state.Host == nil || l.state.Host.Fence != f || !l.state.Open() {
		t.Errorf("host %+v open %v", l.state.Host, l.state.Open())
	}
	if n := count(l, events.TypeSessionFinalized); n != 0 {
		t.Errorf("%d finalized", n)
	}
}

func TestCase_B6_the_message_that_meets_the_expiry_is_delivered_once_to_the_next_epoch(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{IdleTTLMS: 1000})
	f := l.attach()
	l.submit("m1")
	l.end(f, l.accept(f), events.OutcomeCompleted)
	from := len(l.records)
	l.after(1500 * time.Millisecond)
	r := l.submit("m2") // nobody has appended the expiry yet
	if r.Epoch != 2 || r.State != events.StateQueued {
		t.Errorf("receipt %+v", r)
	}
	l.wantTypes(from, "session.finalized/1", "session.registered/2", "continuation.queued/2")
	f = l.attach()
	l.end(f, l.accept(f), events.OutcomeCompleted)
	if _, open := l.state.OpenOffer(); open || l.state.Queue.Pending() != 0 {
		t.Error("m2 was not delivered once")
	}
	if got, _ := l.state.Receipt(r.ID); got.State != events.StateSettled {
		t.Errorf("receipt %+v", got)
	}
}

func TestCase_B6_reset_of_a_key_never_seen_is_refused_and_creates_nothing(t *testing.T) {
	t.Parallel()
	newLedger(t).refused(gw1, events.Reset{To: "nobody"}, events.CodeUnknownSession)
}

func TestCase_C1_twenty_messages_run_one_after_another_in_order(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	var sent []events.ReceiptID
	for range 20 {
		sent = append(sent, l.submit("m").ID)
		l.after(2 * time.Millisecond)
	}
	for i, want := range sent {
		turn := l.accept(f)
		if _, open := l.state.OpenOffer(); open {
			t.Fatal("an offer is open while a turn runs")
		}
		if got := l.state.Running().Items; len(got) != 1 || got[0] != want {
			t.Errorf("turn %d has %v, want %s", i, got, want)
		}
		l.end(f, turn, events.OutcomeCompleted)
	}
	if _, open := l.state.OpenOffer(); open {
		t.Error("something is left")
	}
}

func TestCase_C6_one_idle_per_turn_whatever_is_said_twice(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.submit("m7")
	l.submit("m8")
	t7 := l.accept(f)
	l.end(f, t7, events.OutcomeCompleted)
	if again := l.end(f, t7, events.OutcomeCompleted); again.Outcome != events.OutcomeCompleted || again.Late {
		t.Errorf("repeat answered %+v", again)
	}
	details := l.refused(host, events.End{Session: session, Fence: f, Turn: t7, Outcome: events.OutcomeAborted}, events.CodeAlreadyEnded)
	if details["outcome"] != "completed" {
		t.Errorf("details %v", details)
	}
	l.end(f, l.accept(f), events.OutcomeAborted)
	var reasons []events.Outcome
	for _, d := range l.data {
		if idle, ok := d.(events.SessionIdle); ok {
			reasons = append(reasons, idle.Reason)
		}
	}
	if len(reasons) != 2 || reasons[0] != events.OutcomeCompleted || reasons[1] != events.OutcomeAborted {
		t.Errorf("idle reasons %v", reasons)
	}
}

func count(l *ledger, t events.Type) int {
	n := 0
	for _, r := range l.records {
		if r.Type == t {
			n++
		}
	}
	return n
}

func TestCase_C5_work_in_the_background_is_counted_and_keeps_the_session_open(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{IdleTTLMS: 2000})
	f := l.attach()
	l.submit("m")
	turn := l.accept(f)
	id := l.background(host, f, "")
	l.end(f, turn, events.OutcomeCompleted)
	i, ok := l.data[len(l.data)-1].(events.SessionIdle)
	if !ok || i.Turn != turn || i.BackgroundRunning != 1 {
		t.Errorf("idle %+v", i)
	}
	l.after(5 * time.Second)
	l.settle()
	if !l.state.Open() {
		t.Fatal("the session ended by idleness while its own work ran")
	}
	do[events.Done](l, exe, events.ReportExited{Session: session, Instance: "e1", Fact: events.ExecExited{Exec: id}})
	l.end(f, l.accept(f), events.OutcomeCompleted) // the notice of the exit
	if i, ok = l.data[len(l.data)-1].(events.SessionIdle); !ok || i.BackgroundRunning != 0 {
		t.Errorf("idle %+v", i)
	}
}
