package authority

import (
	"context"
	"errors"
	"fmt"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// dispatch hands a checked request to what answers it.
func (t *term) dispatch(req *request) {
	if req.entry.Read {
		t.read(req)
		return
	}
	switch req.data.(type) {
	case events.RegisterTarget, events.WithdrawTarget, events.ControlTarget, events.ReportTarget,
		events.ReportTargetAttached, events.ReportTargetDetached, events.DetachTarget,
		events.RevokeLease, events.AddToken, events.RevokeToken, events.RegisterHandler:
		t.toProfile(req)
	case events.RecordGateway:
		t.toAccount(req)
	case events.BeginImport, events.PutImport, events.EndImport:
		t.inBackground(req, t.importCommand)
	case events.DeadList, events.DeadShow, events.DeadDrop:
		t.inBackground(req, t.deadCommand)
	case events.AcquireLease, events.RenewLease, events.ReleaseLease:
		t.inBackground(req, t.leaseCommand)
	default:
		if plan, ok := req.data.(events.PlanSetup); ok && plan.To != "" {
			t.askedBy(req, plan.To)
			return
		}
		if setupCommand(req.data) {
			t.toProfile(req)
			return
		}
		t.toLane(req)
	}
}

// toLane finds the session a request is about and queues it there.
func (t *term) toLane(req *request) {
	l, err := t.laneFor(req)
	if errors.Is(err, events.ErrOf(events.CodeUnknownSession)) && !req.confirmed {
		req.confirmed = true
		t.inBackground(req, t.confirmUnknown)
		return
	}
	if err != nil {
		t.fail(req, err)
		return
	}
	if !l.add(t.cfg.LaneQueue, func(ctx context.Context) { l.handle(ctx, req) }) {
		t.refuse(req.reply, events.Errorf(events.CodeRateLimited, "%d commands wait for session %s already", t.cfg.LaneQueue, l.id))
	}
}

// confirmUnknown looks in the log itself for a session that memory does not have:
// another authority may have made it a moment ago.
func (t *term) confirmUnknown(ctx context.Context, req *request) {
	p := req.caller.Profile
	var names []events.Name
	if to := req.target(); events.IsULID(to) {
		_, err := t.cfg.Log.Last(ctx, events.LogSubject(p, events.Scope(to)))
		if err == nil {
			t.named(p, nameEntry{record: events.NameRecord{Session: events.SessionID(to)}})
		} else if !errors.Is(err, sessionlog.ErrNone) {
			t.fail(req, err)
			return
		}
	}
	for _, kind := range events.NameKinds() {
		names = append(names, events.Name{Kind: kind, Value: req.target()})
	}
	if err := t.refreshNames(ctx, p, names); err != nil {
		t.fail(req, err)
		return
	}
	t.toLane(req)
}

// fail refuses a request and keeps on record what has to be.
func (t *term) fail(req *request, err error) {
	e := asError(t.unanswered(t.work, err), events.CodeInternal)
	if e.Code == events.CodeInternal {
		t.logger.Error("command failed", "command", req.entry.Type, "error", err)
	}
	t.refuse(req.reply, e)
	if e.Code == events.CodeForbidden {
		t.audit(req.caller, req.actingFor, req.entry.Type, e, req.target())
	}
}

// target says in the caller's own words what a request is aimed at.
func (r *request) target() string {
	switch d := r.data.(type) {
	case events.Submit:
		return d.To
	case events.Alias:
		return d.To
	case events.Reset:
		return d.To
	case events.Finalize:
		return d.To
	case events.Interrupt:
		return d.To
	case events.SetPolicy:
		return d.To
	case events.InvokeCommand:
		return d.To
	case events.Register:
		return string(d.Names.GatewaySessionKey)
	}
	return string(r.session())
}

// session is the session id a request names directly; empty if it names none.
func (r *request) session() events.SessionID {
	switch d := r.data.(type) {
	case events.Attach:
		return d.Session
	case events.Detach:
		return d.Session
	case events.Reanchor:
		return d.Session
	case events.Accept:
		return d.Session
	case events.Decline:
		return d.Session
	case events.End:
		return d.Session
	case events.StartExec:
		return d.Session
	case events.StopExec:
		return d.Session
	case events.Forget:
		return d.Session
	case events.AskPolicy:
		return d.Session
	case events.VotePolicy:
		return d.Session
	case events.ReportStarted:
		return d.Session
	case events.ReportRefused:
		return d.Session
	case events.ReportExited:
		return d.Session
	case events.ReportLost:
		return d.Session
	}
	return ""
}

// laneFor returns the lane of the session a request is about; a new one only for a
// register command with names nobody has.
func (t *term) laneFor(req *request) (*lane, error) {
	if d, ok := req.data.(events.Register); ok {
		return t.laneForNames(req.caller.Profile, d.Names)
	}
	if id := req.receipt(); id != "" {
		if l := t.sessions.byReceipt(req.caller.Profile, id); l != nil {
			return l, nil
		}
		return nil, unknownReceipt(id)
	}
	if id := req.approval(); id != "" {
		return t.approvalLane(req.caller.Profile, id)
	}
	if id := req.invocation(); id != "" {
		return t.invocationLane(req.caller.Profile, id)
	}
	if id := req.session(); id != "" {
		if l := t.sessions.lane(req.caller.Profile, id); l != nil {
			return l, nil
		}
		return nil, unknownSession(string(id))
	}
	l, _, err := t.resolve(req.caller.Profile, req.target())
	return l, err
}

// receipt is the item a request names; empty if it names none.
func (r *request) receipt() events.ReceiptID {
	switch d := r.data.(type) {
	case events.Cancel:
		return d.Receipt
	case events.Edit:
		return d.Receipt
	case events.Requeue:
		return d.Receipt
	case events.Discard:
		return d.Receipt
	}
	return ""
}

func unknownReceipt(id events.ReceiptID) error {
	return events.Errorf(events.CodeUnknownReceipt, "no item has the receipt %s", id)
}

func unknownSession(to string) error {
	return events.Errorf(events.CodeUnknownSession, "no session has the id or name %q", to)
}

func (t *term) laneForNames(p events.Profile, names events.Names) (*lane, error) {
	var found *lane
	var via events.Name
	for _, n := range names.Records() {
		e, ok := t.sessions.name(p, n)
		if !ok {
			continue
		}
		l := t.named(p, e)
		switch {
		case found == nil:
			found, via = l, n
		case found != l:
			return nil, identityConflict(via, found.id, n, l.id)
		}
	}
	if found == nil {
		found = newLane(t, p, events.SessionID(events.NewID()))
	}
	return found, nil
}

// named returns the lane that a name leads to. One that this authority has not seen,
// because another wrote it, is read when its first command comes.
func (t *term) named(p events.Profile, e nameEntry) *lane {
	if l := t.sessions.lane(p, e.record.Session); l != nil {
		return l
	}
	l := newLane(t, p, e.record.Session)
	l.state, l.stale = nil, true
	return t.sessions.put(l)
}

func identityConflict(a events.Name, as events.SessionID, b events.Name, bs events.SessionID) *events.Error {
	return events.Errorf(events.CodeIdentityConflict, "%s %q is session %s, %s %q is session %s",
		a.Kind, a.Value, as, b.Kind, b.Value, bs)
}

// resolve finds the session meant by an id or a bare name, and the name it was found
// through. A name that means several sessions is refused.
func (t *term) resolve(p events.Profile, to string) (*lane, *events.Name, error) {
	if l := t.sessions.lane(p, events.SessionID(to)); l != nil {
		return l, nil, nil
	}
	var found *lane
	var via events.Name
	for _, kind := range events.NameKinds() {
		n := events.Name{Kind: kind, Value: to}
		e, ok := t.sessions.name(p, n)
		if !ok {
			continue
		}
		l := t.named(p, e)
		if found != nil && l != found {
			return nil, nil, events.Errorf(events.CodeAmbiguousName, "%q is the %s of session %s and the %s of session %s",
				to, via.Kind, found.id, kind, e.record.Session)
		}
		if found == nil {
			found, via = l, n
		}
	}
	if found == nil {
		if l := t.sessions.byTask(p, events.TaskID(to)); l != nil {
			return l, nil, nil
		}
		return nil, nil, unknownSession(to)
	}
	return found, &via, nil
}

// hits reads what is known of the names a command would write.
func (t *term) hits(p events.Profile, names []events.Name) []lifecycle.NameHit {
	out := make([]lifecycle.NameHit, 0, len(names))
	for _, n := range names {
		h := lifecycle.NameHit{Name: n}
		if e, ok := t.sessions.name(p, n); ok {
			h.Record, h.Sequence = &e.record, e.sequence
		}
		out = append(out, h)
	}
	return out
}

// writes are the names a command would write.
func (r *request) writes() []events.Name {
	switch d := r.data.(type) {
	case events.Register:
		return d.Names.Records()
	case events.Alias:
		return d.Names.Records()
	case events.Attach:
		return events.Names{RuntimeSessionID: d.RuntimeSessionID}.Records()
	case events.Reanchor:
		return events.Names{StoredSessionID: d.StoredSessionID}.Records()
	}
	return nil
}

// refreshNames reads names anew from the log, after another writer won a race.
func (t *term) refreshNames(ctx context.Context, p events.Profile, names []events.Name) error {
	for _, n := range names {
		subject := events.IDSubject(p, n)
		m, err := t.cfg.Log.Last(ctx, subject)
		if errors.Is(err, sessionlog.ErrNone) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read name %s %q: %w", n.Kind, n.Value, err)
		}
		if err := t.foldName(m); err != nil {
			return err
		}
		t.frontier.reached(m.Sequence)
	}
	return nil
}
