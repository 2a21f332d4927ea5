package setup

import (
	"slices"

	"keryx/events"
)

// List returns the packages by key. since is where the session that was asked about
// began its epoch or got its host; 0 for none.
func (s *State) List(since events.Sequence) []events.PackageView {
	out := []events.PackageView{}
	for _, p := range s.known() {
		v := events.PackageView{Package: p.Package, Enabled: p.enabled, ChangedAt: p.changedAt, Installed: p.installed}
		if r := s.shown(p); r != nil {
			summary := s.summary(r)
			v.Run = &summary
		}
		if since != 0 {
			on := s.InEffect(p.Key, since)
			v.InEffect = &on
		}
		out = append(out, v)
	}
	return out
}

// shown is the run that tells most of a package: the active one, or the last.
func (s *State) shown(p *pack) *run {
	if r := s.active(p.Key); r != nil {
		return r
	}
	return s.runs[p.last]
}

// Show returns a run. The plan of an old one has no files: the log has them.
func (s *State) Show(id events.RunID) (events.SetupView, error) {
	x, err := s.run(id)
	if err != nil {
		return events.SetupView{}, err
	}
	v := events.SetupView{SetupSummary: s.summary(x), Plan: x.plan, Asks: slices.Clone(x.tell)}
	if p := s.packages[x.plan.Key]; p != nil && !x.summary.State.Over() {
		for _, a := range p.asks {
			v.Asks = append(v.Asks, a.SetupAsk)
		}
	}
	return v, nil
}

// Runs returns runs, newest first, as a list command asks for them.
func (s *State) Runs(q events.SetupList) ([]events.SetupSummary, error) {
	var key events.PackageKey
	if q.Package != "" {
		p, err := s.find(q.Package)
		if err != nil {
			return nil, err
		}
		key = p.Key
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	out := []events.SetupSummary{}
	for _, id := range slices.Backward(s.order) {
		x := s.runs[id]
		if key != "" && x.plan.Key != key || q.Executor != "" && (x.executor != q.Executor || !x.summary.State.Active()) {
			continue
		}
		if out = append(out, s.summary(x)); len(out) == limit {
			break
		}
	}
	return out, nil
}

// Order is what an executor is to be told of a run again after a restart of the bus.
type Order struct {
	Executor events.PrincipalName
	Instance events.Instance
	Plan     events.SetupPlan
	Stop     bool // it is to be stopped
}

// Orders are those of the runs that have started and not ended.
func (s *State) Orders() []Order {
	var out []Order
	for _, id := range s.order {
		if x := s.runs[id]; x.summary.State.Active() {
			out = append(out, x.order())
		}
	}
	return out
}

// OrderOf is what a run's executor is to be told now; ok is false when it is nothing.
func (s *State) OrderOf(id events.RunID) (Order, bool) {
	x := s.runs[id]
	if x == nil || !x.summary.State.Active() {
		return Order{}, false
	}
	return x.order(), true
}

func (x *run) order() Order {
	return Order{Executor: x.executor, Instance: x.instance, Plan: x.plan, Stop: x.summary.State == events.SetupStateCancelling}
}

// Owed is a session that is to be told of a success.
type Owed struct {
	Run     events.RunID
	Name    string
	Version string
	Key     events.PackageKey
	Ask     events.SetupAsk
}

// Owed returns who is still to be told, oldest first.
func (s *State) Owed() []Owed {
	var out []Owed
	for _, id := range s.order {
		x := s.runs[id]
		for _, a := range x.tell {
			out = append(out, Owed{Run: id, Name: x.plan.Name, Version: x.plan.Version, Key: x.plan.Key, Ask: a})
		}
	}
	return out
}

// Answer returns what the command behind an event was answered; ok is false for events
// of others.
func (s *State) Answer(r events.Record) (answer any, ok bool) {
	switch r.Type {
	case events.TypePackageAdded:
		d, err := events.DataOf[events.PackageAdded](r)
		return events.PackageRefs{Packages: []events.PackageRef{{Key: d.Package.Key, Revision: d.Package.Revision}}}, err == nil
	case events.TypePackageEnabled:
		d, err := events.DataOf[events.PackageEnabled](r)
		return events.PackageRefs(d), err == nil
	case events.TypePackageDisabled:
		d, err := events.DataOf[events.PackageDisabled](r)
		return events.PackageRefs(d), err == nil
	case events.TypePackageRemoved:
		d, err := events.DataOf[events.PackageRemoved](r)
		return events.PackageRefs(d), err == nil
	case events.TypeSetupProgressed, events.TypeSetupNotified:
		return events.Done{Sequence: r.Sequence}, true
	}
	if x := s.runs[r.Scope.Run()]; x != nil {
		return s.runAnswer(r, x)
	}
	return nil, false
}

func (s *State) runAnswer(r events.Record, x *run) (any, bool) {
	switch r.Type {
	case events.TypeSetupPlanned, events.TypeSetupConsented, events.TypeSetupStarted, events.TypeSetupCancelRequested:
		return x.answer(s.stateOf(x)), true
	case events.TypeSetupSucceeded:
		return events.SetupVerdict{Keep: true}, true
	case events.TypeSetupFailed:
		return events.SetupVerdict{}, true
	case events.TypeSetupCancelled: // of the operator before the start, of the executor after
		if x.executor == "" {
			return x.answer(x.summary.State), true
		}
		return events.SetupVerdict{}, true
	}
	return nil, false
}
