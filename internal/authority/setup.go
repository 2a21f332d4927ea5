package authority

import (
	"context"
	"fmt"
	"slices"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/setup"
)

// ofProfileLane reports whether a scope is written by the profile's lane.
func ofProfileLane(s events.Scope) bool { return s == events.ScopeProfile || s.Run() != "" }

// scopes are those that the lane has written, in order.
func (l *profileLane) scopes() []events.Scope {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	out := make([]events.Scope, 0, len(l.tips))
	for s := range l.tips {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// setupCommand reports whether a command is about packages and their setup.
func setupCommand(data any) bool {
	switch data.(type) {
	case events.AddPackage, events.EnablePackages, events.DisablePackages, events.RemovePackages,
		events.PlanSetup, events.ConsentSetup, events.RunSetup, events.CancelSetup,
		events.ReportProgress, events.ReportSetupEnded:
		return true
	}
	return false
}

// setupCommand decides on a command, appends what it comes to, and tells the executor.
func (l *profileLane) setupCommand(ctx context.Context, req *request) (any, error) {
	for range maxRaces {
		out, err := l.decideSetup(req)
		if err != nil || out.Type == "" {
			return out.Answer, err
		}
		lost, err := l.appendOnce(ctx, out.Scope, originOf(req), out.Type, out.Data)
		if err != nil {
			return nil, err
		}
		if a, done := l.answers[req.id]; lost && done {
			return a, nil
		}
		if lost {
			continue
		}
		if out.Type == events.TypeSetupStarted || out.Type == events.TypeSetupCancelRequested {
			l.tellSetup(out.Scope.Run(), traceOf(req.event))
		}
		return out.Answer, nil
	}
	return nil, l.raced()
}

func (l *profileLane) decideSetup(req *request) (setup.Outcome, error) {
	switch d := req.data.(type) {
	case events.AddPackage:
		return l.setup.Add(d)
	case events.EnablePackages:
		return l.setup.Enable(d)
	case events.DisablePackages:
		return l.setup.Disable(d)
	case events.RemovePackages:
		return l.setup.Remove(d)
	case events.PlanSetup:
		return l.planSetup(req, d)
	case events.ConsentSetup:
		return l.setup.Consent(d)
	case events.RunSetup:
		return l.startSetup(d)
	case events.CancelSetup:
		return l.setup.Cancel(d)
	case events.ReportProgress:
		return l.setup.Progress(req.caller.Name, d)
	case events.ReportSetupEnded:
		return l.setup.End(req.caller.Name, d)
	}
	return setup.Outcome{}, events.Errorf(events.CodeUnknownCommand, "%s is not about packages", req.entry.Type)
}

func (l *profileLane) planSetup(req *request, d events.PlanSetup) (setup.Outcome, error) {
	at, err := l.placeOf(d.Target)
	if err != nil {
		return setup.Outcome{}, err
	}
	return l.setup.Plan(d, events.RunID(events.NewID()), l.profile, at, req.ask)
}

// askedBy hands on a plan that a session waits for, with what the session is now.
func (t *term) askedBy(req *request, to string) {
	l, _, err := t.resolve(req.caller.Profile, to)
	if err != nil {
		t.fail(req, err)
		return
	}
	t.onLane(req, l, func(context.Context) {
		ask := l.state.Ask()
		req.ask = &ask
		t.toProfile(req)
	})
}

func (l *profileLane) startSetup(d events.RunSetup) (setup.Outcome, error) {
	v, err := l.setup.Show(d.Run)
	if err != nil {
		return setup.Outcome{}, err
	}
	at, err := l.placeOf(v.Plan.Target)
	if err != nil {
		return setup.Outcome{}, err
	}
	return l.setup.Start(d, at)
}

// placeOf says where a target is now. Its executor must hold it.
func (l *profileLane) placeOf(name events.TargetName) (setup.Place, error) {
	sel, err := l.t.selectTarget(l.profile, name)
	if err != nil {
		return setup.Place{}, err
	}
	at := setup.Place{Target: name, Executor: sel.Executor, Instance: sel.Instance}
	for _, reg := range l.targets.List() {
		if reg.Spec.Name == name {
			at.Home = reg.Spec.Home
		}
	}
	return at, nil
}

// tellSetup tells a run's executor what is to be done now. An order that is lost is told
// again by the next term, and an executor that went away ends the run.
func (l *profileLane) tellSetup(id events.RunID, in trace) {
	if o, ok := l.setup.OrderOf(id); ok {
		l.sendSetup(o, in)
	}
}

func (l *profileLane) sendSetup(o setup.Order, in trace) {
	if o.Stop {
		l.t.tell(events.ExecSubject(l.profile, o.Executor, o.Instance, events.ExecSetupStop),
			events.SetupStopOrder{Run: o.Plan.Run, Reason: "cancelled"}, in)
		return
	}
	l.t.tell(events.ExecSubject(l.profile, o.Executor, o.Instance, events.ExecSetup), events.SetupOrder{Plan: o.Plan}, in)
}

// resumeSetups takes up what the last term left of runs.
func (l *profileLane) resumeSetups() {
	l.add(0, func(context.Context) {
		for _, o := range l.setup.Orders() {
			l.sendSetup(o, trace{})
		}
	})
}

// setupsLost ends the runs of an executor instance that is gone.
func (l *profileLane) setupsLost(lost lifecycle.ExecutorLost) {
	l.add(0, func(ctx context.Context) {
		for _, out := range l.setup.Lost(lost.Executor, lost.Instance, lost.Target) {
			if err := l.appendTo(ctx, out.Scope, l.own(), out.Type, out.Data); err != nil {
				l.t.logger.Error("end a setup whose executor is gone", "scope", out.Scope, "error", err)
			}
		}
	})
}

func (l *profileLane) own() origin {
	return origin{source: events.Source(l.profile, events.AuthorityName)}
}

// settle tells the sessions that wait for setups which have succeeded. The session's own
// lane queues the word, once; what became of it comes back as a job of this lane.
func (l *profileLane) settle(context.Context) {
	if l.t.cfg.Offline {
		return
	}
	for _, o := range l.setup.Owed() {
		key := tellKey{o.Run, o.Ask.Session}
		if l.telling[key] {
			continue
		}
		l.telling[key] = true
		l.tellSession(o, key)
	}
}

// tellKey is one session that is being told of one run.
type tellKey struct {
	run     events.RunID
	session events.SessionID
}

func (l *profileLane) tellSession(o setup.Owed, key tellKey) {
	done := func(receipt events.ReceiptID, reason string) {
		l.add(0, func(ctx context.Context) {
			err := l.appendTo(ctx, o.Run.Scope(), l.own(), events.TypeSetupNotified, events.SetupNotified{
				Run: o.Run, Session: o.Ask.Session, Receipt: receipt, Reason: reason,
			})
			if err != nil {
				l.t.logger.Warn("record that a session was told of a setup", "run", o.Run, "error", err)
			}
			delete(l.telling, key)
		})
	}
	session := l.t.sessions.lane(l.profile, o.Ask.Session)
	if session == nil {
		done("", "the session is gone")
		return
	}
	session.add(0, func(ctx context.Context) {
		if err := session.catchUp(ctx); err != nil {
			l.t.logger.Warn("tell a session of a setup", "session", session.id, "error", err)
			l.again(key)
			return
		}
		session.internal(ctx, lifecycle.SetupDone{Run: o.Run, Ask: o.Ask, Body: setupBody(o)})
		if receipt, ok := session.state.SetupReceipt(o.Run, time.Now()); ok {
			done(receipt, "")
			return
		}
		reason := session.state.Unfit(o.Ask)
		if reason == "" { // no room now, or no store
			l.again(key)
			return
		}
		done("", reason)
	})
}

// again lets a session be told at the next look at the profile, a little later.
func (l *profileLane) again(key tellKey) {
	l.t.services.start(func() {
		select {
		case <-l.t.work.Done():
		case <-time.After(ownRetry):
			l.add(0, func(context.Context) { delete(l.telling, key) })
		}
	})
}

func setupBody(o setup.Owed) events.Body {
	data, err := events.MarshalData(events.SetupReceiptData{Run: o.Run, Key: o.Key, Name: o.Name, Version: o.Version})
	if err != nil {
		data = nil // the text says what matters
	}
	return events.Body{Text: fmt.Sprintf("%s %s is set up now and can be used", o.Name, o.Version), Data: data}
}

// behindProfile answers a read after what the profile's lane is doing now.
func (t *term) behindProfile(req *request, answer func()) {
	l := t.profiles.get(req.caller.Profile)
	if !l.add(t.cfg.LaneQueue, func(context.Context) { answer() }) {
		t.refuse(req.reply, events.Errorf(events.CodeRateLimited, "%d commands wait for profile %s already", t.cfg.LaneQueue, l.profile))
	}
}

// packageList answers with the packages; for a session, with what is in effect there.
func (t *term) packageList(req *request, q events.PackageList) {
	since := events.Sequence(0)
	list := func() {
		l := t.profiles.get(req.caller.Profile)
		l.stateMu.RLock()
		defer l.stateMu.RUnlock()
		t.reply(req)(events.Packages{Packages: l.setup.List(since)}, nil)
	}
	if q.To == "" {
		t.behindProfile(req, list)
		return
	}
	session, _, err := t.resolve(req.caller.Profile, q.To)
	if err != nil {
		t.fail(req, err)
		return
	}
	t.onLane(req, session, func(context.Context) {
		since = session.state.Since()
		t.behindProfile(req, list)
	})
}

func (t *term) setupList(p events.Profile, q events.SetupList) (events.Setups, error) {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	runs, err := l.setup.Runs(q)
	return events.Setups{Runs: runs}, err
}

// showSetup answers with a run. The files of an old one are read from the log.
func (t *term) showSetup(ctx context.Context, req *request) {
	q, p := req.data.(events.ShowSetup), req.caller.Profile
	l := t.profiles.get(p)
	l.stateMu.RLock()
	v, err := l.setup.Show(q.Run)
	l.stateMu.RUnlock()
	if err == nil && v.Plan.Files == nil {
		v.Plan.Files, err = t.plannedFiles(ctx, p, q.Run)
	}
	t.reply(req)(v, err)
}

func (t *term) plannedFiles(ctx context.Context, p events.Profile, id events.RunID) ([]events.PackageFile, error) {
	page, _, err := t.cfg.Log.Page(ctx, events.LogSubject(p, id.Scope()), 1, 1, pageBytes)
	if err != nil {
		return nil, fmt.Errorf("read setup run %s: %w", id, err)
	}
	if len(page) == 0 {
		return nil, nil // no longer kept; the revision still tells them apart
	}
	rec, err := events.DecodeRecord(page[0].Subject, page[0].Sequence, page[0].Header, page[0].Data)
	if err != nil {
		return nil, fmt.Errorf("decode setup run %s: %w", id, err)
	}
	d, err := events.DataOf[events.SetupPlanned](rec)
	return d.Plan.Files, err
}

// knowsRun returns nil if the profile has a setup run.
func (t *term) knowsRun(p events.Profile, id events.RunID) error {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	_, err := l.setup.Show(id)
	return err
}

// checkInEffect refuses a target of a package that is not in effect for a session whose
// epoch, or host, began at a sequence.
func (t *term) checkInEffect(p events.Profile, name events.TargetName, since events.Sequence) error {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	for _, reg := range l.targets.List() {
		ref := reg.Spec.Package
		if reg.Spec.Name == name && ref != nil && !l.setup.InEffect(ref.Key, since) {
			return events.Errorf(events.CodeNotInEffect,
				"target %q is of package %s, which is in effect from the session's next epoch or attach", name, ref.Key)
		}
	}
	return nil
}

// setupOutput sends what a setup run wrote.
func (t *term) setupOutput(req *request, q events.Output, id events.RunID) {
	l := t.profiles.get(req.caller.Profile)
	l.stateMu.RLock()
	v, err := l.setup.Show(id)
	l.stateMu.RUnlock()
	if err != nil { // whoever asks for a session's output by mistake learns that
		t.fail(req, unknownSession(string(q.Session)))
		return
	}
	subject := events.OutSubject(l.profile, v.Plan.Executor, q.Session, q.Exec)
	t.inBackground(req, func(ctx context.Context, req *request) { t.sendOutput(ctx, req, q, subject) })
}
