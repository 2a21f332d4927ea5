package setup

import (
	"keryx/events"
)

// Place is where a setup would run, as its target is registered now.
type Place struct {
	Target   events.TargetName
	Executor events.PrincipalName
	Instance events.Instance
	// Home is empty where the executor installs nothing.
	Home string
}

// Plan decides on planning a run, whose id is new. It runs nothing.
func (s *State) Plan(c events.PlanSetup, id events.RunID, p events.Profile, at Place, waits *events.SetupAsk) (Outcome, error) {
	pk, err := s.find(c.Package)
	if err != nil {
		return Outcome{}, err
	}
	if pk.Setup == nil {
		return Outcome{}, events.Errorf(events.CodeUnsupported, "package %s has no setup: enable it", pk.Key)
	}
	if at.Home == "" {
		return Outcome{}, events.Errorf(events.CodeTargetUnsupported, "the executor of target %s installs no packages: start it with --home", at.Target)
	}
	plan := events.SetupPlan{
		Run: id, Key: pk.Key, Name: pk.Name, Version: pk.Version, Source: pk.Source, Dir: pk.Dir, Profile: p,
		Target: at.Target, Executor: at.Executor, Home: at.Home, Setup: *pk.Setup, Package: pk.Revision, Files: pk.Files,
	}
	plan.Revision = PlanRevision(plan)
	state := events.SetupStatePlanned
	if pk.consents[plan.Revision] {
		state = events.SetupStateConsented
	}
	return happened(id.Scope(), events.TypeSetupPlanned, events.SetupPlanned{Plan: plan, Ask: waits},
		events.SetupAnswer{Run: id, State: state, Revision: plan.Revision})
}

func (s *State) run(id events.RunID) (*run, error) {
	if r := s.runs[id]; r != nil {
		return r, nil
	}
	return nil, events.Errorf(events.CodeUnknownRun, "no setup run has the id %s", id)
}

func (x *run) answer(state events.SetupState) events.SetupAnswer {
	return events.SetupAnswer{Run: x.plan.Run, State: state, Revision: x.plan.Revision}
}

func changed(format string, args ...any) error {
	return events.Errorf(events.CodeRevisionChanged, format, args...)
}

// Consent decides on a consent, to exactly the revision of the run's plan.
func (s *State) Consent(c events.ConsentSetup) (Outcome, error) {
	x, err := s.run(c.Run)
	if err != nil {
		return Outcome{}, err
	}
	if err := s.unchanged(x, c.Revision); err != nil {
		return Outcome{}, err
	}
	switch s.stateOf(x) {
	case events.SetupStatePlanned:
		return happened(c.Run.Scope(), events.TypeSetupConsented,
			events.SetupConsented(c), x.answer(events.SetupStateConsented))
	case events.SetupStateConsented:
		return answered(x.answer(events.SetupStateConsented))
	}
	return Outcome{}, x.over()
}

func (x *run) over() error {
	if x.summary.State.Active() {
		return busy(x)
	}
	return events.Errorf(events.CodeAlreadyEnded, "setup run %s has %s; plan another", x.plan.Run, x.summary.State)
}

// unchanged refuses a revision that is not the plan's, and a plan of what the package no
// longer is.
func (s *State) unchanged(x *run, seen events.Revision) error {
	if seen != x.plan.Revision {
		return changed("run %s is of revision %s, not %s", x.plan.Run, x.plan.Revision, seen)
	}
	p := s.pack(x.plan.Key)
	if p == nil {
		return events.Errorf(events.CodeUnknownPackage, "package %s was removed", x.plan.Key)
	}
	if p.Revision != x.plan.Package || p.Dir != x.plan.Dir {
		return changed("package %s is at revision %s now, the plan is of %s: review it again", p.Key, p.Revision, x.plan.Package)
	}
	return nil
}

// Start decides on running what was consented to, where the target is now.
func (s *State) Start(c events.RunSetup, at Place) (Outcome, error) {
	x, err := s.run(c.Run)
	if err != nil {
		return Outcome{}, err
	}
	if x.summary.State.Active() && c.Revision == x.plan.Revision {
		return answered(x.answer(x.summary.State))
	}
	if x.summary.State.Over() {
		return Outcome{}, x.over()
	}
	if err := s.unchanged(x, c.Revision); err != nil {
		return Outcome{}, err
	}
	if at.Executor != x.plan.Executor || at.Home != x.plan.Home {
		return Outcome{}, changed("target %s is %s with home %s now, the plan is of %s with home %s",
			at.Target, at.Executor, at.Home, x.plan.Executor, x.plan.Home)
	}
	if !s.packages[x.plan.Key].consents[x.plan.Revision] {
		return Outcome{}, events.Errorf(events.CodeNoConsent, "nobody consented to revision %s of run %s", x.plan.Revision, x.plan.Run)
	}
	if other := s.active(x.plan.Key); other != nil {
		return Outcome{}, busy(other)
	}
	return happened(c.Run.Scope(), events.TypeSetupStarted, events.SetupStarted{
		Run: c.Run, Revision: c.Revision, Executor: at.Executor, Instance: at.Instance,
	}, x.answer(events.SetupStateRunning))
}

// Cancel decides on cancelling a run. One that has started ends when its tree has.
func (s *State) Cancel(c events.CancelSetup) (Outcome, error) {
	x, err := s.run(c.Run)
	if err != nil {
		return Outcome{}, err
	}
	switch x.summary.State {
	case events.SetupStatePlanned:
		return happened(c.Run.Scope(), events.TypeSetupCancelled,
			events.SetupCancelled{Run: c.Run, Reason: c.Reason}, x.answer(events.SetupStateCancelled))
	case events.SetupStateRunning:
		return happened(c.Run.Scope(), events.TypeSetupCancelRequested,
			events.SetupCancelRequested(c), x.answer(events.SetupStateCancelling))
	case events.SetupStateCancelling, events.SetupStateCancelled:
		return answered(x.answer(x.summary.State))
	}
	return Outcome{}, x.over()
}
