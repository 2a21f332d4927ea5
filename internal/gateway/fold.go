package gateway

import (
	"context"
	"fmt"

	"keryx/events"
)

// fold takes one event of the session: what it changes, and what the front is told.
func (r *runner) fold(ctx context.Context, rec events.Record) error {
	switch rec.Type {
	case events.TypeSessionAttached:
		return with(rec, func(d events.SessionAttached) { r.hosted(d.Host) })
	case events.TypeSessionDetached:
		return with(rec, func(d events.SessionDetached) { r.detached(d) })
	case events.TypeSessionReset:
		return with(rec, func(d events.SessionReset) { r.reset(rec, d) })
	case events.TypeSessionFinalized:
		return with(rec, func(d events.SessionFinalized) { r.finalized(d) })
	case events.TypeContinuationQueued:
		return with(rec, func(d events.ContinuationQueued) { r.queued(d.Item) })
	case events.TypeContinuationInvalidated:
		return with(rec, func(d events.ContinuationInvalidated) { r.undelivered(d.Items, d.Reason) })
	case events.TypeContinuationUnresolved:
		return with(rec, func(d events.ContinuationUnresolved) {
			r.undelivered(d.Items, "nobody knows whether it ran: "+d.Reason)
		})
	case events.TypeContinuationExpired:
		return with(rec, func(d events.ContinuationExpired) { r.undelivered(d.Items, "not in time") })
	case events.TypeContinuationCancelled:
		return with(rec, func(d events.ContinuationCancelled) { r.undelivered(d.Items, "taken back") })
	case events.TypeContinuationDiscarded:
		return with(rec, func(d events.ContinuationDiscarded) { r.undelivered(d.Items, "given up") })
	case events.TypeTurnStarted:
		return with(rec, func(d events.TurnStarted) { r.started(ctx, rec, d) })
	case events.TypeTurnEnded:
		return with(rec, func(d events.TurnEnded) { r.turnEnded(d) })
	case events.TypeTurnReportedLate:
		return with(rec, func(d events.TurnReportedLate) { r.late(d) })
	}
	if done, err := r.foldInvocation(rec); done {
		return err
	}
	return r.foldApproval(rec)
}

func with[T any](rec events.Record, f func(T)) error {
	d, err := events.DataOf[T](rec)
	if err == nil {
		f(d)
	}
	return err
}

func (r *runner) hosted(host events.PrincipalName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host = host
	r.changedLocked()
}

func (r *runner) detached(d events.SessionDetached) {
	r.hosted("")
	if d.Reason == events.DetachHostLost {
		r.front.Notice(fmt.Sprintf("the host %s is gone; messages wait", d.Host))
	}
}

func (r *runner) reset(rec events.Record, d events.SessionReset) {
	r.mu.Lock()
	r.epoch = rec.Epoch
	r.mu.Unlock()
	r.front.Notice(fmt.Sprintf("epoch %s begins: %s", rec.Epoch, d.Reason))
	r.undelivered(d.Dropped, "dropped by the reset")
}

func (r *runner) finalized(d events.SessionFinalized) {
	r.undelivered(d.Invalidated, "the session ended: "+d.Reason)
	if !d.Reset {
		r.hosted("")
		r.front.Notice("the session has ended: " + d.Reason + "; the next message opens it again")
	}
}

func (r *runner) queued(item events.Item) {
	r.mu.Lock()
	own := item.Sender == r.conn.Principal().Name && r.own.known(item.IdempotencyKey, item.Receipt) != nil
	hosted := r.host != ""
	r.mu.Unlock()
	r.front.Message(Message{Sender: item.Sender, Text: item.Body.Text, Own: own, Kind: item.Kind, Hosted: hosted})
}

// undelivered settles own messages that will have no turn.
func (r *runner) undelivered(items []events.ReceiptID, why string) {
	r.mu.Lock()
	n := r.own.settle(items, "")
	r.changedLocked()
	r.mu.Unlock()
	if n > 0 {
		r.front.Notice(fmt.Sprintf("%d of your messages not delivered: %s", n, why))
	}
}

func (r *runner) started(ctx context.Context, rec events.Record, d events.TurnStarted) {
	r.mu.Lock()
	turn := Turn{ID: d.Turn, Host: d.Host, Own: r.own.owns(d.Items), Began: rec.Time}
	r.running, r.host = &turn, d.Host
	r.turns++
	stop := r.stop && turn.Own
	r.stop = r.stop && !stop
	r.changedLocked()
	r.mu.Unlock()
	r.front.Started(turn)
	if early := r.pieces.begin(d.Turn); early != "" {
		r.front.Piece(turn, early)
	}
	if stop {
		r.interruptSoon(ctx, d.Turn)
	}
}

// interruptSoon does not wait: the turn's end comes by this very goroutine.
func (r *runner) interruptSoon(ctx context.Context, turn events.TurnID) {
	r.work.Go(func() {
		if err := r.interrupt(ctx, turn); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("stop", "error", err)
		}
	})
}

func (r *runner) turnEnded(d events.TurnEnded) {
	r.finish(d.Turn, d.Settled, Ended{
		Outcome: d.Outcome, Reply: d.Reply, Truncated: d.ReplyTruncated, Error: d.Error,
	})
}

// finish tells the end of a turn, and only then counts its messages as settled.
func (r *runner) finish(turn events.TurnID, items []events.ReceiptID, e Ended) {
	e.Rest, e.Whole = r.pieces.end(turn, e.Reply, e.Truncated)
	r.mu.Lock()
	e.Turn = Turn{ID: turn, Own: r.own.owns(items)}
	r.own.end(items)
	r.stop = r.stop && r.own.awaitsTurn()
	if r.running != nil && r.running.ID == turn {
		e.Host, e.Began = r.running.Host, r.running.Began
		r.running = nil
	}
	r.mu.Unlock()
	r.front.Ended(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own.settle(items, e.Outcome)
	r.changedLocked()
}

func (r *runner) late(d events.TurnReportedLate) {
	r.front.Ended(Ended{
		Turn: Turn{ID: d.Turn}, Outcome: d.Outcome, Reply: d.Reply, Rest: d.Reply, Error: d.Error, Late: true,
	})
}
