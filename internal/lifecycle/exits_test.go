package lifecycle_test

import (
	"strings"
	"testing"

	"keryx/events"
)

func (l *ledger) background(by events.Principal, f events.Fence, o events.Outlives) events.ExecID {
	l.t.Helper()
	return do[events.ExecAnswer](l, by, events.StartExec{
		Session: session, Fence: f,
		Selection: events.Selection{Target: "local", Executor: exe.Name, Instance: "e1", LeaseFence: events.Fence{Generation: 1, Sequence: 3}},
		Spec:      events.ExecSpec{Argv: []string{"sleep", "2"}, Background: true, Outlives: o},
	}).Exec
}

func (l *ledger) exited(id events.ExecID) {
	l.t.Helper()
	do[events.Done](l, exe, events.ReportExited{Session: session, Instance: "e1", Fact: events.ExecExited{Exec: id, DurationMS: 2000}})
}

// exits returns the items of kind job_exit that were ever queued.
func (l *ledger) exits() (items []events.Item) {
	l.t.Helper()
	for _, r := range l.records {
		if r.Type != events.TypeContinuationQueued {
			continue
		}
		d, err := events.DataOf[events.ContinuationQueued](r)
		if err != nil {
			l.t.Fatal(err)
		}
		if d.Item.Kind == events.ItemJobExit {
			items = append(items, d.Item)
		}
	}
	return items
}

func TestCase_A1_TheEndOfABackgroundExecIsToldToItsSessionOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		say  func(*ledger, events.ExecID)
		text string
	}{
		"an exit": {(*ledger).exited, "exited 0 after 2s: sleep 2"},
		"a refusal": {func(l *ledger, id events.ExecID) {
			do[events.Done](l, exe, events.ReportRefused{Session: session, Instance: "e1", Fact: events.ExecRefused{Exec: id, Code: events.CodeLaunchFailed, Message: "no such file"}})
		}, "was refused: no such file"},
		"a loss": {func(l *ledger, id events.ExecID) {
			do[events.Done](l, exe, events.ReportLost{Session: session, Fact: events.ExecLost{Exec: id, Reason: "killed"}})
		}, "was lost: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			id := l.background(host, l.attach(), "")
			end.say(l, id)
			end.say(l, id) // reported again
			l.settle()
			got := l.exits()
			if len(got) != 1 {
				t.Fatalf("%d ends were told", len(got))
			}
			if !strings.Contains(got[0].Body.Text, string(id)) || !strings.Contains(got[0].Body.Text, end.text) {
				t.Errorf("told %q", got[0].Body.Text)
			}
			if got[0].OnReset != events.OnResetDrop || got[0].Epoch != 1 || got[0].Sender != exe.Name {
				t.Errorf("told %+v", got[0])
			}
		})
	}
}

func TestTheEndOfAForegroundExecIsNotTold(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	l.exited(l.startExec(l.attach(), ""))
	l.settle()
	if got := l.exits(); len(got) != 0 {
		t.Errorf("told %+v", got)
	}
}

func TestTheEndOfAnotherEpochsExecIsNotTold(t *testing.T) {
	t.Parallel()
	for _, o := range []events.Outlives{events.OutlivesEpoch, events.OutlivesSession} {
		l := newLedger(t)
		l.register(events.Policy{})
		id := l.background(host, l.attach(), o)
		do[events.EpochAnswer](l, gw1, events.Reset{To: "k1", Reason: "x"})
		l.exited(id)
		l.settle()
		if got := l.exits(); len(got) != 0 {
			t.Errorf("with outlives %s told %+v", o, got)
		}
	}
}

func TestCase_C5_AnIdleSessionSaysThatItsJobsRun(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.submit("work")
	turn := l.accept(f)
	id := l.background(host, f, "")
	l.startExec(f, "") // in the foreground: not counted
	l.end(f, turn, events.OutcomeCompleted)
	l.settle()
	var idle events.SessionIdle
	for _, r := range l.records {
		if r.Type == events.TypeSessionIdle {
			var err error
			if idle, err = events.DataOf[events.SessionIdle](r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if idle.Turn != turn || idle.BackgroundRunning != 1 {
		t.Errorf("idle says %+v", idle)
	}
	l.exited(id)
	l.settle()
	if len(l.exits()) != 1 {
		t.Error("the end was not told")
	}
}
