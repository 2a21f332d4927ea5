package approvals_test

import (
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/bustest"
)

// asked is an exec that waits, as it is on record.
type asked struct {
	exec     events.ExecRequested
	approval events.ApprovalRequested
}

func (a asked) granted() bustest.Fact {
	return bustest.Fact{Type: events.TypeApprovalGranted, At: time.Now(), Data: events.ApprovalGranted{Approval: a.approval.Approval, Exec: a.exec.Exec, By: "op"}}
}

func (a asked) denied() bustest.Fact {
	return bustest.Fact{Type: events.TypeApprovalDenied, At: time.Now(), Data: events.ApprovalDenied{Approval: a.approval.Approval, Exec: a.exec.Exec, By: "op"}}
}

func (a asked) used() bustest.Fact {
	return bustest.Fact{Type: events.TypeApprovalConsumed, At: time.Now(), Data: events.ApprovalConsumed{
		Approval: a.approval.Approval, Exec: a.exec.Exec, Digest: a.approval.Digest,
	}}
}

// another is the same request with an exec and an approval of its own, changed, as if a
// bus of another time had asked for it.
func (a asked) another(change func(*asked)) (asked, []bustest.Fact) {
	a.exec.Exec, a.approval.Approval = events.ExecID(events.NewID()), events.ApprovalID(events.NewID())
	bound := *a.exec.Approval
	bound.ID = a.approval.Approval
	a.exec.Approval, a.approval.Exec = &bound, a.exec.Exec
	change(&a)
	return a, []bustest.Fact{
		{Type: events.TypeExecRequested, At: time.Now(), Data: a.exec},
		{Type: events.TypeApprovalRequested, At: time.Now(), Data: a.approval},
	}
}

// TestABusKilledBetweenTheAnswerAndTheLaunchStartsOnceOrSaysWhyNot puts on record what an
// authority that was killed at each point would have written, and starts another there.
func TestABusKilledBetweenTheAnswerAndTheLaunchStartsOnceOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		facts func(a asked) (asked, []bustest.Fact)
		code  events.Code // empty: it runs once
	}{
		"granted": {func(a asked) (asked, []bustest.Fact) { return a, []bustest.Fact{a.granted()} }, ""},
		"used, and the executor was not told": {func(a asked) (asked, []bustest.Fact) {
			return a, []bustest.Fact{a.granted(), a.used()}
		}, ""},
		"denied": {func(a asked) (asked, []bustest.Fact) { return a, []bustest.Fact{a.denied()} }, events.CodeApprovalDenied},
		"granted too long ago": {func(a asked) (asked, []bustest.Fact) {
			b, facts := a.another(func(a *asked) { a.approval.ExpiresAt = time.Now().Add(-time.Minute) })
			return b, append(facts, b.granted())
		}, events.CodeApprovalExpired},
		"granted for another generation of the target": {func(a asked) (asked, []bustest.Fact) {
			b, facts := a.another(func(a *asked) { a.exec.Selection.Generation++ })
			return b, append(facts, b.granted())
		}, events.CodeStaleApproval},
		"granted for another argument": {func(a asked) (asked, []bustest.Fact) {
			b, facts := a.another(func(a *asked) { a.exec.Spec.Argv = append([]string{"/bin/true"}, a.exec.Spec.Argv...) })
			return b, append(facts, b.granted())
		}, events.CodeStaleApproval},
		"granted for another variable": {func(a asked) (asked, []bustest.Fact) {
			b, facts := a.another(func(a *asked) { a.exec.Spec.EnvSet = map[string]string{"A": "2"} })
			return b, append(facts, b.granted())
		}, events.CodeStaleApproval},
		"granted for another input": {func(a asked) (asked, []bustest.Fact) {
			b, facts := a.another(func(a *asked) { a.exec.Spec.Stdin = []byte("on") })
			return b, append(facts, b.granted())
		}, events.CodeStaleApproval},
		"used for another directory, which the executor notices": {func(a asked) (asked, []bustest.Fact) {
			b, facts := a.another(func(a *asked) { a.exec.Spec.Cwd = "/" })
			return b, append(facts, b.granted(), b.used())
		}, events.CodeStaleApproval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.execute("runner", asking(events.ApprovalAlways))
			answer, marker := s.touch()
			records := s.records()
			a, facts := c.facts(s.asked(records, answer))
			s.stop()
			s.recordMore(records[len(records)-1].Ordinal, facts...)
			s.start()
			if code := s.end(a.exec.Exec); code != c.code {
				t.Errorf("refused as %q, want %q; the record has %v", code, c.code, s.types())
			}
			want := 0
			if c.code == "" {
				want = 1
			}
			if n := marks(t, marker); n != want {
				t.Errorf("it ran %d times, want %d; the record has %v", n, want, s.types())
			}
		})
	}
}

// asked finds a request on record.
func (s *stage) asked(records []events.Record, answer events.ExecAnswer) (a asked) {
	s.t.Helper()
	for _, r := range records {
		if d, err := events.DataOf[events.ExecRequested](r); r.Type == events.TypeExecRequested && err == nil && d.Exec == answer.Exec {
			a.exec = d
		}
		if d, err := events.DataOf[events.ApprovalRequested](r); r.Type == events.TypeApprovalRequested && err == nil && d.Approval == answer.Approval {
			a.approval = d
		}
	}
	if a.exec.Exec == "" || a.approval.Approval == "" {
		s.t.Fatalf("the request is not on record: %v", s.types())
	}
	return a
}

// recordMore writes what a killed bus would have; none runs.
func (s *stage) recordMore(last events.Ordinal, facts ...bustest.Fact) {
	s.t.Helper()
	b := bustest.Broker(s.t, bustest.Dir(s.cfg.Dir))
	bustest.RecordMore(s.t, bustest.System(s.t, b), profile, s.session.Scope(), last, facts...)
	if err := b.Stop(s.within()); err != nil {
		s.t.Fatal(err)
	}
}
