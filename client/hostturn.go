package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"keryx/events"
)

// runningTurn is a turn whose handler has not returned, or whose accept is under way.
type runningTurn struct {
	id     events.TurnID
	cancel context.CancelCauseFunc
	steers chan Steer // nil for a host that cannot steer
}

// startLocked begins a turn, which lives in ctx whoever told of its offer.
func (h *host) startLocked(ctx context.Context, e *hosted, o order) {
	ctx, cancel := context.WithCancelCause(withTraceOf(ctx, o.msg))
	id := events.TurnID(events.NewID())
	e.remember(knownOffer{id: o.Offer.Offer, turn: id})
	e.running = &runningTurn{id: id, cancel: cancel}
	if h.canSteer() {
		e.running.steers = make(chan Steer, steersWaiting)
	}
	steers := e.running.steers
	h.spawnLocked(func() {
		defer cancel(nil)
		h.turn(ctx, e, o, id, steers)
	})
}

func (h *host) declineLocked(e *hosted, o order, why string) {
	e.remember(knownOffer{id: o.Offer.Offer})
	h.spawnLocked(func() {
		err := h.conn.Do(h.life, events.CmdTurnDecline, events.Decline{
			Session: e.id, Fence: o.Fence, Offer: o.Offer.Offer, Reason: why,
		}, nil)
		if err != nil && !errors.Is(err, events.ErrOf(events.CodeUnknownOffer)) {
			h.cfg.Logger.Warn("decline an offer", "session", e.id, "offer", o.Offer.Offer, "error", err)
			h.mu.Lock()
			e.forget(o.Offer.Offer)
			h.mu.Unlock()
		}
	})
}

// turn runs one turn from accept to end. The accept is sent until it is answered,
// whatever becomes of the turn: only the answer tells whether the bus has recorded it,
// and a recorded turn has to end.
func (h *host) turn(ctx context.Context, e *hosted, o order, id events.TurnID, steers <-chan Steer) {
	accepted, err := h.accept(ctx, e, o, id)
	if err != nil {
		h.free(e)
		h.unaccepted(e, o, err)
		return
	}
	h.mu.Lock()
	target := e.target
	h.mu.Unlock()
	t := &Turn{
		ID: id, Session: e.id, Epoch: accepted.Epoch, Fence: o.Fence, Items: o.Items, Names: o.Names,
		Target: target, conn: h.conn, steers: steers, lost: func() { h.lose(e.id, o.Fence) },
	}
	var r Result
	if ctx.Err() == nil {
		r = h.handle(ctx, t)
	}
	r = r.completed(ctx)
	h.free(e) // before the report: the next offer may come before its answer
	h.report(ctx, t, r)
}

func (h *host) accept(ctx context.Context, e *hosted, o order, id events.TurnID) (events.Accepted, error) {
	ctx, cancel := h.lasting(ctx, acceptFor)
	defer cancel()
	return ask[events.Accepted](ctx, h.conn, events.CmdTurnAccept, events.Accept{
		Session: e.id, Fence: o.Fence, Offer: o.Offer.Offer, Turn: id,
	})
}

// unaccepted clears up after an accept that was refused, or not answered at all.
func (h *host) unaccepted(e *hosted, o order, err error) {
	switch {
	case h.life.Err() != nil:
	case errors.Is(err, events.ErrOf(events.CodeUnknownOffer)), errors.Is(err, events.ErrOf(events.CodeAlreadyEnded)):
		h.cfg.Logger.Info("an offer was withdrawn", "session", e.id, "offer", o.Offer.Offer, "reason", err)
	case errors.Is(err, events.ErrOf(events.CodeStaleFence)):
		h.lose(e.id, o.Fence)
	default:
		h.cfg.Logger.Warn("accept an offer", "session", e.id, "offer", o.Offer.Offer, "error", err)
		h.mu.Lock()
		e.forget(o.Offer.Offer) // a repeat is taken as new
		h.mu.Unlock()
	}
}

// handle calls the handler; a panic is a failed turn.
func (h *host) handle(ctx context.Context, t *Turn) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			h.cfg.Logger.Error("handler panicked", "session", t.Session, "turn", t.ID, "panic", p, "stack", string(debug.Stack()))
			r = Result{Outcome: events.OutcomeFailed, Error: fmt.Sprintf("the host's handler panicked: %v", p)}
		}
	}()
	return h.cfg.Handle(ctx, t)
}

// free lets the session and the host take the next turn.
func (h *host) free(e *hosted) {
	h.mu.Lock()
	e.running, e.idleFrom = nil, BootTime()
	h.mu.Unlock()
	h.slots.Release(1)
}

// report tells the bus how a turn ended, for as long as it takes: over its restarts, and
// whatever has become of the turn's own context.
func (h *host) report(ctx context.Context, t *Turn, r Result) {
	ctx, cancel := h.lasting(ctx, reportFor)
	defer cancel()
	end := events.End{
		Session: t.Session, Fence: t.Fence, Turn: t.ID, Outcome: r.Outcome, Reply: r.Reply,
		ReplyTruncated: r.ReplyTruncated, Error: r.Error, BackgroundRunning: r.BackgroundRunning,
	}
	ended, err := ask[events.Ended](ctx, h.conn, events.CmdTurnEnd, end)
	if errors.Is(err, events.ErrOf(events.CodeInvalid)) || errors.Is(err, events.ErrOf(events.CodeTooLarge)) {
		// A turn must not stay open because of what its result looks like.
		h.cfg.Logger.Error("a turn's result was refused", "session", t.Session, "turn", t.ID, "error", err)
		ended, err = ask[events.Ended](ctx, h.conn, events.CmdTurnEnd, events.End{
			Session: t.Session, Fence: t.Fence, Turn: t.ID, Outcome: events.OutcomeFailed,
			Error: "the bus refused the turn's result: " + err.Error(),
		})
	}
	switch {
	case err == nil && ended.Late:
		h.cfg.Logger.Warn("a turn was reported late", "session", t.Session, "turn", t.ID, "outcome", r.Outcome)
	case errors.Is(err, events.ErrOf(events.CodeAlreadyEnded)):
		h.cfg.Logger.Info("a turn had ended before", "session", t.Session, "turn", t.ID, "outcome", r.Outcome, "error", err)
	case err != nil:
		h.cfg.Logger.Error("report a turn's end", "session", t.Session, "turn", t.ID, "outcome", r.Outcome, "error", err)
	}
}

// lasting returns a context with the values of a turn's that ends with the host's life,
// not with the turn.
func (h *host) lasting(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	stop := context.AfterFunc(h.life, cancel)
	return ctx, func() { stop(); cancel() }
}
