package authority

import (
	"context"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// leaseKinds says which leases a role may acquire. A host's lease on a session comes
// with its attach, which the log decides.
var leaseKinds = map[events.Role]events.LeaseKind{
	events.RoleExecutor: events.LeaseTarget,
	events.RoleGateway:  events.LeaseAccount,
}

// leaseCommand answers acquire, renew and release in the name of the proven caller.
func (t *term) leaseCommand(ctx context.Context, req *request) {
	var answer any
	var err error
	switch d := req.data.(type) {
	case events.AcquireLease:
		answer, err = t.acquire(ctx, req.caller, d)
	case events.RenewLease:
		answer = t.renew(ctx, req.caller, d)
	case events.ReleaseLease:
		answer, err = t.release(ctx, req.caller, d)
	}
	if err != nil {
		t.fail(req, err)
		return
	}
	t.answer(req.reply, answer)
}

func (t *term) acquire(ctx context.Context, caller events.Principal, d events.AcquireLease) (events.LeaseAnswer, error) {
	if d.Key.Profile != caller.Profile || leaseKinds[caller.Role] != d.Key.Kind {
		return events.LeaseAnswer{}, events.Errorf(events.CodeForbidden, "role %s of profile %s may not hold %s", caller.Role, caller.Profile, d.Key)
	}
	before, _, had := t.granter.Current(d.Key)
	a, err := t.granter.Acquire(ctx, d.Key, caller.Name, d.Instance, time.Duration(d.TTLMS)*time.Millisecond)
	if err == nil && had && before.Instance != d.Instance {
		t.leaseEnded(d.Key, before)
	}
	return a, err
}

func (t *term) renew(ctx context.Context, caller events.Principal, d events.RenewLease) events.LeaseRenewals {
	out := events.LeaseRenewals{Results: make([]events.LeaseRenewal, 0, len(d.Leases))}
	for _, ref := range d.Leases {
		r := events.LeaseRenewal{Key: ref.Key}
		ttl, err := t.renewOne(ctx, caller, d.Instance, ref)
		if err != nil {
			r.Error = asError(err, events.CodeInternal)
		}
		r.TTLMS = ttl.Milliseconds()
		out.Results = append(out.Results, r)
	}
	return out
}

// renewOne renews a lease. A host knows its lease on a session by the session fence,
// which the log gave it; the record has a fence of its own.
func (t *term) renewOne(ctx context.Context, caller events.Principal, inst events.Instance, ref events.LeaseRef) (time.Duration, error) {
	if ref.Key.Profile != caller.Profile {
		return 0, events.Errorf(events.CodeForbidden, "%s is of another profile", ref.Key)
	}
	if ref.Key.Kind == events.LeaseSession {
		own, err := t.sessionLease(caller, inst, ref)
		if err != nil {
			return 0, err
		}
		ref = own
	}
	return t.granter.Renew(ctx, caller.Name, inst, ref)
}

func (t *term) sessionLease(caller events.Principal, inst events.Instance, ref events.LeaseRef) (events.LeaseRef, error) {
	l := t.sessions.lane(caller.Profile, events.SessionID(ref.Key.Name))
	if l == nil {
		return ref, unknownSession(ref.Key.Name)
	}
	var host *events.AttachedHost
	l.view(func(s *lifecycle.State) {
		if s.Host != nil {
			h := *s.Host
			host = &h
		}
	})
	if host == nil || host.Host != caller.Name || host.Instance != inst || host.Fence != ref.Fence {
		return ref, events.Errorf(events.CodeLeaseLost, "session %s is no longer driven under fence %s", ref.Key.Name, ref.Fence)
	}
	_, fence, _ := t.granter.Current(ref.Key)
	ref.Fence = fence
	return ref, nil
}

func (t *term) release(ctx context.Context, caller events.Principal, d events.ReleaseLease) (events.Done, error) {
	if d.Key.Profile != caller.Profile {
		return events.Done{}, events.Errorf(events.CodeForbidden, "%s is of another profile", d.Key)
	}
	if d.Key.Kind == events.LeaseSession {
		return events.Done{}, events.Errorf(events.CodeUnsupported, "a session's lease ends with session.detach")
	}
	before, _, had := t.granter.Current(d.Key)
	err := t.granter.Release(ctx, caller.Name, d.Instance, events.LeaseRef{Key: d.Key, Fence: d.Fence})
	if err == nil && had && before.State == events.LeaseHeld && before.Instance == d.Instance {
		t.leaseEnded(d.Key, before)
	}
	return events.Done{}, err
}

// leaseExpired is called by the granter when a holder did not renew in time.
func (t *term) leaseExpired(key events.LeaseKey, rec events.LeaseRecord) {
	t.logger.Warn("lease expired", "key", key, "holder", rec.Holder, "instance", rec.Instance)
	t.leaseEnded(key, rec)
}

// leaseEnded tells sessions whose host or executor is gone.
func (t *term) leaseEnded(key events.LeaseKey, rec events.LeaseRecord) {
	switch key.Kind {
	case events.LeaseSession:
		if l := t.sessions.lane(key.Profile, events.SessionID(key.Name)); l != nil {
			l.add(0, func(ctx context.Context) { l.internal(ctx, lifecycle.HostLost{Instance: rec.Instance}) })
		}
	case events.LeaseTarget:
		t.executorLost(key, rec)
	}
}

func (t *term) executorLost(key events.LeaseKey, rec events.LeaseRecord) {
	lost := lifecycle.ExecutorLost{
		Executor: rec.Holder, Instance: rec.Instance, Target: events.TargetName(key.Name), Reason: "the lease of target " + key.Name + " ended",
	}
	for l := range t.sessions.all(key.Profile) {
		var concerned bool
		l.view(func(s *lifecycle.State) { concerned = s.Concerns(lost) })
		if concerned {
			l.add(0, func(ctx context.Context) { l.internal(ctx, lost) })
		}
	}
}
