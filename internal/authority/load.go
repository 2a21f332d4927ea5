package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
	"keryx/internal/snapshot"
)

// load brings into memory what the log says: from the kept index and what was appended
// since, or from the whole log if there is no index of use. What cannot be decoded is a
// hole: logged and passed.
func (t *term) load(ctx context.Context) error {
	var err error
	if t.snaps, err = snapshot.Open(ctx, t.cfg.Conn, t.cfg.Log, t.cfg.Generation); err != nil {
		return err
	}
	last, err := t.cfg.Log.LastSequence(ctx)
	if err != nil {
		return err
	}
	index, kept, ok, err := t.snaps.Read(ctx, t.cfg.Log)
	if err != nil {
		return err
	}
	if t.index = index; !ok && last > 0 {
		t.logger.Info("no index of use: the whole log is read", "events", last)
	}
	t.sessions.restore(t, kept)
	t.frontier.reset(kept.Through)
	if err := t.cfg.Log.Scan(ctx, ">", kept.Through+1, func(m sessionlog.Stored) error {
		last = max(last, m.Sequence)
		return t.foldStored(m)
	}); err != nil {
		return err
	}
	if err := t.loadProfiles(ctx, kept.Profiles); err != nil {
		return err
	}
	t.frontier.reset(last)
	return nil
}

// loadProfiles reads what profiles have beside their sessions, which is not in the index,
// in the order in which it was written.
func (t *term) loadProfiles(ctx context.Context, known []snapshot.Profile) error {
	for _, p := range known {
		for _, scope := range p.Scopes {
			if _, ok := scope.Account(); !ok {
				t.found(p.Name, scope)
			} else if _, err := t.accountKnown(ctx, p.Name, scope); err != nil {
				return err
			}
		}
	}
	for p, scopes := range t.beside {
		if err := t.profiles.get(p).load(ctx, slices.Sorted(maps.Keys(scopes))); err != nil {
			return err
		}
	}
	t.beside = nil
	return nil
}

// found notes a scope of a profile that is to be loaded.
func (t *term) found(p events.Profile, scope events.Scope) {
	if t.beside == nil {
		t.beside = make(map[events.Profile]map[events.Scope]bool)
	}
	if t.beside[p] == nil {
		t.beside[p] = make(map[events.Scope]bool)
	}
	t.beside[p][scope] = true
}

func isName(m sessionlog.Stored) bool { return strings.HasPrefix(m.Subject, "kx.id.") }

func (t *term) foldName(m sessionlog.Stored) error {
	var rec events.NameRecord
	if err := json.Unmarshal(m.Data, &rec); err != nil {
		return fmt.Errorf("decode name record at sequence %d: %w", m.Sequence, err)
	}
	t.sessions.setNameAt(m.Subject, nameEntry{record: rec, sequence: m.Sequence})
	return nil
}

func (t *term) foldStored(m sessionlog.Stored) error {
	if isName(m) {
		return t.foldName(m)
	}
	profile, scope, err := events.ParseLogSubject(m.Subject)
	if err != nil {
		t.logger.Error("message on an unexpected subject", "subject", m.Subject, "sequence", m.Sequence)
		return nil
	}
	rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
	if err != nil {
		t.logger.Error("event cannot be decoded", "scope", scope, "sequence", m.Sequence, "error", err)
	}
	if ofProfileLane(scope) {
		t.found(profile, scope)
		return nil
	}
	if name, ok := scope.Account(); ok {
		t.accounts.get(profile, name).reached(rec)
		return nil
	}
	l := t.sessions.lane(profile, events.SessionID(scope))
	if l == nil {
		l = t.sessions.put(newLane(t, profile, events.SessionID(scope)))
	}
	if l.state == nil {
		l.outrun(rec)
		return nil
	}
	l.fold(rec, dataOf(rec))
	return nil
}

// outrun notes an event that the brief of a session does not know. It is read by itself
// when it is needed.
func (l *lane) outrun(rec events.Record) {
	if rec.Sequence <= l.brief.Summary.LastSeq {
		return
	}
	l.stale = true
	l.brief.Summary.LastSeq, l.brief.Summary.LastOrd = rec.Sequence, rec.Ordinal
	l.t.sessions.note(l, dataOf(rec))
	l.t.sessions.touch(l.slot)
}

// resume takes up what the last term left: sessions of the bus's own lifetime have
// ended with it, hosts get their time to renew, orders that may not have been told
// are told again, and timers are set.
func (t *term) resume(ctx context.Context) {
	for _, l := range t.profiles.all() {
		l.resumeSetups()
	}
	for l := range t.sessions.all("") {
		b, stale := l.glance()
		if b.Host != nil && !stale {
			l.holdLease(ctx)
		}
		if stale || b.Busy || b.BusLife {
			l.add(0, l.resume)
			continue
		}
		t.wake(l, b.Next)
	}
}

// resume takes one session up.
func (l *lane) resume(ctx context.Context) {
	if !l.awake(ctx) {
		return
	}
	l.holdLease(ctx)
	l.internal(ctx, lifecycle.BusRestarted{})
	l.perform(lifecycle.Resume(l.state))
}

// buryOthers ends what instances of a principal of this process hold, but for the live
// ones.
func (t *term) buryOthers(p events.Principal, live []events.Instance) {
	if t.cfg.Offline {
		return
	}
	for l := range t.sessions.all(p.Profile) {
		if l.host() == nil && !l.isStale() {
			continue
		}
		l.add(0, func(ctx context.Context) {
			if !l.awake(ctx) {
				return
			}
			h := l.state.Host
			if h != nil && h.Host == p.Name && !slices.Contains(live, h.Instance) {
				l.internal(ctx, lifecycle.HostLost{Instance: h.Instance})
			}
		})
	}
	t.services.start(func() { t.buryLeases(p, live) })
}

func (t *term) buryLeases(p events.Principal, live []events.Instance) {
	for _, v := range t.granter.List(p.Profile) {
		if v.Holder != p.Name || v.State != events.LeaseHeld || slices.Contains(live, v.Instance) {
			continue
		}
		if err := t.granter.Drop(t.work, v.Key, v.Instance, "its process ended"); err != nil {
			t.logger.Error("end a dead holder's lease", "key", v.Key, "error", err)
			continue
		}
		t.leaseEnded(v.Key, v.LeaseRecord)
	}
}

// busStopped finalizes the sessions that live as long as the bus.
func (t *term) busStopped() {
	for l := range t.sessions.all("") {
		if b, stale := l.glance(); b.BusLife || stale {
			l.add(0, func(ctx context.Context) { l.internal(ctx, lifecycle.BusStopped{}) })
		}
	}
}
