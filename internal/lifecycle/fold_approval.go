package lifecycle

import "keryx/events"

func (s *State) foldApprovalRequested(r events.Record, d events.ApprovalRequested) {
	s.approvals.Request(events.ApprovalView{
		ApprovalRequested: d, Session: s.Session, Epoch: s.Epoch, RequestedAt: r.Time,
	})
}

func (s *State) foldApprovalGranted(r events.Record, d events.ApprovalGranted) {
	s.approvals.Grant(d.Approval, d.By, d.PlatformUser, r.Time)
	s.keepApproval(r, d.Approval)
}

func (s *State) foldApprovalDenied(r events.Record, d events.ApprovalDenied) {
	s.approvals.Deny(d.Approval, d.By, d.PlatformUser, d.Reason, r.Time)
	s.keepApproval(r, d.Approval)
}

// keepApproval answers who answered with how the approval stands by that.
func (s *State) keepApproval(r events.Record, id events.ApprovalID) {
	if v, ok := s.approvals.Get(id); ok {
		s.keepAnswer(r, v)
	}
}

func (s *State) foldApprovalExpired(r events.Record, d events.ApprovalExpired) {
	s.approvals.Expire(d.Approval, r.Time)
}

func (s *State) foldApprovalInvalidated(r events.Record, d events.ApprovalInvalidated) {
	s.approvals.Invalidate(d.Approval, d.Reason, r.Time)
	if e, ok := s.execs.find(d.Exec); ok {
		s.keepAnswer(r, s.execAnswer(e.Request)) // of the stop that did it
	}
}

// foldApprovalConsumed lets the exec go: from here on the executor is told of it.
func (s *State) foldApprovalConsumed(_ events.Record, d events.ApprovalConsumed) {
	v, ok := s.approvals.Get(d.Approval)
	if !ok || v.State != events.ApprovalStateGranted || v.Exec != d.Exec {
		return
	}
	s.approvals.Consume(d.Approval)
	if i := s.execs.index(d.Exec); i >= 0 && s.execs.open[i].Awaiting == d.Approval {
		s.execs.open[i].Awaiting = ""
	}
}

func (s *State) foldPolicyChanged(r events.Record, d events.SessionPolicyChanged) {
	s.Policy = d.Policy
	s.keepAnswer(r, events.PolicyAnswer{Session: s.Session, Policy: s.Policy})
}
