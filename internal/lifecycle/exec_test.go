package lifecycle_test

import (
	"testing"

	"keryx/events"
	"keryx/internal/lifecycle"
)

func (l *ledger) startExec(f events.Fence, outlives events.Outlives) events.ExecID {
	l.t.Helper()
	return do[events.ExecAnswer](l, host, events.StartExec{
		Session: session, Fence: f,
		Selection: events.Selection{Target: "local", Executor: exe.Name, Instance: "e1", LeaseFence: events.Fence{Generation: 1, Sequence: 3}},
		Spec:      events.ExecSpec{Argv: []string{"true"}, Stdin: []byte("in"), Outlives: outlives},
	}).Exec
}

func TestAnExecIsRequestedByTheHostOrTheOperator(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.refused(host, events.StartExec{Session: session}, events.CodeStaleFence)
	l.refused(host, events.StartExec{Session: session, Fence: f, Turn: "nobody's"}, events.CodeUnknownTurn)
	id := l.startExec(f, "")
	a := do[events.ExecAnswer](l, op, events.StopExec{Session: session, Exec: id})
	if want := events.OutSubject(profile, exe.Name, session, id); a.OutSubject != want {
		t.Errorf("output on %q, want %q", a.OutSubject, want)
	}
	start, ok := l.sent[len(l.sent)-2].(lifecycle.SendStart)
	if !ok || start.Instance != "e1" || string(start.Order.Request.Spec.Stdin) != "in" {
		t.Errorf("told %+v", l.sent)
	}
	if stop, ok := l.sent[len(l.sent)-1].(lifecycle.SendStop); !ok || stop.Order.Exec != id {
		t.Errorf("told %+v", l.sent)
	}
	l.refused(gw2, events.StopExec{Session: session, Exec: id}, events.CodeForbidden)
	l.refused(op, events.StopExec{Session: session, Exec: "nobody's"}, events.CodeUnknownExec)
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "x"})
	l.refused(op, events.StartExec{Session: session}, events.CodeEpochEnded)
}

func TestAnExecEndsOnceByTheWordOfItsExecutor(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	id := l.startExec(l.attach(), "")
	started := events.ReportStarted{Session: session, Instance: "e1", Fact: events.ExecStarted{Exec: id, PID: 7}}
	exited := events.ReportExited{Session: session, Instance: "e1", Fact: events.ExecExited{Exec: id}}
	lost := events.ReportLost{Session: session, Fact: events.ExecLost{Exec: id}}
	wrong := started
	wrong.Instance = "e2"
	l.refused(exe, wrong, events.CodeStaleFence)
	l.refused(rude, started, events.CodeForbidden)
	first := do[events.Done](l, exe, started)
	if again := do[events.Done](l, exe, started); again != first {
		t.Errorf("again %+v, first %+v", again, first)
	}
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "x"}) // late facts are taken
	first = do[events.Done](l, exe, exited)
	if again := do[events.Done](l, exe, exited); again != first {
		t.Errorf("again %+v, first %+v", again, first)
	}
	details := l.refused(exe, lost, events.CodeAlreadyEnded)
	if details["outcome"] != "exec.exited" {
		t.Errorf("details %v", details)
	}
	l.refused(exe, started, events.CodeAlreadyEnded)
	if n := count(l, events.TypeExecExited); n != 1 {
		t.Errorf("%d exited", n)
	}
}

func TestAnExecutorThatIsGoneLosesItsExecs(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.startExec(f, "")
	l.startExec(f, "")
	target := l.state.Execs()[0].Request.Selection.Target
	for name, lost := range map[string]lifecycle.ExecutorLost{
		"another instance": {Executor: exe.Name, Instance: "e2", Target: target, Reason: "gone"},
		"another target":   {Executor: exe.Name, Instance: "e1", Target: "elsewhere", Reason: "gone"},
		"another executor": {Executor: "exec-9", Instance: "e1", Target: target, Reason: "gone"},
	} {
		if l.state.Concerns(lost) {
			t.Errorf("%s: concerns the session", name)
		}
		do[events.Done](l, self, lost)
		if n := len(l.state.Execs()); n != 2 {
			t.Errorf("%s: %d execs are open", name, n)
		}
	}
	mine := lifecycle.ExecutorLost{Executor: exe.Name, Instance: "e1", Target: target, Reason: "gone"}
	if !l.state.Concerns(mine) {
		t.Error("its own loss does not concern the session")
	}
	do[events.Done](l, self, mine)
	if n := count(l, events.TypeExecLost); n != 2 || len(l.state.Execs()) != 0 {
		t.Errorf("%d lost, open %v", n, l.state.Execs())
	}
}

func TestAnEpochsEndStopsItsExecs(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	ends, outlives := l.startExec(f, ""), l.startExec(f, events.OutlivesSession)
	stops := func() (ids []events.ExecID) {
		for _, e := range l.sent {
			if s, ok := e.(lifecycle.SendStop); ok {
				ids = append(ids, s.Order.Exec)
			}
		}
		l.sent = nil
		return ids
	}
	if got := lifecycle.Resume(&l.state); len(got) != 2 {
		t.Errorf("resume tells %v", got)
	}
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	if got := stops(); len(got) != 1 || got[0] != ends {
		t.Errorf("reset stops %v", got)
	}
	if got := lifecycle.Resume(&l.state); len(got) != 1 {
		t.Errorf("resume tells %v", got)
	}
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "x"})
	if got := stops(); len(got) != 2 || got[1] != outlives {
		t.Errorf("finalize stops %v", got)
	}
}
