package lifecycle_test

import (
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/approvals"
	"keryx/internal/lifecycle"
)

// askingLedger is a session with a host, in a target that asks for every command.
func askingLedger(t *testing.T, p events.Policy) (*ledger, events.Fence) {
	t.Helper()
	l := newLedger(t)
	l.register(p)
	l.place.Target = approvals.Target{
		Kind: "terminal", Name: "local", Generation: 1, Policy: &events.ApprovalPolicy{Default: events.ApprovalAlways},
	}
	return l, l.attach()
}

func (l *ledger) ask(by events.Principal, f events.Fence, turn events.TurnID) events.ExecAnswer {
	l.t.Helper()
	return do[events.ExecAnswer](l, by, events.StartExec{
		Session: session, Fence: f, Turn: turn,
		Selection: events.Selection{Target: "local", Generation: 1, Executor: exe.Name, Instance: "e1"},
		Spec:      events.ExecSpec{Argv: []string{"rm", "x"}},
	})
}

// starts counts the orders to start an exec.
func (l *ledger) starts(id events.ExecID) (n int) {
	for _, e := range l.sent {
		if s, ok := e.(lifecycle.SendStart); ok && s.Order.Request.Exec == id {
			n++
		}
	}
	return n
}

func (l *ledger) refusedAs(id events.ExecID) events.Code {
	for _, d := range l.data {
		if r, ok := d.(events.ExecRefused); ok && r.Exec == id {
			return r.Code
		}
	}
	return ""
}

func TestAnExecWaitsForItsApprovalAndStartsOnce(t *testing.T) {
	t.Parallel()
	l, f := askingLedger(t, events.Policy{})
	a := l.ask(host, f, "")
	if a.Approval == "" || l.starts(a.Exec) != 0 || len(lifecycle.Resume(&l.state)) != 0 {
		t.Fatalf("answer %+v, orders %v", a, l.sent)
	}
	started := events.ReportStarted{Session: session, Instance: "e1", Fact: events.ExecStarted{Exec: a.Exec, PID: 1}}
	l.refused(exe, started, events.CodeWrongState)
	n := len(l.records)
	v := do[events.ApprovalView](l, op, events.GrantApproval{Approval: a.Approval})
	l.wantTypes(n, "approval.granted/1", "approval.consumed/1")
	if v.State != events.ApprovalStateGranted || v.By != op.Name || l.starts(a.Exec) != 1 {
		t.Errorf("granted %+v, %d starts", v, l.starts(a.Exec))
	}
	l.refused(op, events.GrantApproval{Approval: a.Approval}, events.CodeAlreadyAnswered)
	l.refused(op, events.DenyApproval{Approval: a.Approval}, events.CodeAlreadyAnswered)
	do[events.Done](l, self, lifecycle.UseApproval{Approval: a.Approval})
	do[events.Done](l, exe, started)
	if l.starts(a.Exec) != 1 || count(l, events.TypeApprovalConsumed) != 1 {
		t.Errorf("%d starts, the log has %v", l.starts(a.Exec), l.types())
	}
}

func TestSeveralApprovalsAreAnsweredInAnyOrder(t *testing.T) {
	t.Parallel()
	l, f := askingLedger(t, events.Policy{})
	one, two, three := l.ask(host, f, ""), l.ask(host, f, ""), l.ask(host, f, "")
	do[events.ApprovalView](l, op, events.GrantApproval{Approval: three.Approval})
	do[events.ApprovalView](l, op, events.DenyApproval{Approval: one.Approval, Reason: "no"})
	do[events.ApprovalView](l, op, events.GrantApproval{Approval: two.Approval})
	if l.starts(one.Exec) != 0 || l.starts(two.Exec) != 1 || l.starts(three.Exec) != 1 {
		t.Errorf("started %d, %d, %d", l.starts(one.Exec), l.starts(two.Exec), l.starts(three.Exec))
	}
	if code := l.refusedAs(one.Exec); code != events.CodeApprovalDenied {
		t.Errorf("the denied one was refused as %q", code)
	}
	for range approvals.MaxOpen {
		l.ask(host, f, "")
	}
	l.refused(host, events.StartExec{Session: session, Fence: f, Spec: events.ExecSpec{Argv: []string{"x"}}}, events.CodeQueueFull)
}

