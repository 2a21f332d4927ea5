package targets

import "keryx/events"

// freeUnless ends a claim that was of another executor instance, or of a target that is
// exclusive no longer.
func (s *State) freeUnless(d events.TargetRegistered) {
	if h, ok := s.holders[d.Spec.Name]; ok && (h.Executor != d.Executor || h.Instance != d.Instance || !d.Spec.Exclusive) {
		delete(s.holders, d.Spec.Name)
	}
}

func (s *State) foldAttached(r events.Record) error {
	d, err := events.DataOf[events.TargetAttached](r)
	if err != nil {
		return err
	}
	if cur, ok := s.current[d.Name]; ok && cur.Instance == d.Instance {
		if s.holders == nil {
			s.holders = make(map[events.TargetName]events.TargetAttached)
		}
		s.holders[d.Name] = d
	}
	return nil
}

func (s *State) foldDetached(r events.Record) error {
	d, err := events.DataOf[events.TargetDetached](r)
	if err != nil {
		return err
	}
	if h := s.holders[d.Name]; h.Instance == d.Instance && h.Session == d.Session && h.Epoch == d.Epoch {
		delete(s.holders, d.Name)
	}
	return nil
}

// Attach decides on an executor's word that a session has its exclusive target: who has it
// is the executor's business, in order of arrival. Nil: it is known. Its error is
// unknown_target.
func (s *State) Attach(by events.PrincipalName, c events.ReportTargetAttached) (*events.TargetAttached, error) {
	if _, err := s.of(by, c.Instance, c.Name); err != nil {
		return nil, err
	}
	fact := events.TargetAttached{Name: c.Name, Executor: by, Instance: c.Instance, Session: c.Session, Epoch: c.Epoch}
	if s.holders[c.Name] == fact {
		return nil, nil
	}
	return &fact, nil
}

// Detach decides on an executor's word that a session has the target no longer. Nil: that
// is known.
func (s *State) Detach(by events.PrincipalName, c events.ReportTargetDetached) *events.TargetDetached {
	h, ok := s.holders[c.Name]
	if !ok || h.Executor != by || h.Instance != c.Instance || h.Session != c.Session || h.Epoch != c.Epoch {
		return nil
	}
	return &events.TargetDetached{
		Name: c.Name, Executor: by, Instance: c.Instance, Session: c.Session, Epoch: c.Epoch, Reason: c.Reason,
	}
}

// Holder returns who has an exclusive target; ok is false while nobody has.
func (s *State) Holder(name events.TargetName) (h events.TargetAttached, ok bool) {
	h, ok = s.holders[name]
	return h, ok
}

// Claimed returns what keeps a session from an exclusive target: target_claimed while
// another has it.
func (s *State) Claimed(name events.TargetName, by events.SessionID) error {
	h, ok := s.holders[name]
	if !ok || h.Session == by {
		return nil
	}
	return ClaimedBy(name, h.Session)
}

// ClaimedBy is how a session is refused an exclusive target that another one has.
func ClaimedBy(name events.TargetName, holder events.SessionID) *events.Error {
	return events.Errorf(events.CodeTargetClaimed, "session %s has target %q to itself", holder, name).
		With("session", string(holder))
}
