package lifecycle_test

import (
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// draw returns a random command and who sends it.
func (m *machine) draw() (events.Principal, any) {
	switch rapid.SampledFrom([]string{"turn", "item", "submit", "host", "turn", "exec", "exec", "name", "turn", "epoch", "own", "host", "turn", "ask", "ask", "slash"}).Draw(m.rt, "what") {
	case "turn":
		return m.drawTurn()
	case "host":
		return m.drawHost()
	case "submit":
		return m.drawSubmit()
	case "item":
		return m.drawItem()
	case "name":
		return m.drawName()
	case "epoch":
		return m.drawEpoch()
	case "exec":
		return m.drawExec()
	case "ask":
		return m.drawAsk()
	case "slash":
		return m.drawSlash()
	}
	return self, m.drawOwn()
}

// rarely is true once in n times or less: rapid prefers small numbers.
func (m *machine) rarely(what string, n int) bool {
	return rapid.IntRange(0, n).Draw(m.rt, what) == n
}

func oneOf[T any](m *machine, what string, vs ...T) T { return rapid.SampledFrom(vs).Draw(m.rt, what) }

// mostly returns the fitting value most of the time, else one of the past.
func mostly[T comparable](m *machine, what string, fitting T, past []T) T {
	if len(past) > 0 && m.rarely(what+" from the past", 6) {
		return rapid.SampledFrom(past).Draw(m.rt, what)
	}
	return fitting
}

func (m *machine) fence() events.Fence {
	var f events.Fence
	if m.state.Host != nil {
		f = m.state.Host.Fence
	}
	return mostly(m, "fence", f, m.fences)
}

func (m *machine) hostNow() events.Principal {
	by := host
	if h := m.state.Host; h != nil {
		by = principal(h.Host, events.RoleHost)
	}
	return mostly(m, "host", by, []events.Principal{host, aide, rude})
}

func (m *machine) turn() events.TurnID {
	var t events.TurnID
	if r := m.state.Running(); r != nil {
		t = r.Turn
	}
	return mostly(m, "turn", t, m.turns)
}

func (m *machine) drawTurn() (events.Principal, any) {
	if o, ok := m.state.OpenOffer(); ok && o.Turn != "" && rapid.Bool().Draw(m.rt, "answer the steer") {
		if m.rarely("decline the steer", 2) {
			return m.hostNow(), events.Decline{Session: session, Fence: m.fence(), Offer: o.ID, Reason: "busy"}
		}
		return m.hostNow(), events.Accept{Session: session, Fence: m.fence(), Offer: o.ID, Turn: m.turn()}
	}
	if m.state.Running() != nil || m.rarely("end anyway", 6) {
		t, f := m.turn(), m.fence()
		if e, ok := m.state.TurnEntry(t); ok && !m.rarely("another fence", 3) {
			return principal(e.Host, events.RoleHost), m.drawEnd(e.Fence, t)
		}
		return m.hostNow(), m.drawEnd(f, t)
	}
	var o events.OfferID
	if open, ok := m.state.OpenOffer(); ok {
		o = open.ID
	}
	o = mostly(m, "offer", o, m.offers)
	if m.rarely("decline", 4) {
		return m.hostNow(), events.Decline{Session: session, Fence: m.fence(), Offer: o, Reason: "busy"}
	}
	turn := mostly(m, "turn", events.TurnID(m.mint()), m.turns)
	m.turns = append(m.turns, turn)
	return m.hostNow(), events.Accept{Session: session, Fence: m.fence(), Offer: o, Turn: turn, TaskID: "task"}
}

func (m *machine) drawEnd(f events.Fence, t events.TurnID) events.End {
	return events.End{
		Session: session, Fence: f, Turn: t, Reply: "r",
		Outcome: oneOf(m, "outcome", events.OutcomeCompleted, events.OutcomeFailed, events.OutcomeAborted, events.OutcomeLost),
	}
}

func (m *machine) drawHost() (events.Principal, any) {
	switch oneOf(m, "host does", "attach", "attach", "attach", "detach", "reanchor") {
	case "detach":
		return m.hostNow(), events.Detach{Session: session, Fence: m.fence()}
	case "reanchor":
		return m.hostNow(), events.Reanchor{
			Session: session, Fence: m.fence(), Reason: "compressed",
			StoredSessionID: events.StoredSessionID(oneOf(m, "stored", "s1", "s2", "s3")),
		}
	}
	a := events.Attach{
		Session: session, Instance: oneOf(m, "instance", events.Instance("i1"), "i2"),
		RuntimeSessionID: oneOf(m, "runtime", events.RuntimeSessionID(""), "r1", "r2"),
	}
	for _, c := range []events.Capability{events.CapIdempotentOffer, events.CapSteer, events.CapMerge, events.CapInterrupt} {
		if m.rarely(string(c), 1) {
			a.Capabilities = append(a.Capabilities, c)
		}
	}
	return oneOf(m, "host", host, aide, rude), a
}

func (m *machine) drawSubmit() (events.Principal, any) {
	return oneOf(m, "sender", gw1, gw1, gw2, op, host, exe), events.Submit{
		To:             oneOf(m, "to", "k1", "k2", "s1", "r1", string(session)),
		Body:           events.Body{Text: oneOf(m, "text", "a", "b")},
		Mode:           oneOf(m, "mode", events.Mode(""), events.ModeEnqueue, events.ModeReject, events.ModeSteer, events.ModeMerge, events.ModeInterrupt),
		Allow:          oneOf(m, "allow", nil, []events.Mode{events.ModeReject, events.ModeEnqueue}, []events.Mode{events.ModeEnqueue}),
		TTLMS:          oneOf(m, "ttl", int64(0), 0, 1000, 5000),
		InMS:           oneOf(m, "in", int64(0), 0, 0, 2000),
		Bind:           oneOf(m, "bind", nil, nil, []events.Binding{events.BindSource}, []events.Binding{events.BindEpoch, events.BindSurface}),
		Kind:           oneOf(m, "kind", events.ItemKind(""), events.ItemUser, events.ItemSystem, events.ItemPeer, events.ItemJobExit),
		IdempotencyKey: oneOf(m, "key", "", "", "x", "y"),
		OnReset:        oneOf(m, "on reset", events.OnReset(""), events.OnResetCarry, events.OnResetDrop),
		Follow:         rapid.Bool().Draw(m.rt, "follow"),
	}
}

func (m *machine) drawName() (events.Principal, any) {
	names := events.Names{
		GatewaySessionKey: oneOf(m, "gateway key", events.GatewaySessionKey("k1"), "k1", "k2"),
		StoredSessionID:   oneOf(m, "stored", events.StoredSessionID(""), "s1", "s2"),
		SessionID:         oneOf(m, "agent id", events.AgentSessionID(""), "a1", "a2"),
		Source:            oneOf(m, "source", "", "x", "y"),
	}
	by := oneOf(m, "who names", gw1, gw1, gw2, op, host, rude)
	if names.GatewaySessionKey == "k1" && rapid.Bool().Draw(m.rt, "register") {
		return by, events.Register{Names: names}
	}
	return by, events.Alias{To: oneOf(m, "to", "k1", "k2", "s1", string(session)), Names: names}
}

func (m *machine) drawEpoch() (events.Principal, any) {
	by := oneOf(m, "who ends", gw1, gw1, gw2, op, m.hostNow())
	to := oneOf(m, "to", "k1", "k2", "s1", string(session))
	switch oneOf(m, "ends", "reset", "reset", "finalize", "interrupt") {
	case "finalize":
		return by, events.Finalize{To: to, Reason: oneOf(m, "reason", "bye", "", events.ReasonHostGone)}
	case "interrupt":
		return by, events.Interrupt{To: to, Reason: "stop", Turn: m.turn()}
	}
	return by, events.Reset{To: to, Reason: "new"}
}

func (m *machine) drawExec() (events.Principal, any) {
	id := events.ExecID("01JNOEXEC00000000000000000")
	if n := len(m.execs); n > 0 {
		id = mostly(m, "exec", m.execs[n-1], m.execs)
	}
	inst := oneOf(m, "executor instance", events.Instance("e1"), "e1", "e2")
	switch oneOf(m, "exec does", "start", "started", "exited", "refused", "stop", "lost") {
	case "stop":
		return m.hostNow(), events.StopExec{Session: session, Fence: m.fence(), Exec: id}
	case "started":
		return exe, events.ReportStarted{Session: session, Instance: inst, Fact: events.ExecStarted{Exec: id, PID: 7}}
	case "refused":
		return exe, events.ReportRefused{Session: session, Instance: inst, Fact: events.ExecRefused{Exec: id, Code: events.CodeLaunchFailed}}
	case "exited":
		return exe, events.ReportExited{Session: session, Instance: inst, Fact: events.ExecExited{Exec: id}}
	case "lost":
		return oneOf(m, "who lost", exe, rude), events.ReportLost{Session: session, Fact: events.ExecLost{Exec: id, Reason: "restart"}}
	}
	return m.hostNow(), events.StartExec{
		Session: session, Fence: m.fence(), Turn: m.turn(),
		Selection: events.Selection{Target: "local", Executor: exe.Name, Instance: inst}, Ask: rapid.Bool().Draw(m.rt, "ask first"),
		Spec: events.ExecSpec{
			Argv: []string{"true"}, Outlives: oneOf(m, "outlives", events.Outlives(""), events.OutlivesEpoch, events.OutlivesSession),
		},
	}
}

func (m *machine) drawOwn() any {
	switch oneOf(m, "authority does", "host lost", "host lost", "executor lost", "timeout", "stopped", "restarted", "use") {
	case "use":
		return lifecycle.UseApproval{Approval: m.approval()}
	case "host lost":
		return lifecycle.HostLost{Instance: oneOf(m, "instance", events.Instance("i1"), "i2")}
	case "executor lost":
		return lifecycle.ExecutorLost{Executor: exe.Name, Instance: oneOf(m, "instance", events.Instance("e1"), "e2"), Reason: "gone"}
	case "timeout":
		return lifecycle.TurnTimeout{Turn: m.turn()}
	case "stopped":
		return lifecycle.BusStopped{}
	}
	return lifecycle.BusRestarted{}
}

// drawItem decides on an item that was queued before.
func (m *machine) drawItem() (events.Principal, any) {
	by := oneOf(m, "who decides", gw1, gw1, gw2, op, op)
	id := events.ReceiptID("01JNOITEM00000000000000000")
	if n := len(m.items); n > 0 {
		id = mostly(m, "item", m.items[n-1], m.items)
	}
	if u := m.state.Queue.Unresolved(); len(u) > 0 && rapid.Bool().Draw(m.rt, "an unresolved one") {
		id = u[0].Receipt
	}
	switch oneOf(m, "what becomes of it", "cancel", "edit", "requeue", "discard") {
	case "edit":
		return by, events.Edit{Receipt: id, Body: events.Body{Text: "edited"}}
	case "requeue":
		return by, events.Requeue{Receipt: id}
	case "discard":
		return by, events.Discard{Receipt: id}
	}
	return by, events.Cancel{Receipt: id}
}

func (m *machine) approval() events.ApprovalID {
	id := events.ApprovalID("01JNOAPPROVAL0000000000000")
	if all := m.state.Approvals(true); len(all) > 0 {
		id = rapid.SampledFrom(all).Draw(m.rt, "any approval").Approval
	}
	if open := m.state.Approvals(false); len(open) > 0 && !m.rarely("any", 3) {
		id = rapid.SampledFrom(open).Draw(m.rt, "open approval").Approval
	}
	return id
}

// drawAsk answers approvals, moves targets under them, and asks and answers questions.
func (m *machine) drawAsk() (events.Principal, any) {
	if m.rarely("the target moves", 5) {
		m.place.Target.Generation++
	}
	by := oneOf(m, "who answers", op, op, op, gw1, gw2, host, exe)
	user := oneOf(m, "user", events.PlatformUser(""), "u1", "u2")
	switch oneOf(m, "asks", "grant", "grant", "deny", "question", "vote", "policy") {
	case "deny":
		return by, events.DenyApproval{Approval: m.approval(), PlatformUser: user, Reason: "no"}
	case "question":
		m.judges = oneOf(m, "judges", nil, []events.Judge{{Principal: op.Name, Instance: "j1"}},
			[]events.Judge{{Principal: op.Name, Instance: "j1"}, {Principal: gw1.Name, Instance: "j2"}})
		return m.hostNow(), events.AskPolicy{Session: session, Fence: m.fence(), Turn: m.turn(), Tool: "bash", Digest: "d"}
	case "vote":
		id := events.CommandID("01JNOQUESTION0000000000000")
		for _, d := range m.data {
			if q, ok := d.(events.PolicyAsked); ok && !m.rarely("not this", 3) {
				id = q.Question
			}
		}
		return by, events.VotePolicy{
			Session: session, Question: id, Instance: oneOf(m, "judge", events.Instance("j1"), "j2"),
			Verdict: oneOf(m, "verdict", events.VerdictAllow, events.VerdictDeny),
		}
	case "policy":
		peers, to := rapid.Bool().Draw(m.rt, "peers"), oneOf(m, "default", events.ToolDefaultAuto, events.ToolDefaultAllow)
		return oneOf(m, "who sets", op, op, gw1, host), events.SetPolicy{To: "k1", Peers: &peers, ToolDefault: &to, Approvers: &[]events.PlatformUser{"u1"}}
	}
	return by, events.GrantApproval{Approval: m.approval(), PlatformUser: user}
}

// drawSlash gives slash commands, answers them, and loses their handler.
func (m *machine) drawSlash() (events.Principal, any) {
	m.handler = oneOf(m, "handler", deploys, deploys, lifecycle.HandlerPlace{Missing: events.ErrOf(events.CodeUnknownCommand)})
	switch oneOf(m, "slash", "give", "answer", "answer", "lost") {
	case "give":
		return oneOf(m, "who gives", gw1, op), events.InvokeCommand{
			To: "k1", Name: "deploy", RawArgs: "v2", Surface: oneOf(m, "surface", "web", events.SurfaceHTTP), Async: rapid.Bool().Draw(m.rt, "async"),
		}
	case "lost":
		return self, lifecycle.HandlerLost{Handler: deploys.Handler}
	}
	a := events.AnswerCommand{Invocation: "01JNOCOMMAND00000000000000", Instance: oneOf(m, "instance", deploys.Handler.Instance, deploys.Handler.Instance, "other")}
	for _, d := range m.data {
		if v, ok := d.(events.CommandInvoked); ok && !m.rarely("not this", 3) {
			a.Invocation = v.Invocation
		}
	}
	if rapid.Bool().Draw(m.rt, "fails") {
		a.Error = &events.Error{Code: events.CodeHandlerFailed, Message: "no"}
	}
	return oneOf(m, "who answers", host, host, aide), a
}
