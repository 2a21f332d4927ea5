package lifecycle_test

import (
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

func TestAQuestionComesToOneVerdict(t *testing.T) {
	t.Parallel()
	j1, j2 := events.Judge{Principal: op.Name, Instance: "j1"}, events.Judge{Principal: gw1.Name, Instance: "j2"}
	vote := func(l *ledger, q events.CommandID, by events.Principal, inst events.Instance, v events.Verdict) {
		do[events.Done](l, by, events.VotePolicy{Session: session, Question: q, Instance: inst, Verdict: v, Reason: "because"})
	}
	allow, deny := events.VerdictAllow, events.VerdictDeny
	for _, c := range []struct {
		name      string
		judges    []events.Judge
		policy    events.ToolDefault
		act       func(l *ledger, q events.CommandID)
		want      events.Verdict
		defaulted bool
	}{
		{"nobody is registered", nil, "", nil, allow, true},
		{"nobody is registered, and the session denies then", nil, events.ToolDefaultDeny, nil, deny, true},
		{"all allow", []events.Judge{j1, j2}, "", func(l *ledger, q events.CommandID) {
			vote(l, q, op, "j1", allow)
			vote(l, q, gw1, "j2", allow)
		}, allow, false},
		{"one denies before the other has said anything", []events.Judge{j1, j2}, events.ToolDefaultAllow, func(l *ledger, q events.CommandID) {
			vote(l, q, op, "j1", deny)
		}, deny, false},
		{"one denies after the other has allowed", []events.Judge{j1, j2}, "", func(l *ledger, q events.CommandID) {
			vote(l, q, op, "j1", allow)
			vote(l, q, gw1, "j2", deny)
		}, deny, false},
		{"one is silent", []events.Judge{j1, j2}, "", func(l *ledger, q events.CommandID) {
			vote(l, q, op, "j1", allow)
			l.after(lifecycle.QuestionLife)
		}, deny, true},
		{"one is silent, and the session allows then", []events.Judge{j1, j2}, events.ToolDefaultAllow, func(l *ledger, q events.CommandID) {
			vote(l, q, op, "j1", allow)
			l.after(lifecycle.QuestionLife)
		}, allow, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{ToolDefault: c.policy})
			l.judges = c.judges
			q := l.command(host, l.id(), events.AskPolicy{Session: session, Fence: l.attach(), Tool: "bash", Digest: "d"})
			if _, _, err := l.run(q); err != nil {
				t.Fatal(err)
			}
			l.settle()
			if n := asked(l); n != len(c.judges) {
				t.Errorf("%d were asked, want %d", n, len(c.judges))
			}
			if c.act != nil {
				if _, ok := l.state.Answer(q.ID); ok {
					t.Error("there is a verdict before anybody said anything")
				}
				c.act(l, q.ID)
			}
			l.settle()
			raw, _ := l.state.Answer(q.ID)
			v := decodeTo[events.QuestionView](t, raw)
			if v.Verdict != c.want || v.Defaulted != c.defaulted || v.Reason == "" || count(l, events.TypePolicyAnswered) != 1 {
				t.Errorf("verdict %+v, the log has %v", v, l.types())
			}
			if again, ok := l.state.Question(q.ID); !ok || again != v {
				t.Errorf("by id it is %+v", again)
			}
			s := l.refold(0)
			if same, _ := s.Answer(q.ID); string(same) != string(raw) {
				t.Errorf("after a restart it is %s", same)
			}
		})
	}
}

// asked counts the questions that were put to somebody.
func asked(l *ledger) (n int) {
	for _, e := range l.sent {
		if _, ok := e.(lifecycle.SendQuestion); ok {
			n++
		}
	}
	return n
}

func TestOnlyWhoWasAskedVotesAndOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	l.judges = []events.Judge{{Principal: op.Name, Instance: "j1"}, {Principal: gw1.Name, Instance: "j2"}}
	q := l.command(host, l.id(), events.AskPolicy{Session: session, Fence: f, Tool: "bash", Digest: "d"})
	if _, _, err := l.run(q); err != nil {
		t.Fatal(err)
	}
	v := events.VotePolicy{Session: session, Question: q.ID, Instance: "j1", Verdict: events.VerdictAllow}
	for _, by := range []events.Principal{host, gw1, gw2, exe} { // gw1 is another instance
		l.refused(by, v, events.CodeUnknownQuestion)
	}
	do[events.Done](l, op, v)
	l.refused(op, v, events.CodeAlreadyAnswered)
	again, _, err := l.run(q)
	if again != nil || err != nil {
		t.Errorf("the question sent again got %s, %v", again, err)
	}
	if n := len(lifecycle.Resume(&l.state)); n != 2 {
		t.Errorf("%d orders after a restart", n)
	}
	l.refused(host, events.AskPolicy{Session: session, Tool: "x"}, events.CodeStaleFence)
	l.refused(host, events.AskPolicy{Session: session, Fence: f, Tool: "x", TimeoutMS: time.Minute.Milliseconds()}, events.CodeInvalid)
	for range lifecycle.MaxQuestions - 1 {
		if _, _, err := l.run(l.command(host, l.id(), events.AskPolicy{Session: session, Fence: f, Tool: "x"})); err != nil {
			t.Fatal(err)
		}
	}
	l.refused(host, events.AskPolicy{Session: session, Fence: f, Tool: "x"}, events.CodeQueueFull)
}
