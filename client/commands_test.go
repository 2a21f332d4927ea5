package client_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"keryx/events"
	"keryx/schemas"
)

func TestSessionsGoesThroughAllPagesAndStopsWhenToldTo(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	all := []events.SessionID{"a", "b", "c", "d", "e"}
	var asked atomic.Int32
	respond(t, s, func(c command) {
		asked.Add(1)
		q := ask[events.SessionList](c)
		page := events.Sessions{Sessions: []events.SessionSummary{}}
		for _, id := range all {
			if id > q.After && len(page.Sessions) < 2 {
				page.Sessions = append(page.Sessions, events.SessionSummary{Session: id})
			}
		}
		if n := len(page.Sessions); n > 0 {
			page.More = page.Sessions[n-1].Session < all[len(all)-1]
		}
		c.answer(page)
	})
	conn := connect(t, s)
	var got []events.SessionID
	for s, err := range conn.Sessions(t.Context(), events.SessionList{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Session)
	}
	if !slices.Equal(got, all) || asked.Load() != 3 {
		t.Errorf("got %v with %d questions", got, asked.Load())
	}
	for range conn.Sessions(t.Context(), events.SessionList{}) {
		break
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("stopping asked %d times", n-3)
	}
}

func TestTipsOfManyScopesAreAskedForInCallsOfAThousand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	respond(t, s, func(c command) {
		q := ask[events.LogTips](c)
		if len(q.Scopes) > 1000 {
			t.Errorf("asked for %d at once", len(q.Scopes))
		}
		a := events.Tips{Tips: []events.Tip{}}
		for _, s := range q.Scopes {
			a.Tips = append(a.Tips, events.Tip{Scope: s})
		}
		c.answer(a)
	})
	var scopes []events.Scope
	for range 2500 {
		scopes = append(scopes, scopeID())
	}
	tips, err := connect(t, s).Tips(t.Context(), scopes...)
	if err != nil || len(tips) != len(scopes) {
		t.Errorf("got %d tips, %v; want %d", len(tips), err, len(scopes))
	}
}

