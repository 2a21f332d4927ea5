package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"keryx/events"
)

// offer takes an offer: a new one is accepted as a turn, one seen before gets the same
// turn again, since its answer was lost.
func (h *host) offer(ctx context.Context, o events.Offer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.sessions[o.Session]
	switch {
	case e == nil:
		return // offered before a detach; it comes again to whoever attaches
	case !e.attached:
		e.early = append(e.early, o)
		return
	case e.fence != o.Fence:
		return
	}
	turn, again := e.turns[o.Offer]
	if !again {
		turn = events.TurnID(events.NewID())
		e.turns[o.Offer] = turn
	}
	if again && e.running != nil && e.running.id == turn {
		return // its accept is under way
	}
	if e.running != nil || ctx.Err() != nil || !h.slots.TryAcquire(1) {
		h.work.Go(func() { h.decline(context.WithoutCancel(ctx), e, o) })
		delete(e.turns, o.Offer)
		return
	}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	e.running = &runningTurn{id: turn, cancel: cancel}
	h.work.Go(func() {
		defer h.slots.Release(1)
		defer cancel(nil)
		h.turn(running, e, o, turn)
	})
}

func (h *host) decline(ctx context.Context, e *hosted, o events.Offer) {
	err := h.conn.Do(ctx, events.CmdTurnDecline, events.Decline{Session: e.id, Fence: o.Fence, Offer: o.Offer, Reason: "the host is at its capacity"}, nil)
	if err != nil && !errors.Is(err, events.ErrOf(events.CodeUnknownOffer)) {
		h.cfg.Logger.Warn("decline an offer", "session", e.id, "error", err)
	}
}

// turn runs one turn from accept to end.
func (h *host) turn(ctx context.Context, e *hosted, o events.Offer, id events.TurnID) {
	accepted, err := ask[events.Accepted](ctx, h.conn, events.CmdTurnAccept, events.Accept{Session: e.id, Fence: o.Fence, Offer: o.Offer, Turn: id})
	if err != nil {
		h.finish(e, o, id)
		h.cfg.Logger.Warn("accept an offer", "session", e.id, "offer", o.Offer, "error", err)
		return
	}
	t := &Turn{
		ID: id, Session: e.id, Epoch: accepted.Epoch, Fence: o.Fence, Items: o.Items, Names: o.Names,
		Target: e.target, conn: h.conn,
	}
	r := h.handle(ctx, t)
	if r.Outcome == "" || (ctx.Err() != nil && r.Outcome == events.OutcomeCompleted) {
		r = interrupted(ctx, r)
	}
	h.finish(e, o, id) // before the report: the next offer may come before its answer
	h.report(ctx, t, r)
}

// interrupted gives a turn whose context ended, or that named no outcome, its outcome.
func interrupted(ctx context.Context, r Result) Result {
	if ctx.Err() == nil {
		r.Outcome, r.Error = events.OutcomeFailed, "the handler gave no outcome"
		return r
	}
	r.Outcome = events.OutcomeAborted
	if r.Error == "" {
		r.Error = context.Cause(ctx).Error()
	}
	return r
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

func (h *host) finish(e *hosted, o events.Offer, id events.TurnID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.running != nil && e.running.id == id {
		e.running = nil
	}
	delete(e.turns, o.Offer)
}

// report tells the bus how a turn ended, for as long as it takes: over its restarts and
// whatever has become of the turn's own context.
func (h *host) report(ctx context.Context, t *Turn, r Result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportFor)
	defer cancel()
	_, err := ask[events.Ended](ctx, h.conn, events.CmdTurnEnd, events.End{
		Session: t.Session, Fence: t.Fence, Turn: t.ID, Outcome: r.Outcome, Reply: r.Reply,
		ReplyTruncated: r.ReplyTruncated, Error: r.Error, BackgroundRunning: r.BackgroundRunning,
	})
	if err != nil {
		h.cfg.Logger.Error("report a turn's end", "session", t.Session, "turn", t.ID, "outcome", r.Outcome, "error", err)
	}
}
