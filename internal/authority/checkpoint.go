package authority

import (
	"context"
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/sessionlog"
	"keryx/internal/snapshot"
)

// Snapshots of single sessions are written when one leaves memory whose log is longer
// than snapshotAfter events, and of one that stays each snapshotEvery.
const (
	snapshotAfter = 64
	snapshotEvery = 4096
)

// runCheckpoints keeps the index in the store behind the log, and once more at the end
// of a term that nobody took over.
func (t *term) runCheckpoints() {
	tick := time.NewTicker(t.cfg.CheckpointEvery)
	defer tick.Stop()
	last := events.Sequence(0) // the gap that was there at the last look
	for {
		select {
		case <-tick.C:
		case <-t.work.Done():
			return
		}
		from, to, missing := t.frontier.gap()
		if missing && from == last {
			if err := t.readGap(t.work, from, to); err != nil && t.work.Err() == nil {
				t.logger.Warn("read what another authority wrote", "from", from, "to", to, "error", err)
			}
		}
		last = from
		t.checkpointNow(t.work)
	}
}

func (t *term) checkpointNow(ctx context.Context) {
	if err := t.checkpoint(ctx); err != nil && ctx.Err() == nil {
		t.logger.Warn("write the index of sessions", "error", err)
	}
}

// readGap takes note of messages that this authority did not write. Their sessions are
// read when they are asked for, at the latest by the next checkpoint.
func (t *term) readGap(ctx context.Context, from, to events.Sequence) error {
	for from != 0 && from < to {
		page, next, err := t.cfg.Log.Page(ctx, ">", from, pageLimit, pageBytes)
		if err != nil {
			return err
		}
		for _, m := range page {
			if m.Sequence < to {
				if err := t.noticed(m); err != nil {
					return err
				}
			}
		}
		from = next
	}
	t.frontier.close(to)
	return nil
}

// noticed takes note of a message of another authority.
func (t *term) noticed(m sessionlog.Stored) error {
	if isName(m) {
		return t.foldName(m)
	}
	p, scope, err := events.ParseLogSubject(m.Subject)
	if err != nil {
		return err
	}
	if ofProfileLane(scope) {
		l := t.profiles.get(p)
		l.add(0, func(ctx context.Context) {
			if err := l.refresh(ctx, scope); err != nil {
				t.logger.Warn("read a profile anew", "profile", p, "error", err)
			}
		})
		return nil
	}
	if name, ok := scope.Account(); ok {
		l := t.accounts.get(p, name)
		l.add(0, func(ctx context.Context) {
			if err := l.read(ctx); err != nil {
				t.logger.Warn("read an account anew", "account", name, "error", err)
			}
		})
		return nil
	}
	l := t.named(p, nameEntry{record: events.NameRecord{Session: events.SessionID(scope)}})
	l.add(0, func(ctx context.Context) {
		if !l.awake(ctx) {
			return
		}
		if err := l.refresh(ctx); err != nil {
			t.logger.Warn("read a session anew", "session", l.id, "error", err)
		}
	})
	return nil
}

// checkpoint writes what changed in the index since it was written last. Everything up
// to the sequence it goes to is in the briefs that are taken after it.
func (t *term) checkpoint(ctx context.Context) error {
	through := t.frontier.through()
	whole := t.rewrite.Load()
	if through == t.index.Through() && !whole || t.readStale() {
		return nil
	}
	at, err := t.cfg.Log.At(ctx, through)
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	if whole {
		t.sessions.touchAll()
	}
	c := snapshot.Change{
		Through: through, Anchor: snapshot.Anchor(at), Profiles: t.besideSessions(), Whole: whole,
		Segments: t.sessions.takeChanged(), Names: t.sessions.takeNames(), IDs: t.sessions.ids.take(),
	}
	if err := t.index.Write(ctx, c); err != nil {
		for n := range c.Segments {
			t.sessions.touch(n * snapshot.SegmentSlots)
		}
		return err
	}
	if whole {
		t.rewrite.Store(false)
	}
	return nil
}

// readStale has the sessions read of which the log may have more than is known, and
// reports whether there were any.
func (t *term) readStale() (any bool) {
	for l := range t.sessions.all("") {
		if l.isStale() {
			any = true
			l.add(0, func(ctx context.Context) { l.awake(ctx) })
		}
	}
	return any
}

// entry returns what the index has of a session.
func (l *lane) entry() snapshot.Entry {
	b, _ := l.glance()
	return snapshot.Entry{Slot: l.slot, Profile: l.profile, Brief: b, Snapped: l.snapped.Load()}
}

// saveSnapshot writes the state of a session behind. It runs on the lane's goroutine.
func (l *lane) saveSnapshot() {
	kept, err := l.t.snaps.SaveSession(l.profile, l.id, snapshot.Session{Last: l.last, State: l.state})
	if err != nil {
		l.t.logger.Warn("write a snapshot", "session", l.id, "error", err)
		return
	}
	l.since = 0
	if kept {
		l.snapped.Store(true)
		l.t.sessions.touch(l.slot)
	}
}

// besideSessions names what profiles have beside their sessions.
func (t *term) besideSessions() []snapshot.Profile {
	var out []snapshot.Profile
	for p := range t.profiles.all() {
		out = append(out, snapshot.Profile{Name: p, Scopes: t.scopesBeside(p)})
	}
	return out
}
