package lifecycle

import (
	"errors"
	"slices"
	"time"

	"keryx/events"
	"keryx/internal/approvals"
)

// UseApproval is the authority's own: a granted approval is to be used now, if all that
// it is bound to still is as it was.
type UseApproval struct{ Approval events.ApprovalID }

// Place is what the authority knows, outside the session's log, of where an exec is to
// run.
type Place struct {
	Target approvals.Target
	// Moved says why the selection does not hold any more; nil when it does.
	Moved error
}

// askFirst drafts an exec that waits for a person's word: the exec and the request for
// the approval, in one batch.
func (s *State) askFirst(c Command, d events.StartExec, why string) (Decision, error) {
	if len(s.approvals.Open()) >= approvals.MaxOpen {
		return Decision{}, events.Errorf(events.CodeQueueFull, "%d approvals are open in session %s", approvals.MaxOpen, s.Session)
	}
	action := approvals.Action{Session: s.Session, Epoch: s.Epoch, Target: c.Place.Target, Spec: d.Spec}
	bound := events.ExecApproval{
		ID: events.ApprovalID(c.Mint()), Digest: action.Digest(), PolicyRevision: approvals.Revision(c.Place.Target.Policy),
	}
	exec := s.draftRequested(c, d, &bound)
	t := c.Place.Target
	ask := s.draft(events.TypeApprovalRequested, events.ApprovalRequested{
		Approval: bound.ID, Exec: exec.Data.(events.ExecRequested).Exec, Turn: d.Turn, Requester: c.Caller.Name,
		Kind: t.Kind, Target: t.Name, Generation: t.Generation, AccessEpoch: t.AccessEpoch, User: t.User,
		PolicyRevision: bound.PolicyRevision, Digest: bound.Digest, Why: why, Argv: d.Spec.Argv,
		EnvSet: d.Spec.EnvSet, EnvUnset: d.Spec.EnvUnset, Cwd: d.Spec.Cwd, StdinBytes: len(d.Spec.Stdin),
		ExpiresAt: c.Now.Add(approvals.Life).UTC(),
	})
	ask.Turn = d.Turn
	return Decision{Drafts: []Draft{exec, ask}}, nil
}

// grant approves an action, unless what it is for has changed since.
func (s *State) grant(c Command, d events.GrantApproval) (Decision, error) {
	v, err := s.answerable(c, d.Approval, d.PlatformUser)
	if err != nil {
		return Decision{}, err
	}
	if err := s.stillSame(c, v); err != nil {
		return step(s.draftInvalidated(v, err))
	}
	return one(s.about(v, events.TypeApprovalGranted, events.ApprovalGranted{
		Approval: v.Approval, Exec: v.Exec, By: c.Caller.Name, PlatformUser: d.PlatformUser,
	}))
}

func (s *State) deny(c Command, d events.DenyApproval) (Decision, error) {
	v, err := s.answerable(c, d.Approval, d.PlatformUser)
	if err != nil {
		return Decision{}, err
	}
	return one(s.about(v, events.TypeApprovalDenied, events.ApprovalDenied{
		Approval: v.Approval, Exec: v.Exec, By: c.Caller.Name, PlatformUser: d.PlatformUser, Reason: d.Reason,
	}))
}

func (s *State) answerable(c Command, id events.ApprovalID, user events.PlatformUser) (events.ApprovalView, error) {
	if err := s.mayApprove(c, user); err != nil {
		return events.ApprovalView{}, err
	}
	return s.approvals.Answerable(id, c.Now)
}

// mayApprove is the right to answer an approval: operators, and a gateway of the session
// in the name of a platform user whom the session's policy lists. Never who asks.
func (s *State) mayApprove(c Command, user events.PlatformUser) error {
	switch {
	case c.Caller.Role == events.RoleOperator:
		return nil
	case c.Caller.Role != events.RoleGateway || !s.owns(c.Caller.Name):
		return s.forbidden(c)
	case user == "" || !slices.Contains(s.Policy.Approvers, user):
		e := events.Errorf(events.CodeForbidden,
			"%q is not on the list of approvers of session %s; an operator adds them by 'bus session policy'", user, s.Session)
		e.Path = "/platform_user"
		return e
	}
	return nil
}

// useApproval is the last look before the executor is told: the approval is used for the
// action as it would run now, or ended.
func (s *State) useApproval(c Command, d UseApproval) (Decision, error) {
	v, ok := s.approvals.Get(d.Approval)
	if !ok || v.State != events.ApprovalStateGranted {
		return answered(events.Done{})
	}
	if err := s.stillSame(c, v); err != nil {
		return one(s.draftInvalidated(v, err))
	}
	draft := s.about(v, events.TypeApprovalConsumed, events.ApprovalConsumed{Approval: v.Approval, Exec: v.Exec, Digest: v.Digest})
	if e, ok := s.execs.find(v.Exec); ok {
		draft.LeaseFence = e.Request.Selection.LeaseFence
	}
	return one(draft)
}

