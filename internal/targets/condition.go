package targets

import (
	"reflect"

	"keryx/events"
)

func (s *State) foldReported(r events.Record) error {
	d, err := events.DataOf[events.TargetReported](r)
	if err != nil {
		return err
	}
	if cur, ok := s.current[d.Name]; ok && cur.Instance == d.Instance && cur.Generation == d.Generation {
		cur.TargetCondition = d.TargetCondition
		s.current[d.Name] = cur
	}
	return nil
}

// Report decides on an executor's word on the condition of its target. Nil: it is known,
// or of a registration that is over. Its error is unknown_target.
func (s *State) Report(by events.PrincipalName, c events.ReportTarget) (*events.TargetReported, error) {
	cur, err := s.of(by, c.Instance, c.Name)
	if err != nil {
		return nil, err
	}
	if cur.Generation != c.Generation || reflect.DeepEqual(cur.TargetCondition, c.TargetCondition) {
		return nil, nil
	}
	return &events.TargetReported{
		Name: c.Name, Executor: by, Instance: c.Instance, Generation: c.Generation, TargetCondition: c.TargetCondition,
	}, nil
}

// of returns a target that an executor instance has registered.
func (s *State) of(by events.PrincipalName, inst events.Instance, name events.TargetName) (events.TargetRegistered, error) {
	cur, ok := s.current[name]
	if !ok || cur.Executor != by || cur.Instance != inst {
		return cur, events.Errorf(events.CodeUnknownTarget, "this instance of %s has not registered target %q", by, name)
	}
	return cur, nil
}

// Fault returns why a registered target cannot be used now, or nil.
func (s *State) Fault(name events.TargetName) error {
	cur := s.current[name]
	if cur.Fault == nil {
		return nil
	}
	return events.Errorf(cur.Fault.Code, "target %q cannot be used now: %s", name, cur.Fault.Message)
}
