package authority

import (
	"context"
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// view calls fn with the state under the readers' lock, and reports whether the state is
// in memory; fn must not keep it.
func (l *lane) view(fn func(*lifecycle.State)) bool {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	if l.state != nil {
		fn(l.state)
	}
	return l.state != nil
}

// glance returns what is known of the session without reading anything, and whether the
// log may have more.
func (l *lane) glance() (b lifecycle.Brief, stale bool) {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	if l.state != nil {
		return l.state.Brief(time.Now()), false
	}
	return l.brief, l.stale
}

// isStale reports whether the log may have more of a session than is known.
func (l *lane) isStale() bool {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	return l.state == nil && l.stale
}

// host returns the attached host of the session, or nil.
func (l *lane) host() *events.AttachedHost {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	h := l.brief.Host
	if l.state != nil {
		h = l.state.Host
	}
	if h == nil {
		return nil
	}
	own := *h
	return &own
}

// summary returns the session's line in a list; it has no epoch if the session is not
// known.
func (l *lane) summary() (s events.SessionSummary) {
	if l.view(func(st *lifecycle.State) { s = st.Summary() }) {
		return s
	}
	b, _ := l.glance()
	return b.Summary
}

// settleStale waits until the sessions are read of which the log may have more than is
// known. It must not be called by who keeps a lane or a reader waiting.
func (t *term) settleStale(ctx context.Context) {
	var read []chan struct{}
	for l := range t.sessions.all("") {
		if !l.isStale() {
			continue
		}
		done := make(chan struct{})
		if l.add(0, func(ctx context.Context) { l.awake(ctx); close(done) }) {
			read = append(read, done)
		}
	}
	for _, done := range read {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// awake is catchUp for the authority's own jobs: it reports whether the state is in
// memory, and asks to be called again when it could not be read.
func (l *lane) awake(ctx context.Context) bool {
	err := l.catchUp(ctx)
	if err != nil && ctx.Err() == nil {
		l.t.logger.Error("read a session", "session", l.id, "error", err)
		l.t.wake(l, time.Now().Add(ownRetry))
	}
	return err == nil
}

// catchUp brings the state into memory. It runs on the lane's goroutine.
func (l *lane) catchUp(ctx context.Context) error {
	l.used.Store(int64(l.t.uptime()))
	if l.state != nil {
		return nil
	}
	s, err := l.restored(ctx)
	if err != nil {
		return err
	}
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	l.state, l.brief, l.stale = s, lifecycle.Brief{}, false
	l.t.sessions.touch(l.slot)
	return nil
}

// restored returns the state of a session that is not in memory: from its snapshot and
// the log from there on if the log still has what the snapshot goes to, else from the
// whole log.
func (l *lane) restored(ctx context.Context) (*lifecycle.State, error) {
	l.since, l.last = 0, ""
	if l.snapped.Load() {
		k, ok, err := l.t.snaps.Session(ctx, l.profile, l.id)
		if err != nil {
			return nil, err
		}
		if ok && l.has(ctx, k.State.LastSequence, k.Last) {
			l.last = k.Last
			return l.read(ctx, k.State)
		}
		l.snapped.Store(false)
		l.t.logger.Info("a snapshot does not fit its log and is ignored", "session", l.id)
	}
	return l.read(ctx, new(lifecycle.State))
}

// has reports whether the log has this event of the session at a sequence.
func (l *lane) has(ctx context.Context, seq events.Sequence, id events.EventID) bool {
	m, err := l.t.cfg.Log.At(ctx, seq)
	if err != nil || m.Subject != events.LogSubject(l.profile, l.id.Scope()) {
		return false
	}
	rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
	return err == nil && rec.ID == id
}

// read folds the session's log from where s is on. What another authority wrote is new
// to the index.
func (l *lane) read(ctx context.Context, s *lifecycle.State) (*lifecycle.State, error) {
	for from := s.LastSequence + 1; from != 0; {
		page, next, err := l.t.cfg.Log.Page(ctx, events.LogSubject(l.profile, l.id.Scope()), from, pageLimit, pageBytes)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", l.id, err)
		}
		for _, m := range page {
			l.readOne(s, m)
		}
		from = next
	}
	return s, nil
}

func (l *lane) readOne(s *lifecycle.State, m sessionlog.Stored) {
	rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
	if err == nil {
		err = lifecycle.Fold(s, rec)
	}
	if err != nil {
		l.t.logger.Error("event cannot be folded", "session", l.id, "sequence", m.Sequence, "error", err)
	}
	if s == l.history {
		return
	}
	if l.last, l.since = rec.ID, l.since+1; l.stale {
		l.t.sessions.note(l, dataOf(rec))
	}
}

// past returns the fold of the session's whole log, which knows every turn, item and
// exec there ever was. It is kept for a while: who asks for one asks for the next.
func (l *lane) past(ctx context.Context) (*lifecycle.State, error) {
	if l.history == nil {
		h := lifecycle.History()
		l.history = &h
		l.remembers.Store(true)
	}
	h, err := l.read(ctx, l.history)
	if err != nil {
		l.history = nil // it may have stopped half way
		return nil, err
	}
	if h.LastSequence != l.state.LastSequence {
		return h, l.refresh(ctx)
	}
	return h, nil
}

// stateFor returns the state in which a command is to be decided: the history if it
// mentions what ended so long ago that memory has forgotten it.
func (l *lane) stateFor(ctx context.Context, data any) (*lifecycle.State, error) {
	turn, receipt, exec := lifecycle.Mentions(l.state, data)
	x := l.t.sessions
	switch {
	case turn != "" && x.byTurn(l.profile, turn) == l,
		receipt != "" && x.byReceipt(l.profile, receipt) == l,
		exec != "" && x.byID(idExec, l.profile, string(exec)) == l:
		return l.past(ctx)
	}
	return l.state, nil
}

// receipt returns where an item of the session stands, however long ago it ended.
func (l *lane) receipt(ctx context.Context, id events.ReceiptID) (r events.Receipt, err error) {
	r, ok := l.state.Receipt(id)
	if !ok {
		h, err := l.past(ctx)
		if err != nil {
			return r, err
		}
		if r, ok = h.Receipt(id); !ok {
			return r, unknownReceipt(id)
		}
	}
	return r, nil
}

// turnEntry returns what the fold knows of a turn, however long ago it ended.
func (l *lane) turnEntry(ctx context.Context, id events.TurnID) (lifecycle.TurnEntry, error) {
	e, ok := l.state.TurnEntry(id)
	if ok && e.StartSequence != 0 {
		return e, nil
	}
	h, err := l.past(ctx)
	if err != nil {
		return e, err
	}
	if e, ok = h.TurnEntry(id); !ok {
		return e, unknownTurn(id)
	}
	return e, nil
}

// turnPage returns turns of the session, newest first.
func (l *lane) turnPage(ctx context.Context, q events.TurnList) (events.TurnPage, error) {
	in := l.state
	if !in.WholeTurns() {
		h, err := l.past(ctx)
		if err != nil {
			return events.TurnPage{}, err
		}
		in = h
	}
	var page events.TurnPage
	page.Turns, page.More = in.TurnList(q.Before, orInt(q.Limit, turnsLimit))
	return page, nil
}

// executorOf returns the executor that an exec of the session was sent to.
func (l *lane) executorOf(ctx context.Context, id events.ExecID) (events.PrincipalName, error) {
	name, ok := l.state.ExecutorOf(id)
	if !ok && l.t.sessions.byID(idExec, l.profile, string(id)) == l {
		h, err := l.past(ctx)
		if err != nil {
			return "", err
		}
		name, ok = h.ExecutorOf(id)
	}
	if !ok {
		return "", events.Errorf(events.CodeUnknownExec, "session %s has no exec %s", l.id, id)
	}
	return name, nil
}

func unknownTurn(id events.TurnID) error {
	return events.Errorf(events.CodeUnknownTurn, "no session has the turn %s", id)
}
