package approvals_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

// judge registers a process that is asked before tools run, until the test ends or stop
// is called.
func (s *stage) judge(c *client.Conn, f func(q events.PolicyQuestion) (events.Verdict, error)) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- c.ServeJudge(ctx, client.JudgeConfig{LeaseTTL: 2 * time.Second, Judge: func(_ context.Context, q events.PolicyQuestion) (events.Verdict, string, error) {
			v, err := f(q)
			return v, "says " + string(c.Principal().Name), err
		}})
	}()
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("judge: %v", err)
		}
	}
	s.t.Cleanup(stop)
	s.until("the registration", func() bool { return s.registered(c.Principal().Name) })
	return stop
}

func (s *stage) registered(name events.PrincipalName) bool {
	leases, err := s.op.Leases(s.within())
	if err != nil {
		return false
	}
	for _, l := range leases {
		if l.Key.Kind == events.LeasePolicy && l.Holder == name && l.State == events.LeaseHeld {
			return true
		}
	}
	return false
}

// host attaches a host to the session and returns its fence.
func (s *stage) host() (*client.Conn, events.Fence) {
	s.t.Helper()
	h := s.connect("agent", events.RoleHost)
	a, err := h.Attach(s.within(), events.Attach{Session: s.session, LeaseTTLMS: 60_000})
	if err != nil {
		s.t.Fatal(err)
	}
	return h, a.Fence
}

const aDigest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

func TestWhoIsRegisteredIsAskedBeforeAToolRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	host, fence := s.host()
	ask := func(tool string) events.QuestionView {
		t.Helper()
		q, err := host.AskPolicy(s.within(), events.AskPolicy{Session: s.session, Fence: fence, Tool: tool, Digest: aDigest, TimeoutMS: 500})
		if err != nil {
			t.Fatalf("ask for %s: %v", tool, err)
		}
		return q
	}
	if q := ask("bash"); q.Verdict != events.VerdictAllow || !q.Defaulted {
		t.Errorf("with nobody registered: %+v", q)
	}
	first, second := s.connect("judge1", events.RoleGateway), s.connect("judge2", events.RoleOperator)
	stopFirst := s.judge(first, func(q events.PolicyQuestion) (events.Verdict, error) {
		if q.Host != "agent" || q.Digest != aDigest || q.Names.GatewaySessionKey != "k" {
			return "", errors.New("an odd question")
		}
		return events.VerdictAllow, nil
	})
	s.judge(second, func(q events.PolicyQuestion) (events.Verdict, error) {
		switch q.Tool {
		case "rm":
			return events.VerdictDeny, nil
		case "sleepy":
			return "", errors.New("no idea")
		}
		return events.VerdictAllow, nil
	})
	if q := ask("bash"); q.Verdict != events.VerdictAllow || q.Defaulted {
		t.Errorf("all allow: %+v", q)
	}
	if q := ask("rm"); q.Verdict != events.VerdictDeny || q.By != "judge2" || q.Reason != "says judge2" {
		t.Errorf("one denies: %+v", q)
	}
	if q := ask("sleepy"); q.Verdict != events.VerdictDeny || !q.Defaulted {
		t.Errorf("one is silent: %+v", q)
	}
	allow := events.ToolDefaultAllow
	if _, err := s.op.SetPolicy(s.within(), events.SetPolicy{To: "k", ToolDefault: &allow}); err != nil {
		t.Fatal(err)
	}
	if q := ask("sleepy"); q.Verdict != events.VerdictAllow || !q.Defaulted {
		t.Errorf("one is silent, and the session allows then: %+v", q)
	}
	stopFirst()
	s.until("the registration to be given back", func() bool { return !s.registered("judge1") })
	if q := ask("bash"); q.Verdict != events.VerdictAllow || q.Defaulted {
		t.Errorf("the one who is left allows: %+v", q)
	}
}

// TestAQuestionAnswersAHostThatLostItsConnection asks, goes away, and reads the verdict by
// the id of the command; a repeat of the command gets the same.
func TestAQuestionAnswersAHostThatLostItsConnection(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	host, fence := s.host()
	asked, answer := make(chan events.PolicyQuestion, 1), make(chan struct{})
	s.judge(s.connect("judge", events.RoleOperator), func(q events.PolicyQuestion) (events.Verdict, error) {
		asked <- q
		<-answer
		return events.VerdictDeny, nil
	})
	id := events.CommandID(events.NewID())
	q := events.AskPolicy{Session: s.session, Fence: fence, Tool: "bash", Digest: aDigest, TimeoutMS: 20_000}
	ctx, cancel := context.WithCancel(client.WithCommandID(s.within(), id))
	gone := make(chan error, 1)
	go func() { _, err := host.AskPolicy(ctx, q); gone <- err }()
	if got := <-asked; got.Question != id {
		t.Errorf("asked %s, want %s", got.Question, id)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Error("an answer came before there was one")
	}
	if v, err := host.Question(s.within(), s.session, id); err != nil || v.Verdict != "" {
		t.Errorf("while it is open it is %+v, %v", v, err)
	}
	repeated := make(chan events.QuestionView, 1)
	go func() {
		v, err := host.AskPolicy(client.WithCommandID(s.within(), id), q)
		if err != nil {
			t.Errorf("the repeat: %v", err)
		}
		repeated <- v
	}()
	close(answer)
	s.until("a verdict", func() bool {
		v, err := host.Question(s.within(), s.session, id)
		return err == nil && v.Verdict == events.VerdictDeny
	})
	if v := <-repeated; v.Verdict != events.VerdictDeny || v.By != "judge" {
		t.Errorf("the repeat was answered %+v", v)
	}
	s.stop()
	s.start()
	if v, err := host.AskPolicy(client.WithCommandID(s.within(), id), q); err != nil || v.Verdict != events.VerdictDeny {
		t.Errorf("after a restart it is %+v, %v", v, err)
	}
	n := 0
	for _, r := range s.records() {
		if r.Type == events.TypePolicyAnswered {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d verdicts on record", n)
	}
}

func TestNobodyButTheAskedVotesAndNoHostRegisters(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	host, _ := s.host()
	ctx, cancel := context.WithTimeout(s.within(), 10*time.Second)
	defer cancel()
	judge := func(context.Context, events.PolicyQuestion) (events.Verdict, string, error) {
		return events.VerdictAllow, "", nil
	}
	if err := host.ServeJudge(ctx, client.JudgeConfig{Judge: judge}); events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("a host registers: %v", err)
	}
	var a events.LeaseAnswer
	err := s.gw.Do(s.within(), events.CmdLeaseAcquire, events.AcquireLease{
		Key: events.LeaseKey{Profile: profile, Kind: events.LeasePolicy, Name: "op"}, Instance: s.gw.Instance(),
	}, &a)
	if events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("registered in another's name: %v", err)
	}
}
