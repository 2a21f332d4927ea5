package authority

import (
	"context"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/targets"
)

// targetCommand answers a command about targets; ok is false if it is about something else.
func (l *profileLane) targetCommand(ctx context.Context, req *request) (answer any, ok bool, err error) {
	switch d := req.data.(type) {
	case events.RegisterTarget:
		answer, err = l.registerTarget(ctx, req, d)
	case events.WithdrawTarget:
		answer, err = appendDone(ctx, l, req, events.TypeTargetWithdrawn, l.targets.Withdraw(req.caller.Name, d), nil)
	case events.ControlTarget:
		answer, err = l.control(ctx, req, d)
	case events.ReportTarget:
		fact, refused := l.targets.Report(req.caller.Name, d)
		answer, err = appendDone(ctx, l, req, events.TypeTargetReported, fact, refused)
	case events.ReportTargetAttached:
		fact, refused := l.targets.Attach(req.caller.Name, d)
		answer, err = appendDone(ctx, l, req, events.TypeTargetAttached, fact, refused)
	case events.ReportTargetDetached:
		answer, err = appendDone(ctx, l, req, events.TypeTargetDetached, l.targets.Detach(req.caller.Name, d), nil)
	case events.DetachTarget:
		answer, err = events.Done{}, l.detachTarget(req.caller, d)
	default:
		return nil, false, nil
	}
	return answer, true, err
}

// appendDone appends a fact, if there is one, and answers so.
func appendDone[T any](ctx context.Context, l *profileLane, req *request, t events.Type, fact *T, refused error) (events.Done, error) {
	if refused != nil || fact == nil {
		return events.Done{}, refused
	}
	err := l.append(ctx, originOf(req), t, *fact)
	return events.Done{Sequence: l.tips[events.ScopeProfile].sequence}, err
}

func (l *profileLane) registerTarget(ctx context.Context, req *request, d events.RegisterTarget) (any, error) {
	if err := l.t.checkTargetLease(req.caller, d); err != nil {
		return nil, err
	}
	fact, sel, err := l.targets.Register(req.caller.Name, d)
	if err != nil || fact == nil {
		return sel, err
	}
	return sel, l.append(ctx, originOf(req), events.TypeTargetRegistered, *fact)
}

// control changes who may type into a target and tells its executor, which learns it by the
// next frame or order of the new access epoch, too, should it not hear of it.
func (l *profileLane) control(ctx context.Context, req *request, d events.ControlTarget) (any, error) {
	fact, sel, err := l.targets.Control(req.caller.Name, d)
	if err != nil || fact == nil {
		return sel, err
	}
	if err := l.append(ctx, originOf(req), events.TypeTargetControlChanged, *fact); err != nil {
		return nil, err
	}
	l.t.tell(events.ExecSubject(l.profile, sel.Executor, sel.Instance, events.ExecControl), targets.ControlOrder(sel), trace{})
	return sel, nil
}

// detachTarget tells the executor that the session which has its exclusive target is to
// lose it. Who has it is the executor's to say: its word ends the claim.
func (l *profileLane) detachTarget(caller events.Principal, d events.DetachTarget) error {
	sel, err := l.targets.Select(d.Name)
	if err != nil {
		return err
	}
	h, ok := l.targets.Holder(d.Name)
	if !ok {
		return nil // nobody has it
	}
	if err := l.t.mayDetach(caller, d, h); err != nil {
		return err
	}
	l.t.tell(events.ExecSubject(l.profile, sel.Executor, sel.Instance, events.ExecRelease), events.ReleaseOrder{
		Target: d.Name, Session: h.Session, Epoch: h.Epoch, Reason: "asked by " + string(caller.Name),
	}, trace{})
	return nil
}

func (t *term) mayDetach(caller events.Principal, d events.DetachTarget, h events.TargetAttached) error {
	s := t.sessions.lane(caller.Profile, h.Session)
	if s == nil {
		return nil // it is gone: nothing of it runs
	}
	var host events.AttachedHost
	running := 0
	s.view(func(s *lifecycle.State) {
		if s.Host != nil {
			host = *s.Host
		}
		running = s.ExecsIn(d.Name)
	})
	switch {
	case caller.Role == events.RoleHost && (host.Host != caller.Name || host.Fence != d.Fence):
		return events.Errorf(events.CodeStaleFence, "%s does not drive session %s, which has target %q, under fence %s",
			caller.Name, h.Session, d.Name, d.Fence)
	case running > 0:
		return events.Errorf(events.CodeBusy, "%d commands of session %s run in target %q; stop them first", running, h.Session, d.Name)
	}
	return nil
}

// checkTargetLease returns nil if the caller's instance holds the lease of the target
// it registers.
func (t *term) checkTargetLease(caller events.Principal, d events.RegisterTarget) error {
	key := events.LeaseKey{Profile: caller.Profile, Kind: events.LeaseTarget, Name: string(d.Spec.Name)}
	if err := d.Spec.Name.Validate(); err != nil {
		return &events.Error{Code: events.CodeInvalid, Path: "/spec/name", Message: err.Error()}
	}
	rec, fence, ok := t.granter.Current(key)
	if !ok || rec.State != events.LeaseHeld || rec.Holder != caller.Name || rec.Instance != d.Instance || fence != d.LeaseFence {
		return events.Errorf(events.CodeLeaseLost, "%s does not hold %s under fence %s", caller.Name, key, d.LeaseFence)
	}
	return nil
}

// selectTarget returns what pins a target now: registered, its executor's lease held, and
// fit for use by its executor's last word.
func (t *term) selectTarget(p events.Profile, name events.TargetName) (events.Selection, error) {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	sel, err := l.targets.Select(name)
	fault := l.targets.Fault(name)
	l.stateMu.RUnlock()
	if err != nil {
		return sel, err
	}
	if !t.live(p, sel) {
		return sel, events.Errorf(events.CodeUnknownTarget, "target %q is registered, but its executor %s is not there now", name, sel.Executor)
	}
	return sel, fault
}

// live reports whether the executor of a selected target holds its lease.
func (t *term) live(p events.Profile, sel events.Selection) bool {
	rec, _, ok := t.granter.Current(events.LeaseKey{Profile: p, Kind: events.LeaseTarget, Name: string(sel.Target)})
	return ok && rec.State == events.LeaseHeld && rec.Instance == sel.Instance
}

// checkSelection refuses a start of a session whose target moved since it was selected, or
// is another session's alone.
func (t *term) checkSelection(p events.Profile, by events.SessionID, sel events.Selection) error {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	err := l.targets.Check(sel)
	claimed := l.targets.Claimed(sel.Target, by)
	l.stateMu.RUnlock()
	if err != nil {
		return err
	}
	if _, err = t.selectTarget(p, sel.Target); err != nil {
		return err
	}
	return claimed
}

func (t *term) targetList(p events.Profile) events.Targets {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	out := events.Targets{Targets: l.targets.List()}
	for _, r := range out.Targets {
		s := events.TargetState{Name: r.Spec.Name, Live: t.live(p, events.Selection{Target: r.Spec.Name, Instance: r.Instance})}
		if h, ok := l.targets.Holder(r.Spec.Name); ok {
			s.Holder = &events.TargetHolder{Session: h.Session, Epoch: h.Epoch}
		}
		out.States = append(out.States, s)
	}
	return out
}