// TestWhatMovesUnderAnApprovalEndsIt has each thing that an approval is bound to move
// between the request and the answer, and between the answer and the launch.
func TestWhatMovesUnderAnApprovalEndsIt(t *testing.T) {
	t.Parallel()
	type move func(l *ledger, f events.Fence, turn events.TurnID, a events.ExecAnswer)
	for name, c := range map[string]struct {
		move move
		code events.Code
	}{
		"the target's generation": {func(l *ledger, _ events.Fence, _ events.TurnID, _ events.ExecAnswer) { l.place.Target.Generation++ }, events.CodeStaleApproval},
		"the access epoch":        {func(l *ledger, _ events.Fence, _ events.TurnID, _ events.ExecAnswer) { l.place.Target.AccessEpoch++ }, events.CodeStaleApproval},
		"the user":                {func(l *ledger, _ events.Fence, _ events.TurnID, _ events.ExecAnswer) { l.place.Target.User = "root" }, events.CodeStaleApproval},
		"the policy": {func(l *ledger, _ events.Fence, _ events.TurnID, _ events.ExecAnswer) {
			l.place.Target.Policy = &events.ApprovalPolicy{Default: events.ApprovalNever}
		}, events.CodeStaleApproval},
		"the selection": {func(l *ledger, _ events.Fence, _ events.TurnID, _ events.ExecAnswer) {
			l.place.Moved = events.Errorf(events.CodeStaleSelection, "it moved")
		}, events.CodeStaleApproval},
		"the time": {func(l *ledger, _ events.Fence, _ events.TurnID, _ events.ExecAnswer) { l.after(approvals.Life) }, events.CodeApprovalExpired},
		"the turn": {func(l *ledger, f events.Fence, turn events.TurnID, _ events.ExecAnswer) {
			l.end(f, turn, events.OutcomeCompleted)
		}, events.CodeStaleApproval},
		"the requester's mind": {func(l *ledger, f events.Fence, _ events.TurnID, a events.ExecAnswer) {
			do[events.ExecAnswer](l, host, events.StopExec{Session: session, Fence: f, Exec: a.Exec})
		}, events.CodeStaleApproval},
		"the executor": {func(l *ledger, _ events.Fence, _ events.TurnID, _ events.ExecAnswer) {
			do[events.Done](l, self, lifecycle.ExecutorLost{Executor: exe.Name, Instance: "e1", Target: "local", Reason: "gone"})
		}, events.CodeStaleApproval},
	} {
		for when, answerFirst := range map[string]bool{"before the answer": false, "after the answer": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				l, f := askingLedger(t, events.Policy{})
				l.submit("go")
				turn := l.accept(f)
				a := l.ask(host, f, turn)
				if answerFirst { // the kill comes between the answer and its use
					l.append(op, l.id(), grantOf(l, a.Approval))
				}
				c.move(l, f, turn, a)
				if !answerFirst {
					_, err := try[events.ApprovalView](l, op, events.GrantApproval{Approval: a.Approval})
					if events.CodeOf(err) != c.code {
						t.Errorf("the grant: %v, want code %s", err, c.code)
					}
				}
				l.settle()
				if n := l.starts(a.Exec); n != 0 || count(l, events.TypeApprovalConsumed) != 0 {
					t.Errorf("%d starts, the log has %v", n, l.types())
				}
				if code := l.refusedAs(a.Exec); code != c.code {
					t.Errorf("the exec was refused as %q, want %q", code, c.code)
				}
				if ended := count(l, events.TypeApprovalInvalidated) + count(l, events.TypeApprovalExpired); ended != 1 {
					t.Errorf("%d events say why: %v", ended, l.types())
				}
			})
		}
	}
}

// grantOf is the decision to grant, not yet appended.
func grantOf(l *ledger, id events.ApprovalID) lifecycle.Decision {
	l.t.Helper()
	d, err := lifecycle.Decide(&l.state, l.command(op, l.id(), events.GrantApproval{Approval: id}))
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

func TestAnEpochEndsWithNothingOpen(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]any{
		"reset": events.Reset{To: "k1"}, "finalize": events.Finalize{To: "k1", Reason: "bye"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := askingLedger(t, events.Policy{})
			a := l.ask(host, f, "")
			l.judges = []events.Judge{{Principal: op.Name, Instance: "j1"}}
			question := l.command(host, l.id(), events.AskPolicy{Session: session, Fence: f, Tool: "bash", Digest: "d"})
			if raw, _, err := l.run(question); err != nil || raw != nil {
				t.Fatalf("a question was answered at once: %s, %v", raw, err)
			}
			do[events.EpochAnswer](l, gw1, end)
			if code := l.refusedAs(a.Exec); code != events.CodeStaleApproval {
				t.Errorf("the exec was refused as %q", code)
			}
			raw, ok := l.state.Answer(question.ID)
			if v := decodeTo[events.QuestionView](t, raw); !ok || v.Verdict != events.VerdictDeny {
				t.Errorf("the question was answered %s", raw)
			}
			if _, err := try[events.ApprovalView](l, op, events.GrantApproval{Approval: a.Approval}); events.CodeOf(err) != events.CodeStaleApproval {
				t.Errorf("a late grant: %v", err)
			}
			if n := l.starts(a.Exec); n != 0 {
				t.Errorf("%d starts", n)
			}
		})
	}
}

