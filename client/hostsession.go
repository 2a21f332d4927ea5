package client

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// hosted is a session that is being looked at or attached. Guarded by host.mu.
type hosted struct {
	id       events.SessionID
	attached bool
	again    bool            // look again if this look comes to nothing: there was news
	heard    events.Sequence // of the newest news
	fence    events.Fence
	target   events.TargetName
	held     *Held
	early    []order       // offers told before the attach was answered
	known    []knownOffer  // the newest, oldest first
	running  *runningTurn  // whose handler has not returned
	idleFrom time.Duration // [BootTime] of the last turn's end or of the attach
}

// isNews keeps what may ask a host to look at a session, or not to.
func isNews(m *nats.Msg) bool {
	switch events.Type(m.Header.Get("ce-type")) {
	case events.TypeSessionRegistered, events.TypeSessionAttached, events.TypeSessionDetached,
		events.TypeSessionReset, events.TypeSessionFinalized,
		events.TypeContinuationQueued, events.TypeContinuationRequeued, events.TypeContinuationReleased:
		return true
	}
	return false
}

// hear looks at a session in which something was queued or which has lost its host.
func (h *host) hear(m *nats.Msg) {
	_, scope, err := events.ParseLogSubject(m.Subject)
	if err != nil || !events.IsULID(string(scope)) {
		return
	}
	id := events.SessionID(scope)
	switch events.Type(m.Header.Get("ce-type")) {
	case events.TypeSessionAttached:
		h.mu.Lock()
		if e := h.sessions[id]; e == nil {
			h.others[id] = struct{}{} // until it is detached
		}
		h.mu.Unlock()
		return
	case events.TypeSessionRegistered, events.TypeSessionDetached, events.TypeSessionFinalized, events.TypeSessionReset:
		h.mu.Lock()
		delete(h.others, id)
		h.mu.Unlock()
	}
	seq, err := strconv.ParseUint(m.Header.Get(nats.JSSequence), 10, 64)
	if err != nil {
		return // not republished by the server
	}
	h.look(id, events.Sequence(seq))
}

// look finds out whether a session wants this host, as of the news heard at a sequence (0
// for none), and attaches to it then.
func (h *host) look(id events.SessionID, heard events.Sequence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, other := h.others[id]; other {
		return
	}
	if e := h.sessions[id]; e != nil {
		e.again, e.heard = true, max(e.heard, heard)
		return
	}
	e := &hosted{id: id, heard: heard}
	if h.spawnLocked(func() { h.consider(e, nil) }) {
		h.sessions[id] = e
	}
}

// lister reads the list of sessions now and whenever it is asked to.
func (h *host) lister(ctx context.Context) {
	for {
		h.list(ctx)
		select {
		case <-h.relist:
		case <-ctx.Done():
			return
		case <-h.life.Done():
			return
		}
	}
}

func (h *host) list(ctx context.Context) {
	q := events.SessionList{Host: h.conn.Principal().Name, Open: true}
	for s, err := range h.conn.Sessions(ctx, q) {
		if err != nil {
			if ctx.Err() == nil {
				h.cfg.Logger.Warn("list sessions", "error", err)
			}
			if errors.Is(err, events.ErrOf(events.CodeTimeout)) {
				h.listSoon()
			}
			return
		}
		if !h.wanted(s) {
			continue
		}
		h.mu.Lock()
		delete(h.others, s.Session)
		if h.sessions[s.Session] == nil {
			e := &hosted{id: s.Session}
			if h.spawnLocked(func() { h.consider(e, &s) }) {
				h.sessions[s.Session] = e
			}
		}
		h.mu.Unlock()
	}
}

// wanted reports whether a session wants this host, has something to do and has nobody
// who does it.
func (h *host) wanted(s events.SessionSummary) bool {
	return slices.Contains(s.WantedHosts, h.conn.Principal().Name) && s.Host == "" && s.Pending > 0 && s.Status != events.StatusFinalized
}

