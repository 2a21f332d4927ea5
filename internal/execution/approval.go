package execution

import (
	"sync"

	"keryx/events"
	"keryx/internal/approvals"
)

// approve is the executor's own look at an order, just before the launch: an action that
// its target's policy wants approved has an approval of exactly this action. It marks
// the approval as used: the launch that follows is the only one for it, whatever comes of
// that. What the order says of the target was held against what is held.
func (s *service) approve(o events.StartOrder, target events.TargetSpec) error {
	bound := o.Request.Approval
	if bound == nil {
		return needsNone(o, target)
	}
	sel := o.Request.Selection
	action := approvals.Action{
		Session: o.Session, Epoch: o.Epoch, Spec: o.Request.Spec,
		Target: approvals.TargetOf(target, sel.Generation, sel.AccessEpoch),
	}
	if action.Digest() != bound.Digest {
		return events.Errorf(events.CodeStaleApproval, "the action is not the one that approval %s is for", bound.ID)
	}
	return s.spent.use(bound.ID, o.Request.Exec)
}

func needsNone(o events.StartOrder, target events.TargetSpec) error {
	why, need, err := approvals.Need(target.Approval, o.Request.Spec.Argv, false)
	if err == nil && need {
		return events.Errorf(events.CodeStaleApproval, "%s wants an approval, and the order has none", why)
	}
	return err
}

// spent remembers which approvals were used, for which exec. The zero value knows none.
type spent struct {
	mu    sync.Mutex
	by    map[events.ApprovalID]events.ExecID
	order []events.ApprovalID // oldest first
}

// use uses an approval up, or says that it is.
func (s *spent) use(id events.ApprovalID, exec events.ExecID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by, used := s.by[id]; used {
		return events.Errorf(events.CodeStaleApproval, "approval %s was used for exec %s", id, by)
	}
	if s.by == nil {
		s.by = make(map[events.ApprovalID]events.ExecID)
	}
	s.by[id], s.order = exec, append(s.order, id)
	if len(s.order) > endedKept {
		delete(s.by, s.order[0])
		s.order = s.order[1:]
	}
	return nil
}