func TestEveryCommandOfTheCatalogueHasAMethodThatSendsItAsItsSchemaWants(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var mu sync.Mutex
	sent := make(map[events.Type]bool)
	key := events.LeaseKey{Profile: profile, Kind: events.LeaseTarget, Name: "local"}
	respond(t, s, func(c command) {
		typ := events.Type(c.event.Type())
		mu.Lock()
		sent[typ] = true
		mu.Unlock()
		if err := schemas.Validate(string(typ), c.event.Data()); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
		entry, _ := events.Find(typ)
		answer := entry.Answer()
		switch a := answer.(type) { // a zero key has no text
		case *events.LeaseAnswer:
			a.Key = key
		case *events.RevokedLease:
			a.Key = key
		case *events.ImportState:
			a.Import = events.ImportID(c.id())
		}
		c.end(answer)
	})
	conn, ctx := connect(t, s), t.Context()
	id, exec, turn := events.SessionID(events.NewID()), events.ExecID(events.NewID()), events.TurnID(events.NewID())
	fence := events.Fence{Generation: 1, Sequence: 2}
	sel := events.Selection{Target: "local", Generation: 1, Executor: "exec", Instance: conn.Instance()}
	sum := strings.Repeat("0", 64)
	run := events.RunID(events.NewID())
	for name, send := range map[string]func() error{
		"register": func() error {
			_, err := conn.Register(ctx, events.Names{GatewaySessionKey: "k"}, events.Policy{})
			return err
		},
		"alias": func() error {
			_, err := conn.Alias(ctx, "k", events.Names{StoredSessionID: "s"})
			return err
		},
		"attach": func() error { _, err := conn.Attach(ctx, events.Attach{Session: id}); return err },
		"detach": func() error { return conn.Detach(ctx, id, fence) },
		"reanchor": func() error {
			_, err := conn.Reanchor(ctx, events.Reanchor{Session: id, Fence: fence, StoredSessionID: "s"})
			return err
		},
		"reset":     func() error { _, err := conn.Reset(ctx, "k", "r"); return err },
		"finalize":  func() error { _, err := conn.Finalize(ctx, "k", "r"); return err },
		"interrupt": func() error { _, err := conn.Interrupt(ctx, "k", turn, "r"); return err },
		"list": func() error {
			for _, err := range conn.Sessions(ctx, events.SessionList{Open: true}) {
				return err
			}
			return nil
		},
		"show":    func() error { _, err := conn.Show(ctx, "k"); return err },
		"turn":    func() error { _, err := conn.Turn(ctx, turn); return err },
		"submit":  func() error { return submitErr(ctx, conn, "text") },
		"receipt": func() error { _, err := conn.Receipt(ctx, events.ReceiptID(events.NewID())); return err },
		"cancel":  func() error { _, err := conn.Cancel(ctx, events.ReceiptID(events.NewID()), "why"); return err },
		"edit": func() error {
			_, err := conn.Edit(ctx, events.ReceiptID(events.NewID()), events.Body{Text: "x"})
			return err
		},
		"requeue": func() error { _, err := conn.Requeue(ctx, events.ReceiptID(events.NewID())); return err },
		"discard": func() error { _, err := conn.Discard(ctx, events.ReceiptID(events.NewID()), "why"); return err },
		"turns": func() error {
			for _, err := range conn.Turns(ctx, "k") {
				return err
			}
			return nil
		},
		"accept": func() error {
			_, err := conn.Accept(ctx, events.Accept{Session: id, Fence: fence, Offer: events.OfferID(events.NewID()), Turn: turn})
			return err
		},
		"decline": func() error {
			return conn.Decline(ctx, events.Decline{Session: id, Fence: fence, Offer: events.OfferID(events.NewID()), Reason: "r"})
		},
		"end": func() error {
			_, err := conn.End(ctx, events.End{Session: id, Fence: fence, Turn: turn, Outcome: events.OutcomeCompleted})
			return err
		},
		"register target": func() error {
			_, err := conn.RegisterTarget(ctx, events.TargetSpec{Name: "local", Kind: "terminal"}, fence)
			return err
		},
		"register handler": func() error { return conn.RegisterHandler(ctx, events.RegisterHandler{LeaseFence: fence}) },
		"answer command": func() error {
			return conn.AnswerCommand(ctx, events.AnswerCommand{Invocation: events.CommandID(events.NewID())})
		},
		"invoke": func() error {
			_, err := conn.Invoke(ctx, events.InvokeCommand{To: "k", Name: "n", Surface: "terminal"})
			return err
		},
		"invocation": func() error { _, err := conn.Invocation(ctx, id, events.CommandID(events.NewID())); return err },
		"slash":      func() error { _, err := conn.SlashCommands(ctx, "terminal"); return err },
		"record gateway": func() error {
			return conn.RecordGateway(ctx, events.RecordGateway{Account: "bot", Fence: fence, Dropped: &events.GatewayDropped{Account: "bot", Reason: "r"}})
		},
		"forget":  func() error { return conn.Forget(ctx, id, "r") },
		"policy":  func() error { _, err := conn.SetPolicy(ctx, events.SetPolicy{To: "k"}); return err },
		"approve": func() error { _, err := conn.Approve(ctx, events.ApprovalID(events.NewID()), "u"); return err },
		"deny":    func() error { _, err := conn.Deny(ctx, events.ApprovalID(events.NewID()), "u", "r"); return err },
		"approval": func() error {
			_, err := conn.Approval(ctx, events.ApprovalID(events.NewID()))
			return err
		},
		"approvals": func() error { _, err := conn.Approvals(ctx, "k", true); return err },
		"ask policy": func() error {
			_, err := conn.AskPolicy(ctx, events.AskPolicy{Session: id, Fence: fence, Turn: turn, Tool: "t", Digest: events.ActionDigest(sum)})
			return err
		},
		"vote": func() error {
			return conn.VotePolicy(ctx, events.VotePolicy{Session: id, Question: events.CommandID(events.NewID()), Verdict: events.VerdictAllow})
		},
		"question": func() error { _, err := conn.Question(ctx, id, events.CommandID(events.NewID())); return err },
		"add package": func() error {
			_, err := conn.AddPackage(ctx, events.Package{
				Key: "hello-3f9a8b7c12de", Revision: events.Revision(sum), Name: "Hello", Version: "1", Source: "s", Dir: "/d",
				Files: []events.PackageFile{{Path: "f", SHA256: sum}},
			}, true)
			return err
		},
		"enable package":  func() error { _, err := conn.EnablePackages(ctx, "hello"); return err },
		"disable package": func() error { _, err := conn.DisablePackages(ctx, "hello"); return err },
		"remove package":  func() error { _, err := conn.RemovePackages(ctx, "hello"); return err },
		"packages":        func() error { _, err := conn.Packages(ctx, "k"); return err },
		"plan setup": func() error {
			_, err := conn.PlanSetup(ctx, events.PlanSetup{Package: "hello", Target: "local", To: "k"})
			return err
		},
		"consent": func() error {
			_, err := conn.ConsentSetup(ctx, events.ConsentSetup{Run: run, Revision: events.Revision(sum)})
			return err
		},
		"run setup":    func() error { _, err := conn.RunSetup(ctx, run, events.Revision(sum)); return err },
		"cancel setup": func() error { _, err := conn.CancelSetup(ctx, run, "r"); return err },
		"show setup":   func() error { _, err := conn.Setup(ctx, run); return err },
		"setups":       func() error { _, err := conn.Setups(ctx, events.SetupList{Package: "hello"}); return err },
		"progress":     func() error { return conn.ReportProgress(ctx, events.SetupProgressed{Run: run}) },
		"setup ended": func() error {
			_, err := conn.ReportSetupEnded(ctx, events.ReportSetupEnded{Run: run, Code: events.CodeSetupFailed})
			return err
		},
		"withdraw target": func() error { return conn.WithdrawTarget(ctx, "local", "r") },
		"select target":   func() error { _, err := conn.SelectTarget(ctx, "local"); return err },
		"control":         func() error { _, err := conn.ControlTarget(ctx, events.ControlTarget{Name: "local"}); return err },
		"targets":         func() error { _, err := conn.Targets(ctx); return err },
		"control target":  func() error { _, err := conn.ControlTarget(ctx, events.ControlTarget{Name: "local"}); return err },
		"detach target":   func() error { return conn.DetachTarget(ctx, "local", fence) },
		"report target": func() error {
			return conn.ReportTarget(ctx, events.ReportTarget{Name: "local", Generation: 1})
		},
		"report attached": func() error {
			return conn.ReportTargetAttached(ctx, events.ReportTargetAttached{Name: "local", Session: id, Epoch: 1})
		},
		"report detached": func() error {
			return conn.ReportTargetDetached(ctx, events.ReportTargetDetached{Name: "local", Session: id, Epoch: 1, Reason: "r"})
		},
		"start exec": func() error {
			_, err := conn.StartExec(ctx, events.StartExec{Session: id, Fence: fence, Turn: turn, Selection: sel, Spec: events.ExecSpec{Argv: []string{"true"}}})
			return err
		},
		"stop exec": func() error {
			_, err := conn.StopExec(ctx, events.StopExec{Session: id, Fence: fence, Exec: exec})
			return err
		},
		"started": func() error {
			return conn.ReportStarted(ctx, events.ReportStarted{Session: id, LeaseFence: fence, Fact: events.ExecStarted{Exec: exec, PID: 7}})
		},
		"refused": func() error {
			return conn.ReportRefused(ctx, events.ReportRefused{Session: id, Fact: events.ExecRefused{Exec: exec, Code: events.CodeLaunchFailed, Message: "m"}})
		},
		"exited": func() error {
			return conn.ReportExited(ctx, events.ReportExited{Session: id, Fact: events.ExecExited{
				Exec: exec, Streams: []events.StreamSummary{{Name: "stdout", SHA256: sum}}, Cleanup: events.CleanupSwept,
			}})
		},
		"lost": func() error {
			return conn.ReportLost(ctx, events.ReportLost{Session: id, Fact: events.ExecLost{Exec: exec, Reason: "r"}})
		},
		"stored output": func() error { _, err := conn.StoredOutput(ctx, id, exec, true); return err },
		"acquire": func() error {
			_, err := conn.AcquireLease(ctx, events.AcquireLease{Key: key})
			return err
		},
		"renew":   func() error { _, err := conn.RenewLeases(ctx, events.LeaseRef{Key: key, Fence: fence}); return err },
		"release": func() error { return conn.ReleaseLease(ctx, events.LeaseRef{Key: key, Fence: fence}) },
		"find":    func() error { _, err := conn.Find(ctx, "x"); return err },
		"import": func() error {
			_, err := conn.Import(ctx, id, sum, strings.NewReader("x"), nil)
			return err
		},
		"imports": func() error {
			for _, err := range conn.Imports(ctx) {
				return err
			}
			return nil
		},
		"revoke": func() error { _, err := conn.RevokeLease(ctx, key, "why"); return err },
		"add token": func() error {
			_, err := conn.AddToken(ctx, events.AddToken{Name: "web", Role: events.RoleHost, Digest: sum})
			return err
		},
		"revoke token": func() error { _, err := conn.RevokeToken(ctx, "web", "r"); return err },
		"tokens":       func() error { _, err := conn.Tokens(ctx); return err },
		"dead list":    func() error { _, err := conn.DeadLetters(ctx, events.DeadList{}); return err },
		"dead show":    func() error { _, err := conn.DeadLetter(ctx, 1); return err },
		"dead drop":    func() error { _, err := conn.DropDead(ctx, 1); return err },
		"leases":       func() error { _, err := conn.Leases(ctx); return err },
		"page":         func() error { _, err := conn.Page(ctx, id.Scope(), 1, 10); return err },
		"tips":         func() error { _, err := conn.Tips(ctx, id.Scope()); return err },
	} {
		if err := send(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, e := range events.Catalogue() {
		if e.Class == events.ClassCommand && !sent[e.Type] {
			t.Errorf("%s has no method", e.Type)
		}
	}
}
