package authority

import (
	"context"
	"fmt"
	"time"

	"keryx/events"
)

// retentionEvery is how often logs are looked through for what is old enough to go.
const retentionEvery = time.Hour

// runRetention cuts logs where an epoch begins: its first event has all that outlives
// the ones before, and was answered, so it is on disk.
func (t *term) runRetention() {
	every := min(retentionEvery, max(t.cfg.Retain/4, time.Second))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if n := t.cutAll(t.work); n > 0 {
			t.logger.Info("cut the logs of sessions at their epochs", "sessions", n, "retain", t.cfg.Retain)
		}
		select {
		case <-tick.C:
		case <-t.work.Done():
			return
		}
	}
}

// cutAll cuts what is old enough and returns of how many sessions.
func (t *term) cutAll(ctx context.Context) (n int) {
	limit := time.Now().Add(-t.cfg.Retain)
	for l := range t.sessions.all("") {
		b, stale := l.glance()
		at := b.Begun
		if stale || b.Summary.Epoch < 2 || at.At.After(limit) || events.Sequence(l.cut.Load()) >= at.Sequence {
			continue
		}
		if err := t.cfg.Log.Purge(ctx, events.LogSubject(l.profile, l.id.Scope()), at.Sequence); err != nil {
			if ctx.Err() == nil {
				t.logger.Warn("cut the log of a session", "session", l.id, "error", err)
			}
			return n
		}
		l.cut.Store(uint64(at.Sequence))
		n++
	}
	return n
}

// forgetSession removes a session that has ended: first it goes on record in the
// profile, so that a kill in the middle leaves a removal that the next term completes.
func (l *lane) forgetSession(ctx context.Context, req *request, d events.Forget) error {
	if l.state.Removed {
		return nil
	}
	if err := l.t.recordForgotten(ctx, req, d); err != nil {
		return err
	}
	return l.remove(ctx)
}

func (t *term) recordForgotten(ctx context.Context, req *request, d events.Forget) error {
	p := t.profiles.get(req.caller.Profile)
	done := make(chan error, 1)
	p.add(0, func(ctx context.Context) {
		done <- p.append(ctx, originOf(req), events.TypeSessionForgotten, events.SessionForgotten(d))
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remove takes away what there is of a session but the event that ended it. It may be
// called again, and then takes away what is left. It runs on the lane's goroutine.
func (l *lane) remove(ctx context.Context) error {
	end := l.state.LastSequence
	names := l.t.sessions.namesOf(l.id)
	if err := l.t.removeAround(ctx, l.profile, l.id, names); err != nil {
		return fmt.Errorf("remove session %s: %w", l.id, err)
	}
	if err := l.t.cfg.Log.Purge(ctx, events.LogSubject(l.profile, l.id.Scope()), end); err != nil {
		return fmt.Errorf("remove session %s: %w", l.id, err)
	}
	l.t.sessions.dropNames(names)
	l.snapped.Store(false)
	l.stateMu.Lock()
	l.state, l.history = nil, nil
	l.stateMu.Unlock()
	l.t.rewrite.Store(true)
	return l.catchUp(ctx)
}

// resumeForgotten completes removals that a kill left unfinished.
func (t *term) resumeForgotten() {
	for p, l := range t.profiles.all() {
		for _, id := range l.forgotten {
			if s := t.sessions.lane(p, id); s != nil {
				s.add(0, s.completeRemoval)
			}
		}
	}
}

func (l *lane) completeRemoval(ctx context.Context) {
	if !l.awake(ctx) || l.state.Removed || l.state.Open() {
		return
	}
	if err := l.remove(ctx); err != nil && ctx.Err() == nil {
		l.t.logger.Error("complete the removal of a session", "session", l.id, "error", err)
	}
}
