package lifecycle

import "keryx/events"

// hostLost ends the turn of a host whose lease ran out, takes back its offer, and
// detaches it: one event at a time.
func (s *State) hostLost(d HostLost) (Decision, error) {
	if s.Host == nil || s.Host.Instance != d.Instance {
		return answered(events.Done{})
	}
	if t := s.Running(); t != nil {
		return step(s.lose(*t, "the host's lease ran out"))
	}
	if _, ok := s.OpenOffer(); ok {
		if s.hostCan(events.CapIdempotentOffer) {
			return step(s.draftRequeue("host lost", 0))
		}
		return step(s.draftUnresolved("host lost before it answered"))
	}
	return one(s.draftDetach(events.DetachHostLost))
}

// executorLost ends the execs of an executor instance in a target that it has lost for good.
func (s *State) executorLost(d ExecutorLost) (Decision, error) {
	for _, e := range s.execs.open {
		if !d.concerns(e.Request.Selection) {
			continue
		}
		if v, waits := s.approvals.Get(e.Awaiting); waits && (v.State == events.ApprovalStatePending || v.State == events.ApprovalStateGranted) {
			return step(s.draftInvalidated(v, events.Errorf(events.CodeStaleApproval, "%s", or(d.Reason, "executor lost"))))
		}
		id := e.Request.Exec
		return step(s.draftFact(events.TypeExecLost, id, events.ExecLost{
			Exec: id, Reason: or(d.Reason, "executor lost"),
		}))
	}
	return answered(events.Done{})
}

// turnTimeout ends an interrupted turn that did not end.
func (s *State) turnTimeout(d TurnTimeout) (Decision, error) {
	t := s.Running()
	if t == nil || t.Turn != d.Turn {
		return answered(events.Done{})
	}
	lost := s.lose(*t, "no end within 10 s of the interrupt")
	return Decision{Drafts: []Draft{lost}, Again: lost.Type != events.TypeTurnEnded}, nil
}

// busEnded finalizes a session that lives as long as the bus; others go on.
func (s *State) busEnded(reason string) (Decision, error) {
	if !s.Open() || s.Policy.Lifetime != events.LifetimeBus {
		return answered(events.Done{})
	}
	if t := s.Running(); t != nil {
		return step(s.lose(*t, "the session ended with the bus: "+reason))
	}
	return s.ending(Decision{Drafts: []Draft{s.draftOwnFinalize(reason)}})
}
