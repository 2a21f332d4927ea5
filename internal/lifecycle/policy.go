package lifecycle

import (
	"slices"

	"keryx/events"
)

// setPolicy changes what the command names of the session's policy.
func (s *State) setPolicy(c Command, d events.SetPolicy) (Decision, error) {
	if c.Caller.Role != events.RoleOperator {
		return Decision{}, s.forbidden(c)
	}
	p := s.Policy
	if d.Peers != nil {
		p.Peers = *d.Peers
	}
	if d.Approvers != nil {
		p.Approvers = slices.Clone(*d.Approvers)
	}
	if d.ToolDefault != nil {
		p.ToolDefault = *d.ToolDefault
	}
	if d.Hosts != nil {
		p.Hosts = slices.Clone(*d.Hosts)
	}
	if samePolicy(p, s.Policy) {
		return answered(events.PolicyAnswer{Session: s.Session, Policy: s.Policy})
	}
	return one(s.draft(events.TypeSessionPolicyChanged, events.SessionPolicyChanged{Policy: p}))
}

func samePolicy(a, b events.Policy) bool {
	return a.Peers == b.Peers && a.ToolDefault == b.ToolDefault &&
		slices.Equal(a.Approvers, b.Approvers) && slices.Equal(a.Hosts, b.Hosts)
}

// checkApprovers refuses a host that says who may approve what it does.
func checkApprovers(c Command, p events.Policy) error {
	if len(p.Approvers) == 0 && p.ToolDefault == "" || c.Caller.Role != events.RoleHost {
		return nil
	}
	e := events.Errorf(events.CodeForbidden, "a host may not say who approves, nor what happens to tools when nobody answers")
	e.Path = "/policy"
	return e
}

// closing is what must be on record before an epoch ends: no question stays without a
// verdict, no slash command without an outcome, no approval open, and no exec waiting.
func (s *State) closing() []Draft {
	var out []Draft
	for _, id := range s.questions.open {
		q := *s.questions.byID[id]
		out = append(out, s.draftVerdict(q, events.PolicyAnswered{
			Question: id, Verdict: events.VerdictDeny, Reason: "the epoch ends", Defaulted: true,
		}))
	}
	for _, v := range s.invocations.Open {
		out = append(out, s.draftFailed(v, events.Errorf(events.CodeEpochEnded, "epoch %s ends while the command is under way; what it does stands", s.Epoch)))
	}
	ends := events.Errorf(events.CodeStaleApproval, "epoch %s ends", s.Epoch)
	for _, v := range s.approvals.Open() {
		out = append(out, s.draftInvalidated(v, ends))
	}
	for _, e := range s.execs.open {
		if e.Awaiting == "" {
			continue
		}
		v, _ := s.approvals.Get(e.Awaiting)
		if v.State == events.ApprovalStatePending || v.State == events.ApprovalStateGranted {
			v.State, v.Reason = events.ApprovalStateInvalidated, ends.Message
		}
		out = append(out, s.draftRefusal(e, v))
	}
	return out
}

// ending returns the decision that ends an epoch, or first the one that has to precede
// it.
func (s *State) ending(d Decision) (Decision, error) {
	if first := s.closing(); len(first) > 0 && s.Open() {
		return Decision{Drafts: first, Again: true}, nil
	}
	return d, nil
}
