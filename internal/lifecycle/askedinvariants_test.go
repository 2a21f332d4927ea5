package lifecycle_test

import "keryx/events"

// mayRun reports whether an exec needs no approval, or its approval was used.
func (a *audit) mayRun(id events.ExecID) bool {
	approval, needed := a.bound[id]
	return !needed || a.approved[approval] == events.ApprovalStateConsumed
}

// asked follows approvals and questions: each state has one before it.
func (a *audit) asked(r events.Record, data any) {
	pending, granted := events.ApprovalStatePending, events.ApprovalStateGranted
	switch d := data.(type) {
	case events.ApprovalRequested:
		a.moves(r, d.Approval, pending, "")
		a.need(a.bound[d.Exec] == d.Approval, r, "its exec is bound to another")
	case events.ApprovalGranted:
		a.moves(r, d.Approval, granted, pending)
	case events.ApprovalDenied:
		a.moves(r, d.Approval, events.ApprovalStateDenied, pending)
	case events.ApprovalExpired:
		a.moves(r, d.Approval, events.ApprovalStateExpired, pending, granted)
	case events.ApprovalInvalidated:
		a.moves(r, d.Approval, events.ApprovalStateInvalidated, pending, granted)
	case events.ApprovalConsumed:
		a.moves(r, d.Approval, events.ApprovalStateConsumed, granted)
		a.need(a.execEnds[d.Exec] == 0, r, "its exec has ended")
	case events.PolicyAsked:
		a.verdicts[d.Question] = 0
	case events.PolicyAnswered:
		a.verdicts[d.Question]++
		a.need(a.verdicts[d.Question] == 1, r, "second verdict")
	}
}

func (a *audit) moves(r events.Record, id events.ApprovalID, to events.ApprovalState, from ...events.ApprovalState) {
	is := a.approved[id]
	for _, f := range from {
		if f == is {
			a.approved[id] = to
			return
		}
	}
	a.need(false, r, "approval was "+string(is))
}

// closed checks that nothing waits at the end of an epoch.
func (a *audit) closed(r events.Record) {
	for id, s := range a.approved {
		a.need(s != events.ApprovalStatePending && s != events.ApprovalStateGranted, r, "approval is open: "+string(id))
	}
	for id, n := range a.verdicts {
		a.need(n == 1, r, "question has no verdict: "+string(id))
	}
	for id, n := range a.invoked {
		a.need(n == 1, r, "slash command has no outcome: "+string(id))
	}
	for exec, approval := range a.bound {
		if a.approved[approval] != events.ApprovalStateConsumed {
			a.need(a.execEnds[exec] == 1, r, "exec waits for ever: "+string(exec))
		}
	}
}

// slash checks that a slash command has one outcome.
func (a *audit) slash(r events.Record, data any) {
	end := func(id events.CommandID) {
		n, known := a.invoked[id]
		a.need(known && n == 0, r, "outcome of a slash command that was not given, or the second")
		a.invoked[id]++
	}
	switch d := data.(type) {
	case events.CommandInvoked:
		_, known := a.invoked[d.Invocation]
		a.need(!known, r, "given twice")
		a.invoked[d.Invocation] = 0
	case events.CommandCompleted:
		end(d.Invocation)
	case events.CommandFailed:
		end(d.Invocation)
	}
}
