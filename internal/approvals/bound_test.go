package approvals_test

import (
	"testing"

	"keryx/client"
	"keryx/events"
)

func TestAnApprovedCommandRunsOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.execute("runner", asking(events.ApprovalAlways))
	a, marker := s.touch()
	if a.Approval == "" {
		t.Fatal("nobody was asked")
	}
	v, err := s.op.Approval(s.within(), a.Approval)
	if err != nil || v.State != events.ApprovalStatePending || v.StdinBytes != 2 || v.EnvSet["A"] != "1" || len(v.Argv) != 3 || v.Exec != a.Exec {
		t.Errorf("it shows %+v, %v", v, err)
	}
	if open, err := s.op.Approvals(s.within(), "k", false); err != nil || len(open) != 1 || open[0].Approval != a.Approval {
		t.Errorf("open are %+v, %v", open, err)
	}
	if n := marks(t, marker); n != 0 {
		t.Fatal("it ran before it was approved")
	}
	if v, err = s.gw.Approve(s.within(), a.Approval, "chat:alice"); err != nil || v.By != "gw" || v.PlatformUser != "chat:alice" {
		t.Errorf("granted %+v, %v", v, err)
	}
	if code := s.end(a.Exec); code != "" || marks(t, marker) != 1 {
		t.Errorf("refused as %q, ran %d times", code, marks(t, marker))
	}
	if _, err := s.op.Approve(s.within(), a.Approval, ""); events.CodeOf(err) != events.CodeAlreadyAnswered {
		t.Errorf("a replay: %v", err)
	}
	if n := marks(t, marker); n != 1 {
		t.Errorf("a replay ran it: %d times", n)
	}
	if open, err := s.op.Approvals(s.within(), "", false); err != nil || len(open) != 0 {
		t.Errorf("open are %+v, %v", open, err)
	}
	if all, err := s.op.Approvals(s.within(), "", true); err != nil || len(all) != 1 || all[0].State != events.ApprovalStateConsumed {
		t.Errorf("all are %+v, %v", all, err)
	}
}

// TestAnApprovalForOneActionCannotStartAnother moves what an approval is bound to, on a
// whole bus, before somebody says yes.
func TestAnApprovalForOneActionCannotStartAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		move func(t *testing.T, s *stage, a events.ExecAnswer)
		code events.Code
	}{
		"the target has a new generation": {func(t *testing.T, s *stage, _ events.ExecAnswer) {
			t.Helper()
			before, _ := s.op.SelectTarget(s.within(), "local")
			s.runner()
			s.execute("second", asking(events.ApprovalAlways))
			s.until("the new generation", func() bool {
				sel, err := s.op.SelectTarget(s.within(), "local")
				return err == nil && sel.Generation > before.Generation
			})
		}, events.CodeStaleApproval},
		"the target has another policy": {func(t *testing.T, s *stage, _ events.ExecAnswer) {
			t.Helper()
			s.runner()
			s.execute("second", asking(events.ApprovalNever))
			s.until("the new executor", func() bool {
				sel, err := s.op.SelectTarget(s.within(), "local")
				return err == nil && sel.Executor == "second"
			})
		}, events.CodeStaleApproval},
		"the terminal was taken over": {func(t *testing.T, s *stage, _ events.ExecAnswer) {
			t.Helper()
			if _, err := s.op.ControlTarget(s.within(), events.ControlTarget{Name: "local"}); err != nil {
				t.Fatal(err)
			}
		}, events.CodeStaleApproval},
		"the session has a new epoch": {func(t *testing.T, s *stage, _ events.ExecAnswer) {
			t.Helper()
			if _, err := s.gw.Reset(s.within(), "k", "anew"); err != nil {
				t.Fatal(err)
			}
		}, events.CodeStaleApproval},
		"the command was stopped": {func(t *testing.T, s *stage, a events.ExecAnswer) {
			t.Helper()
			if _, err := s.op.StopExec(s.within(), events.StopExec{Session: s.session, Exec: a.Exec}); err != nil {
				t.Fatal(err)
			}
		}, events.CodeStaleApproval},
		"somebody said no": {func(t *testing.T, s *stage, a events.ExecAnswer) {
			t.Helper()
			if _, err := s.gw.Deny(s.within(), a.Approval, "chat:alice", "no"); err != nil {
				t.Fatal(err)
			}
		}, events.CodeAlreadyAnswered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.runner = s.execute("runner", asking(events.ApprovalAlways))
			a, marker := s.touch()
			c.move(t, s, a)
			if _, err := s.op.Approve(s.within(), a.Approval, ""); events.CodeOf(err) != c.code {
				t.Errorf("the grant: %v, want code %s", err, c.code)
			}
			want := events.CodeStaleApproval
			if c.code == events.CodeAlreadyAnswered {
				want = events.CodeApprovalDenied
			}
			if code := s.end(a.Exec); code != want {
				t.Errorf("the exec was refused as %q, want %q", code, want)
			}
			if n := marks(t, marker); n != 0 || s.says(events.TypeApprovalConsumed) || s.says(events.TypeExecStarted) {
				t.Errorf("it ran %d times; the record has %v", n, s.types())
			}
			if !s.says(events.TypeApprovalInvalidated) && !s.says(events.TypeApprovalDenied) {
				t.Errorf("no event says why: %v", s.types())
			}
		})
	}
}

