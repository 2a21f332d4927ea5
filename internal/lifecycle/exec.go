package lifecycle

import (
	"keryx/events"
	"keryx/internal/approvals"
)

// startExec appends the request. That the selection still holds was checked by the
// authority, which knows the targets.
func (s *State) startExec(c Command, d events.StartExec) (Decision, error) {
	if err := s.checkOpen(); err != nil {
		return Decision{}, err
	}
	if c.Caller.Role != events.RoleOperator {
		if err := s.checkFence(c, d.Fence); err != nil {
			return Decision{}, err
		}
	}
	if err := s.checkTurn(d.Turn); err != nil {
		return Decision{}, err
	}
	why, need, err := approvals.Need(c.Place.Target.Policy, d.Spec.Argv, d.Ask)
	switch {
	case err != nil:
		return Decision{}, err
	case need:
		return s.askFirst(c, d, why)
	}
	return one(s.draftRequested(c, d, nil))
}

func (s *State) draftRequested(c Command, d events.StartExec, bound *events.ExecApproval) Draft {
	draft := s.draft(events.TypeExecRequested, events.ExecRequested{
		Exec: events.ExecID(c.Mint()), Turn: d.Turn, Requester: c.Caller.Name,
		Selection: d.Selection, Spec: d.Spec, Approval: bound,
	})
	draft.Turn, draft.LeaseFence = d.Turn, d.Selection.LeaseFence
	return draft
}

// checkTurn refuses an exec for a turn that does not run. No turn is fine.
func (s *State) checkTurn(id events.TurnID) error {
	if id == "" || id == s.running {
		return nil
	}
	if t, ok := s.turns[id]; ok {
		return alreadyEnded(t)
	}
	return unknownTurn(id)
}

// stopExec tells the executor; the end is the executor's word. One that has ended
// already needs nothing.
func (s *State) stopExec(c Command, d events.StopExec) (Decision, error) {
	if err := s.mayStop(c, d); err != nil {
		return Decision{}, err
	}
	e, open := s.execs.find(d.Exec)
	if v, waits := s.approvals.Get(e.Awaiting); open && waits {
		return one(s.draftWithdrawn(c, v))
	}
	if open {
		dec, err := answered(s.execAnswer(e.Request))
		dec.Effects = []Effect{s.sendStop(e, d.GraceMS, "asked by "+string(c.Caller.Name))}
		return dec, err
	}
	end, ok := s.execs.ended[d.Exec]
	if !ok {
		return Decision{}, unknownExec(d.Exec)
	}
	return answered(s.execAnswer(events.ExecRequested{
		Exec: d.Exec, Selection: events.Selection{Executor: end.executor},
	}))
}

// draftWithdrawn ends the approval of an exec that is stopped before it was approved.
func (s *State) draftWithdrawn(c Command, v events.ApprovalView) Draft {
	d := s.draftInvalidated(v, events.Errorf(events.CodeStaleApproval, "stopped by %s before it was started", c.Caller.Name))
	d.Own = false
	return d
}

func (s *State) mayStop(c Command, d events.StopExec) error {
	if c.Caller.Role == events.RoleHost {
		return s.checkFence(c, d.Fence)
	}
	return s.mayChange(c)
}

func unknownExec(id events.ExecID) error {
	return events.Errorf(events.CodeUnknownExec, "no exec %q", id)
}

func (s *State) reportStarted(c Command, d events.ReportStarted) (Decision, error) {
	if dec, done, err := s.report(c, d.Fact.Exec, &d.Instance, events.TypeExecStarted); done || err != nil {
		return dec, err
	}
	return one(s.draftFact(events.TypeExecStarted, d.Fact.Exec, d.Fact))
}

func (s *State) reportRefused(c Command, d events.ReportRefused) (Decision, error) {
	if dec, done, err := s.report(c, d.Fact.Exec, &d.Instance, events.TypeExecRefused); done || err != nil {
		return dec, err
	}
	return one(s.draftFact(events.TypeExecRefused, d.Fact.Exec, d.Fact))
}

func (s *State) reportExited(c Command, d events.ReportExited) (Decision, error) {
	if dec, done, err := s.report(c, d.Fact.Exec, &d.Instance, events.TypeExecExited); done || err != nil {
		return dec, err
	}
	return one(s.draftFact(events.TypeExecExited, d.Fact.Exec, d.Fact))
}

// reportLost is taken from any instance of the executor: a later one says that it does
// not know the exec.
func (s *State) reportLost(c Command, d events.ReportLost) (Decision, error) {
	if dec, done, err := s.report(c, d.Fact.Exec, nil, events.TypeExecLost); done || err != nil {
		return dec, err
	}
	return one(s.draftFact(events.TypeExecLost, d.Fact.Exec, d.Fact))
}

// report checks who says a fact about an exec, and whether it was said before: done
// with the first answer, or refused because another fact ended the exec.
func (s *State) report(c Command, id events.ExecID, inst *events.Instance, kind events.Type) (dec Decision, done bool, err error) {
	e, open := s.execs.find(id)
	end, ended := s.execs.ended[id]
	if !open && !ended {
		return Decision{}, false, unknownExec(id)
	}
	if open {
		end.executor, end.instance = e.Request.Selection.Executor, e.Request.Selection.Instance
	}
	if end.executor != c.Caller.Name {
		return Decision{}, false, s.forbidden(c)
	}
	if open && e.Awaiting != "" {
		return Decision{}, false, events.Errorf(events.CodeWrongState, "exec %s waits for approval %s and was not sent to anybody", id, e.Awaiting)
	}
	if inst != nil && *inst != end.instance {
		return Decision{}, false, events.Errorf(events.CodeStaleFence,
			"exec %s was sent to instance %s", id, end.instance)
	}
	return s.repeated(e, end, ended, kind)
}

func (s *State) repeated(e Exec, end execEnd, ended bool, kind events.Type) (Decision, bool, error) {
	switch {
	case ended && end.kind == kind:
		dec, err := answered(events.Done{Sequence: end.sequence})
		return dec, true, err
	case ended:
		return Decision{}, false, events.Errorf(events.CodeAlreadyEnded, "the exec has ended: %s", end.kind.Short()).
			With("outcome", end.kind.Short())
	case kind == events.TypeExecStarted && e.Started:
		dec, err := answered(events.Done{Sequence: s.execs.started[e.Request.Exec]})
		return dec, true, err
	}
	return Decision{}, false, nil
}

// draftFact drafts what an executor said, with the fences of the request.
func (s *State) draftFact(t events.Type, id events.ExecID, data any) Draft {
	e, _ := s.execs.find(id)
	d := s.draft(t, data)
	d.Turn, d.LeaseFence = e.Request.Turn, e.Request.Selection.LeaseFence
	return d
}
