package leases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"keryx/events"
)

// Ask is who asks for a lease, and for what.
type Ask struct {
	Holder   events.PrincipalName
	Instance events.Instance
	// TTL is how long the holder may be silent. 0: the default.
	TTL time.Duration
	// Grace is how long after the ttl the holder's work may take to end.
	Grace time.Duration
}

// Granted is a lease that was granted.
type Granted struct {
	events.LeaseAnswer
	// Former is the record that the grant replaced, with its fence; zero if there was none,
	// or if the asker held the lease before.
	Former events.LeaseRecord
}

// maxGrace bounds [Ask.Grace], so that no dead holder keeps a lease for much longer than
// its ttl.
const maxGrace = 5 * time.Minute

// Acquire grants a free lease. The same holder and instance again gets the same fence.
// It returns *[events.Error] with code lease_held, details holder and instance, while
// another has it or may still act under it, lease_revoked for the instance that it was
// taken from, and invalid for a ttl that is too short or too long.
func (g *Granter) Acquire(ctx context.Context, k events.LeaseKey, ask Ask) (Granted, error) {
	ttl, err := g.ttl(ask)
	if err != nil {
		return Granted{}, err
	}
	rec := events.LeaseRecord{
		State: events.LeaseHeld, Holder: ask.Holder, Instance: ask.Instance,
		TTLMS: ttl.Milliseconds(), GraceMS: ask.Grace.Milliseconds(),
	}
	var former events.LeaseRecord
	e, err := g.change(ctx, k, func(cur entry) (events.LeaseRecord, bool, error) {
		former = events.LeaseRecord{}
		if cur.heldBy(ask) {
			again := rec
			again.Fence = cur.fence(g.cfg.Generation)
			return again, true, nil
		}
		if err := g.taken(k, cur, ask); err != nil {
			return rec, false, err
		}
		if former = cur.record; former.State != "" {
			former.Fence = cur.fence(g.cfg.Generation)
		}
		return rec, true, nil
	})
	if err != nil {
		return Granted{}, err
	}
	return Granted{events.LeaseAnswer{Key: k, Fence: e.fence(g.cfg.Generation), TTLMS: rec.TTLMS}, former}, nil
}

func (e entry) heldBy(ask Ask) bool {
	return e.record.State == events.LeaseHeld && e.record.Holder == ask.Holder && e.record.Instance == ask.Instance
}

// taken says why a lease cannot be granted; nil if it can.
func (g *Granter) taken(k events.LeaseKey, cur entry, ask Ask) error {
	rec := cur.record
	switch {
	case rec.State == events.LeaseHeld:
		return heldError(k, rec)
	case rec.Revocation != "" && rec.Holder == ask.Holder && rec.Instance == ask.Instance:
		return events.Errorf(events.CodeLeaseRevoked, "%s was taken away: %s", k, rec.Reason)
	case rec.State == events.LeaseRevoked && g.cfg.Clock() < cur.until:
		// Whoever it was taken from may not know yet.
		return heldError(k, rec).With("state", string(rec.State))
	}
	return nil
}

func heldError(k events.LeaseKey, rec events.LeaseRecord) *events.Error {
	return events.Errorf(events.CodeLeaseHeld, "%s is held by %s", k, rec.Holder).
		With("holder", string(rec.Holder)).With("instance", string(rec.Instance))
}

func (g *Granter) ttl(ask Ask) (time.Duration, error) {
	if ask.Grace < 0 || ask.Grace > maxGrace {
		return 0, &events.Error{Code: events.CodeInvalid, Path: "/grace_ms", Message: fmt.Sprintf("a grace is at most %v", maxGrace)}
	}
	ttl := ask.TTL
	if ttl == 0 {
		return g.cfg.DefaultTTL, nil
	}
	if ttl < g.cfg.MinTTL || ttl > g.cfg.MaxTTL {
		return 0, &events.Error{Code: events.CodeInvalid, Path: "/ttl_ms", Message: fmt.Sprintf("a ttl is %v to %v", g.cfg.MinTTL, g.cfg.MaxTTL)}
	}
	return ttl, nil
}

// Renew extends a lease by its recorded ttl, which it returns. A lease that expired is
// renewed back if nobody has taken it since. Otherwise the error is *[events.Error]
// with code lease_lost.
func (g *Granter) Renew(ctx context.Context, holder events.PrincipalName, inst events.Instance, ref events.LeaseRef) (time.Duration, error) {
	e, err := g.change(ctx, ref.Key, func(cur entry) (events.LeaseRecord, bool, error) {
		rec := cur.record
		mine := rec.Holder == holder && rec.Instance == inst && cur.fence(g.cfg.Generation) == ref.Fence && !ref.Fence.IsZero()
		if !mine || (rec.State != events.LeaseHeld && rec.State != events.LeaseExpired) {
			return rec, false, lostError(ref, cur.record)
		}
		rec.State, rec.Fence, rec.Reason = events.LeaseHeld, ref.Fence, ""
		return rec, true, nil
	})
	return ttlOf(e.record), err
}

func lostError(ref events.LeaseRef, rec events.LeaseRecord) *events.Error {
	e := events.Errorf(events.CodeLeaseLost, "%s is not held under fence %q", ref.Key, ref.Fence)
	if rec.State != "" {
		e = e.With("state", string(rec.State)).With("holder", string(rec.Holder)).With("reason", rec.Reason)
	}
	return e
}

