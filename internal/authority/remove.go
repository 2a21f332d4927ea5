package authority

import (
	"bytes"
	"context"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// removeAround removes what is kept of a session outside its log: output, snapshots,
// dead letters that speak of it, and the records of its names.
func (t *term) removeAround(ctx context.Context, p events.Profile, id events.SessionID, names []string) error {
	out, err := sessionlog.OpenStream(ctx, t.cfg.Conn, events.StreamOut)
	if err != nil {
		return err
	}
	if err := out.Purge(ctx, events.OutOfEvery(p, id), 0); err != nil {
		return err
	}
	snaps, err := sessionlog.OpenStream(ctx, t.cfg.Conn, events.StreamSnap)
	if err != nil {
		return err
	}
	if err := snaps.Purge(ctx, events.SnapSubject(p, id.Scope()), 0); err != nil {
		return err
	}
	if err := t.removeDead(ctx, p, id, names); err != nil {
		return err
	}
	for _, subject := range names {
		if err := t.cfg.Log.Purge(ctx, subject, 0); err != nil {
			return err
		}
	}
	return nil
}

// removeDead removes dead letters that name a session by its id or one of its names.
func (t *term) removeDead(ctx context.Context, p events.Profile, id events.SessionID, names []string) error {
	dead, err := sessionlog.OpenStream(ctx, t.cfg.Conn, events.StreamDead)
	if err != nil {
		return err
	}
	marks := [][]byte{[]byte(id)}
	for _, subject := range names {
		if e, ok := t.sessions.nameAt(subject); ok {
			marks = append(marks, []byte(e.record.Value))
		}
	}
	var found []events.Sequence
	err = dead.Scan(ctx, events.DeadAll(p), 1, func(m sessionlog.Stored) error {
		for _, mark := range marks {
			if bytes.Contains(m.Data, mark) {
				found = append(found, m.Sequence)
				break
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, seq := range found {
		if err := dead.Delete(ctx, seq); err != nil {
			return err
		}
	}
	return nil
}

// namesOf returns the subjects of the names that lead to a session.
func (x *sessionIndex) namesOf(id events.SessionID) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []string
	for subject, e := range x.names {
		if e.record.Session == id {
			out = append(out, subject)
		}
	}
	return out
}

func (x *sessionIndex) nameAt(subject string) (nameEntry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.names[subject]
	return e, ok
}

// dropNames forgets names whose records are gone.
func (x *sessionIndex) dropNames(subjects []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, subject := range subjects {
		delete(x.names, subject)
	}
}