func TestNoHostAndNoExecutorCanApprove(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.execute("runner", asking(events.ApprovalAlways))
	a, marker := s.touch()
	host, exe, eye := s.connect("host", events.RoleHost), s.connect("exe", events.RoleExecutor), s.connect("eye", events.RoleObserver)
	stranger := s.connect("gw2", events.RoleGateway)
	for _, c := range []struct {
		by   *client.Conn
		user events.PlatformUser
	}{{host, ""}, {host, "chat:alice"}, {exe, "chat:alice"}, {eye, "chat:alice"}, {stranger, "chat:alice"}, {s.gw, ""}, {s.gw, "chat:mallory"}} {
		_, yes := c.by.Approve(s.within(), a.Approval, c.user)
		_, no := c.by.Deny(s.within(), a.Approval, c.user, "")
		if events.CodeOf(yes) != events.CodeForbidden || events.CodeOf(no) != events.CodeForbidden {
			t.Errorf("%s for %q: %v; %v", c.by.Principal().Name, c.user, yes, no)
		}
	}
	yes := true
	if _, err := s.gw.SetPolicy(s.within(), events.SetPolicy{To: "k", Peers: &yes}); events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("a gateway sets the policy: %v", err)
	}
	audited := 0
	s.until("the attempts to be on record", func() bool {
		page, err := s.op.Page(s.within(), events.ScopeProfile, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		audited = 0
		for _, r := range page.Records {
			if d, err := events.DataOf[events.AuditRefused](r); r.Type == events.TypeAuditRefused && err == nil && d.Command == events.CmdApprovalGrant {
				audited++
			}
		}
		return audited == 7
	})
	if v, err := s.op.Approval(s.within(), a.Approval); err != nil || v.State != events.ApprovalStatePending || marks(t, marker) != 0 {
		t.Errorf("it is %+v, %v", v, err)
	}
}

func TestSeveralAreOpenAndAnsweredInAnyOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.execute("runner", asking(events.ApprovalAlways))
	one, markOne := s.touch()
	two, markTwo := s.touch()
	three, markThree := s.touch()
	for _, id := range []events.ApprovalID{three.Approval, one.Approval} {
		if _, err := s.op.Approve(s.within(), id, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.op.Deny(s.within(), two.Approval, "", "no"); err != nil {
		t.Fatal(err)
	}
	codes := []events.Code{s.end(one.Exec), s.end(two.Exec), s.end(three.Exec)}
	if codes[0] != "" || codes[1] != events.CodeApprovalDenied || codes[2] != "" {
		t.Errorf("refused as %v", codes)
	}
	if a, b, c := marks(t, markOne), marks(t, markTwo), marks(t, markThree); a != 1 || b != 0 || c != 1 {
		t.Errorf("they ran %d, %d and %d times", a, b, c)
	}
}

// TestTwoWhoAnswerAtOnceAreOneAnswer has many say yes and no at the same time.
func TestTwoWhoAnswerAtOnceAreOneAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.execute("runner", asking(events.ApprovalAlways))
	for range 5 {
		a, marker := s.touch()
		answers := make(chan error, 8)
		for i := range cap(answers) {
			go func() {
				var err error
				if i%2 == 0 {
					_, err = s.op.Approve(s.within(), a.Approval, "")
				} else {
					_, err = s.gw.Deny(s.within(), a.Approval, "chat:alice", "no")
				}
				answers <- err
			}()
		}
		taken := 0
		for range cap(answers) {
			switch err := <-answers; {
			case err == nil:
				taken++
			case events.CodeOf(err) != events.CodeAlreadyAnswered:
				t.Errorf("refused with %v", err)
			}
		}
		ran := s.end(a.Exec) == ""
		if n := marks(t, marker); taken != 1 || (n == 1) != ran || n > 1 {
			t.Errorf("%d answers were taken, it ran %d times", taken, n)
		}
	}
}