// consider attaches to a session, after a look at it if no summary is given.
func (h *host) consider(e *hosted, s *events.SessionSummary) {
	if h.looks.Acquire(h.life, 1) != nil {
		h.drop(e)
		return
	}
	defer h.looks.Release(1)
	if s == nil {
		now, err := h.show(e)
		if err != nil {
			h.fail(e, "look at a session", err)
			return
		}
		s = &now
	}
	if !h.wanted(*s) {
		h.pass(e, *s)
		return
	}
	asked := BootTime()
	a, err := h.conn.Attach(h.life, events.Attach{
		Session: e.id, Capabilities: h.capabilities(), LeaseTTLMS: h.cfg.LeaseTTL.Milliseconds(),
	})
	if err != nil {
		h.fail(e, "attach", err)
		return
	}
	h.attached(e, a, asked)
}

// show returns what the bus knows of a session, not older than what was heard of it: an
// event is heard a moment before the authority has taken it in.
func (h *host) show(e *hosted) (events.SessionSummary, error) {
	deadline := time.Now().Add(knownWithin)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		v, err := h.conn.Show(h.life, string(e.id))
		h.mu.Lock()
		old := err == nil && v.LastSeq < e.heard || errors.Is(err, events.ErrOf(events.CodeUnknownSession))
		h.mu.Unlock()
		if !old || time.Now().After(deadline) || !sleep(h.life, pause) {
			return v.SessionSummary, err
		}
	}
}

func (h *host) capabilities() []events.Capability {
	all := append([]events.Capability{events.CapInterrupt, events.CapIdempotentOffer}, h.cfg.Capabilities...)
	slices.Sort(all)
	return slices.Compact(all)
}

// pass leaves a session alone. One that is another's is not looked at again before it
// says something new.
func (h *host) pass(e *hosted, s events.SessionSummary) {
	if s.Host != "" || !slices.Contains(s.WantedHosts, h.conn.Principal().Name) {
		h.mu.Lock()
		if !e.again {
			h.others[e.id] = struct{}{}
		}
		h.mu.Unlock()
	}
	h.drop(e)
}

func (h *host) fail(e *hosted, what string, err error) {
	h.drop(e)
	switch {
	case h.life.Err() != nil, errors.Is(err, events.ErrOf(events.CodeAlreadyAttached)):
	case errors.Is(err, events.ErrOf(events.CodeTimeout)):
		h.cfg.Logger.Warn(what, "session", e.id, "error", err)
		h.listSoon()
	default:
		h.cfg.Logger.Warn(what, "session", e.id, "error", err)
	}
}

func (h *host) attached(e *hosted, a events.Attached, asked time.Duration) {
	key := events.LeaseKey{Profile: h.conn.Principal().Profile, Kind: events.LeaseSession, Name: string(e.id)}
	held := h.keeper.Adopt(key, a.Fence, time.Duration(a.LeaseTTLMS)*time.Millisecond, asked)
	h.mu.Lock()
	e.attached, e.fence, e.target, e.held, e.idleFrom = true, a.Fence, a.Target, held, BootTime()+offerWithin
	early := e.early
	e.early = nil
	h.mu.Unlock()
	for _, o := range early {
		h.offer(o)
	}
}

// drop forgets a session, looks at it again if there was news meanwhile, and returns
// what ran in it.
func (h *host) drop(e *hosted) *runningTurn {
	h.mu.Lock()
	if h.sessions[e.id] == e {
		delete(h.sessions, e.id)
	}
	held, running, again, heard := e.held, e.running, e.again, e.heard
	e.again = false
	h.mu.Unlock()
	if held != nil {
		held.Forget()
	}
	if again {
		h.look(e.id, heard)
	}
	return running
}

// leaseLost is called by the keeper. A lease that only lapsed, because the bus is away
// for longer than its ttl, is asked for on: the bus takes a former holder back, and a
// turn that needs nothing of it meanwhile goes on.
func (h *host) leaseLost(l *Held) {
	if l.Final() {
		h.lose(events.SessionID(l.Key().Name), l.Fence())
	}
}

// lose forgets a session that this host drove under a fence, and ends its turn's work.
func (h *host) lose(id events.SessionID, fence events.Fence) {
	h.mu.Lock()
	e := h.sessions[id]
	mine := e != nil && e.attached && e.fence == fence
	if mine {
		e.again = true // items may wait already
	}
	h.mu.Unlock()
	if !mine {
		return
	}
	if turn := h.drop(e); turn != nil {
		turn.cancel(ErrLeaseLost)
	}
}
