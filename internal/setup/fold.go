package setup

import (
	"slices"

	"keryx/events"
)

// Fold applies one event of the scope _profile or of a run. Types that are not about
// packages change nothing; data that cannot be decoded is an error and changes nothing.
func (s *State) Fold(r events.Record) error {
	switch r.Type {
	case events.TypePackageAdded:
		return apply(r, s.foldAdded)
	case events.TypePackageEnabled:
		return apply(r, func(r events.Record, d events.PackageEnabled) { s.toggle(r, d.Packages, true) })
	case events.TypePackageDisabled:
		return apply(r, func(r events.Record, d events.PackageDisabled) { s.toggle(r, d.Packages, false) })
	case events.TypePackageRemoved:
		return apply(r, s.foldRemoved)
	}
	return s.foldRun(r)
}

func apply[T any](r events.Record, fold func(events.Record, T)) error {
	d, err := events.DataOf[T](r)
	if err == nil {
		fold(r, d)
	}
	return err
}

func (s *State) foldAdded(r events.Record, d events.PackageAdded) {
	if s.packages == nil {
		s.packages = make(map[events.PackageKey]*pack)
	}
	p := s.packages[d.Package.Key]
	if p == nil {
		p = &pack{consents: make(map[events.Revision]bool)}
		s.packages[d.Package.Key] = p
	}
	p.Package, p.removed = d.Package, false
	if d.Enabled {
		p.turn(r, true)
	}
}

func (p *pack) turn(r events.Record, on bool) {
	if p.enabled == on {
		return
	}
	p.enabled, p.changedAt = on, r.Time
	p.toggles = append(p.toggles, toggle{r.Sequence, on})
	if len(p.toggles) > keptToggles {
		p.toggles = slices.Clone(p.toggles[len(p.toggles)-keptToggles:])
	}
}

func (s *State) toggle(r events.Record, refs []events.PackageRef, on bool) {
	for _, ref := range refs {
		if p := s.pack(ref.Key); p != nil {
			p.turn(r, on)
		}
	}
}

func (s *State) foldRemoved(r events.Record, d events.PackageRemoved) {
	for _, ref := range d.Packages {
		if p := s.pack(ref.Key); p != nil {
			p.turn(r, false)
			p.removed, p.installed, p.asks = true, nil, nil
			clear(p.consents)
		}
	}
}

func (s *State) foldRun(r events.Record) error {
	switch r.Type {
	case events.TypeSetupPlanned:
		return apply(r, s.foldPlanned)
	case events.TypeSetupConsented:
		return s.onRun(r, func(_ *run, p *pack) error {
			return apply(r, func(_ events.Record, d events.SetupConsented) { p.consents[d.Revision] = true })
		})
	case events.TypeSetupStarted:
		return s.onRun(r, func(x *run, _ *pack) error { return apply(r, x.foldStarted) })
	case events.TypeSetupProgressed:
		return s.onRun(r, func(x *run, _ *pack) error {
			return apply(r, func(_ events.Record, d events.SetupProgressed) {
				x.summary.Progress, x.summary.Malformed = d.Progress, d.Malformed
			})
		})
	case events.TypeSetupCancelRequested:
		return s.onRun(r, func(x *run, _ *pack) error {
			x.summary.State = events.SetupStateCancelling
			return nil
		})
	}
	return s.foldEnd(r)
}

func (s *State) foldEnd(r events.Record) error {
	switch r.Type {
	case events.TypeSetupSucceeded:
		return s.onRun(r, func(x *run, p *pack) error {
			return apply(r, func(r events.Record, d events.SetupSucceeded) { x.foldSucceeded(r, d, p) })
		})
	case events.TypeSetupFailed:
		return s.onRun(r, func(x *run, _ *pack) error {
			return apply(r, func(r events.Record, d events.SetupFailed) {
				x.end(r, events.SetupStateFailed, d.Code, d.Message, d.End)
			})
		})
	case events.TypeSetupCancelled:
		return s.onRun(r, func(x *run, p *pack) error {
			return apply(r, func(r events.Record, d events.SetupCancelled) {
				x.end(r, events.SetupStateCancelled, "", d.Reason, d.End)
				p.asks = slices.DeleteFunc(p.asks, func(a ask) bool { return a.run == d.Run })
			})
		})
	case events.TypeSetupNotified:
		return s.onRun(r, func(x *run, _ *pack) error {
			return apply(r, func(_ events.Record, d events.SetupNotified) {
				x.tell = slices.DeleteFunc(x.tell, func(a events.SetupAsk) bool { return a.Session == d.Session })
			})
		})
	}
	return nil
}

// onRun folds an event of a run that was planned; its package is known then.
func (s *State) onRun(r events.Record, fold func(*run, *pack) error) error {
	x := s.runs[r.Scope.Run()]
	if x == nil {
		return nil
	}
	if err := fold(x, s.packages[x.plan.Key]); err != nil {
		return err
	}
	x.summary.Ordinal = r.Ordinal
	s.trim()
	return nil
}

func (s *State) foldPlanned(r events.Record, d events.SetupPlanned) {
	p := s.packages[d.Plan.Key]
	if p == nil {
		return
	}
	if s.runs == nil {
		s.runs = make(map[events.RunID]*run)
	}
	x := &run{plan: d.Plan, summary: events.SetupSummary{
		Run: d.Plan.Run, Key: d.Plan.Key, Version: d.Plan.Version, Target: d.Plan.Target, Revision: d.Plan.Revision,
		State: events.SetupStatePlanned, PlannedAt: r.Time, Ordinal: r.Ordinal,
	}}
	s.runs[d.Plan.Run] = x
	s.order = append(s.order, d.Plan.Run)
	p.last = d.Plan.Run
	if d.Ask != nil { // a newer request of the same session takes the place of the older
		p.asks = slices.DeleteFunc(p.asks, func(a ask) bool { return a.Session == d.Ask.Session })
		p.asks = append(p.asks, ask{*d.Ask, d.Plan.Run})
	}
}

func (x *run) foldStarted(r events.Record, d events.SetupStarted) {
	x.executor, x.instance = d.Executor, d.Instance
	x.summary.Executor, x.summary.Instance = d.Executor, d.Instance
	x.summary.State, x.summary.StartedAt = events.SetupStateRunning, r.Time
}

func (x *run) foldSucceeded(r events.Record, d events.SetupSucceeded, p *pack) {
	x.end(r, events.SetupStateSucceeded, "", "", &d.End)
	x.summary.Path, x.summary.Progress.Percent = d.Path, 100
	x.summary.Progress.Step = x.summary.Progress.Total
	delete(p.consents, x.plan.Revision)
	if p.removed {
		return
	}
	p.installed = &events.PackageInstall{
		Revision: x.plan.Package, Version: x.plan.Version, Run: d.Run, Target: x.plan.Target, Home: x.plan.Home,
		Path: d.Path, Targets: p.Targets, At: r.Time,
	}
	for _, a := range p.asks {
		x.tell = append(x.tell, a.SetupAsk)
	}
	p.asks = nil
}

func (x *run) end(r events.Record, state events.SetupState, code events.Code, message string, end *events.SetupEnd) {
	x.summary.State, x.summary.EndedAt = state, r.Time
	x.summary.Code, x.summary.Message, x.summary.End = code, message, end
}

// trim lets go of the lists of files of old runs.
func (s *State) trim() {
	over := 0
	for _, id := range slices.Backward(s.order) {
		x := s.runs[id]
		if !x.summary.State.Over() || x.plan.Files == nil {
			continue
		}
		if over++; over > keptRuns {
			x.plan.Files = nil
		}
	}
}
