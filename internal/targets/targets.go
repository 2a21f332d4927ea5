package targets

import (
	"reflect"
	"slices"
	"strings"

	"keryx/events"
)

// State is the fold of a profile's target events. The zero value has no target.
type State struct {
	current     map[events.TargetName]events.TargetRegistered
	generations map[events.TargetName]uint64
	control     map[events.TargetName]control
	holders     map[events.TargetName]events.TargetAttached
}

// control says who may type into a target. It outlives registrations, so that an access
// epoch never comes back.
type control struct {
	epoch      uint64
	controller events.PrincipalName
}

// Fold applies one event. Types that are not about targets change nothing; data
// that cannot be decoded is an error and changes nothing.
func (s *State) Fold(r events.Record) error {
	switch r.Type {
	case events.TypeTargetRegistered:
		return s.foldRegistered(r)
	case events.TypeTargetWithdrawn:
		return s.foldWithdrawn(r)
	case events.TypeTargetControlChanged:
		return s.foldControl(r)
	case events.TypeTargetReported:
		return s.foldReported(r)
	case events.TypeTargetAttached:
		return s.foldAttached(r)
	case events.TypeTargetDetached:
		return s.foldDetached(r)
	}
	return nil
}

func (s *State) foldRegistered(r events.Record) error {
	d, err := events.DataOf[events.TargetRegistered](r)
	if err != nil {
		return err
	}
	if s.current == nil {
		s.current = make(map[events.TargetName]events.TargetRegistered)
		s.generations = make(map[events.TargetName]uint64)
	}
	s.current[d.Spec.Name] = d
	s.freeUnless(d)
	s.generations[d.Spec.Name] = max(d.Generation, s.generations[d.Spec.Name])
	return nil
}

func (s *State) foldWithdrawn(r events.Record) error {
	d, err := events.DataOf[events.TargetWithdrawn](r)
	if err != nil {
		return err
	}
	if cur, ok := s.current[d.Name]; ok && cur.Generation == d.Generation {
		delete(s.current, d.Name)
		delete(s.holders, d.Name)
	}
	return nil
}

// Register decides on a registration by the holder of the target's lease. It
// returns the event to append, or nil with the selection when the same instance
// registers the same again.
func (s *State) Register(by events.PrincipalName, c events.RegisterTarget) (*events.TargetRegistered, events.Selection, error) {
	if err := CheckSpec(c.Spec); err != nil {
		return nil, events.Selection{}, err
	}
	next := events.TargetRegistered{
		Spec: c.Spec, Executor: by, Instance: c.Instance, LeaseFence: c.LeaseFence,
		Generation: s.generations[c.Spec.Name] + 1, TargetCondition: c.TargetCondition,
	}
	if cur, ok := s.current[c.Spec.Name]; ok && sameRegistration(cur, next) {
		return nil, s.selection(cur), nil
	}
	return &next, s.selection(next), nil
}

func sameRegistration(a, b events.TargetRegistered) bool {
	b.Generation = a.Generation
	return reflect.DeepEqual(a, b)
}

// Withdraw decides on taking a target back. A target that is gone or belongs to
// another instance by now needs no event: nil.
func (s *State) Withdraw(by events.PrincipalName, c events.WithdrawTarget) *events.TargetWithdrawn {
	cur, ok := s.current[c.Name]
	if !ok || cur.Executor != by || cur.Instance != c.Instance {
		return nil
	}
	return &events.TargetWithdrawn{
		Name: c.Name, Executor: by, Instance: c.Instance, Generation: cur.Generation, Reason: c.Reason,
	}
}

// Select returns what pins the target as it is now, or unknown_target.
func (s *State) Select(name events.TargetName) (events.Selection, error) {
	cur, ok := s.current[name]
	if !ok {
		return events.Selection{}, unknown(name)
	}
	return s.selection(cur), nil
}

// Check returns nil if sel is still what [State.Select] would return, else
// unknown_target or stale_selection naming what moved.
func (s *State) Check(sel events.Selection) error {
	cur, err := s.Select(sel.Target)
	if err != nil {
		return err
	}
	if cur.Controller = sel.Controller; cur == sel {
		return nil
	}
	return events.Errorf(events.CodeStaleSelection,
		"target %q changed since it was selected: generation %d is now %d, access epoch %d is now %d, executor instance %s is now %s",
		sel.Target, sel.Generation, cur.Generation, sel.AccessEpoch, cur.AccessEpoch, sel.Instance, cur.Instance).
		With("generation", events.Sequence(cur.Generation).String())
}

// Find returns a target as it is registered now.
func (s *State) Find(name events.TargetName) (events.TargetRegistered, bool) {
	t, ok := s.current[name]
	return t, ok
}

// List returns all targets by name.
func (s *State) List() []events.TargetRegistered {
	out := make([]events.TargetRegistered, 0, len(s.current))
	for _, t := range s.current {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b events.TargetRegistered) int {
		return strings.Compare(string(a.Spec.Name), string(b.Spec.Name))
	})
	return out
}

func (s *State) selection(t events.TargetRegistered) events.Selection {
	c := s.control[t.Spec.Name]
	return events.Selection{
		Target: t.Spec.Name, Generation: t.Generation, LeaseFence: t.LeaseFence,
		Executor: t.Executor, Instance: t.Instance, AccessEpoch: c.epoch, Controller: c.controller,
	}
}

func unknown(name events.TargetName) *events.Error {
	return events.Errorf(events.CodeUnknownTarget, "no executor has registered target %q", name)
}
