package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"keryx/client/follow"
	"keryx/events"
)

// WaitReceipt waits until an item's receipt is as wanted, and returns it. until is called
// with the receipt as it is, and then for each state that the item goes through from the
// time it was queued, as the session's record tells them. What is asked of the bus
// afterwards is at least as new. Restarts of the bus only make it wait longer. With an
// error the receipt is the last known.
func (c *Conn) WaitReceipt(ctx context.Context, id events.ReceiptID, until func(events.Receipt) bool) (events.Receipt, error) {
	look := func() (events.Receipt, error) {
		return patiently(ctx, func() (events.Receipt, error) { return c.Receipt(ctx, id) })
	}
	r, err := look()
	if err != nil || until(r) {
		return r, err
	}
	cfg := FollowConfig{
		Scopes: []events.Scope{r.Session.Scope()}, From: r.Sequence,
		Types: []string{"turn.*", "continuation.*", "session.finalized", "session.reset"},
	}
	var before []events.Receipt
	for rec, err := range c.Follow(ctx, cfg) {
		was := r
		switch {
		case isPassing(err): // what cannot be read may have been about the item
			now, err := look()
			if err != nil {
				return r, err
			}
			r = now
		case err != nil:
			return r, err
		case !advance(&r, rec):
			continue
		}
		if r != was {
			before = append(before, was)
		}
		if until(r) {
			return r, c.caughtUp(ctx, id, before, r)
		}
	}
	return r, context.Cause(ctx)
}

// caughtUp waits until the bus no longer says what an item was before: an event is heard a
// moment before the authority has taken it in.
func (c *Conn) caughtUp(ctx context.Context, id events.ReceiptID, before []events.Receipt, r events.Receipt) error {
	deadline := time.Now().Add(knownWithin)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		said, err := patiently(ctx, func() (events.Receipt, error) { return c.Receipt(ctx, id) })
		if err != nil || said == r || !slices.Contains(before, said) || time.Now().After(deadline) {
			return err
		}
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// isPassing reports whether a follower goes on behind an error.
func isPassing(err error) bool {
	var hole *HoleError
	var gap *follow.GapError
	return errors.As(err, &hole) || errors.As(err, &gap)
}
