package authority

import (
	"context"
	"slices"
	"time"

	"keryx/events"
	"keryx/internal/leases"
	"keryx/internal/lifecycle"
)

// leaseKinds says which leases a role may acquire. A host's lease on a session comes
// with its attach, which the log decides. Who holds one of kind policy is asked before a
// tool runs; who holds one of kind handler carries out slash commands.
var leaseKinds = map[events.Role][]events.LeaseKind{
	events.RoleHost:     {events.LeaseHandler},
	events.RoleExecutor: {events.LeaseTarget, events.LeaseHandler},
	events.RoleGateway:  {events.LeaseAccount, events.LeasePolicy, events.LeaseHandler},
	events.RoleOperator: {events.LeasePolicy, events.LeaseHandler},
}

// mayHold reports whether a caller may acquire a lease. Those of kind policy and
// handler are named after their holders, so that nobody can keep another from being asked.
func mayHold(caller events.Principal, key events.LeaseKey) bool {
	return key.Profile == caller.Profile && slices.Contains(leaseKinds[caller.Role], key.Kind) &&
		(key.Kind != events.LeasePolicy && key.Kind != events.LeaseHandler || key.Name == string(caller.Name))
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
	if !mayHold(caller, d.Key) {
		return events.LeaseAnswer{}, events.Errorf(events.CodeForbidden, "role %s of profile %s may not hold %s", caller.Role, caller.Profile, d.Key)
	}
	a, err := t.granter.Acquire(ctx, d.Key, leases.Ask{
		Holder: caller.Name, Instance: d.Instance, TTL: milliseconds(d.TTLMS), Grace: milliseconds(d.GraceMS),
	})
	if err != nil {
		return events.LeaseAnswer{}, err
	}
	if former := a.Former; former.State != "" && former.Instance != d.Instance {
		t.leaseEnded(d.Key, former)
		t.takenOver(caller, d, a)
	}
	return a.LeaseAnswer, nil
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// takenOver puts on record that a newcomer has a lease whose holder was silent. The grant
// itself is in the bucket: a bus that is killed between the two records it nowhere else.
func (t *term) takenOver(caller events.Principal, d events.AcquireLease, a leases.Granted) {
	if a.Former.State != events.LeaseExpired {
		return
	}
	t.profiles.get(d.Key.Profile).appendFact(events.TypeLeaseTakenOver, events.LeaseTakeover{
		Key: d.Key, Holder: caller.Name, Instance: d.Instance, Fence: a.Fence,
		Former: a.Former.Holder, FormerInstance: a.Former.Instance, FormerFence: a.Former.Fence,
	})
}

// revoke takes a lease away in the name of an operator, and puts it on record. The key is
// overwritten first: from then on nobody acts for its holder, whatever becomes of this
// bus; the same command sent again finishes what is missing.
func (l *profileLane) revoke(ctx context.Context, req *request, d events.RevokeLease) (any, error) {
	if d.Key.Profile != l.profile || d.Key.Kind == events.LeaseBus {
		return nil, events.Errorf(events.CodeForbidden, "an operator of profile %s may not revoke %s", l.profile, d.Key)
	}
	if d.Reason == "" {
		return nil, &events.Error{Code: events.CodeInvalid, Path: "/reason", Message: "a revocation needs a reason"}
	}
	former, err := l.t.granter.Revoke(ctx, d.Key, req.id, d.Reason)
	if err != nil {
		return nil, err
	}
	l.t.logger.Warn("lease revoked", "key", d.Key, "holder", former.Holder, "by", req.caller.Name, "reason", d.Reason)
	if d.Key.Kind != events.LeaseTarget { // an executor gets the time to end and report what runs
		l.t.leaseEnded(d.Key, former)
	}
	fact := events.LeaseRevocation{Key: d.Key, Holder: former.Holder, Instance: former.Instance, Fence: former.Fence, Reason: d.Reason}
	return revoked(fact), l.append(ctx, originOf(req), events.TypeLeaseRevoked, fact)
}

func revoked(d events.LeaseRevocation) events.RevokedLease {
	return events.RevokedLease{Key: d.Key, Holder: d.Holder, Instance: d.Instance, Fence: d.Fence}
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
	host := l.host()
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
	open := before.State == events.LeaseHeld || before.State == events.LeaseRevoked
	if err == nil && had && open && before.Instance == d.Instance {
		t.leaseEnded(d.Key, before)
	}
	return events.Done{}, err
}

// leaseExpired is called by the granter when a holder did not renew in time, or did not
// give back in time what was revoked.
func (t *term) leaseExpired(key events.LeaseKey, rec events.LeaseRecord) {
	t.logger.Warn("a holder's time is over", "key", key, "holder", rec.Holder, "instance", rec.Instance)
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
	case events.LeaseHandler:
		t.handlerLost(key.Profile, events.Handler{Principal: rec.Holder, Instance: rec.Instance})
	}
}

func (t *term) executorLost(key events.LeaseKey, rec events.LeaseRecord) {
	lost := lifecycle.ExecutorLost{
		Executor: rec.Holder, Instance: rec.Instance, Target: events.TargetName(key.Name), Reason: "the lease of target " + key.Name + " ended",
	}
	t.profiles.get(key.Profile).setupsLost(lost)
	for l := range t.sessions.all(key.Profile) {
		var concerned bool
		l.view(func(s *lifecycle.State) { concerned = s.Concerns(lost) })
		if concerned || l.isStale() {
			l.add(0, func(ctx context.Context) { l.internal(ctx, lost) })
		}
	}
}