// Release gives a lease back, also one that was revoked, so that the next need not wait.
// A late release of a former holder does nothing.
func (g *Granter) Release(ctx context.Context, holder events.PrincipalName, inst events.Instance, ref events.LeaseRef) error {
	_, err := g.change(ctx, ref.Key, func(cur entry) (events.LeaseRecord, bool, error) {
		rec := cur.record
		open := rec.State == events.LeaseHeld || rec.State == events.LeaseRevoked
		mine := open && rec.Holder == holder && rec.Instance == inst && cur.fence(g.cfg.Generation) == ref.Fence
		reason := rec.Reason
		if rec.State == events.LeaseHeld {
			reason = "released by its holder"
		}
		return g.ended(cur, reason), mine, nil
	})
	return err
}

// Drop ends a lease in the name of the bus, if that instance holds it.
func (g *Granter) Drop(ctx context.Context, k events.LeaseKey, inst events.Instance, reason string) error {
	_, err := g.change(ctx, k, func(cur entry) (events.LeaseRecord, bool, error) {
		return g.ended(cur, reason), cur.record.State == events.LeaseHeld && cur.record.Instance == inst, nil
	})
	return err
}

// Revoke takes a lease away, in the name of a command, and returns the record that it had,
// with its fence; the same again for the same command. Nobody else gets it before its
// holder has given it back or may not act any more. It returns *[events.Error] with code
// unknown_lease when nobody holds the lease, nor could renew it back.
func (g *Granter) Revoke(ctx context.Context, k events.LeaseKey, by events.CommandID, reason string) (events.LeaseRecord, error) {
	var former events.LeaseRecord
	_, err := g.change(ctx, k, func(cur entry) (events.LeaseRecord, bool, error) {
		former = cur.record
		if former.State != "" {
			former.Fence = cur.fence(g.cfg.Generation)
		}
		if former.Revocation == by && by != "" {
			return former, false, nil // done before, and the answer was lost
		}
		if former.State != events.LeaseHeld && former.State != events.LeaseExpired {
			return former, false, events.Errorf(events.CodeUnknownLease, "nobody holds %s", k)
		}
		rec := former
		rec.State, rec.Reason, rec.Revocation = events.LeaseRevoked, reason, by
		return rec, true, nil
	})
	return former, err
}

func (g *Granter) ended(cur entry, reason string) events.LeaseRecord {
	rec := cur.record
	rec.State, rec.Fence, rec.Reason = events.LeaseReleased, cur.fence(g.cfg.Generation), reason
	return rec
}

// Expect makes the record agree with the log, which says that an instance holds the
// key: it is written if it is missing or another's, and observed for its whole ttl
// from now in any case.
func (g *Granter) Expect(ctx context.Context, k events.LeaseKey, holder events.PrincipalName, inst events.Instance, ttl time.Duration) error {
	ttl = min(max(ttl, g.cfg.MinTTL), g.cfg.MaxTTL)
	want := events.LeaseRecord{State: events.LeaseHeld, Holder: holder, Instance: inst, TTLMS: ttl.Milliseconds()}
	l := g.hold(k)
	defer l.busy.Unlock()
	_, err := g.changeLocked(ctx, l, func(cur entry) (events.LeaseRecord, bool, error) {
		same := cur.record.State == events.LeaseHeld && cur.record.Holder == holder && cur.record.Instance == inst
		return want, !same, nil
	})
	if err == nil {
		g.observe(l, observedMargin)
	}
	return err
}

// decision says what to make of an entry: the record to write, and whether to.
type decision func(entry) (rec events.LeaseRecord, write bool, err error)

// change replaces a lease's record by what decide makes of it, or leaves it when decide
// says so, and decides again when another granter was faster.
func (g *Granter) change(ctx context.Context, k events.LeaseKey, decide decision) (entry, error) {
	l := g.hold(k)
	defer l.busy.Unlock()
	return g.changeLocked(ctx, l, decide)
}

func (g *Granter) changeLocked(ctx context.Context, l *lease, decide decision) (entry, error) {
	defer func() {
		if l.get().record.State == "" { // nobody's: asked for, and not granted
			g.forgetLocked(l)
		}
	}()
	for range casTries {
		cur := l.get()
		rec, write, err := decide(cur)
		if err != nil && g.refresh(ctx, l, cur) {
			continue
		}
		if err != nil || !write {
			return cur, err
		}
		now, err := g.store.write(ctx, l.key, cur.revision, rec)
		if errors.Is(err, errConflict) {
			l.set(now)
			g.observe(l, observedMargin)
			continue
		}
		if err != nil {
			return cur, err
		}
		l.set(now)
		g.observe(l, ownMargin)
		return now, nil
	}
	return entry{}, events.Errorf(events.CodeConflict, "lease %s was changed by others at each of %d tries", l.key, casTries)
}

// refresh reads what the bucket has before a refusal, and reports whether that is news:
// another granter may have written it.
func (g *Granter) refresh(ctx context.Context, l *lease, cur entry) bool {
	now, err := g.store.read(ctx, l.key)
	if err != nil || now.revision == cur.revision {
		return false // what is known has to do, or is right
	}
	l.set(now)
	g.observe(l, observedMargin)
	return true
}