// TestNoHostAndNoExecutorCanApprove decides behind the door: the catalogue's roles are
// not what holds here.
func TestNoHostAndNoExecutorCanApprove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		by   events.Principal
		user events.PlatformUser
		code events.Code
	}{
		{"an operator", op, "", ""},
		{"a gateway for an approver", gw1, "u1", ""},
		{"a gateway for somebody else", gw1, "u2", events.CodeForbidden},
		{"a gateway for nobody", gw1, "", events.CodeForbidden},
		{"a gateway without a name of the session", gw2, "u1", events.CodeForbidden},
		{"the host that asks", host, "", events.CodeForbidden},
		{"the host that asks, for an approver", host, "u1", events.CodeForbidden},
		{"another host", aide, "u1", events.CodeForbidden},
		{"the executor", exe, "u1", events.CodeForbidden},
		{"an observer", principal("eye", events.RoleObserver), "u1", events.CodeForbidden},
	} {
		for _, yes := range []bool{true, false} {
			l, f := askingLedger(t, events.Policy{Approvers: []events.PlatformUser{"u1"}})
			a := l.ask(host, f, "")
			var cmd any = events.DenyApproval{Approval: a.Approval, PlatformUser: c.user}
			if yes {
				cmd = events.GrantApproval{Approval: a.Approval, PlatformUser: c.user}
			}
			v, err := try[events.ApprovalView](l, c.by, cmd)
			if c.code == "" && (err != nil || v.By != c.by.Name || v.PlatformUser != c.user) || c.code != "" && events.CodeOf(err) != c.code {
				t.Errorf("%s, yes %v: %+v, %v; want code %q", c.name, yes, v, err, c.code)
			}
			if n := l.starts(a.Exec); n != 0 && (c.code != "" || !yes) {
				t.Errorf("%s, yes %v: started", c.name, yes)
			}
		}
	}
}

func TestOnlyAnOperatorSaysWhoApproves(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	mine := events.Policy{Approvers: []events.PlatformUser{"me"}}
	l.refused(host, events.Register{Names: events.Names{GatewaySessionKey: "k1"}, Policy: mine}, events.CodeForbidden)
	l.refused(host, events.Register{Names: events.Names{GatewaySessionKey: "k1"}, Policy: events.Policy{ToolDefault: events.ToolDefaultAllow}}, events.CodeForbidden)
	l.register(events.Policy{Approvers: []events.PlatformUser{"u1"}})
	yes := true
	for _, by := range []events.Principal{gw1, host, exe} {
		l.refused(by, events.SetPolicy{To: "k1", Peers: &yes}, events.CodeForbidden)
	}
	a := do[events.PolicyAnswer](l, op, events.SetPolicy{To: "k1", Peers: &yes, Approvers: &[]events.PlatformUser{"u2"}})
	if !a.Policy.Peers || len(a.Policy.Approvers) != 1 || a.Policy.Approvers[0] != "u2" {
		t.Errorf("policy %+v", a.Policy)
	}
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "bye"})
	l.refused(host, events.Register{Names: events.Names{GatewaySessionKey: "k1"}, Policy: mine}, events.CodeForbidden)
	do[events.Registered](l, gw1, events.Register{Names: events.Names{GatewaySessionKey: "k1"}, Policy: events.Policy{Target: "local"}})
	if p := l.state.Policy; !p.Peers || len(p.Approvers) != 1 || p.Target != "local" {
		t.Errorf("after the reopening %+v", p)
	}
}

func TestAPendingApprovalIsLookedAtWhenItExpires(t *testing.T) {
	t.Parallel()
	l, f := askingLedger(t, events.Policy{})
	l.ask(host, f, "")
	_, next := lifecycle.Owed(&l.state, l.now, l.mint)
	if want := l.now.Add(approvals.Life); !next.Equal(want) {
		t.Errorf("next look at %s, want %s", next, want)
	}
	if l.state.WaitingFor() == "" {
		t.Error("the session does not say what it waits for")
	}
	l.after(approvals.Life - time.Second)
	l.settle()
	if n := count(l, events.TypeApprovalExpired); n != 0 {
		t.Errorf("%d expired early", n)
	}
}