// stillSame computes the digest of an approval's action anew from what is true now.
func (s *State) stillSame(c Command, v events.ApprovalView) error {
	e, open := s.execs.find(v.Exec)
	switch {
	case !open:
		return events.Errorf(events.CodeStaleApproval, "exec %s has ended", v.Exec)
	case c.Place.Moved != nil:
		return events.Errorf(events.CodeStaleApproval, "%s", reasonOf(c.Place.Moved))
	}
	now := approvals.Action{Session: s.Session, Epoch: s.Epoch, Target: c.Place.Target, Spec: e.Request.Spec}
	if now.Digest() != v.Digest {
		return events.Errorf(events.CodeStaleApproval, "the action is not the one that approval %s is for", v.Approval)
	}
	return nil
}

func reasonOf(err error) string {
	if e, ok := errors.AsType[*events.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// about drafts an event of an approval.
func (s *State) about(v events.ApprovalView, t events.Type, data any) Draft {
	d := s.draft(t, data)
	d.Turn = v.Turn
	return d
}

// draftInvalidated ends an approval; why is told to its exec.
func (s *State) draftInvalidated(v events.ApprovalView, why error) Draft {
	d := s.about(v, events.TypeApprovalInvalidated, events.ApprovalInvalidated{
		Approval: v.Approval, Exec: v.Exec, Code: events.CodeOf(why), Reason: reasonOf(why),
	})
	d.Own = true
	return d
}

// lapsed is the end of an approval whose time or turn is over.
func (s *State) lapsed(now time.Time) (Draft, bool) {
	if v, ok := s.approvals.Expired(now); ok {
		return s.ownAbout(v, events.TypeApprovalExpired, events.ApprovalExpired{Approval: v.Approval, Exec: v.Exec}), true
	}
	for _, v := range s.approvals.Open() {
		if v.Turn != "" && v.Turn != s.running {
			return s.draftInvalidated(v, events.Errorf(events.CodeStaleApproval, "turn %s has ended", v.Turn)), true
		}
	}
	return Draft{}, false
}

func (s *State) ownAbout(v events.ApprovalView, t events.Type, data any) Draft {
	d := s.about(v, t, data)
	d.Own = true
	return d
}

// refusal is the terminal event of an exec whose approval ended without being used.
func (s *State) refusal(time.Time) (Draft, bool) {
	for _, e := range s.execs.open {
		if e.Awaiting == "" {
			continue
		}
		v, known := s.approvals.Get(e.Awaiting)
		if known && (v.State == events.ApprovalStatePending || v.State == events.ApprovalStateGranted) {
			continue
		}
		return s.draftRefusal(e, v), true
	}
	return Draft{}, false
}

func (s *State) draftRefusal(e Exec, v events.ApprovalView) Draft {
	code, text := events.CodeStaleApproval, or(v.Reason, "its approval is not known any more")
	switch v.State {
	case events.ApprovalStateDenied:
		code, text = events.CodeApprovalDenied, "denied by "+answeredBy(v)
		if v.Reason != "" {
			text += ": " + v.Reason
		}
	case events.ApprovalStateExpired:
		code = events.CodeApprovalExpired
	}
	d := s.draftFact(events.TypeExecRefused, e.Request.Exec, events.ExecRefused{Exec: e.Request.Exec, Code: code, Message: text})
	d.Own = true
	return d
}

func answeredBy(v events.ApprovalView) string {
	if v.PlatformUser != "" {
		return string(v.PlatformUser)
	}
	return string(v.By)
}

// Granted returns the approvals that are to be used: see [UseApproval].
func Granted(s *State) []events.ApprovalView {
	if !s.Open() {
		return nil
	}
	return slices.DeleteFunc(s.approvals.Open(), func(v events.ApprovalView) bool {
		return v.State != events.ApprovalStateGranted
	})
}

// Approval returns an approval, also for some time after its end.
func (s *State) Approval(id events.ApprovalID) (events.ApprovalView, bool) {
	return s.approvals.Get(id)
}

// Approvals returns the open approvals, oldest first; with ended, those that have ended
// and are remembered come before them.
func (s *State) Approvals(ended bool) []events.ApprovalView {
	if !ended {
		return s.approvals.Open()
	}
	return slices.Concat(s.approvals.Ended(), s.approvals.Open())
}

// SelectionOf returns what an open exec was selected with.
func (s *State) SelectionOf(id events.ExecID) (events.Selection, bool) {
	e, ok := s.execs.find(id)
	return e.Request.Selection, ok
}
