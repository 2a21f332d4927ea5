package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// load folds the whole log. What cannot be decoded is a hole: logged and passed.
func (t *term) load(ctx context.Context) error {
	return t.cfg.Log.Scan(ctx, ">", 1, func(m sessionlog.Stored) error {
		if strings.HasPrefix(m.Subject, "kx.id.") {
			return t.foldName(m)
		}
		t.foldStored(m)
		return nil
	})
}

func (t *term) foldName(m sessionlog.Stored) error {
	var rec events.NameRecord
	if err := json.Unmarshal(m.Data, &rec); err != nil {
		return fmt.Errorf("decode name record at sequence %d: %w", m.Sequence, err)
	}
	t.sessions.setNameAt(m.Subject, nameEntry{record: rec, sequence: m.Sequence})
	return nil
}

func (t *term) foldStored(m sessionlog.Stored) {
	profile, scope, err := events.ParseLogSubject(m.Subject)
	if err != nil {
		t.logger.Error("message on an unexpected subject", "subject", m.Subject, "sequence", m.Sequence)
		return
	}
	rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
	if err != nil {
		t.logger.Error("event cannot be decoded", "scope", scope, "sequence", m.Sequence, "error", err)
	}
	if scope == events.ScopeProfile {
		t.profiles.get(profile).fold(rec)
		return
	}
	l := t.sessions.lane(profile, events.SessionID(scope))
	if l == nil {
		l = t.sessions.put(newLane(t, profile, events.SessionID(scope)))
	}
	l.fold(rec, dataOf(rec))
}

// resume takes up what the last term left: sessions of the bus's own lifetime have
// ended with it, hosts get their time to renew, orders that may not have been told
// are told again, and timers are set.
func (t *term) resume(ctx context.Context) {
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
